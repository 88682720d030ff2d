"""The attacks of tests/attacks: check mode stops them, and the default what it promises."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

from support import LIBRARY, ROOT

sys.path.insert(0, str(ROOT / "python"))

from hakmem_bench import attacks  # noqa: E402
from hakmem_bench.model import OURS, Peer  # noqa: E402

# Reading what was never asked for changes nothing, and is not seen by who is asked at malloc and free only.
UNSEEN = {"zero-size 1 read"}

# Of every process, check mode or not: by bug, and what is named behind it.
ALWAYS_STOPPED = (
    "double-free 40 immediate",
    "double-free 5000 immediate",
    "double-free 300000 immediate",
    "double-free 300000 delayed",
    "double-free 300000 cross-thread",
    "invalid-free 40 unaligned",
    "invalid-free 5000 unaligned",
    "invalid-free 300000 interior-16",
    "foreign-free 40 stack",
    "foreign-free 40 global",
    "foreign-free 40 mapped",
    "foreign-free 40 far",
    "mismatch 300000 new-larger-delete",
    "impossible-size 40 malloc",
    "impossible-size 40 calloc",
    "executable-heap 40 call",
)


class Attacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.program = attacks.build(Path(directory.name))
        cls.attacks = {attack.name: attack for attack in attacks.all_attacks(cls.program)}
        cls.ours = Peer(OURS, "", "", str(LIBRARY.resolve()))

    def test_there_are_more_than_a_hundred(self) -> None:
        self.assertGreaterEqual(len(self.attacks), 100)

    def test_check_mode_stops_them(self) -> None:
        checked = attacks.checked(self.ours)
        for name, attack in self.attacks.items():
            with self.subTest(name):
                outcome = attacks.run(self.program, attack, checked)
                self.assertEqual(outcome in attacks.GOOD, name not in UNSEEN, outcome)

    def test_what_is_always_stopped(self) -> None:
        for name in ALWAYS_STOPPED:
            with self.subTest(name):
                outcome = attacks.run(self.program, self.attacks[name], self.ours)
                self.assertIn(outcome, {attacks.AT_ONCE, attacks.NO_EFFECT})

    def test_without_a_bug_nothing_is_stopped(self) -> None:
        """What the programs do besides is correct: with the C library they go on to where the bug has no effect."""
        attack = self.attacks["impossible-size 40 malloc"]
        self.assertEqual(attacks.run(self.program, attack, Peer("glibc", "", "")), attacks.NO_EFFECT)


if __name__ == "__main__":
    unittest.main()
