"""What a result says of memory beyond peaks: what comes back while a program idles, page faults, huge pages."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from hakmem_bench import stats
from hakmem_bench.model import Result, Sample, TestResult
from hakmem_bench.stats import Ratio

IDLE = ("idle", "idle-4-threads")
"""Tests that run bench/idle.c."""
OSCILLATE = "oscillate"
VM = "vm"
HUGE_PAGE_TESTS = (*IDLE, OSCILLATE)
"""One of these shows who has huge pages: the first that was run."""

_NOTHING = 0.01
"""Of the freed bytes: who gives back less gives back nothing, and when is no question."""
_MOST = 0.9
_SMALL_PAGE_KIB = 4
_HUGE_PAGE_KIB = 2048
_FAULTS_TELL = 4
"""An allocator whose program has this many pages a fault did not get them one by one."""


def median(test: TestResult, allocator: str, number: Callable[[Sample], float | None]) -> float | None:
    """Over the runs of `stats.typical_samples` in which there is such a number."""
    found = [one for sample in stats.typical_samples(test, allocator) if (one := number(sample)) is not None]
    return statistics.median(found) if found else None


def told(name: str) -> Callable[[Sample], float | None]:
    """A number from the line `Extra = {...}` of a program."""

    def number(sample: Sample) -> float | None:
        found = sample.extra.get(name)
        return float(found) if isinstance(found, (int, float)) else None

    return number


@dataclass(frozen=True)
class Idle:
    """What came back from a program that frees most of its blocks and sleeps; sizes in KiB, resident."""

    peak: float
    end: float
    freed: float
    """Bytes of the blocks freed."""
    kept: float
    """Bytes of the blocks kept."""
    empty: float
    """Pages that had bytes of freed blocks and have none of a kept one."""
    slept: float
    """Seconds from the peak to the end."""
    seconds: float | None
    """From the peak until most of what came back in the end had; None if nothing did."""
    lazy: float | None
    """Resident at the end, but the kernel's when it wants them (MADV_FREE); None if the run did not look."""

    @property
    def returned(self) -> float:
        """The share of the freed bytes."""
        return (self.peak - self.end) / self.freed

    @property
    def returned_of_empty(self) -> float:
        return (self.peak - self.end) / self.empty

    @property
    def bound(self) -> float:
        """The most that can come back of the freed bytes where blocks do not move. Above 1 if blocks lie apart: what is
        between them comes back too."""
        return self.empty / self.freed

    @property
    def floor(self) -> float:
        return self.peak - self.empty


def idle(test: TestResult, allocator: str) -> Idle | None:
    """Medians of the good runs, or None if none tells all of it."""
    peak = median(test, allocator, lambda sample: sample.peak_kib)
    end, freed, kept, empty = (
        median(test, allocator, told(name)) for name in ("end_kib", "freed_kib", "kept_kib", "dead_page_kib")
    )
    slept = median(test, allocator, _seconds_slept)
    if peak is None or end is None or not freed or kept is None or not empty or slept is None:
        return None
    seconds = median(test, allocator, _seconds_to_return)
    return Idle(peak, end, freed, kept, empty, slept, seconds, median(test, allocator, told("lazy_kib")))


def since_peak(sample: Sample) -> list[tuple[float, float]]:
    """The curve: seconds, of which those before the peak are negative, and KiB. Next to nothing that comes
    to it later, while the program sleeps, is no new peak."""
    curve: list[tuple[float, float]] = sample.extra.get("curve") or []
    peak = min(sample.peak_kib, max((kib for _, kib in curve), default=0))
    start = next((at for at, kib in curve if kib >= (1 - _NOTHING) * peak), 0.0)
    return [(at - start, kib) for at, kib in curve]


def _seconds_slept(sample: Sample) -> float | None:
    curve = since_peak(sample)
    return curve[-1][0] if curve else None


def _seconds_to_return(sample: Sample) -> float | None:
    curve = [(seconds, sample.peak_kib - kib) for seconds, kib in since_peak(sample) if seconds >= 0]
    if not curve or curve[-1][1] < _NOTHING * sample.extra.get("freed_kib", sample.peak_kib):
        return None
    return next(seconds for seconds, back in curve if back >= _MOST * curve[-1][1])


def gives_back(one: Idle) -> bool:
    return one.returned >= _NOTHING


def gives_back_most(one: Idle) -> bool:
    return one.returned_of_empty >= _MOST


def faults_a_round(sample: Sample) -> float | None:
    """Of bench/oscillate.c, after its first round."""
    faults, rounds = told("minor_faults")(sample), told("rounds")(sample)
    return faults / rounds if faults is not None and rounds else None


def faults_ratio(test: TestResult, peer: str) -> Ratio | None:
    return stats.paired_by(test, peer, lambda sample: faults_a_round(sample) or 0)


def huge_page_mode(result: Result) -> str:
    """The kernel's: always, madvise or never; empty if the result does not say."""
    found = re.search(r"\[(\w+)\]", result.provenance.get("huge pages", ""))
    return found[1] if found else ""


@dataclass(frozen=True)
class Huge:
    """Pages behind an allocator's program at its peak."""

    peak: float
    faults: float
    huge: float | None
    """KiB in huge pages; None if the run did not look."""

    @property
    def kib_a_fault(self) -> float:
        return self.peak / max(self.faults, 1)

    @property
    def has(self) -> bool:
        """As the run saw it, otherwise as its page faults suggest."""
        if self.huge is not None:
            return self.huge >= _HUGE_PAGE_KIB
        return self.kib_a_fault >= _FAULTS_TELL * _SMALL_PAGE_KIB


def huge(test: TestResult, allocator: str) -> Huge | None:
    peak = median(test, allocator, lambda sample: sample.peak_kib)
    faults = median(test, allocator, lambda sample: sample.minor_faults)
    if not peak or not faults:
        return None
    return Huge(peak, faults, median(test, allocator, told("huge_kib")))
