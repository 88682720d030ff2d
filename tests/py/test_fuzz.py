"""The fuzzers find nothing within seconds, and what is kept of them is in order."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import LAUNCHER, ROOT, run, skip_or_fail

sys.path.insert(0, str(ROOT / "python"))

from hakmem_cli import build, corpus, fuzz, packages  # noqa: E402

SECONDS_EACH = 1


class Kept(unittest.TestCase):
    def test_each_has_a_corpus_within_its_bounds(self) -> None:
        self.assertTrue(fuzz.names())
        for name in fuzz.names():
            with self.subTest(name):
                files = [path for path in corpus.directory(name).iterdir() if corpus.is_generated(path)]
                self.assertTrue(files)
                self.assertLessEqual(len(files), corpus.FILES_MOST)
                self.assertLessEqual(sum(path.stat().st_size for path in files), corpus.BYTES_MOST)

    def test_no_corpus_is_without_a_fuzzer(self) -> None:
        self.assertEqual(sorted(path.name for path in (ROOT / "tests" / "fuzz" / "corpus").iterdir()), fuzz.names())

    def test_document_has_the_results(self) -> None:
        self.assertIn(fuzz.table(), fuzz.DOCUMENT.read_text())
        self.assertEqual(sorted(fuzz.results()), fuzz.names())


class Choosing(unittest.TestCase):
    """Which inputs are kept."""

    def test_takes_what_adds_most(self) -> None:
        path = corpus.directory("any")
        inputs = [
            (path / name, size, features)
            for name, size, features in (
                ("none", 1, set[int]()),
                ("two", 2, {1, 2}),
                ("long", 9, {3, 4, 5}),
                ("three", 3, {3, 4, 5}),
                ("one", 1, {2}),
            )
        ]
        self.assertEqual([one.name for one in corpus.choose(inputs)], ["three", "two"])

    def test_stops_at_the_bounds(self) -> None:
        path = corpus.directory("any")
        many = [(path / str(i), 10, {i}) for i in range(corpus.FILES_MOST + 1)]
        self.assertEqual(len(corpus.choose(many)), corpus.FILES_MOST)
        self.assertEqual(corpus.choose([(path / "huge", corpus.BYTES_MOST + 1, {1})]), [])


class Command(unittest.TestCase):
    def test_says_what_is_legal(self) -> None:
        for words, legal in (
            (["nothing"], "api"),
            (["--minutes", "0"], "0.01 to 100000"),
            (["--seed", "-1"], "1 to 4294967295"),
            (["--seed", "4294967296"], "1 to 4294967295"),
            (["--seed", "one"], "1 to 4294967295"),
            (["--frobnicate"], "--minutes"),
        ):
            done = run(sys.executable, LAUNCHER, "fuzz", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf"\Ahakmem: .*{words[-1]}.*\n\Z")
            self.assertIn(legal, done.stderr)

    def test_an_input_that_fails_as_before_is_found_again(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            kept = Path(directory, "kept")
            kept.mkdir()
            failing = kept / "crash-1"
            failing.write_text("x")
            fuzzer = Path(directory, "fuzzer")
            fuzzer.write_text(
                f'#!/bin/sh\necho "hakmem: fatal: as before\nTest unit written to {failing}" >&2\nexit 77\n'
            )
            fuzzer.chmod(0o755)
            with (
                mock.patch.object(fuzz, "program", return_value=fuzzer),
                mock.patch.object(fuzz.corpus, "directory", return_value=kept),
                mock.patch.object(fuzz.build, "BUILD", Path(directory)),
            ):
                self.assertEqual(fuzz.run("api", 1, 1).found, [(failing, "hakmem: fatal: as before")])

    def test_finds_nothing_in_seconds(self) -> None:
        if not packages.can_fuzz():
            skip_or_fail("clang or its libFuzzer is not installed")
        build.build_fuzzers()  # takes as long as it takes
        minutes = str(SECONDS_EACH / 60)
        done = run(sys.executable, LAUNCHER, "fuzz", "--minutes", minutes, "--seed", "1", environment=os.environ)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in fuzz.names():
            self.assertRegex(done.stderr, rf"(?m)^hakmem: {re.escape(name)}: [1-9]\d* inputs in \d+ s")


if __name__ == "__main__":
    unittest.main()
