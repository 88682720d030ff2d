"""What is written of the cost of check mode, and of the hardened library."""

from __future__ import annotations

import unittest
from pathlib import Path

from hakmem_bench import cost_section, peers
from hakmem_bench.cost_section import CHECKS, HARDENING, MODES, PARTS
from hakmem_bench.model import HARDENED, OURS, ROOT, Peer, Result, Sample, TestResult


def _samples(seconds: float, kib: int, *, good: bool = True) -> list[Sample]:
    status = "ok" if good else "no end after 300 s"
    return [Sample(status, seconds=seconds, wall=seconds, peak_kib=kib) for _ in range(3)]


def _result(peers: list[Peer], dead: str) -> Result:
    """Each is slower than hakmem; one of them does not end in one test."""
    result = Result({"date": "today"}, [Peer(OURS, "1", "here", "lib.so"), *peers])
    for name, group, slow in (("lua", "programs", 2.0), ("perl", "programs", 8.0), ("larson", "larson", 90.0)):
        samples = {OURS: _samples(1.0, 1000)}
        for peer in peers:
            if not peer.missing:
                samples[peer.name] = _samples(slow, 3000, good=(name, peer.name) != ("larson", dead))
        test = TestResult(name, group, "what it does", [name], threads=1, memory_only=False, samples=samples)
        result.tests.append(test)
    return result


def _checks() -> Result:
    return _result(cost_section.peers_of_checks(Peer(OURS, "1", "here", "lib.so")), dead="all")


def _hardened() -> Result:
    hardened = Peer(HARDENED, "1", "here", "hardened.so")
    other = Peer("other", "2|3", "there", "other.so")
    return _result([hardened, other, Peer("gone", "", "", missing="not to be had")], dead="other")


def _modes() -> Result:
    return _result(peers.in_modes(Peer(OURS, "1", "here", "lib.so")), dead="fast")


class Section(unittest.TestCase):
    def test_it_has_a_row_for_each_test_and_their_mean(self) -> None:
        text = cost_section.section(CHECKS, _checks())
        self.assertIn("| lua | 2.00 | 2.00 | 2.00 | 3.00 | 3.00 | 3.00 |", text)
        self.assertIn("| geometric mean | **4.00** | **4.00** | **4.00** | **3.00** | **3.00** | **3.00** |", text)
        self.assertIn("Medians of 3 paired runs; in brackets the interval", text)
        self.assertIn("- frees only: `HAKMEM_CHECK=free`", text)

    def test_of_the_hardened_library_too(self) -> None:
        text = cost_section.section(HARDENING, _hardened())
        headings = "| test | time: hakmem, hardened | time: other | memory: hakmem, hardened | memory: other |"
        self.assertIn(headings, text)
        self.assertIn("| perl | 8.00 | 8.00 | 3.00 | 3.00 |", text)
        self.assertIn("| geometric mean | **4.00** | **4.00** | **3.00** | **3.00** |", text)
        self.assertIn("\n- other: 2\\|3\n- gone: missing: not to be had\n", text)

    def test_and_of_modes(self) -> None:
        text = cost_section.section(MODES, _modes())
        self.assertIn("| test | time: minimal | time: fast | time: learning | memory: minimal |", text)
        self.assertIn("\n- learning: `HAKMEM_MODE=learning`", text)

    def test_a_run_that_did_not_end_is_told(self) -> None:
        text = cost_section.section(CHECKS, _checks())
        self.assertIn("| larson | time-out | 90.0 | 90.0 |", text)
        self.assertIn("| geometric mean | – (0 of 1) | **90.0** |", text)
        self.assertIn("| larson | 90.0 | time-out |", cost_section.section(HARDENING, _hardened()))

    def test_that_it_was_interrupted_is_told(self) -> None:
        result = _checks()
        self.assertNotIn("interrupted", cost_section.section(CHECKS, result))
        result.complete = False
        self.assertIn("\n\n**This run was interrupted", cost_section.section(CHECKS, result))

    def test_each_takes_its_place_in_the_document(self) -> None:
        document = "before\n" + "".join(f"{part.begin}old\n{part.end}" for part in PARTS) + "after\n"
        for part, result in ((CHECKS, _checks()), (HARDENING, _hardened()), (MODES, _modes())):
            self.assertIs(cost_section.part_of(result), part)
            once = cost_section.put_into(document, part, result)
            self.assertEqual(once.count("old\n"), len(PARTS) - 1)
            self.assertTrue(once.startswith("before\n") and once.endswith("after\n"))
            self.assertEqual(cost_section.put_into(once, part, result), once)

    def test_the_document_has_their_places(self) -> None:
        for part in PARTS:
            document = Path(ROOT, "docs", part.document).read_text()
            self.assertEqual((document.count(part.begin), document.count(part.end)), (1, 1))

    def test_each_knows_its_results(self) -> None:
        self.assertIs(cost_section.part_of(_checks()), CHECKS)
        self.assertIs(cost_section.part_of(_hardened()), HARDENING)
        other = Result({}, [Peer(OURS, "", ""), Peer("glibc", "", "")])
        self.assertIsNone(cost_section.part_of(other))


if __name__ == "__main__":
    unittest.main()
