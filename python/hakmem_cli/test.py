"""`hakmem test`: all presets, the binary's own tests, one closing line."""

import os
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

from hakmem_cli import build, packages
from hakmem_cli.say import say

PRESETS = ("release", "debug", "tsan", "asan")


@dataclass
class Count:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def _run_ctest(preset: str, *, include_long: bool, count: Count) -> None:
    directory = build.BUILD / preset
    report = directory / "results.xml"
    report.unlink(missing_ok=True)
    command = ["ctest", "--output-on-failure", "--output-junit", str(report), "--timeout", "900"]
    if not include_long:
        command += ["--label-exclude", "^long$"]
    say(f"testing {preset}")
    # Half of the processors: many tests start threads of their own.
    command += ["--parallel", str(max(1, (os.cpu_count() or 1) // 2))]
    subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, check=False)
    if not report.exists():
        count.failed.append(f"{preset}: ctest left no results")
        return
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{preset}: {case.get('name')}"
        if case.find("failure") is not None or case.get("status") == "fail":
            count.failed.append(name)
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            count.skipped.append(name)
        else:
            count.passed += 1


def _run_unittest(count: Count) -> None:
    say("testing the binary, the sources and the launcher")
    suite = unittest.defaultTestLoader.discover(str(build.ROOT / "tests" / "py"))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    bad = result.failures + result.errors + [(test, "") for test in result.unexpectedSuccesses]
    count.failed += [f"py: {test}" for test, _ in bad]
    count.skipped += [f"py: {test} ({reason})" for test, reason in result.skipped]
    count.passed += result.testsRun - len(bad) - len(result.skipped)


def test(*, include_long: bool) -> int:
    packages.ensure()
    count = Count()
    for preset in PRESETS:
        say(f"building {preset}")
        build.build(preset, tests=True)
    for preset in PRESETS:
        _run_ctest(preset, include_long=include_long, count=count)
    _run_unittest(count)
    for name in count.skipped:
        print(f"skipped: {name}")
    for name in count.failed:
        print(f"failed: {name}")
    line = f"{count.passed} passed, {len(count.failed)} failed"
    if count.skipped:
        line += f", {len(count.skipped)} skipped"
    print(line, flush=True)
    return 1 if count.failed else 0
