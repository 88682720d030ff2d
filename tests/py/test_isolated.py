"""How `hakmem test` counts: nothing that fails is left out, of ctest's tests and of those in Python."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import ROOT, run

sys.path.insert(0, str(ROOT / "python"))

from hakmem_cli import ports  # noqa: E402
from hakmem_cli import test as command  # noqa: E402

PASSES = "class Good(unittest.TestCase):\n    def test_good(self):\n        pass\n"


class CTest(unittest.TestCase):
    def count(self, cases: str) -> command.Count:
        count = command.Count()
        with tempfile.TemporaryDirectory() as directory:
            report = Path(directory) / "results.xml"
            report.write_text(f"<testsuite>{cases}</testsuite>")
            command._count_report(report, "release", count)
        return count

    def test_each_end_is_counted(self) -> None:
        count = self.count(
            '<testcase name="good" status="run"><system-out>fine</system-out></testcase>'
            '<testcase name="bad" status="fail"><failure message=""/></testcase>'
            '<testcase name="lost" status="notrun"><skipped message="Unable to find executable"/></testcase>'
            '<testcase name="left" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>'
            '<testcase name="off" status="disabled"/>'
        )
        self.assertEqual((count.passed, count.failed), (1, ["release: bad", "release: lost"]))
        self.assertEqual(count.skipped, ["release: left (SKIP_RETURN_CODE=77)", "release: off ()"])

    def test_parts_that_are_skipped_are_told(self) -> None:
        lines = (
            "[ RUN ] a",
            *(f"[  SKIPPED ] {one}" for one in ("a", "b: no rights", "1 test(s), listed below:", "a")),
        )
        out = "\n".join(lines)
        count = self.count(f'<testcase name="good" status="run"><system-out>{out}</system-out></testcase>')
        self.assertEqual((count.passed, count.skipped), (1, ["release: good: a", "release: good: b: no rights"]))

    def test_no_test_is_a_failure(self) -> None:
        self.assertEqual(self.count("").failed, ["release: ctest ran no test"])


class Isolated(unittest.TestCase):
    def count(self, text: str) -> command.Count:
        """What is counted of a module of tests; their words are not among ours."""
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "tests" / "some").mkdir(parents=True)
            (root / "tests" / "isolated.py").write_text((ROOT / "tests" / "isolated.py").read_text())
            (root / "tests" / "some" / "test_some.py").write_text(f"import os, subprocess, unittest\n{text}")
            count = command.Count()
            with mock.patch.object(command.build, "ROOT", root), contextlib.redirect_stdout(io.StringIO()):
                for module in command._modules("some", Path(sys.executable), dict(os.environ), count):
                    count.add(command._run_module(module))
            return count

    def test_a_test_that_passes_and_one_that_fails(self) -> None:
        count = self.count(f"{PASSES}    def test_bad(self): self.fail()\n")
        self.assertEqual((count.passed, len(count.failed), count.skipped), (1, 1, []))
        self.assertIn("test_bad", count.failed[0])

    def test_a_set_up_that_fails_is_a_failure(self) -> None:
        for text in (
            f"def setUpModule(): raise OSError\n{PASSES}",
            f"{PASSES}    @classmethod\n    def setUpClass(cls): raise OSError\n",
            f"{PASSES}    @classmethod\n    def tearDownClass(cls): raise OSError\n",
        ):
            with self.subTest(text):
                self.assertEqual(len(self.count(text).failed), 1)

    def test_a_set_up_that_skips_is_counted_with_its_reason(self) -> None:
        for text in (
            f"def setUpModule(): raise unittest.SkipTest('no such thing')\n{PASSES}",
            f"{PASSES}    @classmethod\n    def setUpClass(cls): raise unittest.SkipTest('no such thing')\n",
            f"@unittest.skip('no such thing')\n{PASSES}",
        ):
            with self.subTest(text):
                count = self.count(text)
                self.assertEqual((count.passed, count.failed, len(count.skipped)), (0, [], 1))
                self.assertIn("(no such thing)", count.skipped[0])

    def test_what_should_have_failed_is_a_failure(self) -> None:
        self.assertEqual(len(self.count(PASSES.replace("    def", "    @unittest.expectedFailure\n    def")).failed), 1)

    def test_what_a_test_prints_is_not_taken_for_a_result(self) -> None:
        count = self.count(
            f"{PASSES}        print('{{'); subprocess.run(['echo', 'words'])\n        os.write(1, b'x')\n"
        )
        self.assertEqual((count.passed, count.failed), (1, []))

    def test_an_end_before_the_end_is_a_failure(self) -> None:
        self.assertEqual(
            self.count(f"{PASSES}        os._exit(0)\n").failed, ["some: test_some: the tests ended with 0"]
        )

    def test_no_module_is_a_failure(self) -> None:
        with tempfile.TemporaryDirectory() as directory, mock.patch.object(command.build, "ROOT", Path(directory)):
            count = command.Count()
            self.assertEqual(
                (command._modules("some", Path(sys.executable), {}, count), count.failed), ([], ["some: no test"])
            )


class Continuous(unittest.TestCase):
    def test_ci_says_that_it_is_ci(self) -> None:
        """Without it what could not be installed would be skipped."""
        with tempfile.TemporaryDirectory() as directory:
            script, launcher = Path(directory, ".ci", "run"), Path(directory, "hakmem")
            script.parent.mkdir()
            script.write_text((ROOT / ".ci" / "run").read_text())
            launcher.write_text('#!/bin/sh\necho "$CI $*"\n')
            launcher.chmod(0o755)
            environment = {name: value for name, value in os.environ.items() if name != "CI"}
            self.assertEqual(run("bash", script, environment=environment).stdout, "true test\n")

    def test_the_release_is_read_on_any_python(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            description = Path(directory) / "os-release"
            description.write_text('# of Debian\nNAME="Some Linux"\nVERSION_CODENAME=bookworm\nID=some\n')
            self.assertEqual(ports._codename(description), "bookworm")


if __name__ == "__main__":
    unittest.main()
