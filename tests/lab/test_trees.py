"""Other versions of the library: the patches that take a feature out must fit the sources as they are."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from hakmem_bench import trees
from hakmem_bench.model import ROOT, CannotError


class Ablations(unittest.TestCase):
    def test_there_are_some(self) -> None:
        self.assertGreater(len(trees.ablations()), 5)

    def test_each_says_what_is_lost(self) -> None:
        for patch in trees.ablations().values():
            self.assertRegex(trees.what_is_lost(patch), r"\A[A-Z].*\.\Z")

    def test_each_applies_to_the_sources(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            for name, patch in trees.ablations().items():
                copy = Path(directory) / name
                shutil.copytree(ROOT / "src", copy / "src")
                before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
                trees.apply(patch, copy)
                after = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
                self.assertEqual(before.keys(), after.keys())
                self.assertEqual(sum(before[path] != after[path] for path in before), 1)

    def test_what_was_built_with_another_patch_is_built_anew(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            tree, patch = Path(directory, "tree"), Path(directory, "a.patch")
            built = tree / "build" / "object"
            for text, stays in (("one", False), ("one", True), ("two", False)):
                built.parent.mkdir(parents=True, exist_ok=True)
                built.touch()
                patch.write_text(text)
                trees.build_anew_if_changed(patch, tree)
                self.assertEqual(built.exists(), stays)

    def test_one_that_does_not_apply_is_one_line(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            patch = ROOT / "bench" / "ablations" / "letters.patch"
            with self.assertRaisesRegex(CannotError, r"\Abench/ablations/letters.patch does not apply: [^\n]+\Z"):
                trees.apply(patch, Path(directory))


class Revisions(unittest.TestCase):
    def test_one_that_is_none_is_named(self) -> None:
        with self.assertRaisesRegex(CannotError, r"\Ano-such-thing: no such revision; legal is"):
            trees.commit_of("no-such-thing")

    def test_a_name_is_the_commit(self) -> None:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
        self.assertTrue(head.stdout.startswith(trees.commit_of("HEAD")))


if __name__ == "__main__":
    unittest.main()
