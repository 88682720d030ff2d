"""What the table, the page and docs/benchmarks.md say of a result, and how they write numbers."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from hakmem_bench import stats
from hakmem_bench.model import OURS, Peer, Result, Sample, TestResult, is_time_out
from hakmem_bench.stats import Ratio

TIME = "seconds"
MEMORY = "peak_kib"
VALUES = {TIME: "time", MEMORY: "peak memory"}
REFERENCE = "glibc"

# With fewer pairs even the range of all samples holds the median in less than 95 of 100 cases.
LEAST_PAIRS = 6


@dataclass(frozen=True)
class Overall:
    """A peer's geometric mean, and of how many tests."""

    ratio: Ratio
    tests: int


class Figures:
    """The ratios of a result, each computed once."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.missing = [peer for peer in result.peers if peer.missing]
        self.peers = [peer for peer in result.peers if peer.name != OURS and not peer.missing]
        self.allocators = [peer for peer in result.peers if peer.name == OURS and not peer.missing] + self.peers
        self._ratios: dict[tuple[str, str, str], Ratio | None] = {}

    def test(self, name: str) -> TestResult | None:
        return next((test for test in self.result.tests if test.name == name), None)

    def why_not_run(self, name: str) -> str:
        return self.result.left_out.get(name, "not run")

    def tests(self, value: str) -> list[TestResult]:
        """Those in which the value counts."""
        return [test for test in self.result.tests if not (test.memory_only and value == TIME)]

    def groups(self, value: str) -> dict[str, list[TestResult]]:
        groups: dict[str, list[TestResult]] = {}
        for test in self.tests(value):
            groups.setdefault(test.group, []).append(test)
        return groups

    def ratio(self, test: TestResult, peer: str, value: str) -> Ratio | None:
        key = (test.name, peer, value)
        if key not in self._ratios:
            self._ratios[key] = stats.paired(test, peer, value)
        return self._ratios[key]

    def best(self, test: TestResult, value: str) -> tuple[str, Ratio] | None:
        """The peer that does best in a test: hakmem's ratio to it is the largest."""
        ratios = [(peer.name, ratio) for peer in self.peers if (ratio := self.ratio(test, peer.name, value))]
        return max(ratios, key=lambda one: one[1].median) if ratios else None

    def overall(self, peer: str, value: str, group: str | None = None) -> Overall | None:
        """Of all tests, or of those of a group."""
        mean = stats.geometric_mean(self.result, peer, value, group)
        among = self.tests(value) if group is None else self.groups(value)[group]
        tests = sum(self.ratio(test, peer, value) is not None for test in among)
        return Overall(mean, tests) if mean else None

    def pairs(self) -> tuple[int, int] | None:
        """The fewest and the most pairs behind a ratio; of tests for which one run is enough, none."""
        counts = [
            ratio.pairs
            for value in VALUES
            for test in self.tests(value)
            for peer in self.peers
            if not test.memory_only and (ratio := self.ratio(test, peer.name, value))
        ]
        return (min(counts), max(counts)) if counts else None

    def runs_repeated(self) -> int:
        return sum(test.disturbed for test in self.result.tests)

    def typical(self, test: TestResult, allocator: str, value: str) -> str:
        """The median, or what happened instead."""
        return self.typical_of(test, allocator, value, lambda number: amount(number, value, counted=test.counted))

    def typical_of(self, test: TestResult, allocator: str, field: str, write: Callable[[float], str]) -> str:
        """The same for any field of a sample."""
        number = stats.typical(test, allocator, field)
        return write(number) if number is not None else what_happened(test, allocator)


def what_happened(test: TestResult, allocator: str) -> str:
    """In one or two words, why an allocator has no figure in a test."""
    statuses = Counter(sample.status for sample in test.samples.get(allocator, []) if not sample.good)
    if not statuses:
        return "–"
    status = statuses.most_common(1)[0][0]
    return "time-out" if is_time_out(status) else status.split(":")[0]


def failures(result: Result) -> list[str]:
    """One line each: what crashed, did not end, or could not be had."""
    lines = [f"{peer.name}: missing: {peer.missing}" for peer in result.peers if peer.missing]
    for test in result.tests:
        lines += _failures_of(test)
    for count in result.counts:
        if count.status != "ok":
            lines.append(f"{count.test}, counted: {count.peer}: {count.status}")
    return lines


def _failures_of(test: TestResult) -> list[str]:
    """Allocators to which the same happened as often share a line."""
    alike: dict[tuple[str, int, int], list[str]] = {}
    for allocator, samples in test.samples.items():
        for status, count in Counter(sample.status for sample in samples if not sample.good).items():
            alike.setdefault((status, count, len(samples)), []).append(allocator)
    return [
        f"{test.name}: {'every allocator' if 1 < len(names) == len(test.samples) else ', '.join(names)}: {status} "
        f"({count} of {total} runs)"
        for (status, count, total), names in alike.items()
    ]


def curve(test: TestResult, allocator: str) -> list[tuple[float, float]]:
    """Seconds and resident KiB of the run whose peak is the median one."""
    chosen = run_with_curve(test, allocator)
    return [(float(seconds), float(kib)) for seconds, kib in chosen.extra["curve"]] if chosen else []


def run_with_curve(test: TestResult, allocator: str) -> Sample | None:
    """Of those that have one, the run whose peak is the median one."""
    samples = [sample for sample in test.samples.get(allocator, []) if sample.good and sample.extra.get("curve")]
    if not samples:
        return None
    middle = statistics.median_low(sorted(sample.peak_kib for sample in samples))
    return next(sample for sample in samples if sample.peak_kib == middle)


def is_start_up(test: TestResult) -> bool:
    return "startup" in (test.group.replace("-", "").replace("_", ""), test.name.replace("-", ""))


def kind(ratio: Ratio) -> str:
    if ratio.tie:
        return "tie"
    return "better" if ratio.median < 1 else "worse"


def digits(number: float) -> str:
    """Three significant digits, for numbers below 1000."""
    for least, places in ((100, 0), (10, 1), (0.1, 2), (0.01, 3)):
        if abs(number) >= least:
            return f"{number:.{places}f}"
    return f"{number:.2g}" if number else "0"


def short(ratio: Ratio) -> str:
    return digits(ratio.median) + (" tie" if ratio.tie else "")


def bounds(ratio: Ratio) -> str:
    return f"{digits(ratio.low)}–{digits(ratio.high)}"


def full(ratio: Ratio) -> str:
    """The median with its interval, and whether it is a tie."""
    return f"{digits(ratio.median)} ({bounds(ratio)})" + (" tie" if ratio.tie else "")


def amount(number: float, value: str, *, counted: bool = False) -> str:
    """Of a test that counts operations: the time of one."""
    return duration(number / 1e6 if counted else number) if value == TIME else size(number)


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{digits(seconds / scale) if seconds < 1000 else round(seconds)} {unit}"
    return f"{digits(seconds / 1e-9)} ns"


def held(pairs: int) -> str:
    """How often the interval of so many pairs holds the true median."""
    return f"{100 * stats.coverage(pairs):.0f} %"


def percent(share: float) -> str:
    number = round(100 * share, 1)
    return f"{'−' if number < 0 else ''}{abs(number):.1f} %"


def size(kib: float) -> str:
    for unit, scale in (("GiB", 1 << 20), ("MiB", 1 << 10)):
        if kib >= scale:
            return f"{digits(kib / scale)} {unit}"
    return f"{digits(kib)} KiB"


def _lacks_its_caches(peer: Peer) -> bool:
    """Of google-tcmalloc, whose linker left out the constructor that switches its caches on, the lab said the crate's
    version without the word; since it says the word it asks whether they are on."""
    return peer.name == "google-tcmalloc" and not peer.missing and not peer.version.startswith("crate ")


def cautions(figures: Figures) -> list[str]:
    """What a reader must know before he believes a figure."""
    lines = []
    if any(_lacks_its_caches(peer) for peer in figures.result.peers):
        lines.append(
            "google-tcmalloc was built without its caches per processor here, and each malloc and free of it took the "
            "slow way: no figure of it says how fast, or how large, Google's tcmalloc is."
        )
    if not figures.result.complete:
        lines.append("This run was interrupted: what had been measured by then is here.")
    pairs = figures.pairs()
    if pairs is None:
        lines.append(f"No test has a good run of both {OURS} and a peer: there are no ratios.")
    elif pairs[0] < LEAST_PAIRS:
        few = f"{pairs[0]} pair{'s' if pairs[0] != 1 else ''}"
        lines.append(
            f"Some ratios come from {few} only: their interval is the range of all, which holds the true median in "
            f"{held(pairs[0])} of cases."
        )
    return lines
