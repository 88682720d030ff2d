"""The budget of the hot path: the instructions of malloc and free, from entry to ret, that run on a hit.

A hit falls through: every conditional jump on the way leads to the door and is not taken. The counts stand in
src/api/hot.h too.
"""

from __future__ import annotations

import platform
import re
import unittest
from dataclasses import dataclass

from support import LIBRARY, output_of

BUDGET = {"malloc": 20, "free": 26}

_PREFIXES = {"lock", "rep", "repz", "repnz", "bnd", "notrack", "data16", "cs", "ds"}


@dataclass(frozen=True)
class Instruction:
    address: int
    text: str

    @property
    def prefixes(self) -> list[str]:
        return [word for word in self.text.split() if word in _PREFIXES]

    @property
    def mnemonic(self) -> str:
        return next(word for word in self.text.split() if word not in _PREFIXES)

    @property
    def target(self) -> int | None:
        """Where a direct jump goes."""
        found = re.search(r"\b([0-9a-f]+) <", self.text)
        return int(found[1], 16) if found else None

    @property
    def fault(self) -> str | None:
        """What the hot path must not contain."""
        if "lock" in self.prefixes or (self.mnemonic.startswith("xchg") and "(" in self.text):
            return "a locked instruction"
        if self.mnemonic.startswith("call"):
            return "a call"
        return "a push" if self.mnemonic.startswith("push") else None


def disassemble(name: str) -> list[Instruction]:
    """The instructions of a function of the library."""
    listing = output_of("objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", str(LIBRARY))
    function = listing.partition(f"<{name}>:\n")[2].partition("\n\n")[0]
    lines = re.findall(r"^ *([0-9a-f]+):\t(.+?)\s*$", function, re.MULTILINE)
    return [Instruction(int(address, 16), text) for address, text in lines]


def hit_path(function: list[Instruction]) -> tuple[list[Instruction], list[str]]:
    """The instructions that run on a hit, and what is wrong with them."""
    places = {instruction.address: place for place, instruction in enumerate(function)}
    path: list[Instruction] = []
    place = 0
    while place < len(function) and function[place] not in path:
        instruction = function[place]
        path.append(instruction)
        if instruction.mnemonic.startswith("ret"):
            return path, [f"{one.fault}: {one.text}" for one in path if one.fault]
        place += 1
        if instruction.mnemonic.startswith("jmp"):
            place = places.get(instruction.target or 0, len(function))
    return path, ["the path does not end in ret"]


@unittest.skipUnless(platform.machine() == "x86_64", "the budget is one of x86-64")
class Budget(unittest.TestCase):
    def check(self, name: str) -> None:
        function = disassemble(name)
        path, faults = hit_path(function)
        if len(path) > BUDGET[name]:
            faults.append(f"{len(path)} instructions")
        if not faults:
            return
        numbers = {instruction: number for number, instruction in enumerate(path, 1)}
        listing = "\n".join(f"{numbers.get(one, ''):>4}  {one.address:x}:  {one.text}" for one in function)
        self.fail(f"{name}, budget {BUDGET[name]}: {'; '.join(faults)}. The hit path is numbered:\n{listing}")

    def test_malloc(self) -> None:
        self.check("malloc")

    def test_free(self) -> None:
        self.check("free")
