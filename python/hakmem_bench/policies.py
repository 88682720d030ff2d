"""Policies for the programs of the lab, as files that the library loads: made by hand, or learned."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from hakmem_bench import runner
from hakmem_bench.model import ROOT, CannotError, Peer, Test
from hakmem_cli import policy_text
from hakmem_cli.policy_lines import Line
from hakmem_cli.policy_text import Part

BY_HAND = ROOT / "bench" / "policies"
KEPT = ROOT / "build" / "lab" / "policies"

_BUILD_ID = re.compile(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0(.{20})", re.DOTALL)


def names() -> list[str]:
    return sorted(path.stem for path in BY_HAND.glob("*.policy"))


def _part(program: Path, lines: Sequence[Line]) -> Part:
    """By build id, and by size where the linker has made none, as the library knows a program."""
    found = _BUILD_ID.search(program.read_bytes())
    key = {"build_id": found[1].hex()} if found else {"size": program.stat().st_size}
    return Part(str(program), epochs=1, seconds=1, lines=list(lines), **key)  # type: ignore[arg-type]


def _write(path: Path, parts: list[Part]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(policy_text.text_of(parts))
    return path


def _programs(tests: Iterable[Test]) -> list[Path]:
    names = {test.command[0] for test in tests}
    return [runner.PROGRAMS / name for name in sorted(names) if not os.path.isabs(name)]


def by_hand(name: str, tests: Iterable[Test]) -> Path:
    """The policy of bench/policies, for each of the tests' programs."""
    path = BY_HAND / f"{name}.policy"
    lines = [line for part in policy_text.read(path) for line in part.lines]
    return _write(KEPT / path.name, [_part(program, lines) for program in _programs(tests)])


def learned(ours: Peer, tests: Sequence[Test], *, quick: bool) -> Path:
    """What a run of each of these tests learns."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / "learned.policy"
    path.unlink(missing_ok=True)
    saves = replace(ours, environment={"HAKMEM_MODE": "learning", "HAKMEM_POLICY": str(path)})
    for test in tests:
        sample = runner.run(test, saves, quick=quick)
        if not sample.good:
            raise CannotError(f"{test.name}, to learn a policy: {sample.status}")
    return path
