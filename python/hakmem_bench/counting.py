"""Counts under cachegrind: instructions, loads, stores, branches, simulated misses, per operation.

Each count is the difference of two runs of one program with different numbers of operations, so that start-up and the
filling of what the program keeps live cancel. They repeat to within a fraction of a percent, on any machine.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem_bench import runner
from hakmem_bench.model import CannotError, Counts, Peer
from hakmem_bench.schedule import Progress

_SECONDS = 300
# Which of cachegrind's events make up a figure.
_EVENTS = {
    "instructions": ("Ir",),
    "loads": ("Dr",),
    "stores": ("Dw",),
    "branches": ("Bc", "Bi"),
    "branch_misses": ("Bcm", "Bim"),
    "first_level_misses": ("I1mr", "D1mr", "D1mw"),
    "last_level_misses": ("ILmr", "DLmr", "DLmw"),
}


# What a peer does otherwise under valgrind.
CAVEATS = {
    "google-tcmalloc": "valgrind knows no restartable sequences: what is counted is how it serves without the caches "
    "per processor that need them"
}

# What valgrind itself says, of which the last line tells nothing of why a program failed.
_OF_VALGRIND = re.compile(r"^==\d+==.*$", re.MULTILINE)


@dataclass(frozen=True)
class Counted:
    """A program, with {} for the number of operations, and the two numbers."""

    name: str
    command: tuple[str, ...]
    fewer: int
    more: int


# random_mixed: an operation is a cycle; 8192 slots are as full as they get after some tens of thousands.
COUNTED = (
    *(Counted(f"pairs-{size}", ("pairs", "{}", size), 100_000, 300_000) for size in ("16", "128", "1024")),
    Counted("random-mixed", ("random_mixed", "{}", "mixed", "42", "--slots", "8192"), 400_000, 1_200_000),
)


def need_valgrind() -> None:
    if shutil.which("valgrind") is None:
        raise CannotError("valgrind not found; install it, for example: apt-get install valgrind")


def parse(text: str) -> dict[str, float]:
    """The figures of the file that cachegrind wrote."""
    events = re.search(r"^events: (.+)$", text, re.MULTILINE)
    summary = re.search(r"^summary: (.+)$", text, re.MULTILINE)
    if events is None or summary is None:
        raise CannotError("valgrind's output has no events or no summary")
    totals = dict(zip(events[1].split(), map(int, summary[1].split())))
    return {figure: float(sum(totals.get(event, 0) for event in parts)) for figure, parts in _EVENTS.items()}


def _run(counted: Counted, operations: int, peer: Peer, simulates: str) -> dict[str, float] | str:
    """The figures of one run, or what went wrong."""
    words = [word.replace("{}", str(operations)) for word in counted.command]
    with tempfile.TemporaryDirectory(prefix="hakmem-bench-") as directory:
        file = Path(directory) / "counts"
        command = ["valgrind", "--tool=cachegrind", f"--cache-sim={simulates}", f"--branch-sim={simulates}"]
        command += [f"--cachegrind-out-file={file}", runner.program_of(words[0]), *words[1:]]
        environment = {**runner.clean_environment(), **runner.environment_of(peer)}
        try:
            done = subprocess.run(
                command, env=environment, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no end after {_SECONDS} s"
        lacking = runner.not_served(peer, done.stderr)
        if lacking:
            return lacking
        if done.returncode != 0 or not file.exists():
            return f"exit {done.returncode}: {runner.last_line(_OF_VALGRIND.sub('', done.stderr))}"
        return parse(file.read_text())


def count(counted: Counted, peer: Peer, *, simulates: bool = True) -> Counts:
    """Without simulation there are instructions only, in half the time."""
    words = "yes" if simulates else "no"
    fewer, more = (_run(counted, operations, peer, words) for operations in (counted.fewer, counted.more))
    if isinstance(fewer, str):
        return Counts(counted.name, peer.name, 0, status=fewer)
    if isinstance(more, str):
        return Counts(counted.name, peer.name, 0, status=more)
    operations = counted.more - counted.fewer
    figures: dict[str, Any] = {name: (more[name] - fewer[name]) / operations for name in _EVENTS}
    return Counts(counted.name, peer.name, **figures)


def count_all(peers: Sequence[Peer], progress: Progress) -> Iterator[Counts]:
    """Nothing where there is no valgrind."""
    if shutil.which("valgrind") is None:
        return
    for counted in COUNTED:
        for peer in peers:
            if not peer.missing:
                progress.step(f"{counted.name}, counted: {peer.name}")
                yield count(counted, peer)
