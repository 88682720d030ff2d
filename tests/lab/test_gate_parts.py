"""The gate's decisions, and how machine code and valgrind's output are read."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from unittest import mock

from hakmem_bench import counting, gate
from hakmem_bench.listing import Instruction, disassemble, hit_path, mix
from hakmem_bench.model import CannotError, Counts, Peer, Sample, Test

CACHEGRIND = """desc: I1 cache: 32768 B, 64 B, 8-way associative
cmd: pairs 100000 16
events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw Bc Bcm Bi Bim
fl=/x.c
fn=main
1 5 1 1 2 0 0 1 0 0 1 0 0 0
summary: 500 10 9 120 7 6 80 5 4 60 3 20 2
"""


def numbers(pairs: float = 55.0, loads: int = 6) -> gate.Numbers:
    return gate.Numbers({"pairs-128": pairs}, {"malloc": {"loads": loads, "stores": 2, "branches": 3}})


class Decisions(unittest.TestCase):
    def test_the_same_passes(self) -> None:
        self.assertEqual(gate.compare(numbers(), numbers()).failures, [])

    def test_a_little_more_passes_and_too_much_does_not(self) -> None:
        self.assertEqual(gate.compare(numbers(), numbers(55.0 * 1.019)).failures, [])
        (failure,) = gate.compare(numbers(), numbers(56.16)).failures
        self.assertIn("pairs-128: 56.16 instructions per operation, golden 55.00", failure)

    def test_less_is_a_hint(self) -> None:
        verdict = gate.compare(numbers(), numbers(50.0))
        self.assertEqual(verdict.failures, [])
        self.assertIn("--lower", verdict.told[0])

    def test_one_load_more_fails(self) -> None:
        (failure,) = gate.compare(numbers(), numbers(loads=7)).failures
        self.assertIn("malloc: 7 loads on the hit path, golden 6", failure)

    def test_golden_numbers_only_fall(self) -> None:
        self.assertEqual(gate.lowered(numbers(55.0, 6), numbers(56.0, 5)), numbers(55.0, 5))

    def test_what_is_checked_in_is_complete(self) -> None:
        golden = gate.golden()
        self.assertEqual(list(golden.instructions), [counted.name for counted in counting.COUNTED])
        self.assertEqual(list(golden.hit_paths), ["malloc", "free"])


class Race(unittest.TestCase):
    """Ten pairs against the C library."""

    def run_with(self, glibc: list[float], status: str = "ok") -> tuple[bool, str]:
        """Where hakmem takes a second, and glibc so many."""
        left = iter(glibc)
        ran: list[str] = []

        def run(test: Test, peer: Peer, *, quick: bool) -> Sample:
            ran.append(peer.name)
            return Sample(status, user=next(left) if peer.name == "glibc" else 1.0)

        with mock.patch.object(gate.runner, "run", run):
            found = gate.race(Path("/library"))
        if status == "ok":
            self.assertEqual(ran[:4], ["hakmem", "glibc", "glibc", "hakmem"])
            self.assertEqual(len(ran), 20)
        return found

    def test_too_small_a_gain_fails(self) -> None:
        passed, line = self.run_with([1.15, 1.19] * 5)
        self.assertFalse(passed)
        self.assertRegex(line, r"1\.1\d \(1\.15 to 1\.19\); the upper end must reach 1\.2\Z")

    def test_one_that_may_be_enough_passes(self) -> None:
        self.assertTrue(self.run_with([1.1, 1.25] * 5)[0])
        self.assertTrue(self.run_with([1.5] * 10)[0])

    def test_a_crash_fails(self) -> None:
        self.assertEqual(self.run_with([1.5] * 10, "signal 11"), (False, "random_mixed with hakmem: signal 11"))


class Counting(unittest.TestCase):
    """What cannot be counted is no zero, which a golden number would fall to."""

    def counted(self, path: list[Instruction], status: str = "ok") -> gate.Numbers:
        found = Counts("a-test", "hakmem", 5.0, status=status)
        with (
            mock.patch.object(gate.counting, "count", return_value=found),
            mock.patch.object(gate.listing, "disassemble", return_value=path),
        ):
            return gate.count(Path("/no/library"))

    def test_a_path_that_returns_is_counted(self) -> None:
        path = [Instruction(0x10, "mov    (%rdi),%rax"), Instruction(0x12, "ret")]
        self.assertEqual(self.counted(path).hit_paths["malloc"], {"loads": 1, "stores": 0, "branches": 0})

    def test_a_path_that_is_not_there_or_does_not_return_is_refused(self) -> None:
        for path in ([], [Instruction(0x10, "call   99 <door>")]):
            with self.assertRaisesRegex(CannotError, "no hit path"):
                self.counted(path)

    def test_a_program_that_fails_is_named(self) -> None:
        with self.assertRaisesRegex(CannotError, "exit 3"):
            self.counted([], status="exit 3")

    def test_no_library_is_refused(self) -> None:
        with tempfile.NamedTemporaryFile() as file, self.assertRaisesRegex(CannotError, file.name):
            file.write(b"no library")
            file.flush()
            disassemble(Path(file.name), "malloc")


class Cachegrind(unittest.TestCase):
    def test_events_are_summed(self) -> None:
        self.assertEqual(
            counting.parse(CACHEGRIND),
            {
                "instructions": 500,
                "loads": 120,
                "stores": 80,
                "branches": 80,
                "branch_misses": 5,
                "first_level_misses": 22,
                "last_level_misses": 19,
            },
        )

    def test_something_else_is_refused(self) -> None:
        with self.assertRaises(CannotError):
            counting.parse("events: Ir\n")


class Listing(unittest.TestCase):
    def kinds(self, text: str) -> tuple[bool, bool, bool]:
        one = Instruction(0, text)
        return one.loads, one.stores, one.branches

    def test_loads_stores_and_branches(self) -> None:
        for text, kinds in (
            ("mov    (%rcx),%rax", (True, False, False)),
            ("mov    %rax,(%rcx)", (False, True, False)),
            ("mov    %rax,0x8(%rcx,%rdx,8)", (False, True, False)),
            ("sub    %rdi,(%rcx)", (True, True, False)),
            ("cmp    0x8(%rdx),%rax", (True, False, False)),
            ("cmpq   $0x0,(%rdx)", (True, False, False)),
            ("mov    %fs:(%rax),%rcx", (True, False, False)),
            ("movzbl (%rdx,%rax,1),%eax", (True, False, False)),
            ("lea    0x7(%rdi),%rax", (False, False, False)),
            ("mov    %rdx,%rax", (False, False, False)),
            ("nopw   0x0(%rax,%rax,1)", (False, False, False)),
            ("ja     e890 <malloc+0x50>", (False, False, True)),
            ("ret", (False, False, False)),
        ):
            with self.subTest(text):
                self.assertEqual(self.kinds(text), kinds)

    def test_the_hit_path_falls_through_and_follows_jumps(self) -> None:
        function = [
            Instruction(0x10, "test   %rdi,%rdi"),
            Instruction(0x12, "je     30 <f+0x20>"),
            Instruction(0x14, "jmp    20 <f+0x10>"),
            Instruction(0x16, "push   %rax"),
            Instruction(0x20, "mov    (%rdi),%rax"),
            Instruction(0x22, "ret"),
            Instruction(0x30, "call   99 <door>"),
        ]
        path = hit_path(function)
        self.assertEqual([one.address for one in path], [0x10, 0x12, 0x14, 0x20, 0x22])
        self.assertEqual(mix(path), {"loads": 1, "stores": 0, "branches": 2})


if __name__ == "__main__":
    unittest.main()
