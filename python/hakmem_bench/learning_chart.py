"""The pictures of docs/learning.md: cost, time and memory over time in each setting, and the ratings of policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hakmem_bench import curve_chart, learning
from hakmem_bench import figures as fig
from hakmem_bench import learning_run as run
from hakmem_bench import learning_series as over_time
from hakmem_bench.charts import Box
from hakmem_bench.curve_chart import WIDTH, Chart, Line, Panel
from hakmem_bench.learning_log import STEP
from hakmem_bench.model import OURS, Result, Sample, TestResult

_LEFT, _LABELS = 58, 196
_TITLE, _PLOT, _BELOW = 34, 220, 56
_LABEL = 16
_HUES = 6
_MOST = 3.0
"""A ratio beyond this is drawn here: start-up costs many times as much as the rest."""
_ARMS = 6
"""Lines of ratings: of the arms that were rated longest."""

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class _Lines:
    """What a panel shows: lines by name, of which learning's own are heavy."""

    title: str
    lines: dict[str, Points]
    heavy: str
    write: Callable[[float], str]
    """The number at the end of a line."""
    order: list[str]
    """Of the names: whose place in it is the same has the same colour in all panels."""
    least: float = 0.0
    lack: str = "nothing was told"


def pictures(result: Result) -> dict[str, str]:
    """SVG files by the names that the document has for them."""
    found = {}
    tests = {test.name: test for test in result.tests}
    if learning.PHASES.name in tests:
        found["learning-phases"] = _phases(tests[learning.PHASES.name])
    drawn = [tests[one.name] for one in learning.DRAWN if one.name in tests]
    if drawn:
        panels = [panel for test in drawn for panel in (_costs(test), _ratings(test))]
        found["learning-large"] = _chart(panels, [[] for _ in panels], "Cost and ratings over time, large blocks")
    return found


def _phases(test: TestResult) -> str:
    sample = next((one for one in test.samples.get(run.LEARNING, []) if one.good), None)
    marks = [(phase.begin, phase.name) for phase in over_time.phases(sample)] if sample else []
    balanced = _first(test, OURS)
    lines = []
    for what, kind in (
        ("cost, as the learner counts it", over_time.costs),
        ("time on processors of an operation", over_time.times),
    ):
        curves = {
            name: _relative(kind(one), kind(balanced))
            for name in _settings(test)
            if name != OURS and balanced and (one := _first(test, name))
        }
        lines.append(_Lines(f"{what}: times that of mode balanced", curves, run.LEARNING, fig.digits, _settings(test)))
    memory = {name: over_time.memory(one) for name in _settings(test) if (one := _first(test, name))}
    lines.append(_Lines("resident memory in MiB", memory, run.LEARNING, fig.digits, _settings(test)))
    lines.append(_ratings(test))
    return _chart(lines, [marks] * len(lines), "Cost, time, memory and ratings over the phases of a program")


def _settings(test: TestResult) -> list[str]:
    return [name for name in test.samples if not name.startswith("without ")]


def _first(test: TestResult, name: str) -> Sample | None:
    return next((one for one in test.samples.get(name, []) if one.good), None)


def _relative(rates: over_time.Rates, base: over_time.Rates) -> Points:
    """Over a second each, so that what comes by turns is in each point."""
    points = []
    for step in sorted(rates):
        window = range(step, step + 4)
        one, other = over_time.rate(rates, window), over_time.rate(base, window)
        if one is not None and other:
            points.append((step * STEP, min(one / other, _MOST)))
    return points


def _costs(test: TestResult) -> _Lines:
    curves = {}
    for name in _settings(test):
        sample = _first(test, name)
        rates = over_time.costs(sample) if sample else {}
        points = [(step * STEP, one) for step in sorted(rates) if (one := over_time.rate(rates, range(step, step + 1)))]
        # The first steps are the program's own start, and would leave no room for the rest.
        curves[name] = points[2:]
    title = f"{test.name.removesuffix('-drawn')}: cost, ns for each MiB requested"
    return _Lines(title, curves, run.LEARNING, fig.digits, _settings(test))


def _ratings(test: TestResult) -> _Lines:
    sample = _first(test, run.LEARNING)
    told = sample.extra.get("learner", {}) if sample else {}
    ratings: dict[str, list[list[float]]] = told.get("ratings", {})
    champions = [str(round(number)) for _, number in told.get("champions", [])]
    known = sorted(ratings, key=lambda arm: (arm not in champions, -len(ratings[arm])))[:_ARMS]
    last = champions[-1] if champions else ""
    lines = {_arm(arm): [(at, rating) for at, rating in ratings[arm]] for arm in known}
    least = min((rating for points in lines.values() for _, rating in points), default=0)
    title = f"{test.name.removesuffix('-drawn')}: ratings of policies, first run"
    lack = "no match was played: the mode's values cost next to nothing"
    return _Lines(title, lines, _arm(last), fig.digits, list(lines), max(least - 50, 0), lack)


def _arm(number: str) -> str:
    """The first is the mode's values."""
    return "mode's values" if number == "1" else f"policy {number}"


def _chart(panels: list[_Lines], marks: list[list[tuple[float, str]]], label: str) -> str:
    drawn: list[Panel] = []
    top = 0.0
    lasts = [points[-1][0] for one in panels for points in one.lines.values() if points]
    for one, begins in zip(panels, marks):
        drawn.append(_panel(one, begins, max(lasts, default=1), top))
        top = drawn[-1].frame.bottom + _BELOW
    return curve_chart.drawn(Chart(WIDTH, round(top), drawn, label))


def _panel(one: _Lines, marks: list[tuple[float, str]], last: float, top: float) -> Panel:
    lines = {name: points for name, points in one.lines.items() if points}
    if not lines:
        frame = Box(_LEFT, top + _TITLE, WIDTH - _LABELS, top + _TITLE + 2 * _LABEL)
        return Panel(one.title, frame, [], [], [], None, one.lack, "seconds")
    frame = Box(_LEFT, top + _TITLE, WIDTH - _LABELS, top + _TITLE + max(_PLOT, _LABEL * len(lines)))
    highest = 1.04 * max(value for points in lines.values() for _, value in points) or 1
    span = highest - one.least or 1

    def x_of(at: float) -> float:
        return round(frame.left + at / last * (frame.right - frame.left), 1)

    def y_of(value: float) -> float:
        return round(frame.bottom - (value - one.least) / span * (frame.bottom - frame.top), 1)

    x_ticks = [(x_of(at), name) for at, name in marks] or [
        (x_of(tick), f"{tick:g}") for tick in curve_chart.ticks(last)
    ]
    y_ticks = [(y_of(tick), f"{tick:g}") for tick in curve_chart.ticks(highest) if tick >= one.least]
    axis = f"phases, {last:.0f} seconds in all" if marks else "seconds"
    return Panel(one.title, frame, x_ticks, y_ticks, _drawn(one, lines, frame, x_of, y_of), None, "", axis)


def _drawn(
    one: _Lines,
    lines: dict[str, Points],
    frame: Box,
    x_of: Callable[[float], float],
    y_of: Callable[[float], float],
) -> list[Line]:
    """The heavy one last, so that it lies on top."""
    others = [name for name in one.order if name != one.heavy]
    names = sorted(lines, key=lambda name: -lines[name][-1][1])
    places = curve_chart.spread([y_of(lines[name][-1][1]) for name in names], _LABEL, frame.top, frame.bottom)
    found = []
    for name, place in zip(names, places):
        style = (
            "ours" if name == one.heavy else f"hue-{others.index(name) % _HUES} dash-{others.index(name) // _HUES % 3}"
        )
        points = " ".join(f"{x_of(at)},{y_of(value)}" for at, value in lines[name])
        end = x_of(lines[name][-1][0]), y_of(lines[name][-1][1])
        found.append(Line(name, f"{name} {one.write(lines[name][-1][1])}", points, style, end, round(place, 1)))
    return sorted(found, key=lambda line: line.name == one.heavy)
