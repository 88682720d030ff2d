"""Medians of paired ratios with bootstrap intervals, and geometric means of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy

from hakmem_bench.model import OURS, Result, Sample, TestResult

_RESAMPLES = 4000
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """Ours over the peer's: below 1 is better."""

    median: float
    low: float
    high: float
    pairs: int

    @property
    def tie(self) -> bool:
        return self.low <= 1 <= self.high


def interval(ratios: list[float]) -> Ratio:
    """The median and its bootstrap 95 % interval (percentiles); the same numbers give the same interval."""
    values = numpy.asarray(ratios)
    source = numpy.random.default_rng(1)
    medians = numpy.median(source.choice(values, size=(_RESAMPLES, len(values))), axis=1)
    tail = (1 - _CONFIDENCE) / 2
    low, high = numpy.quantile(medians, [tail, 1 - tail])
    return Ratio(float(numpy.median(values)), float(low), float(high), len(ratios))


def paired(test: TestResult, peer: str, value: str, base: str = OURS) -> Ratio | None:
    """`value` ("seconds" or "peak_kib") of `base` over that of the peer, of the repetitions in which both were good."""
    return paired_by(test, peer, lambda sample: _of(sample, value), base)


def paired_by(test: TestResult, peer: str, number: Callable[[Sample], float], base: str = OURS) -> Ratio | None:
    """The same of what `number` finds in a sample; a pair with a 0 has no ratio."""
    both = zip(test.samples.get(base, []), test.samples.get(peer, []))
    values = [(number(a), number(b)) for a, b in both if a.good and b.good]
    ratios = [a / b for a, b in values if min(a, b) > 0]
    return interval(ratios) if ratios else None


def _of(sample: Sample, value: str) -> float:
    return float(getattr(sample, value))


def typical(test: TestResult, peer: str, value: str) -> float | None:
    """The median over the good repetitions."""
    values = [_of(sample, value) for sample in test.samples.get(peer, []) if sample.good]
    return statistics.median(values) if values else None


def geometric_mean(result: Result, peer: str, value: str, group: str | None = None) -> Ratio | None:
    """Of the tests' median ratios, or of those of one group; its interval from theirs, which are independent."""
    tests = [test for test in result.tests if not (test.memory_only and value == "seconds")]
    tests = [test for test in tests if group is None or test.group == group]
    ratios = [ratio for test in tests if (ratio := paired(test, peer, value)) is not None]
    if not ratios:
        return None

    def mean(values: list[float]) -> float:
        return math.exp(statistics.fmean(math.log(value) for value in values))

    # The intervals are of independent tests: their logarithms' half widths add as squares.
    def width(ends: list[tuple[float, float]]) -> float:
        return math.exp(math.sqrt(sum(math.log(end / middle) ** 2 for end, middle in ends)) / len(ends))

    middle = mean([ratio.median for ratio in ratios])
    below = width([(ratio.low, ratio.median) for ratio in ratios if ratio.low > 0])
    above = width([(ratio.high, ratio.median) for ratio in ratios])
    return Ratio(middle, middle / below, middle * above, min(ratio.pairs for ratio in ratios))
