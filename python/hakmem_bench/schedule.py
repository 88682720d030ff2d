"""Who runs when: all allocators within each repetition of a test, in an order that rotates; then perhaps two alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hakmem_bench import runner
from hakmem_bench.model import OURS, Counts, Peer, Result, Sample, Test, TestResult

# A run is repeated if something else kept more than this share of one processor busy meanwhile, for more than a few
# of the clock's ticks, unless that is so every time.
_FOREIGN_SHARE = 0.25
_FOREIGN_SECONDS = 0.06
_ATTEMPTS = 3


class Progress(Protocol):
    """Who is told what happens."""

    def step(self, what: str) -> None: ...


@dataclass(frozen=True)
class Plan:
    tests: Sequence[Test]
    peers: Sequence[Peer]
    repetitions: int
    quick: bool
    counts: Callable[[Sequence[Peer], Progress], Iterable[Counts]] | None = None
    """Counts under valgrind, if they are wanted."""
    system_calls: bool = False
    run: Callable[..., Sample] | None = None
    """Another way to run a test than runner.run, with its arguments."""
    closely: tuple[str, int] = ("", 0)
    """When all have had their repetitions, hakmem and this peer go on alone to so many."""

    def repetitions_of(self, test: Test) -> int:
        if test.memory_only:
            return 1
        return self.repetitions if self.quick else max(self.repetitions, test.least_repetitions)

    def rounds(self, test: Test) -> list[list[Peer]]:
        """Of each repetition the allocators, in the order in which they run."""
        peers = [peer for peer in self.peers if test.takes(peer)]
        rival, repetitions = self.closely
        two = [peer for peer in peers if peer.name in (OURS, rival)]
        common = self.repetitions_of(test)
        alone = 0 if test.memory_only or len(two) < 2 else max(repetitions - common, 0)
        return [_rotated(some, number) for number, some in enumerate([peers] * common + [two] * alone)]

    @property
    def steps(self) -> int:
        """Without the counts, which add theirs."""
        return sum(
            sum(len(peers) for peers in self.rounds(test)) + self.system_calls * sum(map(test.takes, self.peers))
            for test in self.tests
        )


def _rotated(peers: Sequence[Peer], by: int) -> list[Peer]:
    first = by % max(len(peers), 1)
    return [*peers[first:], *peers[:first]]


def _disturbed(sample: Sample) -> bool:
    return sample.foreign > _FOREIGN_SHARE and sample.foreign * sample.wall > _FOREIGN_SECONDS


def _run_undisturbed(plan: Plan, test: Test, peer: Peer, result: TestResult) -> Sample:
    """The least disturbed of the attempts; one that goes wrong is a result, however busy the machine was."""
    run = plan.run or runner.run
    best = run(test, peer, quick=plan.quick)
    for _ in range(_ATTEMPTS - 1):
        if not best.good or not _disturbed(best):
            break
        result.disturbed += 1
        again = run(test, peer, quick=plan.quick)
        if not again.good or again.foreign < best.foreign:
            best = again
    return best


def _did_not_end(samples: Sequence[Sample]) -> bool:
    """Who does not come back once is not waited for again."""
    return bool(samples) and samples[-1].timed_out


def _run_round(plan: Plan, test: Test, peers: Sequence[Peer], result: TestResult, step: Callable[[str], None]) -> None:
    """One repetition. Interrupted: none of it is kept."""
    had = {peer.name: len(result.samples.setdefault(peer.name, [])) for peer in peers}
    try:
        for peer in peers:
            step(peer.name)
            samples = result.samples[peer.name]
            if not _did_not_end(samples):
                samples.append(_run_undisturbed(plan, test, peer, result))
    except KeyboardInterrupt:
        for name, number in had.items():
            del result.samples[name][number:]
        raise


def _run_test(plan: Plan, test: Test, result: TestResult, progress: Progress) -> None:
    rounds = plan.rounds(test)
    for number, peers in enumerate(rounds, 1):
        where = f"{test.name}, {number} of {len(rounds)}"
        _run_round(plan, test, peers, result, lambda name, where=where: progress.step(f"{where}: {name}"))
    if plan.system_calls:
        for peer in filter(test.takes, plan.peers):
            progress.step(f"{test.name}, system calls: {peer.name}")
            if not _did_not_end(result.samples[peer.name]):
                result.system_calls[peer.name] = runner.system_calls(test, peer)


def run(plan: Plan, result: Result, progress: Progress, keep: Callable[[Result], None]) -> bool:
    """Fills the result, which is given to `keep` after each test and count, and when the user interrupts. Whether all
    has been measured."""
    result.complete = False
    try:
        for test in plan.tests:
            runner.prepare(test)
            words = list(test.quick if plan.quick and test.quick else test.command)
            mine = TestResult(test.name, test.group, test.what, words, test.threads, test.memory_only)
            mine.counted = not os.path.isabs(test.command[0])
            result.tests.append(mine)
            _run_test(plan, test, mine, progress)
            keep(result)
        for counts in plan.counts(plan.peers, progress) if plan.counts is not None else ():
            result.counts.append(counts)
            keep(result)
        return True
    except KeyboardInterrupt:
        result.tests = [test for test in result.tests if any(test.samples.values())]
        keep(result)
        return False
