"""Medians of paired ratios with their intervals, and geometric means of them."""

from __future__ import annotations

import functools
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
        """To as many digits as are printed."""
        return round(self.low, 2) <= 1 <= round(self.high, 2)


def _misses(pairs: int, left_out: int) -> float:
    """How often the true median lies outside of the range of so many samples, less `left_out` at either end."""
    return 2 * sum(math.comb(pairs, below) for below in range(left_out + 1)) / 2**pairs


def coverage(pairs: int) -> float:
    """Of `interval`."""
    return 1 - _misses(pairs, _left_out(pairs))


@functools.cache
def _left_out(pairs: int) -> int:
    left_out = 0
    while 2 * (left_out + 1) < pairs and _misses(pairs, left_out + 1) <= 1 - _CONFIDENCE:
        left_out += 1
    return left_out


def interval(ratios: list[float]) -> Ratio:
    """The median, and the narrowest range between two samples, as many of the others below as above, that holds the
    true median in 95 of 100 cases, however the samples are distributed. (A bootstrap's percentiles are such samples
    too, of few pairs too near to the middle: they hold it in 87 of 100 cases with seven.) Of fewer than six samples it
    is the range of all, which does so more rarely: see `coverage`."""
    values = sorted(ratios)
    left_out = _left_out(len(values))
    return Ratio(statistics.median(values), values[left_out], values[-1 - left_out], len(values))


def _pairs(test: TestResult, peer: str, number: Callable[[Sample], float], base: str) -> list[float]:
    both = zip(test.samples.get(base, []), test.samples.get(peer, []))
    values = [(number(a), number(b)) for a, b in both if a.good and b.good]
    return [a / b for a, b in values if min(a, b) > 0]


def paired(test: TestResult, peer: str, value: str, base: str = OURS) -> Ratio | None:
    """`value` ("seconds" or "peak_kib") of `base` over that of the peer, of the repetitions in which both were good."""
    return paired_by(test, peer, lambda sample: _of(sample, value), base)


def paired_by(test: TestResult, peer: str, number: Callable[[Sample], float], base: str = OURS) -> Ratio | None:
    """The same of what `number` finds in a sample; a pair with a 0 has no ratio."""
    ratios = _pairs(test, peer, number, base)
    return interval(ratios) if ratios else None


def _of(sample: Sample, value: str) -> float:
    return float(getattr(sample, value))


def common_repetitions(test: TestResult) -> int:
    """Those that all allocators have had, but for who did not end once and was not run again."""
    return min((len(some) for some in test.samples.values() if some and not some[-1].timed_out), default=0)


def typical_samples(test: TestResult, peer: str) -> list[Sample]:
    """The good ones of the repetitions that all have had: values stand beside each other, and the machine was another
    one when two went on alone. If none of those is good, all good ones."""
    samples = test.samples.get(peer, [])
    common = [sample for sample in samples[: common_repetitions(test)] if sample.good]
    return common or [sample for sample in samples if sample.good]


def typical(test: TestResult, peer: str, value: str) -> float | None:
    """The median of those."""
    values = [_of(sample, value) for sample in typical_samples(test, peer)]
    return statistics.median(values) if values else None


def geometric_mean(result: Result, peer: str, value: str, group: str | None = None) -> Ratio | None:
    """Of the tests' median ratios, or of those of one group, with its bootstrap 95 % interval: each test's pairs are
    drawn anew. The same numbers give the same interval. Of one test it is that test's: a bootstrap of few pairs is
    too narrow, which among many tests hardly shows."""
    tests = [test for test in result.tests if not (test.memory_only and value == "seconds")]
    tests = [test for test in tests if group is None or test.group == group]
    found = [_pairs(test, peer, lambda sample: _of(sample, value), OURS) for test in tests]
    found = [ratios for ratios in found if ratios]
    if not found:
        return None
    if len(found) == 1:
        return interval(found[0])
    source = numpy.random.default_rng(1)
    drawn = numpy.zeros(_RESAMPLES)
    for ratios in found:
        medians = numpy.median(source.choice(numpy.asarray(ratios), size=(_RESAMPLES, len(ratios))), axis=1)
        drawn += numpy.log(medians) / len(found)
    tail = (1 - _CONFIDENCE) / 2
    low, high = numpy.exp(numpy.quantile(drawn, [tail, 1 - tail]))
    middle = math.exp(statistics.fmean(math.log(statistics.median(ratios)) for ratios in found))
    return Ratio(middle, float(low), float(high), min(len(ratios) for ratios in found))
