"""Class fit saves memory where a program's favourite sizes fall badly, and loses none where they fall well."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest

from support import LIBRARY, RELEASE, ROOT

sys.path.insert(0, str(ROOT / "python"))

from hakmem_bench.learning import CLASS_FIT  # noqa: E402
from hakmem_bench.model import Test  # noqa: E402


def peak_bytes(test: Test, learn: str) -> int:
    """Most that the workload's process had resident."""
    assert test.quick is not None
    program, *words = test.quick
    process = subprocess.Popen(
        [RELEASE / "bench" / program, *words],
        env={"LD_PRELOAD": str(LIBRARY), "HAKMEM_LEARN": learn},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_maxrss * 1024


class ClassFit(unittest.TestCase):
    def ratio(self, kind: str, learn: str) -> float:
        test = next(test for test in CLASS_FIT if test.name == f"badsizes-{kind}")
        return peak_bytes(test, learn) / peak_bytes(test, "off")

    def test_bad_sizes_take_an_eighth_less(self) -> None:
        self.assertLess(self.ratio("bad", "on:classes"), 0.88)

    def test_good_sizes_lose_nothing(self) -> None:
        self.assertLess(self.ratio("good", "on:classes"), 1.01)

    def test_spread_sizes_lose_nothing(self) -> None:
        self.assertLess(self.ratio("spread", "on:classes"), 1.01)

    def test_observing_changes_nothing(self) -> None:
        self.assertAlmostEqual(self.ratio("bad", "observe:classes"), 1, delta=0.01)


if __name__ == "__main__":
    unittest.main()
