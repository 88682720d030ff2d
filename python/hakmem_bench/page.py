"""A result as one HTML page that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hakmem_bench import charts, method
from hakmem_bench import figures as fig
from hakmem_bench.charts import Axis
from hakmem_bench.figures import VALUES, Figures
from hakmem_bench.model import OURS, Result, TestResult
from hakmem_bench.table import COUNTED, count_cells, in_order


def render(result: Result) -> str:
    figures = Figures(result)
    template = charts.templates().get_template("page.html")
    return template.render(
        result=result,
        ours=OURS,
        peers=figures.peers,
        missing=figures.missing,
        comparable=figures.pairs() is not None,
        allocators=figures.allocators,
        cautions=fig.cautions(figures),
        verdicts=[_verdict(figures, value) for value in VALUES],
        summary=_summary(figures),
        scatters=[
            (form, chart)
            for form, width, height in (("wide", 620, 470), ("narrow", 360, 380))
            if (chart := charts.scatter(figures, width, height))
        ],
        ratios=[_ratios(figures, value) for value in VALUES],
        medians=[_medians(figures, value) for value in VALUES],
        curves=charts.curves(figures),
        counted=COUNTED,
        counts=_counts(result),
        failures=fig.failures(result),
        everything=_everything(figures),
        method=method.sentences(figures),
        digits=fig.digits,
        kind=fig.kind,
        bounds=fig.bounds,
        alone=False,
    )


@dataclass(frozen=True)
class Verdict:
    """How many peers, and how many best peers of a test, hakmem is ahead of, level with, behind."""

    title: str
    peers: list[tuple[str, int]]
    tests: list[tuple[str, int]]


def _verdict(figures: Figures, value: str) -> Verdict:
    means = [fig.kind(one.ratio) for peer in figures.peers if (one := figures.overall(peer.name, value))]
    best = [fig.kind(found[1]) for test in figures.tests(value) if (found := figures.best(test, value))]
    return Verdict(VALUES[value], _standing(means), _standing(best))


def _standing(kinds: list[str]) -> list[tuple[str, int]]:
    return [(kind, kinds.count(kind)) for kind in ("better", "tie", "worse")]


def _summary(figures: Figures) -> list[dict[str, Any]]:
    return [
        {
            "name": peer.name,
            "version": peer.version,
            "means": [(figures.overall(peer.name, value), len(figures.tests(value))) for value in VALUES],
        }
        for peer in figures.peers
    ]


@dataclass(frozen=True)
class Mark:
    """A ratio in a lane, in percent of its width."""

    peer: str
    number: int
    best: bool
    kind: str
    at: float
    left: float
    right: float
    text: str
    bounds: str


@dataclass(frozen=True)
class Lane:
    test: str
    what: str
    own: str
    marks: list[Mark]
    without: list[tuple[int, str]]
    """Peers that have no ratio, and why."""


@dataclass(frozen=True)
class Ratios:
    """The chart of one value: lanes in groups, the worst first."""

    title: str
    value: str
    ticks: list[tuple[float, str]]
    near: tuple[float, float]
    groups: dict[str, list[Lane]]


def _ratios(figures: Figures, value: str) -> Ratios:
    axis = Axis.around(_worth_showing(figures, value), 0.04, 7)
    groups = {}
    for group, tests in figures.groups(value).items():
        worst_first = sorted(tests, key=lambda test: -best[1].median if (best := figures.best(test, value)) else 0)
        groups[group] = [_lane(figures, test, value, axis) for test in worst_first]
    return Ratios(
        VALUES[value],
        value,
        [(_percent(axis, tick), f"{tick:g}") for tick in axis.ticks],
        (_percent(axis, 1) - 100 * (axis.at(1) - axis.near[0]), 100 * (axis.near[1] - axis.near[0])),
        groups,
    )


def _worth_showing(figures: Figures, value: str) -> list[float]:
    """The ratios that must be within the chart: to the best peers, and all but the lowest twentieth. A few peers that
    are many times slower would press the rest together."""
    ratios = sorted(
        ratio.median
        for test in figures.tests(value)
        for peer in figures.peers
        if (ratio := figures.ratio(test, peer.name, value))
    )
    best = [found[1].median for test in figures.tests(value) if (found := figures.best(test, value))]
    return ratios[len(ratios) // 20 :] + best


def _lane(figures: Figures, test: TestResult, value: str, axis: Axis) -> Lane:
    best = figures.best(test, value)
    marks, without = [], []
    for number, peer in enumerate(figures.peers):
        ratio = figures.ratio(test, peer.name, value)
        if ratio is None:
            without.append((number, fig.what_happened(test, peer.name)))
            continue
        marks.append(
            Mark(
                peer.name,
                number,
                best is not None and best[0] == peer.name,
                fig.kind(ratio),
                _percent(axis, ratio.median),
                _percent(axis, ratio.low),
                _percent(axis, ratio.high),
                fig.short(ratio),
                fig.bounds(ratio),
            )
        )
    return Lane(test.name, test.what, figures.typical(test, OURS, value), marks, without)


def _percent(axis: Axis, value: float) -> float:
    """At the ends a mark still shows."""
    return round(min(max(100 * axis.at(value), 0.7), 99.3), 2)


def _medians(figures: Figures, value: str) -> dict[str, Any]:
    """Absolute values, each peer's with hakmem's ratio to it."""
    groups = {
        group: [(test, [_median(figures, test, peer.name, value) for peer in figures.allocators]) for test in tests]
        for group, tests in figures.groups(value).items()
    }
    return {"title": VALUES[value], "groups": groups}


def _median(figures: Figures, test: TestResult, allocator: str, value: str) -> tuple[str, str, str, str]:
    """The value, the ratio, its interval, and which of better, worse or tie."""
    ratio = figures.ratio(test, allocator, value) if allocator != OURS else None
    absolute = figures.typical(test, allocator, value)
    if ratio:
        return absolute, fig.short(ratio), fig.bounds(ratio), fig.kind(ratio)
    good = any(sample.good for sample in test.samples.get(allocator, []))
    return absolute, "", "", "" if good else "failed"


def _counts(result: Result) -> list[dict[str, Any]]:
    """Per test the allocators in order, each with its part of the most instructions, in percent."""
    tests = []
    for test in dict.fromkeys(count.test for count in result.counts):
        rows = in_order(result.counts, test)
        most = max((row.instructions for row in rows), default=0) or 1
        cells = [(row, count_cells(row), round(100 * row.instructions / most, 1)) for row in rows]
        tests.append({"name": test, "rows": cells})
    return tests


def _everything(figures: Figures) -> list[tuple[TestResult, list[list[str]]]]:
    """Per test a row for each allocator with all that was measured."""
    return [
        (test, [_measured(figures, test, peer.name) for peer in figures.allocators if test.samples.get(peer.name)])
        for test in figures.result.tests
    ]


def _measured(figures: Figures, test: TestResult, allocator: str) -> list[str]:
    samples = test.samples[allocator]
    good = sum(sample.good for sample in samples)
    if not good:
        return [allocator, f"0 of {len(samples)}", fig.what_happened(test, allocator)] + [""] * 6
    times = [figures.typical_of(test, allocator, name, fig.duration) for name in ("seconds", "wall", "user", "system")]
    if test.memory_only:
        times[0] = "–"
    peak = figures.typical_of(test, allocator, "peak_kib", fig.size)
    faults = [figures.typical_of(test, allocator, name, _whole) for name in ("minor_faults", "major_faults")]
    return [allocator, f"{good} of {len(samples)}", *times, peak, *faults]


def _whole(number: float) -> str:
    return f"{number:,.0f}"
