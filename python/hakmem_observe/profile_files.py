"""Profiles in files: any form is read, known by its content; each form is written."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from hakmem_cli.say import CannotError
from hakmem_observe import collapsed, heap_profile, pprof, symbols
from hakmem_observe.heap_profile import NotAProfileError
from hakmem_observe.stacks import Profile

FORMATS = {"pprof": ".pb.gz", "collapsed": ".collapsed", "heap_v2": ".heap"}
"""And how their names end."""


def is_profile(data: bytes) -> bool:
    """Or at least means to be one."""
    return data.startswith((pprof.MAGIC, b"heap profile:"))


def read(path: Path) -> Profile:
    return decode(read_bytes(path), str(path))


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CannotError(f"{path}: {error.strerror}") from error


def decode(data: bytes, name: str, roots: Iterable[Path] = (Path("/"),)) -> Profile:
    """`roots`: where the process's programs and libraries are."""
    try:
        if data.startswith(pprof.MAGIC):
            return pprof.decode(data)
        return symbols.resolve(heap_profile.parse(data.decode(errors="replace")), roots)
    except NotAProfileError as error:
        raise CannotError(f"{name}: {error}") from error


def encode(data: bytes, profile: Profile, form: str, what: str) -> bytes:
    """`data`: what the profile was read from."""
    if form == "pprof":
        return pprof.encode(profile)
    if form == "collapsed":
        return collapsed.encode(profile, what).encode()
    if data.startswith(pprof.MAGIC):
        raise CannotError("a .pb.gz file cannot be turned back into heap_v2; legal are pprof, collapsed")
    return data


def target(output: str | None, default: str, *, force: bool) -> Path:
    """Where to write, looked at before the work is done."""
    path = Path(output or default)
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "is a directory" if path.is_dir() else "no such directory"
        raise CannotError(f"{path}: {what}; legal is a file that can be written")
    if path.exists() and not force:
        raise CannotError(f"{path}: exists; --force writes over it, --output FILE writes elsewhere")
    return path


def write(path: Path, data: bytes, *, force: bool) -> None:
    """Whole or not at all."""
    part = path.with_name(f"{path.name}.{time.time_ns()}.part")
    try:
        part.write_bytes(data)
        if force:
            part.replace(path)
        else:
            os.link(part, path)
    except OSError as error:
        raise CannotError(f"{path}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
