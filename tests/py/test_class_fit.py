"""Class fit saves memory where a program's favourite sizes fall badly, and loses none where they fall well."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

from support import LIBRARY, ROOT

sys.path.insert(0, str(ROOT / "python"))

from hakmem_bench import runner  # noqa: E402
from hakmem_bench.learning import CLASS_FIT  # noqa: E402
from hakmem_bench.model import Peer, Test  # noqa: E402
from hakmem_cli import policy_text  # noqa: E402

# Not even as much as the first epoch of a learner requests.
SHORT = Test("short", "learning", "", (), ("badsizes", "bad", "0", "42", "--live", str(8 << 20)))


def peak_bytes(test: Test, learn: str | None, policy: Path | None = None, **more: str) -> int:
    """Most that the workload's process had resident."""
    environment = {"HAKMEM_LEARN": learn} if learn is not None else {}
    environment.update(more)
    if policy is not None:
        environment["HAKMEM_POLICY"] = str(policy)
    peer = Peer("hakmem", "", "", library=str(LIBRARY), environment=environment)
    sample = runner.run(test, peer, quick=True)
    assert sample.good, sample
    return sample.peak_kib * 1024


class ClassFit(unittest.TestCase):
    def ratio(self, kind: str, learn: str | None, **more: str) -> float:
        test = next(test for test in CLASS_FIT if test.name == f"badsizes-{kind}")
        return peak_bytes(test, learn, **more) / peak_bytes(test, "off", **more)

    def test_bad_sizes_take_an_eighth_less(self) -> None:
        self.assertLess(self.ratio("bad", "on:classes"), 0.88)

    def test_large_processes_need_no_learner(self) -> None:
        self.assertLess(self.ratio("bad", None), 0.92)  # its first 16 MiB have been without
        self.assertLess(self.ratio("bad", None, HAKMEM_MODE="minimal"), 0.92)
        self.assertLess(self.ratio("good", None), 1.01)

    def test_small_ones_and_mode_fast_do_without(self) -> None:
        self.assertAlmostEqual(self.ratio("bad", None, HAKMEM_MODE="fast"), 1, delta=0.01)
        self.assertAlmostEqual(peak_bytes(SHORT, None) / peak_bytes(SHORT, "off"), 1, delta=0.02)

    def test_good_sizes_lose_nothing(self) -> None:
        self.assertLess(self.ratio("good", "on:classes"), 1.01)

    def test_spread_sizes_lose_nothing(self) -> None:
        self.assertLess(self.ratio("spread", "on:classes"), 1.01)

    def test_observing_changes_nothing(self) -> None:
        self.assertAlmostEqual(self.ratio("bad", "observe:classes"), 1, delta=0.01)

    def test_the_next_run_has_them_from_the_start(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            policy = Path(directory) / "policy"
            cold = peak_bytes(SHORT, "on", policy)
            saved = policy_text.read(policy)
            self.assertGreaterEqual({line.name for line in saved[0].lines}, {"144", "528", "1040", "2064"})
            self.assertLess(peak_bytes(SHORT, "on", policy), 0.95 * cold)
            self.assertLess(peak_bytes(SHORT, "off", policy), 0.92 * peak_bytes(SHORT, "off"))
            self.assertEqual(policy_text.read(policy), saved)  # it has learned nothing new


if __name__ == "__main__":
    unittest.main()
