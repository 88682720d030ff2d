"""Variables that concern the library. What is legal it says itself: a program that does nothing is run with each."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from hakmem_cli import run
from hakmem_observe.checks.finding import Finding, ok, problem, warning

_PREFIX = "HAKMEM_"
_WARNING = "hakmem: warning: "
_POLICY = "HAKMEM_POLICY"
_LIVE = "HAKMEM_LIVE"
_DISABLE = "HAKMEM_DISABLE"
# Files in values: another file is tried in their place, so that nothing is written there.
_FILE = re.compile(r"(^|,)/[^,]*")


class Place(NamedTuple):
    """Where a process finds files: another's may be in a container."""

    root: str = ""
    directory: str = ""  # of relative names

    def path(self, name: str) -> str:
        return f"{self.root}{name}" if os.path.isabs(name) else os.path.join(self.directory, name)


_HERE = Place()


def _is_no_file(name: str, place: Place) -> bool:
    """It is there, but to open it may do more than that: a device, a pipe."""
    path = place.path(name)
    return os.path.exists(path) and not os.path.isfile(path)


def _tried(name: str, value: str, directory: str, place: Place) -> str:
    """A learned policy is only read by a program that does not learn, and the question is what is in it. Live pages lie
    in a directory that is there."""
    if name == _POLICY:
        return place.path(value) if os.path.isabs(value) else value
    return _FILE.sub(rf"\1{directory}" if name == _LIVE else rf"\1{directory}/file", value)


def _complaint(library: Path, entry: tuple[str, str], place: Place) -> str:
    """The library's warning of this variable; empty if there is none."""
    name, value = entry
    if name == _POLICY and os.path.isabs(value) and _is_no_file(value, place):
        return f"{name}={value}: no regular file"
    with tempfile.TemporaryDirectory() as directory:
        try:
            done = subprocess.run(
                ["/bin/true"],
                env={"LD_PRELOAD": str(library), name: _tried(name, value, directory, place)},
                cwd=directory,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=20,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired, ValueError):
            return ""
    lines = [line for line in done.stderr.splitlines() if line.startswith(_WARNING)]
    return lines[0].removeprefix(_WARNING).replace(f"{place.root}/", "/") if lines else ""


def _is_missing(file: str, place: Place) -> bool:
    """Of a name with `$LIB` and the like only the loader knows what it stands for."""
    return "$" not in file and not os.path.isfile(place.path(file))


def _check_preload(value: str, place: Place) -> Iterator[Finding]:
    files = [word for word in value.replace(":", " ").split() if word]
    missing = [file for file in files if "/" in file and _is_missing(file, place)]
    for file in missing:
        if not Path(file).name.startswith("libhakmem"):
            yield warning(f"LD_PRELOAD names {file}, which is not there", "the loader says so in each program")
    for i, file in enumerate(files):
        if Path(file).name.startswith("libhakmem"):
            if _is_missing(file, place):
                yield problem(f"LD_PRELOAD names {file}, which is not there", "name the library's absolute path")
            elif i > 0:
                advice = "put the library first, if one of the others has malloc too"
                yield warning(f"LD_PRELOAD names the library after {', '.join(files[:i])}", advice)
            else:
                yield ok("LD_PRELOAD names the library here")
            return
    others = [file for file in files if file not in missing]
    if others:
        yield ok(f"LD_PRELOAD is in use here ({', '.join(others)}); `hakmem run` puts the library before that")


def _is_still_learned(variables: Mapping[str, str], place: Place) -> bool:
    """The policy, whose file is made when the program ends."""
    path = variables.get(_POLICY, "")
    return run.learns(variables) and os.path.isabs(path) and not os.path.exists(place.path(path))


def check_library(library: Path) -> Iterator[Finding]:
    """Where it lies `run` may refuse it."""
    reason = run.why_not_preloaded(str(library))
    if reason is not None:
        yield problem(reason, "move the repository, or install the library elsewhere")


def check(variables: Mapping[str, str], library: Path, place: Place = _HERE) -> Iterator[Finding]:
    yield from _check_preload(variables.get("LD_PRELOAD", ""), place)
    disable = variables.get(_DISABLE, "0")
    if disable == "1":
        yield warning(f"{_DISABLE}=1: `hakmem run` starts programs without the library", f"unset {_DISABLE}")
    elif disable != "0":
        yield warning(f"{_DISABLE}={disable}: legal values are 0, 1; using 0", f"correct or unset {_DISABLE}")
    fine = []
    for name, value in sorted(variables.items()):
        if not name.startswith(_PREFIX) or (name == _DISABLE and value != "0"):
            continue
        is_fine = name == _POLICY and _is_still_learned(variables, place)
        complaint = "" if is_fine else _complaint(library, (name, value), place)
        if complaint:
            yield warning(complaint, f"correct or unset {name}")
        else:
            fine.append(f"{name}={value}")
    if fine:
        yield ok(f"set here: {', '.join(fine)}")
    elif not any(name.startswith(_PREFIX) for name in variables):
        yield ok("no HAKMEM_ variable is set")
