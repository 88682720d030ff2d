"""What the lab measures and what it keeps: peers, tests, samples, and the result file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hakmem_cli import files
from hakmem_cli.say import CannotError as CannotError

ROOT = Path(__file__).resolve().parents[2]
OURS = "hakmem"
# The other library of the same sources.
HARDENED = "hakmem, hardened"
SCHEMA = {"name": "hakmem bench", "version": 1}


@dataclass(frozen=True)
class Peer:
    """An allocator that programs can be run with."""

    name: str
    version: str
    source: str
    """Where it came from: "Debian libjemalloc2", "PyPI cmeel-mimalloc", "crates.io snmalloc-rs"."""
    library: str = ""
    """The path to preload; empty for the C library's own."""
    environment: dict[str, str] = field(default_factory=dict)
    """What else it needs."""
    missing: str = ""
    """Why it cannot be had; such a peer is a row that says so."""


@dataclass(frozen=True)
class Test:
    """A workload with its parameters."""

    name: str
    """As on the command line: lower case, digits, dashes."""
    group: str
    """Tests of one kind stand together in tables: "random_mixed", "larson", "realloc", "programs"."""
    what: str
    """One line: what it does and what is counted."""
    command: tuple[str, ...]
    """The program, a name in build/release/bench or an absolute path, and its arguments. It is run in an empty
    directory of its own. If its output has a line `Throughput = N operations per second`, N is what counts, otherwise
    the wall time."""
    quick: tuple[str, ...] | None = None
    """The command for `--quick`; None if the test is not part of it."""
    seconds: float = 120
    """After this it has timed out."""
    threads: int = 1
    setup: Callable[[Path], None] | None = None
    """Makes what the program needs in the directory given, once per run of the lab. The command may say {data} for that
    directory, and {scripts} for bench/programs."""
    preloads_itself: bool = False
    """The command is a driver of a server: it is run without the library, starts the server with the environment in
    the JSON object HAK_BENCH_ENVIRONMENT added to its own, and prints a line `Sample = {"seconds": S, "peak_kib": K}`
    that replaces those fields."""
    packages: tuple[str, ...] = ()
    """Debian's packages that it needs."""
    memory_only: bool = False
    """Its time says nothing (it sleeps, or is told how long to take): only its peak and curve count. These repeat: one
    run is enough."""
    only: tuple[str, ...] = ()
    """The allocators that it is run with; all, if empty."""
    least_repetitions: int = 1
    """It is short, and differences are small: a full run has so many at least."""

    def takes(self, peer: Peer) -> bool:
        return not peer.missing and (not self.only or peer.name in self.only)


def is_time_out(status: str) -> bool:
    return status.startswith("no end")


@dataclass
class Sample:
    """One run of a test with an allocator."""

    status: str
    """"ok", or what happened: "exit 3: last line of stderr", "signal 11", "no end after 60 s"."""
    seconds: float = 0.0
    """What counts: per million operations where the test counts operations, wall time otherwise."""
    wall: float = 0.0
    user: float = 0.0
    system: float = 0.0
    peak_kib: int = 0
    """The largest resident set of the program itself, or of one of its descendants."""
    minor_faults: int = 0
    major_faults: int = 0
    foreign: float = 0.0
    """Processors busy with something else meanwhile, on average."""
    extra: dict[str, Any] = field(default_factory=dict)
    """What a test tells besides, from a line `Extra = {json}`: a curve of resident sizes, for example."""

    @property
    def good(self) -> bool:
        return self.status == "ok"

    @property
    def timed_out(self) -> bool:
        return is_time_out(self.status)


def _sample(kept: dict[str, Any]) -> Sample:
    """Raises TypeError if a number is none."""
    sample = Sample(**kept)
    for name, value in kept.items():
        if name not in ("status", "extra") and not isinstance(value, (int, float)):
            raise TypeError(f"{name}: {value!r} is no number")
    return sample


@dataclass
class TestResult:
    """All runs of one test. samples[peer][i] are of repetition i for every peer: those of one i are pairs."""

    name: str
    group: str
    what: str
    command: list[str]
    threads: int
    memory_only: bool
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    system_calls: dict[str, dict[str, int]] = field(default_factory=dict)
    """Per peer: how often each was called, in a run of its own."""
    disturbed: int = 0
    """Runs that were repeated because something else kept the machine busy."""
    counted: bool = False
    """`seconds` is per million operations, not wall time."""


@dataclass
class Counts:
    """Counted under valgrind, per operation; repeatable."""

    test: str
    peer: str
    instructions: float
    loads: float = 0.0
    stores: float = 0.0
    branches: float = 0.0
    branch_misses: float = 0.0
    first_level_misses: float = 0.0
    last_level_misses: float = 0.0
    status: str = "ok"


@dataclass
class Result:
    """A result file."""

    provenance: dict[str, str]
    """In the order to print: date, library build, build id, commit, flags, CPU, CPUs, memory, kernel, libc, huge
    pages, what was asked for."""
    peers: list[Peer]
    tests: list[TestResult] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Tests that could not be run here, each with the reason."""
    complete: bool = True
    """All that was asked for has been measured; while that goes on it has not."""

    def write(self, path: Path) -> None:
        write_file(path, {"schema": SCHEMA, **asdict(self)})


def write_file(path: Path, kept: dict[str, Any]) -> None:
    """Whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, f"{json.dumps(kept, indent=1)}\n".encode(), force=True)


def read(path: Path) -> Result:
    try:
        data: dict[str, Any] = json.loads(path.read_text())
        if data.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        tests = data.pop("tests")
        for test in tests:
            test["samples"] = {peer: [_sample(one) for one in many] for peer, many in test["samples"].items()}
        return Result(
            peers=[Peer(**peer) for peer in data.pop("peers")],
            tests=[TestResult(**test) for test in tests],
            counts=[Counts(**count) for count in data.pop("counts")],
            **data,
        )
    except OSError as error:
        raise CannotError(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CannotError(f"{path}: not a result file that `bench` wrote ({error})") from error
