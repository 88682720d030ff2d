"""`hakmem explain`: what is said of statistics, of a learned policy, and of a real process."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import test_real

from hakmem_cli.policy_lines import Line
from hakmem_cli.policy_text import Part, text_of
from hakmem_observe import __main__ as command
from hakmem_observe import explain
from hakmem_observe.snapshot import Snapshot


def said(source: object, *words: str) -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = command.main(["explain", str(source), *words])
    return code, out.getvalue(), errors.getvalue()


def lines_of(mode: str = "learning", **more: Any) -> list[str]:
    return explain.of_series([Snapshot(pid=7, unix_ms=10_000, uptime_ms=5000, mode=mode, more=more)], "x")


class Statistics(unittest.TestCase):
    def test_off(self) -> None:
        self.assertEqual(
            lines_of(knobs=[]),
            [
                "Process 7, x, mode learning, up 5.0 s",
                "Nothing learns: the learner is off. What is in force are the values of mode learning.",
            ],
        )

    def test_off_but_classes_are_fitted(self) -> None:
        decision = {
            "unix_ms": 9000,
            "kind": "class opened",
            "text": "1040 B",
            "evidence": 1,
            "gain_ppm": 5,
            "applied": True,
        }
        told = "Size classes were opened or closed for it all the same, as in each process with large heaps."
        fitted = lines_of("balanced", decisions=[decision])
        self.assertIn(told, fitted)
        self.assertIn("1040 B", fitted[-1])
        self.assertNotIn(told, lines_of("fast", decisions=[decision]))
        self.assertNotIn(told, lines_of("balanced", decisions=[{"kind": "knob"}, 7]))

    def test_off_after_it_was_on(self) -> None:
        learner = {"learns": "off", "state": "learns", "epochs": 0}
        self.assertEqual(lines_of(learner=learner)[1:], lines_of()[1:])

    def test_learner(self) -> None:
        learner = {
            "learns": "on", "state": "frozen", "epochs": 412, "matches": 31, "drifts": 1, "rollbacks": 2, "kills": 0,
            "mode_cost": 12000, "cost": 9000, "saved_ppm": 230000,
        }  # fmt: skip
        self.assertEqual(
            lines_of(learner=learner, remembered={"epochs": 1, "seconds": 20})[1:],
            [
                "It began with what earlier runs had learned, in 1 epoch over 20 s.",
                "It has learned from 412 epochs, in 31 matches of policies.",
                "It has settled: the best policy it knows is in force, and it watches whether the program changes.",
                "For each MiB that the program requests, the allocator now costs 9 µs;"
                " with the mode's own values it cost 12 µs.",
                "All in all, what was tried in vain included, 23.0 % of the cost was saved.",
                "The program changed once, and was learned anew.",
                "A policy cost more than the one it was compared with, and was taken back 2 times.",
            ],
        )
        self.assertIn(
            "All in all, what was tried has cost 1.0 % more than it saved so far.",
            lines_of(learner={"learns": "on", "epochs": 1, "saved_ppm": -10000}),
        )

    def test_large_numbers_are_whole(self) -> None:
        learner = {"learns": "on", "epochs": 1234567, "matches": 1234567, "drifts": 1234567}
        told = lines_of(learner=learner, remembered={"epochs": 1234567, "seconds": 1234567})
        self.assertEqual(
            told[1:],
            [
                "It began with what earlier runs had learned, in 1 234 567 epochs over 14 d 06 h.",
                "It has learned from 1 234 567 epochs, in 1 234 567 matches of policies.",
                "The program changed 1 234 567 times, and was learned anew.",
            ],
        )

    def test_a_policy_that_nobody_learned(self) -> None:
        knobs = [{"name": "purge_ms", "value": 20, "of_mode": 1000, "pinned": False}]
        self.assertEqual(
            lines_of("balanced", knobs=knobs, remembered={"epochs": 0, "seconds": 0, "saved_ppm": 0})[1:],
            [
                "It began with a policy that names no epochs in which it was learned.",
                "Nothing learns: the learner is off. What is in force are the values of mode balanced,"
                " but for what is listed below.",
                "Other than in mode balanced:",
                "  - Free memory keeps its pages for 20 ms.",
            ],
        )

    def test_observe_says_that_it_changes_nothing(self) -> None:
        lines = lines_of(learner={"learns": "observe"})
        self.assertIn("changes nothing", lines[1])
        self.assertIn("has learned nothing yet", lines[2])

    def test_knobs_by_who_has_set_them(self) -> None:
        knobs = [
            {"name": "bigcache_ms", "index": 5, "value": 4000, "of_mode": 1000, "pinned": False},
            {"name": "bigcache_ms", "index": 6, "value": 4000, "of_mode": 1000, "pinned": False},
            {"name": "purge_ms", "value": 20, "of_mode": 1000, "pinned": True},
        ]
        self.assertEqual(
            lines_of(knobs=knobs)[2:],
            [
                "Other than in mode learning:",
                "  - Freed blocks of 1 MiB to 4 MiB are kept for 4 s.",
                "Set by the environment:",
                "  - Free memory keeps its pages for 20 ms.",
            ],
        )

    def test_decisions(self) -> None:
        decisions = [{"unix_ms": 5000 + 100 * i, "text": f"did {i}\x1b"} for i in range(30)]
        told = lines_of(decisions=decisions)
        self.assertEqual(told[2:5], [
            "Decisions, by seconds since the start:", "  … 10 earlier ones: --all", "        1.0  did 10?",
        ])  # fmt: skip
        self.assertEqual(len(told), 2 + 1 + 1 + 20)

    def test_nonsense_is_left_out(self) -> None:
        for more in (
            {"learner": 3, "knobs": 4, "decisions": 5, "remembered": 6},
            {"learner": {"learns": [], "state": {}, "epochs": "x"}, "knobs": [1, {"name": 2}], "decisions": [{}, 3]},
            {"knobs": [{"name": "bigcache_ms", "index": index, "value": 1} for index in (2000, -1)]},
            {"knobs": [{"name": "bigcache_ms[2000]", "value": 1}, {"name": "purge_ms", "value": True}]},
            {"knobs": [{"name": "purge_doublings", "value": -1}, {"name": "purge_ms", "value": 10**300}]},
        ):
            with self.subTest(more):
                told = "\n".join(lines_of(**more))
                self.assertIn("Process 7", told)
                self.assertNotIn("Other than in mode", told)


class Files(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.path = Path(held.name) / "file"

    def test_policy(self) -> None:
        part = Part("/bin/\x1bx", "ab12", None, 40, 9, 43000, [Line("knob", "purge_ms", "20")])
        self.path.write_text(text_of([part]))
        code, out, _ = said(self.path)
        self.assertEqual(code, 0)
        self.assertEqual(out.split("\n"), [
            "/bin/?x (build id ab12)",
            "  Learned in 40 epochs over 9 s; it saved 4.3 % of what the allocator cost."
            " Loaded by that program, it means:",
            "  - Free memory keeps its pages for 20 ms.",
            "",
        ])  # fmt: skip

    def test_series(self) -> None:
        """Decisions of all its lines, each once: a line's two clocks may be read some milliseconds apart."""
        line = {"schema": "hakmem-stats", "version": 1, "pid": 3, "unix_ms": 2000, "uptime_ms": 1000}
        again = [{"unix_ms": 1503, "text": "did a"}, {"unix_ms": 1601, "text": "b"}, {"unix_ms": 1900, "text": "did a"}]
        lines = [
            {**line, "decisions": [{"unix_ms": 1500, "text": "did a"}]},
            {**line, "unix_ms": 3001, "uptime_ms": 2000, "decisions": again},
        ]
        self.path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
        code, out, _ = said(self.path)
        self.assertEqual((code, out.count("did a"), out.count("  b\n")), (0, 2, 1))

    def test_series_of_several_processes(self) -> None:
        def line(pid: int, uptime_ms: int, text: str) -> str:
            decisions = [{"unix_ms": 5000, "text": text}]
            told = {"schema": "hakmem-stats", "version": 1, "pid": pid, "unix_ms": 9000, "uptime_ms": uptime_ms}
            return f"{json.dumps({**told, 'decisions': decisions})}\n"

        self.path.write_text(line(3, 1000, "did a") + line(4, 1000, "did b") + line(3, 2000, "did a"))
        code, out, _ = said(self.path)
        self.assertEqual((code, out.partition(",")[0], out.count("did b")), (0, "Process 3", 0))
        self.assertIn("The series is of 2 processes; only process 3 is shown", out)
        self.assertIn("Left out, and shown with --pid: 4.\n", out)
        code, out, _ = said(self.path, "--pid", "4")
        self.assertEqual((code, out.partition(",")[0], out.count("did a")), (0, "Process 4", 0))
        self.path.write_text(line(3, 1000, "did a"))
        self.assertNotIn("processes", said(self.path)[1])
        for words, told in (
            ((self.path, "--pid", "4"), "--pid 4: no such process in the series; legal are 3"),
            ((self.path, "--pid", 5000 * "9"), "9: legal are 1 to 4194304"),
            (("1", "--pid", "4"), "--pid 4: only with a file of statistics, and 1 is a process"),
            ((self.path, "--wait", "4"), f"--wait 4: only with a process, and {self.path} is a file"),
            (("1", "--wait", "x"), "x: legal are 0.1 to 86400 seconds"),
        ):
            self.assertEqual(said(*words)[0], 2)
            self.assertIn(told, said(*words)[2])

    def test_bad_sources(self) -> None:
        for source, what in (("/no/such", "no such file"), ("/tmp", "a directory"), ("/dev/null", "no regular file")):
            code, _, errors = said(source)
            self.assertEqual(code, 2)
            self.assertRegex(errors, rf"\Ahakmem: {source}: {what}; legal are [^\n]*\n\Z")
        self.assertEqual(said(300 * "x")[2], f"hakmem: {300 * 'x'}: File name too long\n")
        self.path.write_text("hakmem-policy 1\nprogram x\n")
        self.assertEqual(said(self.path)[2], f"hakmem: {self.path}: line 2: program needs an absolute path\n")
        self.path.write_text("{}")
        self.assertRegex(said(self.path)[2], r"not statistics of hakmem")


class Real(test_real.Service):
    """A process that was told something by its environment."""

    def test_is_explained(self) -> None:
        process: subprocess.Popen[str] = self.start(HAKMEM_PURGE="delay=20", HAKMEM_MODE="fast")
        code, out, errors = said(process.pid)
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("mode fast", out)
        self.assertIn("Set by the environment:\n  - Free memory keeps its pages for 20 ms.\n", out)

    def test_waits_as_long_as_it_is_told(self) -> None:
        process: subprocess.Popen[str] = self.start()
        process.send_signal(signal.SIGSTOP)
        code, out, errors = said(process.pid, "--wait", "0.3")
        process.send_signal(signal.SIGCONT)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("did not answer in 0.3 s", errors)
        self.assertEqual(said(process.pid, "--wait", "60")[0], 0)


def load_tests(loader: unittest.TestLoader, _tests: unittest.TestSuite, _pattern: str | None) -> unittest.TestSuite:
    """Not those of the module that starts processes."""
    suite = unittest.TestSuite()
    for case in (Statistics, Files):
        suite.addTests(loader.loadTestsFromTestCase(case))
    suite.addTests(Real(name) for name in ("test_is_explained", "test_waits_as_long_as_it_is_told"))
    return suite
