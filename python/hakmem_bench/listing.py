"""The library's machine code: which instructions of a function run on a hit, and of what kind they are.

A hit falls through: every conditional jump on the way leads to the door and is not taken.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hakmem_bench.model import CannotError

_PREFIXES = {"lock", "rep", "repz", "repnz", "bnd", "notrack", "data16", "cs", "ds"}
# These read their last operand, or write no memory at all.
_READ_ONLY = ("cmp", "test", "bt")


def _is_memory(operand: str) -> bool:
    return bool(re.search(r"[(]|%[fg]s:", operand))


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
    def operands(self) -> str:
        return self.text.partition(self.mnemonic)[2].partition("#")[0].strip()

    @property
    def target(self) -> int | None:
        """Where a direct jump goes."""
        found = re.search(r"\b([0-9a-f]+) <", self.text)
        return int(found[1], 16) if found else None

    @property
    def branches(self) -> bool:
        return self.mnemonic.startswith("j")

    @property
    def touches_memory(self) -> bool:
        """An operand in memory: base and index in brackets, or in another segment."""
        return not self.mnemonic.startswith(("lea", "nop", "j", "ret")) and _is_memory(self.operands)

    @property
    def stores(self) -> bool:
        """The last operand is what an instruction writes, in this syntax."""
        last = re.split(r",(?![^(]*\))", self.operands)[-1]
        return self.touches_memory and _is_memory(last) and not self.mnemonic.startswith(_READ_ONLY)

    @property
    def loads(self) -> bool:
        """All but a plain move to memory read it first."""
        return self.touches_memory and not (self.stores and self.mnemonic.startswith("mov"))


def disassemble(library: Path, name: str) -> list[Instruction]:
    """The instructions of a function of the library."""
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", str(library)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotError(f"{library}: objdump ends with {done.returncode}: {done.stderr.strip()[-200:]}")
    function = done.stdout.partition(f"<{name}>:\n")[2].partition("\n\n")[0]
    lines = re.findall(r"^ *([0-9a-f]+):\t(.+?)\s*$", function, re.MULTILINE)
    return [Instruction(int(address, 16), text) for address, text in lines]


def hit_path(function: list[Instruction]) -> list[Instruction]:
    """The instructions that run on a hit; the last is a ret, unless there is something wrong."""
    places = {instruction.address: place for place, instruction in enumerate(function)}
    path: list[Instruction] = []
    place = 0
    while place < len(function) and function[place] not in path:
        instruction = function[place]
        path.append(instruction)
        if instruction.mnemonic.startswith("ret"):
            break
        place += 1
        if instruction.mnemonic.startswith("jmp"):
            place = places.get(instruction.target or 0, len(function))
    return path


def numbered(function: list[Instruction]) -> str:
    """The whole function, with the hit path numbered."""
    numbers = {instruction: number for number, instruction in enumerate(hit_path(function), 1)}
    return "\n".join(f"{numbers.get(one, ''):>4}  {one.address:x}:  {one.text}" for one in function)


def mix(path: list[Instruction]) -> dict[str, int]:
    return {
        "loads": sum(one.loads for one in path),
        "stores": sum(one.stores for one in path),
        "branches": sum(one.branches for one in path),
    }
