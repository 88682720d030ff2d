"""The order of runs, repeated ones, and what is kept."""

from __future__ import annotations

import unittest
from collections.abc import Iterator, Sequence
from unittest import mock

from hakmem_bench import runner, schedule
from hakmem_bench.model import Counts, Peer, Result, Sample, Test

PEERS = [Peer(name, "", "") for name in ("hakmem", "glibc", "other")]


class Said:
    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, what: str) -> None:
        self.steps.append(what)


class Schedule(unittest.TestCase):
    def setUp(self) -> None:
        self.runs: list[str] = []
        self.kept = 0

    def run_plan(self, answers: object, repetitions: int = 3, tests: int = 1, **more: object) -> Result:
        """`answers` is called with the peer's name and the number of the run."""

        def run(test: Test, peer: Peer, *, quick: bool) -> Sample:
            self.runs.append(peer.name)
            return answers(peer.name, len(self.runs))  # type: ignore[operator,no-any-return]

        def keep(result: Result) -> None:
            self.kept += 1

        result = Result({}, PEERS)
        chosen = [Test(f"test-{number}", "group", "", ("x",)) for number in range(tests)]
        peers = more.pop("peers", PEERS)
        plan = schedule.Plan(chosen, peers, repetitions, False, **more)  # type: ignore[arg-type]
        with mock.patch.object(runner, "run", run):
            schedule.run(plan, result, Said(), keep)
        return result

    def test_all_peers_in_each_repetition(self) -> None:
        self.run_plan(lambda name, number: Sample("ok", seconds=1))
        for first in (0, 3, 6):
            self.assertEqual(sorted(self.runs[first : first + 3]), sorted(peer.name for peer in PEERS))

    def test_the_order_is_drawn_and_the_same_again(self) -> None:
        """Nobody is first in each test, or comes after the same other."""
        tests = [Test(f"test-{number}", "group", "", ("x",)) for number in range(60)]
        plan = schedule.Plan(tests, PEERS, 1, quick=False)
        orders = [[peer.name for peer in plan.rounds(test)[0]] for test in tests]
        self.assertEqual(orders, [[peer.name for peer in plan.rounds(test)[0]] for test in tests])
        for name in ("hakmem", "glibc", "other"):
            self.assertTrue(10 <= sum(order[0] == name for order in orders) <= 30, name)
        before = [order[order.index("hakmem") - 1] for order in orders if order[0] != "hakmem"]
        self.assertTrue(10 <= before.count("glibc") <= len(before) - 10)

    def test_two_take_turns_at_being_first(self) -> None:
        self.run_plan(lambda name, number: Sample("ok", seconds=1), peers=PEERS[:2], repetitions=4)
        self.assertEqual(self.runs, ["hakmem", "glibc", "glibc", "hakmem"] * 2)

    def test_what_has_the_systems_programs_read_from_the_disk_is_no_sample(self) -> None:
        tests = [Test("theirs", "group", "", ("/bin/true",)), Test("ours", "group", "", ("x",))]
        for peers in (PEERS, PEERS[:2]):
            plan = schedule.Plan(tests, peers, 2, quick=False)
            result, said, runs = Result({}, peers), Said(), []

            def run(test: Test, peer: Peer, *, quick: bool, runs: list[str] = runs) -> Sample:
                runs.append(test.name)
                return Sample("ok", seconds=len(runs))

            with mock.patch.object(runner, "run", run):
                schedule.run(plan, result, said, lambda result: None)
            self.assertEqual([runs.count(test.name) for test in tests], [1 + 2 * len(peers), 2 * len(peers)])
            self.assertEqual(len(said.steps), plan.steps)
            kept = [sample.seconds for samples in result.tests[0].samples.values() for sample in samples]
            self.assertEqual(sorted(kept), list(range(2, 2 + 2 * len(peers))))

    def test_two_go_on_alone_and_take_turns(self) -> None:
        result = self.run_plan(lambda name, number: Sample("ok", seconds=number), repetitions=1, closely=("glibc", 3))
        self.assertEqual(self.runs[3:], ["glibc", "hakmem", "hakmem", "glibc"])
        seconds = {name: [one.seconds for one in some] for name, some in result.tests[0].samples.items()}
        self.assertEqual([seconds["hakmem"][1:], seconds["glibc"][1:], len(seconds["other"])], [[5, 6], [4, 7], 1])

    def test_two_go_on_alone_where_that_adds_pairs(self) -> None:
        once = Test("one", "", "", ("x",), memory_only=True)
        often = Test("two", "", "", ("x",), least_repetitions=9)
        elsewhere = Test("three", "", "", ("x",), only=("hakmem", "other"))
        plan = schedule.Plan([once, often, elsewhere], PEERS, 3, quick=False, system_calls=True, closely=("glibc", 5))
        self.assertEqual([[len(one) for one in plan.rounds(test)] for test in plan.tests], [[3], [3] * 9, [2] * 3])
        self.assertEqual(plan.steps, (1 + 1) * 3 + (9 + 1) * 3 + (3 + 1) * 2)

    def test_interrupted_while_two_go_on_keeps_what_others_have(self) -> None:
        def answer(name: str, number: int) -> Sample:
            if number == 3 + 2 + 2:
                raise KeyboardInterrupt
            return Sample("ok")

        samples = self.run_plan(answer, repetitions=1, closely=("other", 3)).tests[0].samples
        self.assertEqual({name: len(some) for name, some in samples.items()}, {"hakmem": 2, "glibc": 1, "other": 2})

    def test_pairs_stand_at_the_same_place(self) -> None:
        result = self.run_plan(lambda name, number: Sample("ok", seconds=(number - 1) // 3))
        for samples in result.tests[0].samples.values():
            self.assertEqual([sample.seconds for sample in samples], [0, 1, 2])

    def test_a_test_may_be_for_some_only(self) -> None:
        test = Test("one", "group", "", ("x",), only=("glibc", "hakmem"), memory_only=True)
        plan = schedule.Plan([test], PEERS, 3, quick=False)
        self.assertEqual(plan.steps, 2)
        result = Result({}, PEERS)
        with mock.patch.object(runner, "run", lambda test, peer, *, quick: Sample("ok", peak_kib=1)):
            schedule.run(plan, result, Said(), lambda result: None)
        self.assertEqual([len(result.tests[0].samples.get(peer.name, [])) for peer in PEERS], [1, 1, 0])

    def test_a_disturbed_run_is_repeated_and_the_quietest_kept(self) -> None:
        foreign = iter([0.9, 0.5, 0.7])
        result = self.run_plan(
            lambda name, number: Sample("ok", wall=1, foreign=next(foreign) if name == "glibc" else 0), repetitions=1
        )
        self.assertEqual(result.tests[0].disturbed, 2)
        self.assertEqual(result.tests[0].samples["glibc"][0].foreign, 0.5)
        self.assertEqual(self.runs.count("glibc"), 3)

    def test_what_the_kernel_does_after_each_run_disturbs_none(self) -> None:
        """It takes as long whatever the allocator: of fast runs it is a larger share."""

        def answer(name: str, number: int) -> Sample:
            wall = 0.2 if name == "hakmem" else 0.4
            return Sample("ok", seconds=number, wall=wall, foreign=0.08 / wall)

        result = self.run_plan(answer, repetitions=9)
        self.assertLessEqual(result.tests[0].disturbed, 2)  # of the first three runs, when nobody knows yet

    def test_but_what_comes_on_top_of_it_does_and_the_least_of_that_is_kept(self) -> None:
        attempts = iter([(0.2, 0.1), (0.4, 0.22), (0.4, 0.3)])

        def answer(name: str, number: int) -> Sample:
            wall, more = next(attempts) if name == "hakmem" and self.runs.count(name) > 8 else (0.4, 0)
            return Sample("ok", seconds=more, wall=wall, foreign=(0.08 + more) / wall)

        result = self.run_plan(answer, repetitions=9)
        self.assertEqual(result.tests[0].disturbed, 2)
        self.assertEqual(result.tests[0].samples["hakmem"][-1].seconds, 0.1)

    def test_a_crash_on_a_busy_machine_stands(self) -> None:
        answers = iter([Sample("signal 11", wall=1, foreign=0.9), Sample("ok", wall=1)])
        result = self.run_plan(lambda name, number: next(answers) if name == "glibc" else Sample("ok"), repetitions=1)
        self.assertEqual(result.tests[0].samples["glibc"][0].status, "signal 11")

    def test_a_crash_of_the_repeated_run_stands(self) -> None:
        answers = iter([Sample("ok", wall=1, foreign=0.9), Sample("signal 11", wall=1, foreign=0.95)])
        result = self.run_plan(lambda name, number: next(answers) if name == "glibc" else Sample("ok"), repetitions=1)
        self.assertEqual(result.tests[0].samples["glibc"][0].status, "signal 11")

    def test_ticks_of_the_clock_are_no_disturbance(self) -> None:
        result = self.run_plan(lambda name, number: Sample("ok", wall=0.02, foreign=1.0))
        self.assertEqual(result.tests[0].disturbed, 0)

    def test_who_does_not_come_back_is_not_waited_for_again(self) -> None:
        result = self.run_plan(lambda name, number: Sample("no end after 1 s" if name == "other" else "ok"))
        self.assertEqual(self.runs.count("other"), 1)
        self.assertEqual([sample.good for sample in result.tests[0].samples["other"]], [False])
        self.assertEqual([len(result.tests[0].samples[name]) for name in ("hakmem", "glibc")], [3, 3])

    def test_a_crash_is_tried_again(self) -> None:
        self.run_plan(lambda name, number: Sample("signal 11" if name == "other" else "ok"))
        self.assertEqual(self.runs.count("other"), 3)

    def test_a_missing_peer_is_not_run(self) -> None:
        peers = [*PEERS, Peer("absent", "", "", missing="not to be had")]
        result = self.run_plan(lambda name, number: Sample("ok"), peers=peers)
        self.assertNotIn("absent", result.tests[0].samples)

    def test_interrupted_keeps_what_is_complete(self) -> None:
        def answer(name: str, number: int) -> Sample:
            if number == 9 + 5:
                raise KeyboardInterrupt
            return Sample("ok", seconds=number)

        result = self.run_plan(answer, tests=2)
        self.assertFalse(result.complete)
        self.assertEqual([len(samples) for samples in result.tests[0].samples.values()], [3, 3, 3])
        self.assertEqual([len(samples) for samples in result.tests[1].samples.values()], [1, 1, 1])
        self.assertEqual(self.kept, 2)

    def test_interrupted_who_did_not_end_takes_no_runs_of_others_along(self) -> None:
        def answer(name: str, number: int) -> Sample:
            if number == 3 + 2 + 1:
                raise KeyboardInterrupt
            return Sample("no end after 1 s" if name == "other" else "ok")

        samples = self.run_plan(answer).tests[0].samples
        self.assertEqual({name: len(some) for name, some in samples.items()}, {"hakmem": 2, "glibc": 2, "other": 1})

    def test_what_ends_in_any_other_way_is_not_complete(self) -> None:
        def keep(result: Result) -> None:
            complete.append(result.complete)

        complete: list[bool] = []
        result = Result({}, PEERS)
        plan = schedule.Plan([Test("one", "group", "", ("x",))], PEERS, 1, quick=False)
        with mock.patch.object(runner, "run", lambda test, peer, *, quick: Sample("ok")):
            self.assertTrue(schedule.run(plan, result, Said(), keep))
        self.assertEqual(complete, [False])

    def test_some_tests_run_more_often(self) -> None:
        tests = [Test("one", "", "", ("x",), least_repetitions=9), Test("two", "", "", ("x",))]
        for quick, repetitions, expected in ((False, 3, [9, 3]), (False, 11, [11, 11]), (True, 3, [3, 3])):
            plan = schedule.Plan(tests, PEERS, repetitions, quick=quick)
            self.assertEqual([plan.repetitions_of(test) for test in tests], expected)

    def test_interrupted_counts_are_kept(self) -> None:
        def counts(peers: Sequence[Peer], progress: schedule.Progress) -> Iterator[Counts]:
            yield Counts("counted", "glibc", 5.0)
            raise KeyboardInterrupt

        result = self.run_plan(lambda name, number: Sample("ok"), counts=counts)
        self.assertFalse(result.complete)
        self.assertEqual(result.counts, [Counts("counted", "glibc", 5.0)])
        self.assertEqual([len(samples) for samples in result.tests[0].samples.values()], [3, 3, 3])

    def test_interrupted_counts_leave_tests_that_nobody_ended(self) -> None:
        def counts(peers: Sequence[Peer], progress: schedule.Progress) -> Iterator[Counts]:
            raise KeyboardInterrupt
            yield  # so that it is a generator

        result = self.run_plan(lambda name, number: Sample("no end after 1 s"), counts=counts)
        self.assertEqual([len(samples) for samples in result.tests[0].samples.values()], [1, 1, 1])

    def test_interrupted_before_anything_leaves_no_test(self) -> None:
        def answer(name: str, number: int) -> Sample:
            raise KeyboardInterrupt

        self.assertEqual(self.run_plan(answer).tests, [])


if __name__ == "__main__":
    unittest.main()
