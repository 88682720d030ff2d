"""The attacks of tests/attacks: check mode stops them, the hardened library and the default what they promise."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

from support import HARDENED, LIBRARY, ROOT

sys.path.insert(0, str(ROOT / "python"))

from hakmem_bench import attacks, model  # noqa: E402
from hakmem_bench.model import OURS, Peer  # noqa: E402

# Reading what was never asked for changes nothing, and is not seen by who is asked at malloc and free only.
UNSEEN = {"zero-size 1 read"}

# The hardened library does not keep who allocated a block, nor look for lost ones.
UNHARDENED = {
    *(f"mismatch {size} {pair}" for size in (40, 300000) for pair in ("new-free", "malloc-delete", "new-array-delete")),
    *(f"leak {size} lost" for size in (40, 5000, 300000)),
    # A write after free is found when the memory is used again. This block's lies where it stays.
    "stale-after-realloc 5000 write",
}
# The same of a block that may come back: chance decides, four times in five for the better.
BY_CHANCE = "write-after-free 5000 delayed"
TRIES = 12
# One byte of a seal is, in one run of 256, what the attack writes there: nothing has changed then. Not twice in a row.
ONE_BYTE = {"overflow": {"1", "memcpy-1"}, "underflow": {"-1"}, "aligned-overflow": {"64", "4096"}}

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
        cls.hardened = Peer(model.HARDENED, "", "", str(HARDENED.resolve()))

    def test_there_are_more_than_a_hundred(self) -> None:
        self.assertGreaterEqual(len(self.attacks), 100)

    def test_check_mode_stops_them(self) -> None:
        checked = attacks.checked(self.ours)
        for name, attack in self.attacks.items():
            with self.subTest(name):
                outcome = attacks.run(self.program, attack, checked)
                self.assertEqual(outcome in attacks.GOOD, name not in UNSEEN, outcome)

    def test_the_hardened_library_stops_all_but_these(self) -> None:
        self.assertLess(UNHARDENED | {BY_CHANCE}, set(self.attacks))
        for name, attack in self.attacks.items():
            if name == BY_CHANCE:
                continue
            with self.subTest(name):
                outcome = attacks.run(self.program, attack, self.hardened)
                if outcome == attacks.MISSED and attack.variant in ONE_BYTE.get(attack.bug, ()):
                    outcome = attacks.run(self.program, attack, self.hardened)
                self.assertEqual(outcome in attacks.GOOD, name not in UNHARDENED, outcome)

    def test_what_the_hardened_library_leaves_to_chance_is_stopped_in_one_of_some_runs(self) -> None:
        attack = self.attacks[BY_CHANCE]
        outcomes = (attacks.run(self.program, attack, self.hardened) for _ in range(TRIES))
        self.assertTrue(any(outcome in attacks.GOOD for outcome in outcomes))

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
