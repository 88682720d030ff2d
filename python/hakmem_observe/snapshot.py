"""Statistics of a process at one moment: what the library writes as JSON (schema hakmem-stats), and what is read from a
process's memory. Unknown keys are kept."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Union

from hakmem_cli.say import CannotError, say

SCHEMA = "hakmem-stats"
VERSION = 1

Number = Union[int, float, None]

# The parts of "memory" that do not overlap, in the order in which they are stacked.
PARTS = (
    "small_live_bytes",
    "large_live_bytes",
    "checked_live_bytes",
    "sampled_live_bytes",
    "cached_bytes",
    "slab_free_bytes",
    "stock_bytes",
    "bigcache_bytes",
    "dirty_bytes",
    "metadata_bytes",
)
# Of them, those that only some processes have: not shown while they are 0.
RARE_PARTS = ("checked_live_bytes", "sampled_live_bytes")

_LARGEST_FILE = 1 << 30
_UNLIMITED = 1 << 62


@dataclass(frozen=True)
class Snapshot:
    pid: int
    unix_ms: int
    uptime_ms: int = 0
    library: str = ""
    mode: str = ""  # "balanced", ...; "" if the library does not say
    memory: dict[str, Number] = field(default_factory=dict)  # gauges in bytes; None: there is no such limit
    counters: dict[str, Number] = field(default_factory=dict)  # sums since the process's start
    classes: list[dict[str, Any]] = field(default_factory=list)  # "class", "size", "live_blocks", ...
    threads: list[dict[str, Any]] = field(default_factory=list)  # "heap", "thread" (0: nobody has the heap), ...
    locks: list[dict[str, Any]] = field(default_factory=list)  # "name", "taken", "waits"
    os: dict[str, Number] = field(default_factory=dict)  # system calls, by name
    profile: dict[str, Number] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)  # what this version does not know, as it came ("learner", ...)
    about: dict[str, str] = field(default_factory=dict)  # what a name means, as the library says; not in the JSON

    def part(self, name: str) -> int:
        """Of "memory", 0 if it is not there."""
        return int(self.memory.get(name) or 0)

    @property
    def live_bytes(self) -> int:
        return sum(self.part(name) for name in PARTS if name.endswith("_live_bytes"))

    @property
    def parts_bytes(self) -> int:
        """All parts that do not overlap."""
        return sum(self.part(name) for name in PARTS)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "library": self.library,
            "pid": self.pid,
            "unix_ms": self.unix_ms,
            "uptime_ms": self.uptime_ms,
            **({"mode": self.mode} if self.mode else {}),
            "memory": self.memory,
            "counters": self.counters,
            "classes": self.classes,
            "threads": self.threads,
            "locks": self.locks,
            "os": self.os,
            "profile": self.profile,
            **self.more,
        }

    def to_line(self) -> str:
        return json.dumps(self.to_json(), separators=(",", ":"))


_NUMBERS = ("pid", "unix_ms", "uptime_ms")
_TABLES = ("memory", "counters", "os", "profile")
_LISTS = ("classes", "threads", "locks")
_KNOWN = ("schema", "version", "library", "mode", *_NUMBERS, *_TABLES, *_LISTS)


def _gauge(name: str, value: Number) -> Number:
    if name.endswith("_limit_bytes"):
        return value if 0 < (value or 0) < _UNLIMITED else None
    # Words that are read one after the other may sum up to less than nothing.
    return 0 if (value or 0) >= 1 << 63 else value


def sound_memory(memory: dict[str, Number]) -> dict[str, Number]:
    """Limits that are none, or not looked up yet, are None."""
    return {name: _gauge(name, value) for name, value in memory.items()}


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _table(told: Any, key: str, where: str) -> dict[str, Number]:
    table = told.get(key, {})
    if not isinstance(table, dict) or not all(map(_is_number, table.values())):
        raise CannotError(f'{where}: "{key}" is no object of numbers')
    return table


def _list(told: Any, key: str, where: str) -> list[dict[str, Any]]:
    rows = told.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CannotError(f'{where}: "{key}" is no list of objects')
    for row in rows:
        for name, value in row.items():
            is_word = key == "locks" and name == "name"
            if not (isinstance(value, str) if is_word else _is_number(value)):
                raise CannotError(f'{where}: "{key}": "{name}" is no number: {json.dumps(value)[:40]}')
    return rows


def from_json(told: Any, where: str) -> Snapshot:
    """`where` names the source in errors."""
    if not isinstance(told, dict) or told.get("schema") != SCHEMA:
        found = told.get("schema") if isinstance(told, dict) else None
        what = f'its "schema" is {json.dumps(found)[:40]}' if found is not None else 'it has no "schema"'
        raise CannotError(f'{where}: not statistics of hakmem: {what}; legal is "{SCHEMA}", see HAKMEM_STATS')
    if told.get("version") != VERSION:
        raise CannotError(f'{where}: "version" is {json.dumps(told.get("version"))[:40]}; legal is {VERSION}')
    for key in _NUMBERS:
        value = told.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int):
            raise CannotError(f'{where}: "{key}" is no whole number: {json.dumps(value)[:40]}')
    tables = {key: _table(told, key, where) for key in _TABLES}
    tables["memory"] = sound_memory(tables["memory"])
    return Snapshot(
        **{key: told.get(key, 0) for key in _NUMBERS},
        library=str(told.get("library", "")),
        mode=str(told.get("mode", "")),
        memory=tables["memory"],
        counters=tables["counters"],
        classes=_list(told, "classes", where),
        threads=_list(told, "threads", where),
        locks=_list(told, "locks", where),
        os=tables["os"],
        profile=tables["profile"],
        more={key: value for key, value in told.items() if key not in _KNOWN},
    )


_MOST_NUMBER = 1e40
"""More than a sum of words of 64 bits can be. What is larger would not survive being multiplied."""


def _whole(text: str) -> int:
    if len(text) > len(f"{_MOST_NUMBER:.0f}"):
        _refuse(text)
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if not -_MOST_NUMBER <= value <= _MOST_NUMBER:
        _refuse(text)
    return value


def _refuse(text: str) -> NoReturn:
    """NaN and Infinity too, which are no JSON."""
    raise ValueError(f"{text[:40]} is no number here; legal are up to {_MOST_NUMBER:g}")


DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_real, parse_constant=_refuse)

_WORD = re.compile(r"[^ \t\r\n]")
_OBJECT = re.compile(r'\{\s*"schema"')  # as the library begins one


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - text.rfind(chr(10), 0, position)}"


def _next(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.search(text, position)
    return found.start() if found else len(text)


def _at(told: Any, where: str, text: str, position: int) -> Snapshot:
    """Who is refused is told the place, if there is a text: to find it for each would read all before it anew."""
    try:
        return from_json(told, where)
    except CannotError:
        if not text:
            raise
        return from_json(told, f"{where}: {_place(text, position)}")


def _is_foreign(told: Any) -> bool:
    """Something else that was written to the same file: a log may be JSON, too."""
    return not isinstance(told, dict) or "schema" not in told


def parse_series(text: str, where: str) -> list[Snapshot]:
    """All objects of the text, one or more. What is torn or another's is left out, unless there is nothing else."""
    series: list[Snapshot] = []
    torn = 0
    first_torn = ""
    position = _next(_WORD, text, 0)
    while position < len(text):
        is_first = not series and not torn
        try:
            if text[position] != "{" and (not is_first or _OBJECT.search(text)):
                raise json.JSONDecodeError("Expecting an object", text, position)
            told, end = DECODER.raw_decode(text, position)
            if _is_foreign(told) and (series or _OBJECT.search(text, end)):
                raise json.JSONDecodeError("not an object of hakmem", text, position)
        except (ValueError, RecursionError) as error:
            at = error.pos if isinstance(error, json.JSONDecodeError) else position
            reason = "too deep" if isinstance(error, RecursionError) else getattr(error, "msg", str(error))
            first_torn = first_torn or f"no JSON at {_place(text, at)}: {reason}"
            torn += 1
            position = _next(_OBJECT, text, position + 1)
            continue
        series.append(_at(told, where, "" if is_first else text, position))
        position = _next(_WORD, text, end)
    if torn and not series:
        raise CannotError(f"{where}: {first_torn}; legal is a statistics file")
    if torn:
        what = "torn, cut off or foreign"
        say(f"warning: {where}: {what} at {torn} place(s), and read without them; the first: {first_torn}")
    if not series:
        raise CannotError(f"{where}: the file is empty; legal is a statistics file, see HAKMEM_STATS")
    return series


def is_series(data: bytes) -> bool:
    """Or at least means to be one; a log may come before it."""
    return data.lstrip()[:1] == b"{" or re.search(_OBJECT.pattern.encode(), data) is not None


def decode_series(data: bytes, where: str) -> list[Snapshot]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not is_series(data):
            raise CannotError(f"{where}: no text; legal is a statistics file, see HAKMEM_STATS") from error
        text = data.decode(errors="replace")  # a log has anything in it, names of files among it
    return parse_series(text, where)


def read_series(path: Path) -> list[Snapshot]:
    """Of a file of statistics: one object, or a series of them."""
    try:
        if not path.is_file():
            kind = "a directory" if path.is_dir() else "no regular file"
            raise CannotError(f"{path}: {'no such file' if not path.exists() else kind}; legal is a statistics file")
        if path.stat().st_size > _LARGEST_FILE:
            raise CannotError(f"{path}: larger than 1 GiB; legal is a statistics file")
        data = path.read_bytes()
    except OSError as error:
        raise CannotError(f"{path}: {error.strerror}") from error
    return decode_series(data, str(path))
