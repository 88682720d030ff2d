"""ld, gold and lld run directly, so that each is surely seen: in a build they may be gone before they are looked at."""

from __future__ import annotations

import subprocess
import unittest

from programs import ProgramTest, environment

FILES = 24
FUNCTIONS = 1200


def assembly(number: int) -> str:
    """A source of many sections, symbols and relocations into its neighbours, and strings to be merged."""
    lines = []
    for n in range(FUNCTIONS):
        other = f"function_{(number + 1) % FILES}_{n * 7 % FUNCTIONS}"
        lines.append(f'.section .text.f{n},"ax",@progbits\n.globl function_{number}_{n}\nfunction_{number}_{n}:')
        own = n * FILES + number if n % 3 else 0  # two thirds differ, of the others some can be folded
        lines.append(f".quad {own}, {other}, string_{number}_{n}, data_{number}_{n}")
        lines.append(
            f'.section .data.d{n},"aw",@progbits\ndata_{number}_{n}: .quad function_{number}_{(n + 1) % FUNCTIONS}'
        )
        lines.append(
            f'.section .rodata.str1.1,"aMS",@progbits,1\nstring_{number}_{n}: .string "text {n * number % 997}"'
        )
    return "\n".join(lines) + '\n.section .note.GNU-stack,"",@progbits\n'


class Linkers(ProgramTest):
    title = "ld, gold, lld"
    packages = ("binutils", "gcc", "lld")
    programs = ("as", "ld.bfd", "ld.gold", "ld.lld")
    version = ("ld.bfd", "--version")

    def link(self, linker: str, *options: str) -> None:
        objects = [f"{number}.o" for number in range(FILES)]
        for number, name in enumerate(objects):
            source = self.directory / f"{number}.s"
            source.write_text(assembly(number))
            assembler = ["as", "-o", name, source.name]
            subprocess.run(assembler, cwd=self.directory, env=environment(False), check=True, timeout=60)
        command = [linker, "-e", "function_0_0", "--build-id=sha1", "--gc-sections", "-O2", *options, "-o", "program"]
        script = f"rm -f program; {' '.join([*command, *objects])}; sha256sum program; nm program | sha256sum"
        result = self.compare(["sh", "-ec", script], served=linker, cwd=self.directory)
        self.assertEqual(result.status, 0, result.stderr[-1000:])
        self.assertGreater((self.directory / "program").stat().st_size, FILES * FUNCTIONS * 8)

    def test_ld(self) -> None:
        """ld: 24 objects with 29,000 functions in sections of their own, garbage collected; the programs compared"""
        self.link("ld.bfd")

    def test_gold(self) -> None:
        """the same by gold"""
        self.link("ld.gold")

    def test_lld(self) -> None:
        """the same by lld with 4 threads and folding of identical code"""
        self.link("ld.lld", "--threads=4", "--icf=all")


if __name__ == "__main__":
    unittest.main()
