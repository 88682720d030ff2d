"""The budget of the hot path: the instructions of malloc and free, from entry to ret, that run on a hit.

The counts stand in src/api/hot.h too. What they cost in loads, stores and branches, and in whole programs, the gate
checks (test_gate.py).
"""

from __future__ import annotations

import platform
import sys
import unittest

from support import LIBRARY, ROOT

sys.path.insert(0, str(ROOT / "python"))

from hakmem_bench import listing  # noqa: E402

# Of operator new, which jumps there: malloc's, and whether malloc is ours. Of those that align: malloc's, and what
# request of all that are so aligned is the smallest.
BUDGET = {"malloc": 18, "free": 22, "hak_linked_new_or_throw": 21, "hak_posix_memalign": 37, "hak_aligned_alloc": 37}


def fault_of(instruction: listing.Instruction) -> str | None:
    """What the hot path must not contain."""
    if "lock" in instruction.prefixes or (instruction.mnemonic.startswith("xchg") and instruction.touches_memory):
        return "a locked instruction"
    if instruction.mnemonic.startswith("call"):
        return "a call"
    return "a push" if instruction.mnemonic.startswith("push") else None


@unittest.skipUnless(platform.machine() == "x86_64", "the budget is one of x86-64")
class Budget(unittest.TestCase):
    def check(self, name: str) -> None:
        function = listing.disassemble(LIBRARY, name)
        path = listing.hit_path(function)
        faults = [f"{fault}: {one.text}" for one in path if (fault := fault_of(one))]
        if not path or not path[-1].mnemonic.startswith("ret"):
            faults.append("the path does not end in ret")
        if len(path) > BUDGET[name]:
            faults.append(f"{len(path)} instructions")
        if faults:
            numbered = listing.numbered(function)
            self.fail(f"{name}, budget {BUDGET[name]}: {'; '.join(faults)}. The hit path is numbered:\n{numbered}")

    def test_malloc(self) -> None:
        self.check("malloc")

    def test_free(self) -> None:
        self.check("free")

    def test_operator_new(self) -> None:
        self.check("hak_linked_new_or_throw")

    def test_posix_memalign(self) -> None:
        self.check("hak_posix_memalign")

    def test_aligned_alloc(self) -> None:
        self.check("hak_aligned_alloc")
