"""Python is as ruff.toml says."""

from __future__ import annotations

import subprocess
import sys
import unittest

from hakmem_bench.model import ROOT


class Style(unittest.TestCase):
    def ruff(self, *words: str) -> None:
        command = [sys.executable, "-m", "ruff", *words, "--no-cache", "."]
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_nothing_is_found(self) -> None:
        self.ruff("check")

    def test_it_is_formatted(self) -> None:
        self.ruff("format", "--check", "--diff")


if __name__ == "__main__":
    unittest.main()
