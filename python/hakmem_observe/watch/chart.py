"""The stacked chart of memory by state over time, drawn with characters."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.style import Style
from rich.text import Text

from hakmem_observe import words

COLOURS = ("#4e9af1", "#8e6cef", "#d16bb8", "#f2a7c3", "#4cc38a", "#a3c14a", "#d9b53f", "#e58b45", "#e0605e", "#8a8f98")
# Without colours states differ by these.
MARKS = "█▓@%▒░#=+."

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_AXIS = 10


def is_plain() -> bool:
    return bool(os.environ.get("NO_COLOR"))


def mark(state: int) -> Text:
    return Text(MARKS[state]) if is_plain() else Text("■", COLOURS[state])


def _state_at(tops: Sequence[float], level: float) -> int | None:
    """Which state is at this height; None: above all."""
    return next((i for i, top in enumerate(tops) if level < top), None)


def _cell(tops: Sequence[float], row: int) -> tuple[str, Style]:
    """Row 0 is the lowest; heights are in rows."""
    lower = _state_at(tops, row + 1 / 16)
    if lower is None:
        return " ", Style.null()
    if is_plain():
        middle = _state_at(tops, row + 0.5)
        return (" " if middle is None else MARKS[middle]), Style.null()
    upper = _state_at(tops, row + 15 / 16)
    eighths = 8 if upper == lower else min(8, max(1, round((tops[lower] - row) * 8)))
    colour = COLOURS[lower]
    return _EIGHTHS[eighths], Style(color=colour, bgcolor=None if upper in (lower, None) else COLOURS[upper or 0])


def _nice(most: float) -> float:
    """The chart's top: a little more than the most, at a number that can be read."""
    step = 1024.0
    while step < most:
        for factor in (1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8):
            if step * factor >= most:
                return step * factor
        step *= 8
    return step


def draw(samples: Sequence[Sequence[int]], seconds: Sequence[float], width: int, height: int) -> Text:
    """Samples are bytes of each state, the newest last: one a column."""
    columns, rows = max(1, width - _AXIS), max(1, height - 1)
    shown = list(samples)[-columns:]
    top = _nice(max((sum(sample) for sample in shown), default=0))
    tops = []
    for sample in shown:
        level = 0.0
        heights = []
        for part in sample:
            level += part / top * rows
            heights.append(level)
        tops.append(heights)
    text = Text(no_wrap=True)
    for row in range(rows - 1, -1, -1):
        labelled = row in (rows - 1, 0) or (rows >= 8 and row == rows // 2)
        label = (
            words.count_bytes(top * (row + (row == rows - 1)) / rows) if labelled and row else "0" if not row else ""
        )
        text.append(f"{label:>{_AXIS - 2}} {'┤' if labelled else '│'}", "dim")
        text.append(" " * (columns - len(tops)))
        for heights in tops:
            text.append(*_cell(heights, row))
        text.append("\n")
    past = sum(list(seconds)[-len(tops) + 1 :]) if len(tops) > 1 else 0
    ages = f"{past:.0f} s ago"
    if len(tops) < columns // 3:
        ages = ""
    gap = columns - len(tops)
    text.append(" " * (_AXIS - 1) + "└", "dim")
    line = (" " * gap + ages).ljust(columns - 3)[: columns - 3] + "now"
    text.append(line, "dim")
    return text


def sparkline(values: Sequence[float], width: int) -> str:
    shown = list(values)[-width:]
    most = max(shown, default=0.0)
    if most <= 0:
        return ("▁" * len(shown)).rjust(width)
    return "".join(_EIGHTHS[1 + round(value / most * 7)] for value in shown).rjust(width)
