"""Who runs when: all allocators within each repetition of a test, in an order drawn anew; then perhaps two alone."""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hakmem_bench import runner
from hakmem_bench.model import OURS, Counts, Peer, Result, Sample, Test, TestResult

# A run is repeated if something else kept more than this share of one processor busy meanwhile, for more than a few
# of the clock's ticks, than goes with each run of the test, unless that is so every time.
_FOREIGN_SHARE = 0.25
_FOREIGN_SECONDS = 0.06
_ATTEMPTS = 3
# Of fewer good runs nobody knows yet what goes with each.
_RUNS_THAT_TELL = 3


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
        return [_in_order(test, number, some) for number, some in enumerate([peers] * common + [two] * alone)]

    def warms_up(self, test: Test) -> bool:
        """The program is the system's, and so are its libraries and scripts: whoever runs it first has them read from
        the disk. That run is no sample."""
        return os.path.isabs(test.command[0]) and any(map(test.takes, self.peers))

    @property
    def steps(self) -> int:
        """Without the counts, which add theirs."""
        return sum(
            self.warms_up(test)
            + sum(len(peers) for peers in self.rounds(test))
            + self.system_calls * sum(map(test.takes, self.peers))
            for test in self.tests
        )


def _in_order(test: Test, number: int, peers: Sequence[Peer]) -> list[Peer]:
    """Two take turns at being first. The order of more is drawn, the same in every run of the lab: in one that only
    rotates everybody comes after the same other."""
    if len(peers) <= 2:
        return list(reversed(peers)) if number % 2 else list(peers)
    drawn = list(peers)
    random.Random(f"{test.name} {number}").shuffle(drawn)
    return drawn


def _usual_seconds(result: TestResult) -> float:
    """Of processors, that go with each run of the test and are not in its times, whatever the allocator and however
    fast: threads that have ended leave work to the kernel, for one. The quietest quarter of the runs had no more."""
    good = [sample for samples in result.samples.values() for sample in samples if sample.good]
    if len(good) < _RUNS_THAT_TELL:
        return 0
    return statistics.quantiles([sample.foreign * sample.wall for sample in good])[0]


def _foreign(sample: Sample, usual: float) -> float:
    """Processors busy with something else than goes with the run, on average."""
    return sample.foreign - usual / max(sample.wall, 0.001)


def _disturbed(sample: Sample, usual: float) -> bool:
    foreign = _foreign(sample, usual)
    return foreign > _FOREIGN_SHARE and foreign * sample.wall > _FOREIGN_SECONDS


def _run_undisturbed(plan: Plan, test: Test, peer: Peer, result: TestResult) -> Sample:
    """The least disturbed of the attempts; one that goes wrong is a result, however busy the machine was."""
    run = plan.run or runner.run
    usual = _usual_seconds(result)
    best = run(test, peer, quick=plan.quick)
    for _ in range(_ATTEMPTS - 1):
        if not best.good or not _disturbed(best, usual):
            break
        result.disturbed += 1
        again = run(test, peer, quick=plan.quick)
        if not again.good or _foreign(again, usual) < _foreign(best, usual):
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
    if plan.warms_up(test):
        first = rounds[0][0]
        progress.step(f"{test.name}, to have it in memory: {first.name}")
        (plan.run or runner.run)(test, first, quick=plan.quick)
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
