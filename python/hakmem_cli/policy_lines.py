"""The lines of what was learned, as the library takes them: which knobs there are, and within which limits
(src/config/knobs.c, src/learn/class_lines.c, site_lines.c). tests/py/test_policy.py has both read the same."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CLASSES = 64
BINS = 16
_KIB = 1 << 10
_MIB = 1 << 20
_GIB = 1 << 30
_TIB = 1 << 40
_SMALL_MOST = 32 * _KIB
_CLASS_STEP = 16
_KEEPS = (0, 1, 2, 4, 8)


@dataclass(frozen=True)
class Knob:
    """How many values it has, and what each may be."""

    count: int
    least: int
    most: int


KNOBS = {
    "magazine_bytes": Knob(_CLASSES, 64, _MIB),
    "batch_eighths": Knob(_CLASSES, 1, 8),
    "thread_cache_bytes": Knob(1, 64 * _KIB, 256 * _MIB),
    "bigcache_bytes": Knob(1, 0, 64 * _GIB),
    "bigcache_ms": Knob(BINS, 0, 60000),
    "kept_most_bytes": Knob(1, 0, _TIB),
    "purge_ms": Knob(1, 0, 60000),
    "purge_doublings": Knob(1, 0, 6),
    "huge_fill": Knob(1, 50, 100),
}


@dataclass(frozen=True)
class Line:
    """One thing that was learned: `knob purge_ms 2000`."""

    kind: str
    name: str
    rest: str
    comment: str = ""

    @property
    def text(self) -> str:
        words = " ".join(word for word in (self.kind, self.name, self.rest) if word)
        return f"{words} # {self.comment}" if self.comment else words

    @property
    def knob(self) -> str:
        """Without its index."""
        return self.name.partition("[")[0]

    @property
    def index(self) -> int | None:
        """Of `NAME[INDEX]`."""
        found = re.fullmatch(r".*\[(\d+)\]", self.name)
        return int(found[1]) if found else None


def number(text: str, most: int) -> int | None:
    """None: it is none, or more."""
    if not re.fullmatch("[0-9]+", text) or int(text) > most:
        return None
    return int(text)


def number_of(name: str, text: str, most: int) -> int:
    value = number(text, most)
    if value is None:
        raise ValueError(f"{name} needs a number, up to {most}")
    return value


def _check_knob(word: str, value: str) -> None:
    name, bracket, index = word.partition("[")
    knob = KNOBS.get(name)
    if knob is None:
        raise ValueError("no such knob")
    if bracket and knob.count == 1:
        raise ValueError(f"{name} has no index")
    if bracket and (not index.endswith("]") or number(index[:-1], knob.count - 1) is None):
        raise ValueError(f"{name} needs an index from 0 to {knob.count - 1}")
    found = number(value, knob.most)
    if found is None or found < knob.least:
        raise ValueError(f"{name} is {knob.least} to {knob.most}")


def _check_class(size: str, word: str, refills: str) -> None:
    of = number_of("class", size, _SMALL_MOST)
    if of == 0 or of % _CLASS_STEP != 0:
        raise ValueError(f"a class has a multiple of {_CLASS_STEP} bytes")
    if word != "evidence":
        raise ValueError("behind a class comes evidence")
    number_of("evidence", refills, (1 << 64) - 1)


def _check_site(site: str, word: str, times: str) -> None:
    if not re.fullmatch("0x[0-9a-f]{1,16}", site) or int(site, 16) == 0:
        raise ValueError("a site is 0x and up to 16 hexadecimal digits")
    if word != "keep":
        raise ValueError("behind a site comes keep")
    if number_of("keep", times, _KEEPS[-1]) not in _KEEPS:
        raise ValueError(f"keep is {', '.join(map(str, _KEEPS[:-1]))} or {_KEEPS[-1]}")


_CHECKS = {"knob": (2, _check_knob), "class": (3, _check_class), "site": (3, _check_site)}
KINDS = tuple(_CHECKS)


def learned(kind: str, words: list[str], comment: str) -> Line:
    """The line of these words. ValueError: what the library says of it."""
    count, check = _CHECKS[kind]
    check(*(words + [""] * count)[:count])
    if len(words) > count:
        raise ValueError("there is more behind it than belongs there")
    return Line(kind, words[0], " ".join(words[1:]), comment)
