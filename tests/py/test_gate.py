"""The gate, as CI applies it, and the proof that it closes."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import unittest
from pathlib import Path

from support import LIBRARY, ROOT

sys.path.insert(0, str(ROOT / "python"))

from hakmem_cli import venv  # noqa: E402

SLOWED = """
import sys
from pathlib import Path
from hakmem_bench import trees
print(trees.ablation("speed", Path(sys.argv[1])).library)
"""


def in_lab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(venv.LAB.python()), "-B", *words],
        env=venv.LAB.variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def gate(library: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return in_lab("-m", "hakmem_bench", "gate", "--library", str(library), *words)


def gate_golden() -> float:
    golden = json.loads((ROOT / "bench" / "golden.json").read_text())
    return float(golden["instructions"]["pairs-128"])


class Gate(unittest.TestCase):
    def test_the_library_passes(self) -> None:
        done = gate(LIBRARY)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("glibc over hakmem in 10 pairs", done.stdout)

    @unittest.skipUnless(platform.machine() == "x86_64", "golden numbers are of x86-64")
    def test_a_slowed_hot_path_does_not(self) -> None:
        built = in_lab("-c", SLOWED, str(ROOT / "tests" / "gate" / "slow.patch"))
        self.assertEqual(built.returncode, 0, built.stderr)
        done = gate(Path(built.stdout.strip()), "--no-race")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        found = re.search(r"FAILED pairs-128: (\d+\.\d\d) instructions per operation", done.stdout)
        assert found is not None, done.stdout
        self.assertAlmostEqual(float(found[1]), gate_golden() + 3, delta=0.5)
        self.assertIn("FAILED malloc, its hit path numbered:\n   1  ", done.stdout)

    def test_a_library_that_is_not_there_is_named(self) -> None:
        done = gate(Path("/no/such/libhakmem.so"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("/no/such/libhakmem.so: no such file", done.stderr)
