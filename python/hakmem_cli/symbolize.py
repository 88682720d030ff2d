"""`hakmem symbolize`: names, files and lines in place of addresses, in the reports that the library writes."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hakmem_cli.say import CannotError

_TOOL = "addr2line"
_CALL = re.compile(r"^(?P<start>\s+#(?P<number>\d+) 0x[0-9a-f]+) \((?P<module>.+)\+0x(?P<offset>[0-9a-f]+)\)$")
_DISCRIMINATOR = re.compile(r" \(discriminator \d+\)$")
_UNKNOWN = "??"


@dataclass(frozen=True)
class _Call:
    start: str
    module: str
    offset: int
    looked_up: int
    """Of a return address, the call before it: a call may be the last instruction of a function."""


def _call(line: str) -> _Call | None:
    found = _CALL.match(line.rstrip("\n"))
    if not found:
        return None
    offset = int(found["offset"], 16)
    return _Call(found["start"], found["module"], offset, offset - (0 if found["number"] == "0" else 1))


def _ask(module: str, offsets: Iterable[int]) -> dict[int, list[str]]:
    """What addr2line knows of these offsets, functions that were inlined first; nothing, if it cannot read the module."""
    if not Path(module).is_file():
        return {}
    command = [_TOOL, "-a", "-f", "-i", "-C", "-p", "-e", module]
    done = subprocess.run(command, input="".join(f"{offset:#x}\n" for offset in offsets), capture_output=True, text=True)
    known: dict[int, list[str]] = {}
    at = -1
    for line in done.stdout.splitlines():
        place = line
        started = re.match(r"0x([0-9a-f]+): (.*)", line)
        if started:
            at = int(started[1], 16)
            place = started[2]
        known.setdefault(at, []).append(place.removeprefix(" (inlined by) "))
    return known


def _lines(call: _Call, places: list[str]) -> Iterator[str]:
    for place in places or [_UNKNOWN]:
        function, _, where = place.partition(" at ")
        if function.startswith(_UNKNOWN):
            yield f"{call.start} ({call.module}+{call.offset:#x})\n"
        else:
            file = "" if where.startswith(_UNKNOWN) else " " + _DISCRIMINATOR.sub("", where)
            yield f"{call.start} in {function}{file} ({call.module}+{call.offset:#x})\n"


def _stack(calls: list[_Call]) -> Iterator[str]:
    modules = {call.module for call in calls}
    known = {module: _ask(module, sorted({c.looked_up for c in calls if c.module == module})) for module in modules}
    for call in calls:
        yield from _lines(call, known[call.module].get(call.looked_up, []))


def symbolized(lines: Iterable[str]) -> Iterator[str]:
    """The same lines, calls with names, files and lines where there is debug information."""
    parsed = ((line, _call(line)) for line in lines)
    for is_stack, group in itertools.groupby(parsed, key=lambda pair: pair[1] is not None):
        if is_stack:
            yield from _stack([call for _, call in group if call])
        else:
            yield from (line for line, _ in group)


def symbolize(path: str | None) -> int:
    if shutil.which(_TOOL) is None:
        raise CannotError(f"{_TOOL} is not installed (Debian: binutils)")
    try:
        with open(path, errors="replace") if path is not None else sys.stdin as report:
            for line in symbolized(report):
                sys.stdout.write(line)
                sys.stdout.flush()
    except OSError as error:
        raise CannotError(f"{path}: {error.strerror}") from error
    return 0
