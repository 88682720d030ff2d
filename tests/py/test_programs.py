"""The program matrix's runner, on tests that pass, fail, hang and are skipped."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from support import ROOT

sys.path.insert(0, str(ROOT / "python"))

from hakmem_cli import programs  # noqa: E402
from hakmem_cli.programs import Report, Row, Test  # noqa: E402
from hakmem_cli.say import CannotError  # noqa: E402

# Of this process alone: other checkouts run these tests too.
SLEEP = ("sleep", str(10_000_000 + os.getpid()))
SAMPLES = f"""
import subprocess, unittest
class Sample(unittest.TestCase):
    def test_good(self): pass
    def test_bad(self): self.assertEqual(1, 2, "one is not two")
    def test_skipped(self): self.skipTest("no reason")
    def test_hangs(self): subprocess.run({SLEEP!r})
"""


def _command(path: Path) -> tuple[str, ...]:
    try:
        return tuple(os.fsdecode(path.read_bytes()).split("\0")[:-1])
    except OSError:  # it has ended meanwhile
        return ()


def sample(method: str, program: str = "Sample", seconds: float = 60, **more: object) -> Test:
    test = Test("sample", f"test_sample.Sample.{method}", program, f"what {method} does", [], [], [], False, seconds)
    for name, value in more.items():
        setattr(test, name, value)
    return test


def row(test: str, passed: bool = True, reason: str = "") -> Row:
    return Row("sample", test, test.title(), "1.0", "a | b", passed, reason, 1.5)


def report(*rows: Row, sources: str = "s") -> Report:
    library = {"build id": "b", "build": "hakmem 0", "sources": sources}
    machine = {"machine": "m", "kernel": "k", "libc": "c"}
    return Report(library, machine, "2020-01-01", list(rows))


class Runner(unittest.TestCase):
    def setUp(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        (Path(self.directory.name) / "test_sample.py").write_text(SAMPLES)
        patch = mock.patch.object(programs, "TESTS", Path(self.directory.name))
        patch.start()
        self.addCleanup(patch.stop)

    def run_sample(self, test: Test, missing: dict[str, str] | None = None) -> Row:
        return programs._run_test(test, Path("/nowhere/libhakmem.so"), missing or {})

    def test_passes(self) -> None:
        result = self.run_sample(sample("test_good", version=["echo", "Sample 1.2\nmore"]))
        self.assertEqual((result.passed, result.reason, result.version), (True, "", "Sample 1.2"))

    def test_failure_has_its_reason(self) -> None:
        result = self.run_sample(sample("test_bad"))
        self.assertEqual((result.passed, result.reason), (False, "AssertionError: 1 != 2 : one is not two"))

    def test_skip_is_a_failure(self) -> None:
        result = self.run_sample(sample("test_skipped"))
        self.assertEqual((result.passed, result.reason), (False, "skipped"))

    def test_hang_is_ended_with_all_its_processes(self) -> None:
        start = time.monotonic()
        result = self.run_sample(sample("test_hangs", seconds=2))
        self.assertEqual((result.passed, result.reason), (False, "no end after 2 s"))
        self.assertLess(time.monotonic() - start, 60)
        deadline = time.monotonic() + 30
        while any(_command(path) == SLEEP for path in Path("/proc").glob("[0-9]*/cmdline")):
            self.assertLess(time.monotonic(), deadline, "it goes on")
            time.sleep(0.05)

    def test_missing_package_is_a_failure(self) -> None:
        test = sample("test_good", packages=["no-such-package"], version=["no-such-program"])
        result = self.run_sample(test, {"no-such-package": "cannot be had"})
        self.assertFalse(result.passed)
        self.assertEqual(result.reason, "not installed: no-such-package: cannot be had")

    def test_program_without_version(self) -> None:
        result = self.run_sample(sample("test_good", version=["no-such-program"]))
        self.assertEqual(result.version, "unknown (FileNotFoundError)")


class Choice(unittest.TestCase):
    tests = [sample("test_good", program="First"), sample("test_bad", program="Second")]

    def test_names(self) -> None:
        self.assertEqual(programs.choose(self.tests, []), self.tests)
        self.assertEqual(programs.choose(self.tests, ["sample"]), self.tests)
        self.assertEqual(programs.choose(self.tests, ["SECOND"]), self.tests[1:])

    def test_unknown_name(self) -> None:
        with self.assertRaisesRegex(CannotError, "^third: no such program; legal are first, sample, second$"):
            programs.choose(self.tests, ["first", "third"])


class Results(unittest.TestCase):
    def test_same_sources_are_merged(self) -> None:
        old = report(row("a"), row("b"), row("gone"))
        new = report(row("b", False, "broke"), row("c"))
        merged = programs.merge(old, new, {"a", "b", "c"})
        self.assertEqual([(each.test, each.passed) for each in merged.rows], [("a", True), ("b", False), ("c", True)])

    def test_other_sources_start_afresh(self) -> None:
        new = report(row("b"), sources="other")
        self.assertEqual(programs.merge(report(row("a")), new, {"a", "b"}), new)
        self.assertEqual(programs.merge(None, new, {"a", "b"}), new)

    def test_written_is_read(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "results" / "r.json"
            self.assertIsNone(programs._read(path))
            programs.write(report(row("a")), path)
            self.assertEqual(programs._read(path), report(row("a")))
            path.write_text("{")
            self.assertIsNone(programs._read(path))

    def test_page(self) -> None:
        page = programs.render(report(row("a"), row("b", False, "it broke")), None)
        self.assertIn("2 rows of 2 programs, 1 passed, 1 failed.", page)
        self.assertIn("| A | 1.0 | a \\| b | passed |", page)
        self.assertIn("- **B**, a \\| b: it broke", page.replace("a | b", "a \\| b"))
        self.assertNotIn("check mode", page)

    def test_page_tells_of_check_mode(self) -> None:
        checked = report(row("a"), row("b", False, "==1==ERROR: hakmem: double-free"))
        page = programs.render(report(row("a"), row("b")), checked)
        self.assertIn("2 rows of 2 programs, 2 passed, 0 failed.", page)
        self.assertIn("2 rows of 2 programs, 1 passed, 1 failed.", page)
        self.assertIn("ERROR: hakmem: double-free", page)

    def test_committed_page_is_that_of_the_committed_results(self) -> None:
        results = programs._read(programs.RESULTS)
        assert results is not None
        self.assertEqual(programs.PAGE.read_text(), programs.render(results, programs._read(programs.RESULTS_CHECKED)))


if __name__ == "__main__":
    unittest.main()
