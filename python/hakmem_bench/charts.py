"""Where the marks of the pictures go, and the templates that draw them."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
import markupsafe

from hakmem_bench import figures as fig
from hakmem_bench.figures import MEMORY, TIME, Figures
from hakmem_bench.model import OURS
from hakmem_bench.stats import Ratio

_MANTISSAS = (
    (1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
    (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8),
    (1, 1.5, 2, 3, 5, 7),
    (1, 2, 5),
    (1,),
)
_NEAR = 1.05
"""Within this factor of 1 a difference hardly matters; charts shade it."""


@functools.lru_cache(maxsize=1)
def templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def style(*names: str) -> markupsafe.Markup:
    """Style sheets as they are."""
    return markupsafe.Markup("\n".join(templates().get_template(name).render() for name in names))


NOTHING = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="60" viewBox="0 0 400 60">'
    '<text x="20" y="35" fill="#5a6472" font-family="sans-serif">Nothing to compare.</text></svg>\n'
)


@dataclass(frozen=True)
class Axis:
    """Logarithmic, from `low` at 0 to `high` at 1."""

    low: float
    high: float
    most_ticks: int = 7

    @classmethod
    def around(cls, values: Iterable[float], margin: float, most_ticks: int = 7) -> Axis:
        """One that holds the values, 1, and what is near 1, with a margin at each end."""
        all_values = [value for value in values if value > 0] + [1 / _NEAR, _NEAR]
        span = max(all_values) / min(all_values)
        return cls(min(all_values) / span**margin, max(all_values) * span**margin, most_ticks)

    def at(self, value: float) -> float:
        """Where a value is, or the end beyond which it is."""
        place = math.log(max(value, 1e-9) / self.low) / math.log(self.high / self.low)
        return min(max(place, 0), 1)

    @property
    def ticks(self) -> list[float]:
        """As many round values as there may be, 1 among them."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for mantissas in _MANTISSAS:
            values = [mantissa * 10.0**decade for decade in decades for mantissa in mantissas]
            ticks = [value for value in values if self.low <= value <= self.high]
            if len(ticks) <= self.most_ticks:
                return ticks
        every = -(-len(ticks) // self.most_ticks)
        return [tick for tick in ticks if round(math.log10(tick)) % every == 0]

    @property
    def near(self) -> tuple[float, float]:
        return self.at(1 / _NEAR), self.at(_NEAR)


@dataclass
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def common(self, other: Box) -> float:
        """The area of both."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(width, 0) * max(height, 0)


@dataclass
class Point:
    name: str
    x: float
    y: float
    left: float
    right: float
    top: float
    bottom: float
    text: str
    """For the one who points at it."""
    label_x: float = 0.0
    label_y: float = 0.0
    anchor: str = "start"
    ours: bool = False


@dataclass
class Scatter:
    """Time against memory, hakmem's at 1: what the template draws."""

    width: int
    height: int
    frame: Box
    x_ticks: list[tuple[float, str]] = field(default_factory=list)
    y_ticks: list[tuple[float, str]] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)

    @property
    def ours(self) -> Point:
        return self.points[0]


_LETTER = 7.6
_LINE = 15
_DOT = 7
_HINT = 210
"""How wide the text in the corner is."""
_ROUNDS = 4


def scatter(figures: Figures, width: int, height: int) -> Scatter | None:
    """Each allocator's geometric means over hakmem's: the inverse of the ratios elsewhere."""
    found = []
    for peer in figures.peers:
        means = [figures.overall(peer.name, value) for value in (TIME, MEMORY)]
        if means[0] and means[1]:
            found.append((peer.name, means[0].ratio, means[1].ratio))
    if not found:
        return None
    frame = Box(58, 16, width - 16, height - 50)
    x_axis = Axis.around((1 / time.median for _, time, _ in found), 0.12, width // 70)
    y_axis = Axis.around((1 / memory.median for _, _, memory in found), 0.12, height // 50)

    def x_of(value: float) -> float:
        return round(frame.left + x_axis.at(value) * (frame.right - frame.left), 1)

    def y_of(value: float) -> float:
        return round(frame.bottom - y_axis.at(value) * (frame.bottom - frame.top), 1)

    points = [Point(OURS, x_of(1), y_of(1), x_of(1), x_of(1), y_of(1), y_of(1), "1 and 1, by definition", ours=True)]
    for name, time, memory in found:
        text = f"time {_inverse(time)}, peak memory {_inverse(memory)} of hakmem's"
        middle = x_of(1 / time.median), y_of(1 / memory.median)
        ends = x_of(1 / time.high), x_of(1 / time.low), y_of(1 / memory.low), y_of(1 / memory.high)
        points.append(Point(name, *middle, *ends, text))
    _place_labels(points, frame)
    return Scatter(
        width,
        height,
        frame,
        [(x_of(tick), f"{tick:g}") for tick in x_axis.ticks],
        [(y_of(tick), f"{tick:g}") for tick in y_axis.ticks],
        points,
    )


def _inverse(ratio: Ratio) -> str:
    return f"{fig.digits(1 / ratio.median)} ({fig.digits(1 / ratio.high)}–{fig.digits(1 / ratio.low)})"


def _place_labels(points: list[Point], frame: Box) -> None:
    """Each beside its dot, at the side where it covers least."""
    dots = [Box(point.x - _DOT, point.y - _DOT, point.x + _DOT, point.y + _DOT) for point in points]
    corner = Box(frame.right - _HINT, frame.top, frame.right, frame.top + 2 * _LINE)
    labels: dict[str, Box] = {}
    # The first round knows nothing of the labels to come; the later ones do.
    for point in points * _ROUNDS:
        taken = [*dots, corner, *(box for name, box in labels.items() if name != point.name)]
        candidates = [_label_box(point, across, down) for across in (1, -1, 0) for down in (0, -1, 1) if across or down]
        best, point.anchor = min(candidates, key=lambda one: _cost(one[0], taken, frame))
        point.label_x = {"start": best.left, "end": best.right, "middle": (best.left + best.right) / 2}[point.anchor]
        point.label_y = best.bottom - 4
        labels[point.name] = best


def _label_box(point: Point, across: int, down: int) -> tuple[Box, str]:
    """The place of a label to the right (1), left (-1) or amid, and below (1), above (-1) or level."""
    width = len(point.name) * _LETTER
    gap = (_DOT + 5 if point.ours else _DOT + 2) if not down else 4
    left = point.x + gap if across > 0 else point.x - gap - width if across < 0 else point.x - width / 2
    middle = point.y + down * (_LINE / 2 + (_DOT + 1 if not across else 6))
    box = Box(round(left, 1), round(middle - _LINE / 2, 1), round(left + width, 1), round(middle + _LINE / 2, 1))
    return box, {1: "start", -1: "end", 0: "middle"}[across]


def _cost(box: Box, taken: list[Box], frame: Box) -> float:
    inside = box.common(frame)
    whole = (box.right - box.left) * (box.bottom - box.top)
    return sum(box.common(other) for other in taken) + 10 * (whole - inside)


@dataclass(frozen=True)
class Curve:
    """Resident size over time of one allocator, in a picture of 100 by 100."""

    name: str
    points: str
    peak: str
    end: str
    given_back: str


# Of a figure's height, that of its highest point.
_DRAWN_HEIGHT = 0.96


@dataclass(frozen=True)
class Curves:
    test: str
    what: str
    seconds: str
    highest: str
    curves: list[Curve]


def curves(figures: Figures) -> list[Curves]:
    """Of the tests that tell any; hakmem's is the first where it has one."""
    found = []
    for test in figures.result.tests:
        lines = {peer.name: line for peer in figures.allocators if (line := fig.curve(test, peer.name))}
        if not lines:
            continue
        longest = max(line[-1][0] for line in lines.values()) or 1
        highest = max(kib for line in lines.values() for _, kib in line) or 1
        drawn = [_curve(name, line, longest, highest) for name, line in lines.items()]
        found.append(Curves(test.name, test.what, fig.duration(longest), fig.size(highest / _DRAWN_HEIGHT), drawn))
    return found


def _curve(name: str, line: list[tuple[float, float]], longest: float, highest: float) -> Curve:
    points = " ".join(f"{100 * at / longest:.2f},{100 - 100 * _DRAWN_HEIGHT * kib / highest:.2f}" for at, kib in line)
    peak, end = max(kib for _, kib in line), line[-1][1]
    given_back = f"{100 * (1 - end / peak):.0f} %" if peak > 0 else "–"
    return Curve(name, points, fig.size(peak), fig.size(end), given_back)
