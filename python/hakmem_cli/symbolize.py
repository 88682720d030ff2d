"""`hakmem symbolize`: names, files and lines in place of addresses, in the reports that the library writes."""

from __future__ import annotations

import bisect
import functools
import itertools
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from hakmem_cli.say import CannotError

TOOL = "addr2line"
_TABLES = "nm"  # comes with it
_CALL = re.compile(r"^(?P<start>\s+#\d+ 0x[0-9a-f]+) \((?P<module>.+)\+0x(?P<offset>[0-9a-f]+)\)$")
_DISCRIMINATOR = re.compile(r" \(discriminator \d+\)$")
_UNKNOWN = "??"
_ANY_BYTES = "surrogateescape"  # names of files may not be UTF-8; they pass as they are
_FUNCTION = re.compile(r"(?P<start>[0-9a-f]+) (?P<size>[0-9a-f]+) [TtWwi] (?P<name>.*)")
_MOST_MODULES = 64
"""Whose tables of symbols are remembered: stack after stack goes through the same ones."""


Function = tuple[int, int, str]
"""Start, bytes and name."""


@dataclass(frozen=True)
class _Call:
    start: str
    module: str
    offset: int
    end: str  # of its line


def _call(line: str) -> _Call | None:
    text = line.rstrip("\r\n")
    found = _CALL.match(text)
    if not found:
        return None
    return _Call(found["start"], found["module"], int(found["offset"], 16), line[len(text) :] or "\n")


def ask(module: str, offsets: Iterable[int]) -> dict[int, list[str]]:
    """What addr2line knows of these offsets, inlined functions first; nothing, if it cannot read the module.
    Its words would be in the user's language."""
    if not os.path.isfile(module):
        return {}
    command = [TOOL, "-a", "-f", "-i", "-C", "-p", "-e", module]
    done = subprocess.run(
        command,
        input="".join(f"{offset:#x}\n" for offset in offsets),
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        errors="replace",
    )
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


def _is_placed(place: str) -> bool:
    return not place.partition(" at ")[2].startswith(_UNKNOWN)


@functools.lru_cache(_MOST_MODULES)
def _functions(module: str) -> list[Function]:
    """Of each in the module's tables of symbols, by address."""
    found = []
    for which in ([], ["--dynamic"]):
        command = [_TABLES, "--print-size", "--defined-only", *which, module]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        functions = filter(None, map(_FUNCTION.match, done.stdout.splitlines()))
        found += [(int(one["start"], 16), int(one["size"], 16), one["name"]) for one in functions]
    return sorted(found)


def covering(known: list[Function], address: int) -> str | None:
    """The name of the one that the address lies in; `known` by address."""
    at = bisect.bisect_right(known, (address, 1 << 64, "")) - 1
    if at >= 0 and known[at][0] <= address < known[at][0] + known[at][1]:
        return known[at][2].partition("@")[0]
    return None


def _sure(module: str, known: dict[int, list[str]]) -> dict[int, list[str]]:
    """Where there is no debug information addr2line takes the nearest symbol before, however far that is: there only
    one that covers the offset counts."""
    unplaced = [offset for offset, places in known.items() if not _is_placed(places[-1])]
    functions = _functions(module) if unplaced and shutil.which(_TABLES) is not None else []
    unsure = {offset for offset in unplaced if covering(functions, offset) is None}
    return {offset: places for offset, places in known.items() if offset not in unsure}


def _lines(call: _Call, places: list[str]) -> Iterator[str]:
    for place in places or [_UNKNOWN]:
        function, _, where = place.partition(" at ")
        if function.startswith(_UNKNOWN):
            yield f"{call.start} ({call.module}+{call.offset:#x}){call.end}"
        else:
            file = " " + _DISCRIMINATOR.sub("", where) if _is_placed(place) else ""
            yield f"{call.start} in {function}{file} ({call.module}+{call.offset:#x}){call.end}"


def _known(module: str, offsets: list[int]) -> dict[int, list[str]]:
    """Nothing where the system starts no tool, for want of processes or memory: the report is shown all the same."""
    try:
        return _sure(module, ask(module, offsets))
    except OSError:
        return {}


def _stack(calls: list[_Call]) -> Iterator[str]:
    known = {}
    for module in {call.module for call in calls}:
        known[module] = _known(module, sorted({c.offset for c in calls if c.module == module}))
    for call in calls:
        yield from _lines(call, known[call.module].get(call.offset, []))


def symbolized(lines: Iterable[str]) -> Iterator[str]:
    """The same lines, calls with names, files and lines where there is debug information."""
    parsed = ((line, _call(line)) for line in lines)
    for is_stack, group in itertools.groupby(parsed, key=lambda pair: pair[1] is not None):
        if is_stack:
            yield from _stack([call for _, call in group if call])
        else:
            yield from (line for line, _ in group)


def opened(report: int | str | Path) -> TextIO:
    """To be read: what it does not know passes as it is, ends of lines too."""
    return open(report, encoding="utf-8", errors=_ANY_BYTES, newline="\n")


def _growing(report: TextIO, ended: threading.Event) -> Iterator[str]:
    """Lines as they are appended to the file, until that has ended. A stack waits for the line after it."""
    rest = ""
    while True:
        last = ended.is_set()
        for line in report.read().splitlines(keepends=True):
            rest += line
            if rest.endswith("\n"):
                yield rest
                rest = ""
        if last:
            if rest:
                yield rest
            return
        ended.wait(0.1)


def _pass_on(lines: Iterable[str], to: TextIO) -> None:
    for line in lines:
        to.buffer.write(line.encode(errors=_ANY_BYTES))
        to.flush()


def follow(report: TextIO, ended: threading.Event) -> None:
    """Shows a report on standard error while it is written. If that cannot be written, nobody reads on."""
    lines: Iterable[str] = _growing(report, ended)
    if shutil.which(TOOL) is not None:
        lines = symbolized(lines)
    with suppress(OSError):
        _pass_on(lines, sys.stderr)


def symbolize(path: str | None) -> int:
    if shutil.which(TOOL) is None:
        raise CannotError(f"{TOOL} is not installed (Debian: binutils)")
    with opened(sys.stdin.fileno() if path is None else path) as report:
        _pass_on(symbolized(report), sys.stdout)
    return 0
