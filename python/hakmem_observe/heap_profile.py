"""The profile that the library writes: text, heap_v2 with comments of its own. Read strictly."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from hakmem_observe.stacks import LIFETIMES, Amount, Module

_NUMBER = r"(\d{1,18})"
_TOTALS = rf" *{_NUMBER}: *{_NUMBER} *\[ *{_NUMBER}: *{_NUMBER}\]"
_HEADER = re.compile(rf"heap profile:{_TOTALS} *@ heap_v2/{_NUMBER}")
_OWN = re.compile(rf"# hakmem-profile {_NUMBER}((?: \w+=\S*)*)")
_SITE = re.compile(rf"{_TOTALS} @((?: 0x[0-9a-f]{{1,16}})*)")
_PEAK = re.compile(rf"# peak {_NUMBER} {_NUMBER} lifetimes((?: \d{{1,18}}){{{len(LIFETIMES)}}})")
_BUILD_ID = re.compile(r"# build-id 0x([0-9a-f]{1,16}) ((?:[0-9a-f]{2}){1,64})(?: .*)?")
_MAPS = "MAPPED_LIBRARIES:"
_NO_MAPS = "# no mappings"
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) [0-9a-f]+:[0-9a-f]+ \d+(?: +(.*))?")
_VERSION = 1
_REQUIRED = ("pid", "rate", "started_ms", "now_ms")
_TIMES = ("started_ms", "now_ms")
_LATEST_MS = 9 * 10**12
"""In the year 2255: pprof has nanoseconds in 64 bits."""


class NotAProfileError(Exception):
    """The text is none; the message says in one line why."""


@dataclass(frozen=True)
class Sampled:
    """A line of the file: samples of one stack and size class, as they were counted."""

    stack: tuple[int, ...]
    """Return addresses, innermost first."""
    live: Amount
    allocated: Amount
    peak: Amount
    lifetimes: tuple[int, ...]


@dataclass(frozen=True)
class HeapProfile:
    facts: dict[str, int]
    """Of the line of comments: pid, rate, started_ms, now_ms, dropped, peak_bytes."""
    sampled: list[Sampled]
    modules: list[Module]
    """Those parts of files (and of no file) with code in them. None: the process could not read its mappings."""


def scale(amount: Amount, rate: int) -> Amount:
    """What so many samples stand for. As pprof: the chance that a block of S bytes is sampled is 1 - exp(-S / rate)."""
    if amount.objects == 0 or amount.bytes == 0:
        return Amount()
    if rate <= 1:
        return amount
    part = amount.bytes / amount.objects / rate
    # For the smallest parts the difference is 0, and they are their own chance.
    factor = 1 / (1 - math.exp(-part) or part)
    return Amount(int(amount.objects * factor), int(amount.bytes * factor))


def of_process(told: bytes, pid: int) -> bytes:
    """A profile's text under the number that the process has here: in a container it knows itself by another."""
    return re.sub(rb"^(# hakmem-profile \d+ pid=)\d+", rb"\g<1>%d" % pid, told, count=1, flags=re.MULTILINE)


def lacks_mappings(told: bytes) -> bool:
    """The process could not read them itself: in a root without /proc."""
    return told.endswith(f"{_MAPS}\n{_NO_MAPS}\n".encode())


def with_mappings(told: bytes, mappings: bytes) -> bytes:
    """The same with a process's mappings, if it lacks them."""
    return told.removesuffix(f"{_NO_MAPS}\n".encode()) + mappings if lacks_mappings(told) else told


def parse(text: str) -> HeapProfile:
    if not text.endswith("\n"):
        header = text.partition("\n")[0]
        raise NotAProfileError("truncated: the last line has no end" if _HEADER.fullmatch(header) else _FOREIGN)
    lines = text.split("\n")[:-1]
    if not lines or not (header_found := _HEADER.fullmatch(lines[0])):
        raise NotAProfileError(_FOREIGN)
    if len(lines) < 2 or not (own := _OWN.fullmatch(lines[1])):
        raise NotAProfileError("a heap profile, but not one that hakmem wrote (no line '# hakmem-profile')")
    if int(own[1]) != _VERSION:
        raise NotAProfileError(f"a profile of version {own[1]}; this tool reads version {_VERSION}")
    facts = _facts(own[2], period=int(header_found[5]))
    if _MAPS not in lines:
        raise NotAProfileError(f"truncated: no line '{_MAPS}'")
    end = lines.index(_MAPS)
    modules = _modules(lines[end + 1 :], end + 2, _build_ids(lines[2:end]))
    return HeapProfile(facts, _sampled(lines[2:end]), modules)


_FOREIGN = "not a heap profile (legal are heap_v2 files that hakmem wrote, and .pb.gz files of `hakmem prof`)"


def _facts(text: str, period: int) -> dict[str, int]:
    facts = {"dropped": 0, "peak_bytes": 0}
    for word in text.split():
        name, _, value = word.partition("=")
        if name in (*_REQUIRED, *facts) and not re.fullmatch(_NUMBER, value):
            raise NotAProfileError(f"line 2: {name}={value}: not a number")
        if re.fullmatch(_NUMBER, value):
            facts[name] = int(value)
        if name in _TIMES and facts[name] > _LATEST_MS:
            raise NotAProfileError(f"line 2: {name}={value}: legal are up to {_LATEST_MS}")
    for name in _REQUIRED:
        if name not in facts:
            raise NotAProfileError(f"line 2: no {name}=")
    if facts["rate"] != period:
        raise NotAProfileError(f"line 1 says one sample in {period} bytes, line 2 in {facts['rate']}")
    return facts


def _sampled(lines: list[str]) -> list[Sampled]:
    """Comments that this version does not know are passed over."""
    found: list[Sampled] = []
    for number, line in enumerate(lines, start=3):
        if line.startswith("# peak"):
            peak = _PEAK.fullmatch(line)
            if not peak or not found:
                raise NotAProfileError(f"line {number}: {line[:60]!r}: not a line of a site's peak")
            last = found[-1]
            lifetimes = tuple(int(word) for word in peak[3].split())
            amount = Amount(int(peak[1]), int(peak[2]))
            found[-1] = Sampled(last.stack, last.live, last.allocated, amount, lifetimes)
        elif line and not line.startswith("#"):
            found.append(_site(line, number))
    return found


def _site(line: str, number: int) -> Sampled:
    site = _SITE.fullmatch(line)
    if not site:
        raise NotAProfileError(f"line {number}: {line[:60]!r}: not a line of a site")
    live, allocated = Amount(int(site[1]), int(site[2])), Amount(int(site[3]), int(site[4]))
    if (live.bytes and not live.objects) or (allocated.bytes and not allocated.objects):
        raise NotAProfileError(f"line {number}: bytes of no objects")
    stack = tuple(int(word, 16) for word in site[5].split())
    return Sampled(stack, live, allocated, Amount(), (0,) * len(LIFETIMES))


def _build_ids(lines: list[str]) -> dict[int, str]:
    """Where the beginnings of files are mapped: what the linker has given these to be known by."""
    found: dict[int, str] = {}
    for number, line in enumerate(lines, start=3):
        if line.startswith("# build-id"):
            named = _BUILD_ID.fullmatch(line)
            if not named:
                raise NotAProfileError(f"line {number}: {line[:60]!r}: not a line of a build id")
            found[int(named[1], 16)] = named[2]
    return found


def _modules(lines: list[str], first: int, build_ids: dict[int, str]) -> list[Module]:
    modules = []
    of_path: dict[str, str] = {}
    for number, line in enumerate(lines, start=first):
        if not line or line.startswith("#"):
            continue
        mapping = _MAPPING.fullmatch(line)
        if not mapping:
            raise NotAProfileError(f"line {number}: {line[:60]!r}: not a line of /proc/PID/maps")
        start, path = int(mapping[1], 16), (mapping[5] or "").strip()
        if path and start in build_ids:
            of_path[path] = build_ids[start]
        if "x" in mapping[3]:
            build_id = of_path.get(path, "")
            modules.append(Module(start, int(mapping[2], 16), int(mapping[4], 16), path, build_id))
    if not modules and _NO_MAPS not in lines:
        raise NotAProfileError("truncated: no mappings at the end")
    return modules
