"""Bad input gets one line that names the thing and what is legal; and the lab as a whole, on a small run."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from rich.console import Console

from hakmem_bench import __main__ as command
from hakmem_bench import lab, peers, suite
from hakmem_bench.model import Peer, Result, Test, read


class BadInput(unittest.TestCase):
    def check(self, words: str, line: str) -> None:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(command.main(words.split()), 2, words)
        self.assertRegex(errors.getvalue(), rf"\Ahakmem: {line}[^\n]*\n\Z")

    def test_each_is_named_with_what_is_legal(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("{}")
            file.flush()
            for words, line in (
                ("--peers glibk", "glibk: no such peer; legal are hakmem, glibc,"),
                ("--tests larsen", "larsen: no such test; legal are the groups random_mixed,.* larson-1,"),
                ("--repetitions 0", "argument --repetitions: 0: legal values are 1 to 1000"),
                ("--repetitions x", "argument --repetitions: x: legal values are 1 to 1000"),
                ("--frob", "unrecognized arguments: --frob; use: hakmem bench"),
                ("compare /no/such /no/such", "/no/such: No such file or directory"),
                (f"docs {file.name}", re.escape(file.name) + ": not a result file that `bench` wrote"),
                ("ab no-such-revision HEAD", "no-such-revision: no such revision; legal is"),
                ("ablate wings", "wings: no such feature; legal are adoption, bigcache,"),
                ("peers glibk", "glibk: no such peer"),
            ):
                with self.subTest(words):
                    self.check(words, line)


class Suite(unittest.TestCase):
    def test_names_are_words_and_unique(self) -> None:
        names = [test.name for test in suite.TESTS]
        self.assertEqual(len(names), len(set(names)))
        for test in suite.TESTS:
            self.assertRegex(test.name, r"\A[a-z0-9-]+\Z")
            self.assertNotIn(test.name, {test.group for test in suite.TESTS})

    def test_programs_of_ours_are_there(self) -> None:
        for test in suite.TESTS:
            if "/" not in test.command[0]:
                self.assertTrue((lab.ROOT / "bench" / f"{test.command[0]}.c").exists(), test.name)

    def test_the_quick_run_is_a_part(self) -> None:
        quick = suite.choose(None, quick=True)
        self.assertTrue(10 < len(quick) < len(suite.choose(None, quick=False)))

    def test_names_and_groups_choose(self) -> None:
        chosen = [test.name for test in suite.choose("larson-1,start-up", quick=False)]
        self.assertEqual(chosen, ["larson-1", "startup"])


class Docs(unittest.TestCase):
    def test_both_pages_and_their_pictures_are_written(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "docs").mkdir()
            Result({"date": "today"}, [Peer("hakmem", "1", "here")]).write(root / "result.json")
            with mock.patch.object(command, "ROOT", root):
                self.assertEqual(command.main(["docs", str(root / "result.json")]), 0)
            written = {path.name: path.read_text() for path in (root / "docs").iterdir()}
        self.assertEqual(sorted(written), ["benchmarks.md", "benchmarks.svg", "memory.md", "memory.svg"])
        self.assertTrue(written["benchmarks.md"].startswith("# Benchmarks"))
        self.assertTrue(written["memory.md"].startswith("# Memory"))
        for page, linked in (("benchmarks", "memory.md"), ("memory", "benchmarks.md")):
            self.assertIn(f"({linked})", written[f"{page}.md"])
            self.assertIn(f"({page}.svg)", written[f"{page}.md"])


class SmallRun(unittest.TestCase):
    def test_a_result_and_a_page_are_left(self) -> None:
        test = Test("a-test", "a-group", "it waits", ("/bin/sh", "-c", "sleep 0.01; echo 'Extra = {\"told\": 1}'"))
        good = Peer("hakmem", "1", "here")
        absent = Peer("absent", "", "", missing="not to be had")
        with tempfile.TemporaryDirectory() as directory:
            output = Path(directory) / "result.json"
            options = lab.Options(repetitions=2, output=output, counts=False, system_calls=False)
            console = Console(file=io.StringIO(), width=100)
            with mock.patch.object(lab.provenance, "facts", return_value={"date": "today"}):
                peers_run = [good, Peer("glibc", "2", "there"), absent]
                lab.measure([test], peers_run, options, "asked", console, Path("/none"))
            self.assertEqual(json.loads(output.read_text())["schema"]["name"], "hakmem bench")
            result = read(output)
            self.assertEqual([len(samples) for samples in result.tests[0].samples.values()], [2, 2])
            self.assertEqual(result.tests[0].samples["glibc"][0].extra, {"told": 1})
            self.assertIn("absent", output.with_suffix(".html").read_text())
            self.assertIn("not to be had", console.file.getvalue())  # type: ignore[attr-defined]
            self.assertEqual(peers.NAMES[0], good.name)


if __name__ == "__main__":
    unittest.main()
