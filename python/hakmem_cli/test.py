"""`hakmem test`: the tests of all presets and those of the finished library, one closing line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unittest
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from hakmem_cli import build, packages, ports, programs, venv
from hakmem_cli.say import CannotError, say

# A line of cmocka's, and of tests/support/check.h, but for its sum of them.
_SKIPPED = re.compile(r"^\[  SKIPPED \] (?!\d+ test\(s\))(.+?)\s*$", re.MULTILINE)
_OUTPUT_BYTES = 1 << 20

PRESETS = ("release", "debug", "tsan", "asan", *ports.PRESETS)


@dataclass
class Count:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        text = f"{self.passed} passed, {len(self.failed)} failed"
        return f"{text}, {len(self.skipped)} skipped" if self.skipped else text


def _build(preset: str, count: Count) -> bool:
    say(f"building {preset}")
    try:
        build.build_tests(preset)
    except CannotError as error:
        say(str(error))
        count.failed.append(f"{preset}: the build")
        return False
    return True


def _count_case(case: ElementTree.Element, name: str, count: Count) -> None:
    """A test that could not be started has the status "notrun" too, and is no skipped one. Parts of a test that ran say
    themselves that they were skipped."""
    status = case.get("status")
    reason = case.find("skipped")
    message = "" if reason is None else reason.get("message", "")
    if status == "run":
        count.passed += 1
        parts = _SKIPPED.findall(case.findtext("system-out") or "")
        count.skipped += [f"{name}: {part}" for part in dict.fromkeys(parts)]
    elif status == "disabled" or (status == "notrun" and message.startswith("SKIP_")):
        count.skipped.append(f"{name} ({message})")
    else:
        count.failed.append(name)


def _count_report(report: Path, preset: str, count: Count) -> None:
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    if not cases:
        count.failed.append(f"{preset}: ctest ran no test")
    for case in cases:
        _count_case(case, f"{preset}: {case.get('name')}", count)


def _run_ctest(preset: str, count: Count, *, include_long: bool) -> None:
    say(f"testing {preset}")
    directory = build.BUILD / preset
    report = directory / "results.xml"
    report.unlink(missing_ok=True)
    # What starts threads of its own counts as two (tests/CMakeLists.txt).
    jobs = str(os.cpu_count() or 1)
    command = ["ctest", "--output-on-failure", "--output-junit", str(report), "--parallel", jobs]
    command += ["--test-output-size-passed", str(_OUTPUT_BYTES)]
    if not include_long:
        command += ["--label-exclude", "^long$"]
    subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, check=False)
    if not report.exists():
        count.failed.append(f"{preset}: ctest left no results")
        return
    _count_report(report, preset, count)


class _Result(unittest.TextTestResult):
    """Counts successes one by one: what a class's set-up keeps from running is not among the tests that ran."""

    successes = 0

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self.successes += 1


def _run_unittest(count: Count) -> None:
    say("testing the library, the sources' layers and the launcher")
    suite = unittest.defaultTestLoader.discover(str(build.ROOT / "tests" / "py"))
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=_Result)  # type: ignore[arg-type]
    result = runner.run(suite)
    assert isinstance(result, _Result)
    count.passed += result.successes
    count.failed += [f"py: {test}" for test, _ in result.failures + result.errors]
    count.failed += [f"py: {test}" for test in result.unexpectedSuccesses]
    count.skipped += [f"py: {test} ({reason})" for test, reason in result.skipped]


def _run_isolated(environment: venv.Environment, count: Count) -> None:
    """In the environment's interpreter, which has the libraries that they need."""
    name = environment.name
    say(f"testing {environment.what}")
    tests = build.ROOT / "tests"
    try:
        command = [str(environment.python()), "-B", str(tests / "isolated.py"), str(tests / name)]
    except CannotError as error:
        count.failed.append(f"{name}: {error}")
        return
    done = subprocess.run(
        command, env=environment.variables(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False
    )
    ended = failed = False
    for line in done.stdout.splitlines():
        told = json.loads(line)
        if told["outcome"] == "passed":
            count.passed += 1
        elif told["outcome"] == "failed":
            count.failed.append(f"{name}: {told['test']}")
            failed = True
        elif told["outcome"] == "skipped":
            count.skipped.append(f"{name}: {told['test']} ({told['reason']})")
        ended = told["outcome"] == "end"
    if not ended or (done.returncode != 0 and not failed):
        count.failed.append(f"{name}: the tests ended with {done.returncode}")


def _run_programs(count: Count) -> None:
    say("testing programs")
    for row in programs.run([]):
        if row.passed:
            count.passed += 1
        else:
            count.failed.append(f"{row.program}: {row.what}: {row.reason}")


def test(*, everything: bool) -> int:
    """With everything: the long ones and the whole program matrix too."""
    packages.ensure(programs.quick_packages())
    ports.ensure_libraries()
    count = Count()
    built = [preset for preset in PRESETS if _build(preset, count)]
    for preset in built:
        _run_ctest(preset, count, include_long=everything)
    if "release" in built:
        _run_unittest(count)
        _run_isolated(venv.LAB, count)
        _run_isolated(venv.OBSERVE, count)
        if everything:
            _run_programs(count)
    for name in count.skipped:
        print(f"skipped: {name}")
    for name in count.failed:
        print(f"failed: {name}")
    print(count, flush=True)
    return 1 if count.failed else 0
