"""One policy out of many machines'. A machine's word weighs as much as the epochs it has learned in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hakmem_cli.policy_text import Line, Part

_MOST_NUMBER = (1 << 32) - 1


def _weight(part: Part) -> int:
    return max(part.epochs, 1)


def _median(votes: list[tuple[int, int]]) -> int:
    """Of values and their weights: a value that somebody has tried, and no more than half say less or more."""
    votes = sorted(votes)
    half = sum(weight for _, weight in votes) / 2
    below = 0
    for value, weight in votes:
        below += weight
        if below >= half:
            return value
    raise AssertionError("there are votes")


def _knob(found: list[tuple[Part, Line]]) -> Line:
    value = _median([(int(line.rest), _weight(part)) for part, line in found])
    comment = next((line.comment for _, line in found if line.comment), "")
    return replace(found[0][1], rest=str(value), comment=comment)


def _class(found: list[tuple[Part, Line]]) -> Line:
    """`class SIZE evidence N`: evidence adds up."""
    line = found[0][1]
    counts = [one.rest.split() for _, one in found]
    if all(len(words) == 2 and words[0] == "evidence" and words[1].isdigit() for words in counts):
        return replace(line, rest=f"evidence {sum(int(words[1]) for words in counts)}")
    return _of_the_most(found)


def _of_the_most(found: list[tuple[Part, Line]]) -> Line:
    return max(found, key=lambda one: _weight(one[0]))[1]


_MERGE: dict[str, Callable[[list[tuple[Part, Line]]], Line]] = {"knob": _knob, "class": _class}


def _lines(parts: list[Part]) -> list[Line]:
    """Who has no line for something has found nothing better than the mode's value: a vote against any line."""
    found: dict[tuple[str, str], list[tuple[Part, Line]]] = {}
    for part in parts:
        for line in {(line.kind, line.name): line for line in part.lines}.values():
            found.setdefault((line.kind, line.name), []).append((part, line))
    everybody = sum(_weight(part) for part in parts)
    kept = []
    for (kind, _), some in found.items():
        # A site is seen where the program runs through it; that others have not seen it says nothing.
        if kind == "site" or 2 * sum(_weight(part) for part, _ in some) > everybody:
            kept.append(_MERGE.get(kind, _of_the_most)(some))
    order = ("knob", "class", "site")
    return sorted(
        kept, key=lambda line: (order.index(line.kind), line.name.partition("[")[0], line.index or 0, line.name)
    )


def _merged(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    weight = sum(_weight(part) for part in parts)
    return Part(
        path=max(parts, key=_weight).path,
        build_id=parts[0].build_id,
        size=parts[0].size,
        epochs=min(sum(part.epochs for part in parts), _MOST_NUMBER),
        seconds=min(sum(part.seconds for part in parts), _MOST_NUMBER),
        saved=round(sum(part.saved * _weight(part) for part in parts) / weight),
        lines=_lines(parts),
    )


def merge(files: list[list[Part]]) -> list[Part]:
    """Programs in the order of their first file."""
    found: dict[tuple[str, ...], list[Part]] = {}
    for parts in files:
        for part in parts:
            found.setdefault(part.key, []).append(part)
    return [_merged(parts) for parts in found.values()]
