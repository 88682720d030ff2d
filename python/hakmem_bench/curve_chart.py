"""Where the marks of the picture of resident sizes over time go: a panel for each test, a line for each allocator."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hakmem_bench import charts, memory
from hakmem_bench import figures as fig
from hakmem_bench.charts import Box
from hakmem_bench.figures import Figures
from hakmem_bench.model import OURS, TestResult

_Scale = Callable[[float], float]

WIDTH = 760
_LEFT, _LABELS = 58, 196
"""Of a panel's width, for the numbers and for the names."""
_TITLE, _PLOT, _BELOW = 34, 300, 56
_LABEL = 16
"""Names of lines are at least so far apart."""
_HUES = 6
"""Colours of lines in lines.css; whoever comes later has the same with another dash."""
_TICKS = 8


@dataclass(frozen=True)
class Line:
    name: str
    text: str
    """The name and the size at the end."""
    points: str
    style: str
    """Classes of lines.css."""
    end: tuple[float, float]
    label: float
    """Where its name stands: y."""


@dataclass(frozen=True)
class Floor:
    """What cannot come back where blocks do not move, of hakmem."""

    y: float
    text: str
    text_y: float


@dataclass(frozen=True)
class Panel:
    title: str
    frame: Box
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    lines: list[Line]
    floor: Floor | None
    lack: str
    """Why there is no line."""
    axis: str = "seconds since the peak"
    ending: str = " at the end"
    """What is said of a line's text, to the one who points at it."""


@dataclass(frozen=True)
class Chart:
    width: int
    height: int
    panels: list[Panel]
    label: str = "Resident memory over time of each allocator"


def drawn(chart: Chart) -> str:
    """An SVG file."""
    style = charts.style("colours.css", "lines.css")
    return charts.templates().get_template("lines.svg").render(chart=chart, style=style)


def picture(figures: Figures) -> str:
    """An SVG file."""
    panels: list[Panel] = []
    top = 0.0
    for name in memory.IDLE:
        panels.append(_panel(figures, name, top))
        top = panels[-1].frame.bottom + _BELOW
    return drawn(Chart(WIDTH, round(top), panels))


def _panel(figures: Figures, name: str, top: float) -> Panel:
    test = figures.test(name)
    runs = {peer.name: run for peer in figures.allocators if test and (run := fig.run_with_curve(test, peer.name))}
    curves = {allocator: memory.since_peak(run) for allocator, run in runs.items()}
    if test is None or not curves:
        lack = "no allocator told a curve" if test else figures.why_not_run(name)
        return Panel(name, Box(_LEFT, top + _TITLE, WIDTH - _LABELS, top + _TITLE + 2 * _LABEL), [], [], [], None, lack)
    height = max(_PLOT, _LABEL * len(curves))
    frame = Box(_LEFT, top + _TITLE, WIDTH - _LABELS, top + _TITLE + height)
    first, last = min(line[0][0] for line in curves.values()), max(line[-1][0] for line in curves.values())
    span = last - first or 1
    highest = 1.04 * max(kib for line in curves.values() for _, kib in line) or 1

    def x_of(at: float) -> float:
        return round(frame.left + (at - first) / span * (frame.right - frame.left), 1)

    def y_of(kib: float) -> float:
        return round(frame.bottom - max(kib, 0) / highest * (frame.bottom - frame.top), 1)

    unit, divisor = ("MiB", 1024) if highest >= 1024 else ("KiB", 1)
    title = f"{name}: resident memory in {unit}, {test.threads} thread{'s' if test.threads != 1 else ''}"
    return Panel(
        title,
        frame,
        [(x_of(tick), f"{tick:g}") for tick in ticks(last or 1) if tick <= last],
        [(y_of(tick * divisor), f"{tick:g}") for tick in ticks(highest / divisor)],
        _lines(figures, curves, frame, x_of, y_of),
        _floor(test, frame, y_of),
        "",
    )


def _lines(
    figures: Figures,
    curves: dict[str, list[tuple[float, float]]],
    frame: Box,
    x_of: _Scale,
    y_of: _Scale,
) -> list[Line]:
    """hakmem's last, so that it lies on top."""
    peers = [peer.name for peer in figures.peers]
    names = sorted(curves, key=lambda name: -curves[name][-1][1])
    places = spread([y_of(curves[name][-1][1]) for name in names], _LABEL, frame.top, frame.bottom)
    lines = [
        Line(
            name,
            f"{name} {fig.size(curves[name][-1][1])}",
            " ".join(f"{x_of(at)},{y_of(kib)}" for at, kib in curves[name]),
            "ours" if name == OURS else f"hue-{peers.index(name) % _HUES} dash-{peers.index(name) // _HUES % 3}",
            (x_of(curves[name][-1][0]), y_of(curves[name][-1][1])),
            round(place, 1),
        )
        for name, place in zip(names, places)
    ]
    return sorted(lines, key=lambda line: line.name == OURS)


def _floor(test: TestResult, frame: Box, y_of: _Scale) -> Floor | None:
    one = memory.idle(test, OURS)
    if one is None:
        return None
    y = y_of(one.floor)
    below = y + 18
    return Floor(
        y, f"hakmem's least without moving blocks: {fig.size(one.floor)}", below if below < frame.bottom - 4 else y - 8
    )


def ticks(highest: float) -> list[float]:
    """Round values from 0 on, few of them."""
    magnitude = 10.0 ** math.floor(math.log10(highest / _TICKS))
    step = next(magnitude * factor for factor in (1, 2, 5, 10) if highest / (magnitude * factor) <= _TICKS)
    return [step * i for i in range(int(highest / step) + 1)]


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places in the same order that are `gap` apart and within the bounds, as near to those wanted (which rise) as may
    be; nearer together if there is no room."""
    if len(wanted) > 1:
        gap = min(gap, (high - low) / (len(wanted) - 1))
    # Without the gaps, places need only rise: neighbours that fall share the mean of what they want.
    groups: list[list[float]] = []
    for index, place in enumerate(wanted):
        groups.append([place - index * gap])
        while len(groups) > 1 and _mean(groups[-2]) > _mean(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    means = itertools.chain.from_iterable([_mean(group)] * len(group) for group in groups)
    top = high - (len(wanted) - 1) * gap
    return [min(max(mean, low), top) + index * gap for index, mean in enumerate(means)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
