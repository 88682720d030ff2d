"""What the programs with phases tell over time, and how soon after a change a learner is as good as the best policy."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from hakmem_bench.learning_log import STEP, spread
from hakmem_bench.model import Sample, TestResult

NEAR = 1.05
_WINDOW = 4
"""Steps: what is compared over a second is not the noise of a moment."""

Rates = dict[int, tuple[float, float]]
"""By step of time: what was paid, and for how much."""


def costs(sample: Sample) -> Rates:
    """The learner's own count: ns, MiB requested."""
    return {round(at / STEP): (ns, mib) for at, ns, mib in sample.extra.get("learner", {}).get("costs", [])}


def times(sample: Sample) -> Rates:
    """Seconds on processors, operations. A row stands at its end, and is spread over the steps since the one before."""
    found: Rates = {}
    begin = 0.0
    for end, operations, busy, _, _ in sample.extra.get("series", []):
        for step, part in spread(begin, end):
            before = found.get(step, (0.0, 0.0))
            found[step] = (before[0] + busy * part, before[1] + operations * part)
        begin = end
    return found


def memory(sample: Sample) -> list[tuple[float, float]]:
    """Resident MiB."""
    return [(at, kib / 1024) for at, _, _, _, kib in sample.extra.get("series", [])]


@dataclass(frozen=True)
class Phase:
    name: str
    begin: float
    end: float

    @property
    def steps(self) -> range:
        return range(round(self.begin / STEP), round(self.end / STEP))


def phases(sample: Sample) -> list[Phase]:
    told = sample.extra.get("phases", [])
    last = max((row[0] for row in sample.extra.get("series", [])), default=0)
    ends = [begin for _, begin, *_ in told[1:]] + [last]
    return [Phase(name, begin, end) for (name, begin, *_), end in zip(told, ends)]


def rate(rates: Rates, steps: range) -> float | None:
    """Paid for each, over these steps."""
    paid = sum(rates[step][0] for step in steps if step in rates)
    units = sum(rates[step][1] for step in steps if step in rates)
    return paid / units if units > 0 else None


def _later_half(phase: Phase) -> range:
    return phase.steps[len(phase.steps) // 2 :]


def settled(sample: Sample, kind: Callable[[Sample], Rates], index: int) -> float | None:
    """Of the later half of a phase."""
    found = phases(sample)
    return rate(kind(sample), _later_half(found[index])) if index < len(found) else None


def _median(numbers: list[float]) -> float | None:
    return statistics.median(numbers) if numbers else None


def settled_of(test: TestResult, setting: str, kind: Callable[[Sample], Rates], index: int) -> float | None:
    """The median over the good runs."""
    samples = [sample for sample in test.samples.get(setting, []) if sample.good]
    return _median([one for sample in samples if (one := settled(sample, kind, index)) is not None])


def best(test: TestResult, settings: list[str], kind: Callable[[Sample], Rates], index: int) -> str | None:
    """Of the settings the one that pays least in that phase."""
    found = {name: one for name in settings if (one := settled_of(test, name, kind, index)) is not None}
    return min(found, key=lambda name: found[name]) if found else None


def pairs(test: TestResult, first: str, second: str) -> list[tuple[Sample, Sample]]:
    both = zip(test.samples.get(first, []), test.samples.get(second, []))
    return [(a, b) for a, b in both if a.good and b.good]


def settled_ratio(test: TestResult, over: str, under: str, kind: Callable[[Sample], Rates], index: int) -> float | None:
    ratios = []
    for a, b in pairs(test, over, under):
        one, other = settled(a, kind, index), settled(b, kind, index)
        if one and other:
            ratios.append(one / other)
    return _median(ratios)


def _lost(a: Sample, b: Sample, index: int) -> float | None:
    found = phases(a)
    one, other = settled(a, costs, index), settled(b, costs, index)
    if one is None or other is None or index >= len(found):
        return None
    steps = _later_half(found[index])
    mib = sum(paid[1] for step, paid in costs(a).items() if step in steps)
    busy = sum(paid[0] for step, paid in times(a).items() if step in steps)
    return (one - other) * mib / (busy * 1e9) if busy > 0 else None


def lost(test: TestResult, over: str, under: str, index: int) -> float | None:
    """Of the later half of a phase: how much more `over` pays than `under` would for the same, as a share of the time
    that `over` is on processors. A ratio of two costs says nothing where both are next to nothing."""
    return _median([one for a, b in pairs(test, over, under) if (one := _lost(a, b, index)) is not None])


def _seconds_to(a: Sample, b: Sample, kind: Callable[[Sample], Rates], index: int) -> float | None:
    first, second = phases(a), phases(b)
    if index >= min(len(first), len(second)):
        return None
    steps, others = first[index].steps, second[index].steps
    window = max(min(_WINDOW, len(steps) // 2), 1)
    for after in range(min(len(steps), len(others)) - window + 1):
        one = rate(kind(a), steps[after : after + window])
        other = rate(kind(b), others[after : after + window])
        if one is not None and other and one <= NEAR * other:
            return after * STEP
    return None


def seconds_to(
    test: TestResult, over: str, under: str, kind: Callable[[Sample], Rates], index: int
) -> list[float | None]:
    """Of each pair of runs: after how long into the phase `over` pays no more than NEAR times what `under` does at the
    same time, over a second. None: not within the phase."""
    return [_seconds_to(a, b, kind, index) for a, b in pairs(test, over, under)]


def work_ratio(a: Sample, b: Sample) -> float | None:
    """What `a` takes for the work that `b` has done, phase by phase, over what that took."""
    taken = done = 0.0
    for (_, _, operations, busy), (_, _, of_b, busy_of_b) in zip(a.extra.get("phases", []), b.extra.get("phases", [])):
        if operations > 0 and of_b > 0:
            taken += busy / operations * of_b
            done += busy_of_b
    return taken / done if done > 0 else None
