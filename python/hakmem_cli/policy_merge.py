"""One policy out of many machines'. A machine's word weighs as much as the epochs it has learned in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hakmem_cli.policy_lines import KINDS, KNOBS, Line
from hakmem_cli.policy_text import Part

_MOST_NUMBER = (1 << 32) - 1
_MOST_EVIDENCE = (1 << 64) - 1


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
    evidence = sum(int(line.rest.removeprefix("evidence ")) for _, line in found)
    return replace(found[0][1], rest=f"evidence {min(evidence, _MOST_EVIDENCE)}")


def _of_the_most(found: list[tuple[Part, Line]]) -> Line:
    return max(found, key=lambda one: _weight(one[0]))[1]


_MERGE: dict[str, Callable[[list[tuple[Part, Line]]], Line]] = {"knob": _knob, "class": _class}


def _in_force(part: Part) -> dict[tuple[str, str], Line]:
    """A knob without an index sets all of its name; of two lines the later counts."""
    found = {}
    for line in part.lines:
        names = [line.name]
        if line.kind == "knob" and line.index is None and KNOBS[line.knob].count > 1:
            names = [f"{line.name}[{index}]" for index in range(KNOBS[line.knob].count)]
        for name in names:
            found[line.kind, name] = replace(line, name=name)
    return found


def _one_line_each(lines: list[Line]) -> list[Line]:
    """A knob all of whose indices say the same needs none, and keeps a comment if that is the same, too."""
    values: dict[str, list[Line]] = {}
    for line in lines:
        if line.kind == "knob" and line.index is not None:
            values.setdefault(line.knob, []).append(line)
    same = {
        knob
        for knob, some in values.items()
        if len(some) == KNOBS[knob].count and len({line.rest for line in some}) == 1
    }
    comments = {knob: {line.comment for line in values[knob]} for knob in same}
    return [
        replace(line, name=line.knob, comment=line.comment if len(comments[line.knob]) == 1 else "")
        if line.knob in same
        else line
        for line in lines
        if line.knob not in same or line.index == 0
    ]


def _place(line: Line) -> tuple[int, str, int]:
    number = int(line.name) if line.kind == "class" else line.index or 0
    return KINDS.index(line.kind), "" if line.kind == "class" else line.knob, number


def _lines(parts: list[Part]) -> list[Line]:
    """Who has no line for something has found nothing better than the mode's value: a vote against any line."""
    found: dict[tuple[str, str], list[tuple[Part, Line]]] = {}
    for part in parts:
        for key, line in _in_force(part).items():
            found.setdefault(key, []).append((part, line))
    everybody = sum(_weight(part) for part in parts)
    kept = []
    for (kind, _), some in found.items():
        # A site is seen where the program runs through it; that others have not seen it says nothing.
        if kind == "site" or 2 * sum(_weight(part) for part, _ in some) > everybody:
            kept.append(_MERGE.get(kind, _of_the_most)(some))
    return _one_line_each(sorted(kept, key=_place))


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
