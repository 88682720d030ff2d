"""`hakmem test`: the tests of all presets and those of the finished library, one closing line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from hakmem_cli import build, packages, ports, programs, venv
from hakmem_cli.say import CannotError, say

# A line of cmocka's, and of tests/support/check.h, but for its sum of them.
_SKIPPED = re.compile(r"^\[  SKIPPED \] (?!\d+ test\(s\))(.+?)\s*$", re.MULTILINE)
_OUTPUT_BYTES = 1 << 20

# Modules of tests in Python that measure: nothing runs beside them.
_ALONE = ("py: test_gate", "py: test_layout")
# Begun before the others, lest one processor waits for them in the end.
_LONGEST = ("py: test_analysis", "py: test_check")

PRESETS = ("release", "debug", "tsan", "asan", *ports.PRESETS)


@dataclass
class Count:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

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


@dataclass(frozen=True)
class _Module:
    """Of tests in Python, with the interpreter that has the libraries that they need."""

    file: Path
    python: Path
    variables: dict[str, str]

    def __str__(self) -> str:
        return f"{self.file.parent.name}: {self.file.stem}"


def _modules(name: str, python: Path, variables: dict[str, str], count: Count) -> list[_Module]:
    files = sorted((build.ROOT / "tests" / name).glob("test_*.py"))
    if not files:
        count.failed.append(f"{name}: no test")
    return [_Module(file, python, variables) for file in files]


def _modules_of(environment: venv.Environment, count: Count) -> list[_Module]:
    try:
        return _modules(environment.name, environment.python(), environment.variables(), count)
    except CannotError as error:
        count.failed.append(f"{environment.name}: {error}")
        return []


def _counted(told: str, module: _Module, status: int) -> Count:
    """What tests/isolated.py has told of the module's tests, which ended with this status."""
    count = Count()
    ended = failed = False
    for line in told.splitlines():
        one = json.loads(line)
        if one["outcome"] == "passed":
            count.passed += 1
        elif one["outcome"] == "failed":
            count.failed.append(f"{module}: {one['test']}")
            failed = True
        elif one["outcome"] == "skipped":
            count.skipped.append(f"{module}: {one['test']} ({one['reason']})")
        ended = one["outcome"] == "end"
    if not ended or (status != 0 and not failed):
        count.failed.append(f"{module}: the tests ended with {status}")
    return count


def _run_module(module: _Module) -> Count:
    """In a process of its own; its words are shown together, when it has ended."""
    began = time.monotonic()
    done = subprocess.run(
        [str(module.python), "-B", str(build.ROOT / "tests" / "isolated.py"), str(module.file)],
        env=module.variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    print(f"{done.stderr}{module}: {time.monotonic() - began:.0f} s\n", end="", flush=True)
    return _counted(done.stdout, module, done.returncode)


def _run_modules(count: Count) -> None:
    say("testing the library, the sources' layers, the launcher, the lab and the observing tools")
    modules = _modules("py", Path(sys.executable), dict(os.environ), count)
    for environment in (venv.LAB, venv.OBSERVE):
        modules += _modules_of(environment, count)
    alone = [module for module in modules if str(module) in _ALONE]
    together = [module for module in modules if module not in alone]
    together.sort(key=lambda module: str(module) not in _LONGEST)
    for module in alone:
        count.add(_run_module(module))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for one in pool.map(_run_module, together):
            count.add(one)


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
        _run_modules(count)
        if everything:
            _run_programs(count)
    for name in count.skipped:
        print(f"skipped: {name}")
    for name in count.failed:
        print(f"failed: {name}")
    print(count, flush=True)
    return 1 if count.failed else 0
