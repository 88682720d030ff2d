"""What is written of the cost of check mode."""

from __future__ import annotations

import unittest

from hakmem_bench import check_section
from hakmem_bench.model import OURS, Peer, Result, Sample, TestResult


def _samples(seconds: float, kib: int, *, good: bool = True) -> list[Sample]:
    return [Sample("ok" if good else "no end after 300 s", seconds=seconds, wall=seconds, peak_kib=kib) for _ in range(3)]


def _result() -> Result:
    ours = Peer(OURS, "1", "here", "lib.so")
    result = Result({"date": "today"}, [ours, *check_section.peers_of(ours)])
    for name, group, slow in (("lua", "programs", 2.0), ("perl", "programs", 8.0), ("larson", "larson", 90.0)):
        samples = {OURS: _samples(1.0, 1000)}
        for kind in check_section.KINDS:
            samples[kind] = _samples(slow, 3000, good=(name, kind) != ("larson", "all"))
        result.tests.append(TestResult(name, group, "what it does", [name], threads=1, memory_only=False, samples=samples))
    return result


class Section(unittest.TestCase):
    def test_it_has_a_row_for_each_test_and_their_mean(self) -> None:
        text = check_section.section(_result())
        self.assertIn("| lua | 2.00 | 2.00 | 2.00 | 3.00 | 3.00 | 3.00 |", text)
        self.assertIn("| geometric mean | **4.00** | **4.00** | **4.00** | **3.00** | **3.00** | **3.00** |", text)
        self.assertIn("Medians of 3 paired runs.", text)

    def test_a_run_that_did_not_end_is_told(self) -> None:
        text = check_section.section(_result())
        self.assertIn("| larson | time-out | 90.0 | 90.0 |", text)
        self.assertIn("| geometric mean | – (0 of 1) | **90.0** |", text)

    def test_it_takes_its_place_in_the_document(self) -> None:
        document = f"before\n{check_section.BEGIN}old\n{check_section.END}after\n"
        once = check_section.put_into(document, _result())
        self.assertNotIn("old", once)
        self.assertTrue(once.startswith("before\n") and once.endswith("after\n"))
        self.assertEqual(check_section.put_into(once, _result()), once)

    def test_it_knows_its_results(self) -> None:
        self.assertTrue(check_section.is_of_checks(_result()))
        self.assertFalse(check_section.is_of_checks(Result({}, [Peer(OURS, "", ""), Peer("glibc", "", "")])))


if __name__ == "__main__":
    unittest.main()
