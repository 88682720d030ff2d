"""What CI checks of speed: instructions and memory accesses against golden numbers, and the gain over the C library."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hakmem_bench import counting, listing, runner, stats
from hakmem_bench.model import ROOT, CannotError, Peer, Sample, Test, write_file

GOLDEN = ROOT / "bench" / "golden.json"

_TOLERANCE = 0.02
_LEAST_GAIN = 1.2
_PAIRS = 10
_FUNCTIONS = ("malloc", "free")
_RACE = Test("gate", "gate", "", ("random_mixed", "12000000", "mixed", "42"), seconds=300)


@dataclass
class Numbers:
    """Counted on x86-64, whose machine code they are of."""

    instructions: dict[str, float] = field(default_factory=dict)
    """Per operation, by test of counting.COUNTED."""
    hit_paths: dict[str, dict[str, int]] = field(default_factory=dict)
    """Loads, stores and branches, by function."""


@dataclass
class Verdict:
    failures: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


def golden() -> Numbers:
    return Numbers(**json.loads(GOLDEN.read_text()))


def count(library: Path) -> Numbers:
    peer = Peer("hakmem", "", "", str(library))
    numbers = Numbers()
    for counted in counting.COUNTED:
        found = counting.count(counted, peer)
        if found.status != "ok":
            raise CannotError(f"{counted.name}: {found.status}")
        numbers.instructions[counted.name] = round(found.instructions, 2)
    for name in _FUNCTIONS:
        path = listing.hit_path(listing.disassemble(library, name))
        if not path or not path[-1].mnemonic.startswith("ret"):
            raise CannotError(f"{library}: {name} has no hit path that ends in a return")
        numbers.hit_paths[name] = listing.mix(path)
    return numbers


def compare(old: Numbers, new: Numbers) -> Verdict:
    """Up is a failure, down a hint."""
    verdict = Verdict()
    for name, was in old.instructions.items():
        now = new.instructions[name]
        line = f"{name}: {now:.2f} instructions per operation, golden {was:.2f} ({now / was - 1:+.1%})"
        if now > was * (1 + _TOLERANCE):
            verdict.failures.append(line)
        elif now < was * (1 - _TOLERANCE):
            verdict.told.append(f"{line}: lower it with `hakmem bench gate --lower`")
        else:
            verdict.told.append(line)
    for name, kinds in old.hit_paths.items():
        for kind, most in kinds.items():
            line = f"{name}: {new.hit_paths[name][kind]} {kind} on the hit path, golden {most}"
            (verdict.failures if new.hit_paths[name][kind] > most else verdict.told).append(line)
    return verdict


def lowered(old: Numbers, new: Numbers) -> Numbers:
    """Never higher than they were."""
    return Numbers(
        {name: min(was, new.instructions[name]) for name, was in old.instructions.items()},
        {
            name: {kind: min(was, new.hit_paths[name][kind]) for kind, was in kinds.items()}
            for name, kinds in old.hit_paths.items()
        },
    )


def lower(library: Path) -> Numbers:
    if platform.machine() != "x86_64":
        raise CannotError(f"gate --lower: golden numbers are of x86_64, this is {platform.machine()}")
    numbers = lowered(golden(), count(library))
    write_file(GOLDEN, asdict(numbers))
    return numbers


def _processor_seconds(sample: Sample) -> float:
    return sample.user + sample.system


def race(library: Path) -> tuple[bool, str]:
    """Pairs of runs against the C library, in turn first and second. Processor time counts, because machines of CI are
    shared."""
    peers = [Peer("hakmem", "", "", str(library)), Peer("glibc", "", "")]
    gains = []
    for pair in range(_PAIRS):
        seconds = {}
        for peer in peers if pair % 2 == 0 else peers[::-1]:
            sample = runner.run(_RACE, peer, quick=False)
            if not sample.good:
                return False, f"random_mixed with {peer.name}: {sample.status}"
            seconds[peer.name] = _processor_seconds(sample)
        gains.append(seconds["glibc"] / seconds["hakmem"])
    gain = stats.interval(gains)
    line = f"random_mixed, glibc over hakmem in {_PAIRS} pairs: {gain.median:.2f} ({gain.low:.2f} to {gain.high:.2f})"
    return gain.high >= _LEAST_GAIN, f"{line}; the upper end must reach {_LEAST_GAIN}"


def check(library: Path, *, with_race: bool) -> Verdict:
    verdict = Verdict()
    if platform.machine() == "x86_64":
        verdict = compare(golden(), count(library))
        if verdict.failures:
            for name in _FUNCTIONS:
                numbered = listing.numbered(listing.disassemble(library, name))
                verdict.failures.append(f"{name}, its hit path numbered:\n{numbered}")
    else:
        verdict.told.append(f"skipped: golden numbers are of x86_64, this is {platform.machine()}")
    if with_race:
        passed, line = race(library)
        (verdict.told if passed else verdict.failures).append(line)
    return verdict
