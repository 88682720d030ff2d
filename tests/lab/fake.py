"""Results that nobody measured, with everything that a real one may hold, from a seed."""

from __future__ import annotations

import random
from typing import Any

from hakmem_bench.model import Counts, Peer, Result, Sample, TestResult

# Name: how slow, and how large, against hakmem.
NATURES = {
    "hakmem": (1.0, 1.0),
    "glibc": (1.7, 1.02),
    "jemalloc": (1.35, 1.45),
    "jemalloc-debian": (1.4, 1.5),
    "tcmalloc-debian": (1.2, 1.8),
    "tcmalloc-google": (1.05, 1.6),
    "mimalloc": (1.08, 1.5),
    "mimalloc-2": (1.12, 0.97),
    "mimalloc-crate": (1.09, 1.48),
    "snmalloc": (1.06, 1.2),
    "rpmalloc": (1.15, 1.3),
    "tbbmalloc": (1.5, 1.35),
    "scudo": (2.6, 1.1),
}

# Group: its tests, with what hakmem needs (seconds, MiB).
TESTS: dict[str, dict[str, tuple[float, float]]] = {
    "random_mixed": {
        "random-mixed-128": (0.0093, 12),
        "random-mixed-256": (0.0097, 14),
        "random-mixed-512": (0.0104, 20),
        "random-mixed-1024": (0.0113, 31),
        "random-mixed-1m-slots": (0.029, 620),
    },
    "larson": {"larson-1": (0.0095, 14), "larson-2": (0.0047, 22), "larson-8": (0.0058, 70)},
    "sharing": {"false-sharing-active": (0.0021, 4), "false-sharing-passive": (0.0024, 4)},
    "realloc": {"vectors-in-place": (0.41, 310), "strings": (0.083, 9)},
    "large": {"vm": (15.1, 4), "large-mix": (1.9, 190)},
    "start-up": {"start-up": (0.0011, 1.1)},
    "programs": {"redis": (1.21, 61), "cpython-json": (2.4, 94), "sqlite": (0.92, 21), "gcc": (3.3, 130)},
}


def everything(seed: int = 1, runs: int = 7) -> Result:
    """Ties, crashes, time-outs, a missing peer, curves, counts, a test that nobody survived."""
    chance = random.Random(seed)
    tests = [_test(chance, group, name, runs) for group, many in TESTS.items() for name in many]
    by_name = {test.name: test for test in tests}
    _fail(by_name["larson-8"], "rpmalloc", "signal 11", 2)
    _fail(by_name["vectors-in-place"], "scudo", "no end after 60 s", runs)
    _fail(by_name["gcc"], "tcmalloc-google", "exit 1: cannot <allocate> & die", runs)
    tests.append(_idle(chance, runs))
    nobody = _test(chance, "programs", "strings", runs)
    nobody.name = "node"
    for peer in nobody.samples:
        _fail(nobody, peer, "exit 127: node: not found", runs)
    tests.append(nobody)
    by_name["strings"].system_calls = {"hakmem": {"mmap": 12, "madvise": 3}, "glibc": {"brk": 90, "mremap": 411}}
    by_name["redis"].disturbed = 3
    peers = [Peer(name, f"{index}.{index + 2}.1", "Debian") for index, name in enumerate(NATURES)]
    peers.append(Peer("hoard", "", "crates.io", missing="no network"))
    return Result(provenance=_provenance(), peers=peers, tests=tests, counts=_counts(chance))


def only(allocators: list[str], seed: int = 1, runs: int = 7) -> Result:
    """The same with a few allocators."""
    result = everything(seed, runs)
    result.peers = [peer for peer in result.peers if peer.name in allocators]
    result.counts = [count for count in result.counts if count.peer in allocators]
    for test in result.tests:
        test.samples = {name: samples for name, samples in test.samples.items() if name in allocators}
        test.system_calls = {name: calls for name, calls in test.system_calls.items() if name in allocators}
    return result


def interrupted() -> Result:
    """Stopped within the first repetition of its second test."""
    result = everything(runs=1)
    result.complete = False
    result.counts = []
    result.tests = result.tests[:2]
    result.tests[1].samples = {name: result.tests[1].samples[name] for name in ("hakmem", "glibc")}
    result.tests[1].samples["glibc"] = []
    return result


def memory(runs: int = 3) -> Result:
    """What docs/memory.md is about: hakmem gives back at once, glibc nothing, mimalloc late and lazily."""
    result = only(["hakmem", "glibc", "mimalloc", "hoard"])
    result.tests = [
        _memory_test("idle", runs, {"hakmem": _idle_run(1.0, 0.99), "glibc": _idle_run(0, 0), "mimalloc": _lazy_run()}),
        _memory_test("oscillate", runs, {name: {"minor_faults": n, "rounds": 9} for name, n in _FAULTS.items()}),
        _memory_test("vm", runs, {name: {} for name in _FAULTS}),
    ]
    result.tests[0].memory_only = True
    result.left_out = {"idle-4-threads": "no <threads>"}
    _fail(result.tests[2], "mimalloc", "no end after 60 s", runs)
    return result


_FAULTS = {"hakmem": 90, "glibc": 9000, "mimalloc": 0}
_PEAK, _FREED, _EMPTY, _KEPT = 1000, 900, 765, 50


def _memory_test(name: str, runs: int, told: dict[str, dict[str, Any]]) -> TestResult:
    samples = {
        peer: [Sample("ok", 2.0, 1, 1, 1, _PEAK * 1024, 250 if peer == "mimalloc" else 256_000, extra=dict(extra))]
        * runs
        for peer, extra in told.items()
    }
    return TestResult(name, "memory", f"What {name} does", [name], 1, False, samples, counted=True)


def _idle_run(after: float, share: float) -> dict[str, Any]:
    """Half of what comes back is back after that many seconds, all after twice as many."""
    levels = [(0.0, 0.0), (0.5, 0.0), (0.5 + after, share / 2), (0.5 + 2 * after, share), (10.5, share)]
    curve = [[at, (_PEAK - back * _EMPTY) * 1024 if at else 2048] for at, back in levels]
    sizes = {"freed_kib": _FREED, "kept_kib": _KEPT, "dead_page_kib": _EMPTY, "end_kib": _PEAK - share * _EMPTY}
    return {"curve": curve, **{name: 1024 * kib for name, kib in sizes.items()}}


def _lazy_run() -> dict[str, Any]:
    return {**_idle_run(4.5, 0.5), "huge_kib": 4096, "lazy_kib": 2048}


def nothing_good() -> Result:
    result = everything(runs=3)
    for test in result.tests:
        for peer in test.samples:
            _fail(test, peer, "signal 6", 3)
    return result


def _test(chance: random.Random, group: str, name: str, runs: int) -> TestResult:
    seconds, mib = TESTS[group][name] if name in TESTS[group] else (1.0, 80)
    test = TestResult(name, group, f"What {name} does, and what is counted", ["program", name], 1, False)
    # How fast the machine is in each repetition: all allocators share it.
    speeds = [chance.lognormvariate(0, 0.1) for _ in range(runs)]
    for peer, (slower, larger) in NATURES.items():
        slow = slower * chance.lognormvariate(0, 0.12) if peer != "hakmem" else 1
        large = larger * chance.lognormvariate(0, 0.15) if peer != "hakmem" else 1
        if name == "vm" and peer not in ("hakmem", "mimalloc", "jemalloc"):
            slow *= 14
        test.samples[peer] = [
            _sample(seconds * slow * speed * chance.lognormvariate(0, 0.02), mib * large, chance) for speed in speeds
        ]
    return test


def _sample(seconds: float, mib: float, chance: random.Random) -> Sample:
    peak = int(mib * 1024 * chance.uniform(0.99, 1.01))
    return Sample("ok", seconds, seconds * 3, seconds * 2.8, seconds * 0.2, peak, peak // 4, 0, chance.uniform(0, 0.05))


def _fail(test: TestResult, peer: str, status: str, count: int) -> None:
    for index in range(min(count, len(test.samples[peer]))):
        test.samples[peer][index] = Sample(status)


def _idle(chance: random.Random, runs: int) -> TestResult:
    test = TestResult("idle", "memory", "Grow, free most, wait: what the system gets back", ["idle", "10"], 1, True)
    for peer in NATURES:
        back = 0.15 if peer == "hakmem" else chance.choice([1.0, 1.0, 0.7, 0.4])
        top = 400_000 * chance.uniform(1, 1.3)
        test.samples[peer] = [_idle_sample(top * chance.uniform(0.99, 1.01), back) for _ in range(runs)]
    return test


def _idle_sample(top: float, back: float) -> Sample:
    curve = [[step / 10, top * min(1, step / 20)] for step in range(30)]
    curve += [[step / 10, top * max(back, 1 - (step - 30) / 25)] for step in range(30, 101)]
    return Sample("ok", 10.0, 10.0, 1.0, 0.5, int(top), 100_000, extra={"curve": curve})


def _counts(chance: random.Random) -> list[Counts]:
    counts = []
    for test, least in (("pairs", 19.0), ("random-mixed-256", 31.0)):
        for peer, (slower, _) in NATURES.items():
            instructions = least * slower * chance.uniform(1, 1.2)
            counts.append(
                Counts(
                    test,
                    peer,
                    instructions,
                    instructions / 4,
                    instructions / 6,
                    instructions / 7,
                    0.02 * slower,
                    0.31,
                    0.0001,
                )
            )
    counts[-1] = Counts("random-mixed-256", "scudo", 0, status="signal 4")
    return counts


def _provenance() -> dict[str, str]:
    return {
        "date": "2026-11-21 07:03 UTC",
        "build id": "6c0f3a8be1d94d0c6f0aa1b2c3d4e5f60718293a",
        "build": "hakmem 0.1.0, commit 3669678f1493, GNU 12.2.0, flags -O2 -g, release",
        "commit": "3669678f1493",
        "workloads": "5f0b3c5d7a9e1b24",
        "peaks": "exact",
        "machine": "x86_64, An Example 9000 <8 cores>",
        "processors": "2 of 2",
        "memory": "24 GiB",
        "kernel": "Linux 6.18.44",
        "libc": "glibc 2.36-9+deb12u14",
        "huge pages": "always [madvise] never",
        "asked for": "bench --runs 7",
    }
