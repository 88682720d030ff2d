"""Profiles as the library writes them, from allocations that are known and a seed: for tests of the tools alone.

The program's addresses and mappings are real: they are read from a process that runs it.
"""

from __future__ import annotations

import math
import random
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parent / "leaker.c"
CALLS = re.compile(r"^\s*([0-9a-f]+):.*\bcall\s+([0-9a-f]+) <(\w+)")


@dataclass
class Made:
    """Samples of one stack and size, counted as the library counts them."""

    stack: tuple[int, ...]
    size: int
    live: int = 0
    allocated: int = 0
    peak: int = 0
    lifetimes: list[int] = field(default_factory=lambda: [0] * 8)

    def text(self) -> str:
        stack = "".join(f" 0x{address:x}" for address in self.stack)
        counts = f"{self.live}: {self.live * self.size} [ {self.allocated}: {self.allocated * self.size}] @{stack}"
        ages = " ".join(str(count) for count in self.lifetimes)
        return f"{counts}\n# peak {self.peak} {self.peak * self.size} lifetimes {ages}\n"


def heap_v2(made: list[Made], rate: int, maps: str, seconds: int = 60) -> str:
    now_ms = time.time_ns() // 1_000_000
    sums = [
        sum(one.live for one in made),
        sum(one.live * one.size for one in made),
        sum(one.allocated for one in made),
        sum(one.allocated * one.size for one in made),
    ]
    peak = sum(one.peak * one.size for one in made)
    return (
        f"heap profile: {sums[0]}: {sums[1]} [ {sums[2]}: {sums[3]}] @ heap_v2/{rate}\n"
        f"# hakmem-profile 1 pid=4711 rate={rate} started_ms={now_ms - seconds * 1000} now_ms={now_ms}"
        f" dropped=0 peak_bytes={peak}\n" + "".join(one.text() for one in made) + f"MAPPED_LIBRARIES:\n{maps}"
    )


def sample(made: Made, blocks: int, live: int, rate: int, random_numbers: random.Random) -> Made:
    """Of so many blocks, the last `live` of them not freed, those that a sampler with this rate takes."""
    chance = 1 - math.exp(-made.size / rate)
    for number in range(blocks):
        if random_numbers.random() < chance:
            made.allocated += 1
            if number >= blocks - live:
                made.live += 1
                made.peak += 1
            else:
                made.lifetimes[random_numbers.choice((0, 0, 0, 1, 3))] += 1
    return made


def build(directory: Path, *flags: str) -> Path:
    program = directory / "leaker"
    subprocess.run(["cc", "-g", "-O1", *flags, "-o", program, SOURCE], check=True)
    return program


def maps_of(program: Path) -> str:
    """Of a process that runs the program."""
    with subprocess.Popen([program, "1", "1"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            return Path(f"/proc/{process.pid}/maps").read_text()
        finally:
            process.kill()


def returns_in(program: Path, maps: str) -> dict[tuple[str, str], list[int]]:
    """(Caller, called): the addresses to which the calls return, as they are in the process of these maps."""
    first = next(line for line in maps.splitlines() if line.endswith(str(program)))
    base = int(first.partition("-")[0], 16)
    text = subprocess.run(["objdump", "-d", program], check=True, capture_output=True, text=True).stdout
    found: dict[tuple[str, str], list[int]] = {}
    caller, called = "", ""
    for line in text.splitlines():
        if label := re.match(r"^[0-9a-f]+ <(\w+)>:", line):
            caller = label[1]
        elif at := re.match(r"^\s*([0-9a-f]+):", line):
            if called:
                found.setdefault((caller, called), []).append(base + int(at[1], 16))
                called = ""
            if call := CALLS.match(line):
                called = call[3]
    return found


def leak(program: Path, rate: int, seed: int) -> tuple[str, list[Made]]:
    """What the library would write about the leaker after 100,000 requests."""
    maps = maps_of(program)
    returns = returns_in(program, maps)
    serve_call = returns[("main", "serve")][0]
    load_call = returns[("main", "load_table")][0]
    opened = returns[("serve", "open_session")][0]
    mallocs = returns[("open_session", "malloc")]
    random_numbers = random.Random(seed)
    stacks = [(address, opened, serve_call) for address in mallocs]
    blocks = 100_000
    made = [
        sample(Made(stacks[0], 16), blocks, 0, rate, random_numbers),
        sample(Made(stacks[1], 48), blocks, blocks, rate, random_numbers),
        sample(Made(stacks[2], 2000), blocks, 1, rate, random_numbers),
        sample(Made((returns[("load_table", "malloc")][0], load_call), 8 << 20), 1, 1, rate, random_numbers),
    ]
    return heap_v2(made, rate, maps), made


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        print(leak(build(Path(directory)), 16384, 1)[0], end="")
