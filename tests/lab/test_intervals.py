"""Intervals hold what they are said to hold, in as many cases as they are said to."""

from __future__ import annotations

import math
import unittest
from typing import Any
from unittest import mock

import numpy

from hakmem_bench import memory, method, stats
from hakmem_bench.figures import Figures
from hakmem_bench.model import OURS, Peer, Result, Sample, TestResult

DRAWS = 2000


def share_held(pairs: int, source: numpy.random.Generator) -> float:
    """Of so many intervals of a skewed distribution, how many hold its median, 1."""
    draws = numpy.exp(source.standard_normal((DRAWS, pairs)))
    found = [stats.interval([float(ratio) for ratio in ratios]) for ratios in draws]
    return sum(one.low <= 1 <= one.high for one in found) / DRAWS


def result_of(ratios: Any) -> Result:
    """A test for each row, a pair for each number in it."""
    tests = []
    for number, row in enumerate(ratios):
        test = TestResult(f"test-{number}", "group", "", [], 1, False)
        ours = [Sample("ok", seconds=float(one)) for one in row]
        test.samples = {OURS: ours, "glibc": [Sample("ok", seconds=1.0)] * len(row)}
        tests.append(test)
    return Result({}, [Peer(OURS, "", ""), Peer("glibc", "", "")], tests=tests)


class Medians(unittest.TestCase):
    def test_hold_the_median_as_often_as_is_said(self) -> None:
        source = numpy.random.default_rng(3)
        for pairs in (1, 2, 3, 5, 6, 7, 9, 10, 21, 51):
            with self.subTest(pairs):
                said = stats.coverage(pairs)
                self.assertEqual(said >= 0.95, pairs >= 6)
                # Of 2,000 cases the share deviates by 0.011 at most, half of them being held.
                self.assertAlmostEqual(share_held(pairs, source), said, delta=5 * math.sqrt(0.25 / DRAWS))

    def test_are_as_narrow_as_they_may_be(self) -> None:
        for pairs, low, high in ((1, 1, 1), (3, 1, 3), (6, 1, 6), (7, 1, 7), (9, 2, 8), (51, 19, 33)):
            found = stats.interval([float(number) for number in range(pairs, 0, -1)])
            self.assertEqual((found.low, found.high, found.pairs), (low, high, pairs))
            self.assertEqual(found.median, (pairs + 1) / 2)

    def test_what_is_1_to_two_decimals_is_a_tie(self) -> None:
        self.assertTrue(stats.Ratio(1.003, 1.001, 1.2, 9).tie)
        self.assertFalse(stats.Ratio(1.01, 1.006, 1.2, 9).tie)
        self.assertFalse(stats.Ratio(0.9, 0.8, 0.994, 9).tie)


class Means(unittest.TestCase):
    TESTS = 40

    def test_hold_the_mean_nearly_as_often_as_is_said(self) -> None:
        source = numpy.random.default_rng(5)
        for pairs in (3, 7):
            held = 0
            for _ in range(100):
                ratios = numpy.exp(0.1 * source.standard_normal((self.TESTS, pairs)))
                with mock.patch.object(stats, "_RESAMPLES", 400):
                    mean = stats.geometric_mean(result_of(ratios), "glibc", "seconds")
                assert mean is not None
                held += mean.low <= 1 <= mean.high
            # 95 and a deviation of 2.2 are to be expected.
            self.assertGreaterEqual(held, 88)

    def test_of_one_test_is_that_tests_interval(self) -> None:
        ratios = [0.9, 1.2, 1.0, 1.1, 0.8, 1.3, 1.4]
        mean = stats.geometric_mean(result_of([ratios]), "glibc", "seconds")
        self.assertEqual(mean, stats.interval(ratios))


def went_on_alone() -> Result:
    """The machine was twice as slow by then."""
    result = result_of([[1.0] * 3 + [2.0] * 4])
    result.peers.append(Peer("other", "", ""))
    test = result.tests[0]
    test.samples["other"] = [Sample("ok", seconds=1.1)] * 3
    test.samples["lost"] = [Sample("no end after 1 s")]
    return result


class Typical(unittest.TestCase):
    def test_values_beside_each_other_are_of_the_same_repetitions(self) -> None:
        test = went_on_alone().tests[0]
        self.assertEqual(stats.common_repetitions(test), 3)
        self.assertEqual(stats.typical(test, OURS, "seconds"), 1.0)
        self.assertEqual(memory.median(test, OURS, lambda sample: sample.seconds), 1.0)
        self.assertEqual(stats.typical(test, "lost", "seconds"), None)

    def test_or_of_others_if_none_of_those_was_good(self) -> None:
        test = went_on_alone().tests[0]
        test.samples[OURS][:3] = [Sample("signal 11")] * 3
        self.assertEqual(stats.typical(test, OURS, "seconds"), 2.0)

    def test_it_is_said_who_had_more(self) -> None:
        result = went_on_alone()
        result.tests[0].samples["glibc"].pop()
        self.assertIn("hakmem and glibc had more repetitions alone", method.sentences(Figures(result))[-1])
        for samples in result.tests[0].samples.values():
            del samples[3:]
        self.assertFalse([one for one in method.sentences(Figures(result)) if "alone" in one])


if __name__ == "__main__":
    unittest.main()
