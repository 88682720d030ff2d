"""`bench learning`: what runs with which settings, what is read out of a run, and what is written of it."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from unittest import mock

from hakmem_bench import __main__ as command
from hakmem_bench import (
    documents,
    lab,
    learning,
    learning_chart,
    learning_log,
    learning_run,
    learning_section,
    learning_series,
    learning_warm_section,
    policies,
    runner,
)
from hakmem_bench.model import OURS, ROOT, CannotError, Counts, Peer, Result, Sample, Test, TestResult
from hakmem_cli import policy_lines, policy_text

LEARNING = learning_run.LEARNING
FIXED = (OURS, *policies.names())
WARM_CLASSES = learning.WARM_CLASSES
LESS = tuple(learning_run.without(part) for part in learning_run.PARTS)


def line(
    end: int, *, arm: int = 1, ns: int = 1000, ms: int = 250, ratings: str = " 1:1500:350", state: str = "learns"
) -> str:
    return (
        f"hakmem: epoch: {end} ms: {state}, arm {arm} of champion 1, lasts {ms} ms, requested 1024 KiB, cost {ns} ns, "
        f"held 7 KiB, work 5 ns, ratings{ratings}\n"
    )


class Log(unittest.TestCase):
    def test_epochs_are_spread_over_the_steps_that_they_lie_in(self) -> None:
        series = learning_log.series(
            line(250) + "hakmem: learner: 251 ms: something else\n" + line(750, ms=500, ns=600)
        )
        self.assertEqual(series["costs"], [[0.0, 1000, 1.0], [0.25, 300, 0.5], [0.5, 300, 0.5]])
        self.assertEqual(series["epochs"], 2)

    def test_what_lasts_no_time_lies_in_one_step(self) -> None:
        self.assertEqual(list(learning_log.spread(1.1, 1.1)), [(4, 1.0)])

    def test_ratings_of_each_policy_and_who_was_in_force(self) -> None:
        text = line(250) + line(500, arm=2, ratings=" 1:1400:300 2:1600:300")
        series = learning_log.series(text)
        self.assertEqual(series["ratings"], {"1": [[0.25, 1500], [0.5, 1400]], "2": [[0.5, 1600]]})
        self.assertEqual((series["trying"], series["champions"]), (0.5, [[0.0, 1]]))

    def test_kills_and_rests(self) -> None:
        told = "hakmem: learner: 9 ms: stops: what was tried has cost more than it saved; rests for 64 epochs\n"
        series = learning_log.series(told + line(250, state="rests") + line(500))
        self.assertEqual((series["kills"], series["resting"]), (1, 0.5))

    def test_of_nothing_there_is_nothing(self) -> None:
        self.assertEqual(learning_log.series("")["costs"], [])


def sample(rates: list[float], of: float = 1.0) -> Sample:
    """Two phases of two seconds; the first rates are those of its steps, the last one goes on."""
    steps = [(rates[min(i, len(rates) - 1)]) for i in range(16)]
    extra: dict[str, Any] = {
        "phases": [["one", 0.0, 100, of], ["two", 2.0, 100, of]],
        "series": [[(i + 1) * 0.25, 10, rate, 0, 2048] for i, rate in enumerate(steps)],
        "warm_up_rate": 1 / of,
        "learner": {
            "costs": [[i * 0.25, rate * 100, 10] for i, rate in enumerate(steps)],
            "ratings": {"1": [[0.0, 1500], [1.0, 1450]], "2": [[0.5, 1550]]},
            "champions": [[0.0, 1], [1.0, 2]],
            "epochs": 40,
            "trying": 0.25,
            "kills": 2,
            "resting": 0.5,
        },
    }
    return Sample("ok", of, of, of, 0.0, int(1024 * of), extra=extra)


def test_of(name: str, samples: dict[str, Sample], runs: int = 3) -> TestResult:
    return TestResult(
        name, "group", "what it does", [name], 1, False, {name: [one] * runs for name, one in samples.items()}
    )


class Series(unittest.TestCase):
    def test_how_long_it_takes_until_it_is_near(self) -> None:
        slow = sample([4, 4, 4, 4, 1])
        test = test_of("phases", {LEARNING: slow, OURS: sample([1])})
        for kind in (learning_series.costs, learning_series.times):
            self.assertEqual(learning_series.seconds_to(test, LEARNING, OURS, kind, 0), [1.0] * 3)
            self.assertEqual(learning_series.seconds_to(test, LEARNING, OURS, kind, 1), [0.0] * 3)
            self.assertEqual(learning_series.settled_ratio(test, LEARNING, OURS, kind, 0), 1)

    def test_or_that_it_does_not(self) -> None:
        test = test_of("phases", {LEARNING: sample([4]), OURS: sample([1])}, runs=1)
        self.assertEqual(learning_series.seconds_to(test, LEARNING, OURS, learning_series.costs, 0), [None])
        self.assertEqual(learning_series.settled_ratio(test, LEARNING, OURS, learning_series.costs, 1), 4)

    def test_what_is_lost_is_a_share_of_the_time(self) -> None:
        dear = sample([4e7])  # 4e9 ns for 10 MiB, of 4e7 s, in each step
        test = test_of("phases", {LEARNING: dear, OURS: sample([1e7])})
        self.assertAlmostEqual(learning_series.lost(test, LEARNING, OURS, 1) or 0, 3e9 / 4e16)
        self.assertEqual(learning_series.lost(test, OURS, OURS, 1), 0)
        self.assertIsNone(learning_series.lost(test, LEARNING, "absent", 1))

    def test_the_best_is_who_pays_least_in_that_phase(self) -> None:
        test = test_of("phases", {OURS: sample([1] * 8 + [3]), "other": sample([2])})
        names = [OURS, "other", "absent"]
        self.assertEqual(learning_series.best(test, names, learning_series.costs, 0), OURS)
        self.assertEqual(learning_series.best(test, names, learning_series.costs, 1), "other")

    def test_work_is_compared_phase_by_phase(self) -> None:
        quick = sample([1])
        quick.extra["phases"][0][2] = 400  # four times the work in the first phase
        self.assertAlmostEqual(learning_series.work_ratio(quick, sample([1])) or 0, 0.625)


def result(*, complete: bool = True) -> Result:
    """Learning takes twice what mode balanced does, and half of what others do."""
    settings = {LEARNING: sample([4, 1], 2.0), **{name: sample([1], 1.0) for name in FIXED}}
    large = {**settings, learning_run.WARM: sample([1], 1.0), **{name: sample([1], 4.0) for name in learning_run.PEERS}}
    tests = [test_of(test.name, large) for test in learning.LARGE]
    tests += [test_of(test.name, settings) for test in learning.DRAWN]
    tests.append(test_of(learning.PHASES.name, {**settings, **{name: sample([1], 3.0) for name in LESS}}))
    tests.append(test_of(learning.ADVERSE.name, {LEARNING: settings[LEARNING], OURS: settings[OURS]}))
    classes = {LEARNING: settings[LEARNING], OURS: settings[OURS], learning_run.without("classes"): sample([1], 4.0)}
    tests += [test_of(test.name, classes) for test in learning.CLASS_FIT]
    tests.append(test_of("larson-1", {LEARNING: sample([1], 1.02), OURS: settings[OURS]}))
    warm = {learning_run.WARM: sample([1], 1.0), learning_run.LOADED: sample([1.5, 1], 1.0)}
    tests += [test_of(one.name, {OURS: settings[OURS], LEARNING: settings[LEARNING], **warm}) for one in WARM_CLASSES]
    tests.append(test_of(learning.WARM_RECORDS.name, {**settings, **warm}))
    counts = [Counts("lua", LEARNING, 101), Counts("lua", OURS, 100), Counts("perl", OURS, 100)]
    names = dict.fromkeys(name for test in tests for name in test.samples)
    peers = [Peer(OURS, "1", "here"), *(Peer(name, "1", "here") for name in names if name != OURS)]
    return Result({"date": "today", "asked for": "learning --quick"}, peers, tests, counts, complete=complete)


class Section(unittest.TestCase):
    def test_large_blocks_against_hands_and_peers(self) -> None:
        text = learning_section.section(result())
        self.assertIn("Against the best policy made by hand, hakmem: time **2.00 (2.00 to 2.00)**", text)
        self.assertIn("Against the fastest peer, glibc: time 0.50 (0.50 to 0.50), peak 0.50 (0.50 to 0.50).", text)

    def test_who_begins_warm(self) -> None:
        self.assertIn("| vm-warm | 0.50 (0.50 to 0.50) | 1.00 (1.00 to 1.00) tie |", learning_section.section(result()))

    def test_phases_with_the_best_policy_of_each(self) -> None:
        text = learning_section.section(result())
        self.assertIn("| one | 0 s | hakmem | 1.00 | 1.00 | 0.25 s, 0.25 s, 0.25 s |", text)
        self.assertIn("| two | 2 s | hakmem | 1.00 | 1.00 | 0.00 s, 0.00 s, 0.00 s |", text)
        self.assertEqual(text.count("| 0.00 s, 0.00 s, 0.00 s | 0.00 % |"), 1)  # of costs only

    def test_the_adversary_tells_of_kills(self) -> None:
        text = learning_section.section(result())
        self.assertIn("learning takes **2.00 (2.00 to 2.00)** of mode balanced's time", text)
        self.assertEqual(text.count("| 2.00 | 40 | 25.0 % | 2 | 50.0 % |"), 3)

    def test_the_suite_classes_parts_and_instructions(self) -> None:
        text = learning_section.section(result())
        self.assertIn(
            "1 tests; the upper end of 1 intervals is 1.03 or less. The whole interval is above 1 in larson-1 (", text
        )
        self.assertIn("| badsizes-bad | 0.50 (0.50 to 0.50) | 0.25 (0.25 to 0.25) |", text)
        self.assertIn("| all phases | 0.67 (0.67 to 0.67) |", text)
        self.assertIn("| lua | 1.0100 |", text)
        self.assertIn("| perl | not counted |", text)

    def test_of_a_part_there_is_that_part(self) -> None:
        some = result(complete=False)
        some.tests = [test for test in some.tests if test.name == learning.ADVERSE.name]
        some.counts = []
        text = learning_section.section(some)
        self.assertIn("### A program made to hurt it", text)
        self.assertEqual(text.count("###"), 1)
        self.assertIn("interrupted", text)

    def test_it_is_said_how_often_intervals_of_few_pairs_hold(self) -> None:
        few = "An interval of 3 pairs is the range of all, which holds the true median in 75 % of cases."
        parts = learning_section.section(result()).split("\n### ")[1:]
        self.assertEqual([part.count(few) for part in parts if re.search(r"\(\d+\.\d+ to", part)], [1] * 6)
        many = result()
        for test in many.tests:
            test.samples = {name: 2 * samples for name, samples in test.samples.items()}
        self.assertNotIn("the range of all", learning_section.section(many))
        self.assertEqual(learning_warm_section.section(result()).count(few), 2)

    def test_it_takes_its_place_in_the_document(self) -> None:
        document = (ROOT / "docs" / "learning.md").read_text()
        for part in (learning_section, learning_warm_section):
            self.assertEqual((document.count(part.BEGIN), document.count(part.END)), (1, 1))
            once = part.put_into(document, result())
            self.assertEqual(part.put_into(once, result()), once)

    def test_results_are_known(self) -> None:
        self.assertTrue(learning_run.is_result(result()))
        self.assertFalse(learning_run.is_result(Result({"asked for": "bench --modes"}, result().peers)))


class WarmSection(unittest.TestCase):
    def test_memory_of_each_setting(self) -> None:
        text = learning_warm_section.section(result())
        self.assertIn(
            "| warm-badsizes-8 | 1.00 MiB | 2.00 MiB | 1.00 MiB | 1.00 MiB "
            "| 0.50 (0.50 to 0.50) | 1.00 (1.00 to 1.00) tie |",
            text,
        )

    def test_cost_and_time_from_the_first_moment(self) -> None:
        text = learning_warm_section.section(result())
        even, half = "1.00 (1.00 to 1.00) tie", "**1.50 (1.50 to 1.50)**"
        row = f"| 0 to 0.25 s | {even} | **4.00 (4.00 to 4.00)** | {even} | {half} | 0.25 (0.25 to 0.25) |"
        self.assertEqual(text.count(row), 2)
        self.assertEqual(text.count(f"| 1 to 3 s | {even} | {even} | {even} | {even} | {even} |"), 2)
        self.assertIn("learning, from nothing: 0.25 s, 0.25 s, 0.25 s. learning, warm: 0.00 s, 0.00 s, 0.00 s.", text)

    def test_each_result_fills_its_own_part(self) -> None:
        def docs(found: Result) -> str:
            with tempfile.TemporaryDirectory() as directory:
                path, parts = Path(directory), (learning_section, learning_warm_section)
                page = path / "learning.md"
                page.write_text("".join(f"{part.BEGIN}former {i}\n{part.END}" for i, part in enumerate(parts)))
                found.write(path / "result.json")
                with mock.patch.object(documents, "DOCS", path):
                    self.assertEqual(command.main(["docs", str(path / "result.json")]), 0)
                pictures = list(path.glob("*.svg"))
                return page.read_text() + f"{len(pictures)} pictures"

        def some(*, warm: bool) -> Result:
            found = result()
            found.tests = [test for test in found.tests if (test.name in learning.WARM_NAMES) == warm]
            return found

        for found, kept, pictures in ((some(warm=True), "former 0", 0), (some(warm=False), "former 1", 2)):
            text = docs(found)
            self.assertEqual((text.count("former"), text.count(kept)), (1, 1))
            self.assertTrue(text.endswith(f"{pictures} pictures"))
        self.assertNotIn("former", docs(result()))

    def test_tests_of_it_are_no_tests_of_the_lab_s_suite(self) -> None:
        self.assertNotIn("warm-", learning_section.section(result()))


class Pictures(unittest.TestCase):
    def test_each_is_a_drawing_with_a_line_for_each_setting(self) -> None:
        found = learning_chart.pictures(result())
        self.assertEqual(sorted(found), ["learning-large", "learning-phases"])
        for text in found.values():
            ET.fromstring(text)
            for name in (LEARNING, *policies.names(), "mode&#39;s values", "policy 2"):
                self.assertIn(f">{name} ", text)

    def test_the_document_shows_them(self) -> None:
        text = learning_section.section(result())
        for name in learning_chart.pictures(result()):
            self.assertIn(f"({name}.svg)", text)

    def test_where_nothing_was_told_it_says_so(self) -> None:
        bare = result()
        for test in bare.tests:
            for samples in test.samples.values():
                for one in samples:
                    one.extra = {}
        self.assertIn("nothing was told", learning_chart.pictures(bare)["learning-phases"])

    def test_docs_writes_text_and_pictures(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            docs = Path(directory)
            parts = (learning_section, learning_warm_section)
            (docs / "learning.md").write_text("mine\n" + "".join(f"{part.BEGIN}former\n{part.END}" for part in parts))
            result().write(docs / "result.json")
            with mock.patch.object(documents, "DOCS", docs):
                self.assertEqual(command.main(["docs", str(docs / "result.json")]), 0)
            text = (docs / "learning.md").read_text()
            self.assertTrue((docs / "learning-phases.svg").exists() and (docs / "learning-large.svg").exists())
        self.assertTrue(text.startswith("mine") and "former" not in text)


class Policies(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.directory = Path(held.name)
        for patch in (
            mock.patch.object(policies, "KEPT", self.directory),
            mock.patch.object(runner, "PROGRAMS", self.directory),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def test_each_program_has_its_part(self) -> None:
        (self.directory / "vm").write_bytes(b"..\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0" + bytes(range(20)) + b"..")
        (self.directory / "large").write_bytes(b"12345")
        path = policies.by_hand("keeps-less", [*learning.LARGE, Test("one", "group", "", ("/bin/true",))])
        parts = {Path(part.path).name: part for part in policy_text.read(path)}
        self.assertEqual(sorted(parts), ["large", "vm"])
        self.assertEqual((parts["vm"].build_id, parts["large"].size), (bytes(range(20)).hex(), 5))
        self.assertEqual(len(parts["vm"].lines), 3)

    def test_each_run_begins_with_what_was_saved_once(self) -> None:
        def saves(test: Test, peer: Peer, *, quick: bool) -> Sample:
            part = policy_text.Part("/p", size=1, epochs=5, lines=[policy_lines.Line("knob", "purge_ms", "4000")])
            Path(peer.environment["HAKMEM_POLICY"]).write_text(policy_text.text_of([part]))
            return Sample("ok")

        with mock.patch.object(runner, "run", saves):
            path = policies.learned(Peer(OURS, "1", "here"), learning.LARGE, quick=True)
            saved = path.read_text()
            path.write_text(saved.replace("4000", "2000"))
            warm = Peer("warm", "1", "here", environment={"HAKMEM_MODE": "learning", "HAKMEM_POLICY": str(path)})
            learning_run.run_anew(learning.LARGE[0], warm, quick=True)
            learning_run.run_told(learning.WARM_RECORDS, learning_run.told(warm), quick=True)
        self.assertEqual(path.read_text(), saved.replace("4000", "2000"))

    def test_a_run_that_fails_says_which(self) -> None:
        with mock.patch.object(runner, "run", lambda *_, **__: Sample("signal 11")):
            with self.assertRaisesRegex(CannotError, "vm-warm.*signal 11"):
                policies.learned(Peer(OURS, "1", "here"), learning.LARGE, quick=True)


class Run(unittest.TestCase):
    """With nothing built and nothing run."""

    def learn(self, words: str) -> tuple[Result, list[tuple[str, Peer]]]:
        runs: list[tuple[str, Peer]] = []

        def run(test: Test, peer: Peer, *, quick: bool) -> Sample:
            runs.append((test.name, peer))
            if "HAKMEM_REPORT" in peer.environment:
                Path(peer.environment["HAKMEM_REPORT"]).write_text(line(250))
            return Sample("ok", 1.0, 1.0, 1.0, 0.0, 1)

        with tempfile.TemporaryDirectory() as directory:
            output = Path(directory) / "result.json"
            with contextlib.ExitStack() as stack:
                for patch in (
                    mock.patch.object(lab.build, "ensure_library", lambda library=lab.build.LIBRARY: library),
                    mock.patch.object(lab.build, "build_benchmarks"),
                    mock.patch.object(
                        lab.peers, "ours", lambda library, name=OURS: Peer(name, "1", "here", str(library))
                    ),
                    mock.patch.object(
                        lab, "get_peers", lambda names, console: [Peer(name, "1", "there") for name in names]
                    ),
                    mock.patch.object(lab.provenance, "facts", lambda library, asked: {"asked for": asked}),
                    mock.patch.object(lab, "_install", return_value={}),
                    mock.patch.object(policies, "by_hand", lambda name, tests: Path(f"/policies/{name}")),
                    mock.patch.object(policies, "learned", lambda ours, tests, quick: Path("/policies/learned")),
                    mock.patch.object(runner, "run", run),
                    mock.patch.object(runner, "prepare"),
                ):
                    stack.enter_context(patch)
                stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
                self.assertEqual(command.main(["learning", "--output", str(output), *words.split()]), 0)
            return command.read(output), runs

    def test_each_test_has_its_settings(self) -> None:
        found, _ = self.learn("--quick")
        settings = {test.name: set(test.samples) for test in found.tests}
        self.assertEqual(settings["vm-warm"], {*FIXED, LEARNING, learning_run.WARM, *learning_run.PEERS})
        self.assertEqual(settings["phases"], {*FIXED, LEARNING, *LESS})
        self.assertEqual(settings["adversary"], {OURS, LEARNING})
        self.assertTrue(learning_run.is_result(found))

    def test_a_run_that_begins_warm_is_told_too(self) -> None:
        found, runs = self.learn("--quick --parts warm")
        settings = {test.name: set(test.samples) for test in found.tests}
        warm = {OURS, LEARNING, learning_run.WARM, learning_run.LOADED}
        self.assertEqual(settings, {**{one.name: warm for one in WARM_CLASSES}, "warm-records": {*FIXED, *warm}})
        told = [peer for name, peer in runs if name == "warm-records" and peer.name == learning_run.WARM]
        self.assertEqual({peer.environment["HAKMEM_POLICY"] for peer in told}, {"/policies/learned"})
        self.assertTrue(all("HAKMEM_REPORT" in peer.environment for peer in told))
        self.assertEqual([peer.name for peer in found.peers if peer.name in learning_run.PEERS], [])

    def test_who_does_not_learn_observes_where_epochs_are_told(self) -> None:
        found, runs = self.learn("--quick --parts adversary")
        environments = {peer.name: peer.environment for _, peer in runs}
        self.assertEqual(environments[OURS]["HAKMEM_LEARN"], "observe:bigcache")
        self.assertNotIn("HAKMEM_LEARN", environments[LEARNING])
        self.assertEqual({one["HAKMEM_MODE"] for one in environments.values()}, {"research"})
        self.assertEqual(found.tests[0].samples[LEARNING][0].extra["learner"]["epochs"], 1)

    def test_the_full_run_has_every_test_in_which_time_counts(self) -> None:
        names = {test.name for stage in learning_run.stages(quick=False) for test in stage.tests}
        self.assertTrue({"larson-1", "redis", "oscillate"} <= names)
        self.assertFalse({"idle", "larson-minute"} & names)

    def test_a_part_that_there_is_not(self) -> None:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(command.main(["learning", "--parts", "larg"]), 2)
        self.assertRegex(errors.getvalue(), r"\Ahakmem: larg: no such part; legal are large, warm, drawn,[^\n]*\n\Z")


if __name__ == "__main__":
    unittest.main()
