"""The program matrix: real programs with and without the library (tests/programs), and the page made from it."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hakmem_cli import apt, build, info, session
from hakmem_cli.say import CannotError, say

TESTS = build.ROOT / "tests" / "programs"
RESULTS = TESTS / "results" / "compatibility.json"
RESULTS_CHECKED = TESTS / "results" / "check_mode.json"
PAGE = build.ROOT / "docs" / "compatibility.md"
SCHEMA = {"name": "hakmem compatibility", "version": 1}

# Leaks are left out: many programs leave what they have to the end of the process.
CHECKS = "redzone,poison,quarantine,stacks"
_SLOWER = 3  # than without it: the tests' times are for that
_REPORTED = re.compile(r"^==\d+==(?:ERROR|WARNING): hakmem: .*|^hakmem: fatal: .*", re.MULTILINE)

_VENV = build.ROOT / ".venv" / "programs"
_VERSION_SECONDS = 60


@dataclass
class Test:
    """One row to be: see ProgramTest in tests/programs/programs.py."""

    file: str
    test: str
    program: str
    what: str
    version: list[str]
    packages: list[str]
    pypi: list[str]
    quick: bool
    seconds: float


@dataclass
class Row:
    """One row as it was."""

    file: str
    test: str
    program: str
    version: str
    what: str
    passed: bool
    reason: str
    seconds: float


@dataclass
class Report:
    """What a run of the matrix, or several of the same library, have shown."""

    library: dict[str, str]
    machine: dict[str, str]
    date: str
    rows: list[Row] = field(default_factory=list)


def all_tests() -> list[Test]:
    command = [sys.executable, "-B", str(TESTS / "listing.py")]
    listing = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if listing.returncode != 0:
        raise CannotError(f"the tests of programs cannot be listed: {_last_line(listing.stderr)}")
    return [Test(**json.loads(line)) for line in listing.stdout.splitlines()]


def quick_packages() -> list[str]:
    """Debian's packages that CI needs for its part of the matrix."""
    return sorted({package for test in all_tests() if test.quick for package in test.packages})


def choose(tests: list[Test], names: Iterable[str]) -> list[Test]:
    """Those of the files, or of the programs, with these names; all if there are none."""
    wanted = [name.lower() for name in names]
    legal = {test.file for test in tests} | {test.program.lower() for test in tests}
    for name in wanted:
        if name not in legal:
            raise CannotError(f"{name}: no such program; legal are {', '.join(sorted(legal))}")
    return [test for test in tests if not wanted or test.file in wanted or test.program.lower() in wanted]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def _install(tests: list[Test]) -> dict[str, str]:
    """Installs what the tests need. The packages that cannot be had, each with the reason."""
    wanted = sorted({package for test in tests for package in test.packages if not apt.is_installed(package)})
    if not wanted:
        return {}
    say(f"installing {' '.join(wanted)}")
    if apt.install(wanted) is None:
        return {}
    failures = {package: apt.install([package]) for package in wanted}
    return {package: reason for package, reason in failures.items() if reason is not None}


def _install_pypi(tests: list[Test]) -> str | None:
    """The reason if PyPI's part of the tests' needs cannot be had."""
    wanted = sorted({requirement for test in tests for requirement in test.pypi})
    if not wanted:
        return None
    say(f"installing {' '.join(wanted)} into {_VENV.relative_to(build.ROOT)}")
    for command in (
        ["/usr/bin/python3", "-m", "venv", str(_VENV)],
        [str(_VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", *wanted],
    ):
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return f"{' '.join(command)}: {_last_line(done.stderr or done.stdout)}"
    return None


def _version(command: list[str]) -> str:
    """The first line of its output; it may be a library's version that a program prints."""
    if not command:
        return ""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_VERSION_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unknown ({error.__class__.__name__})"
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return lines[0] if lines else "unknown"


def _reason(output: str) -> str:
    """What unittest says of a test that did not pass: the last exception's line."""
    found = re.findall(r"^[\w.]*(?:Error|Exception|Expired|Exit)\b.*", output, re.MULTILINE)
    return str(found[-1] if found else _last_line(output))[:500]


def _run_checked(test: Test, library: Path) -> tuple[bool, str]:
    """In check mode, where nothing may be reported."""
    with tempfile.TemporaryDirectory(prefix="hakmem-report-") as directory:
        os.chmod(directory, 0o755)
        report = Path(directory) / "report"
        report.touch()
        report.chmod(0o666)  # some servers run as other users
        more = {"HAKMEM_CHECK": CHECKS, "HAKMEM_REPORT": str(report)}
        passed, reason = _run_one(test, library, more, test.seconds * _SLOWER)
        found = _REPORTED.search(report.read_text(errors="replace"))
    return (False, found[0]) if found else (passed, reason)


def _run_one(test: Test, library: Path, more: dict[str, str], seconds: float) -> tuple[bool, str]:
    """In a session of its own, so that all its processes can be ended; with more in its environment."""
    command = [sys.executable, "-B", "-m", "unittest", test.test]
    environment = dict(os.environ, HAK_TEST_LIBRARY=str(library), **more)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=TESTS, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False, f"no end after {seconds:.0f} s"
        finally:
            session.end(process)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if status == 0 and "skipped=" not in text:
        return True, ""
    return False, _reason(text) if status != 0 else "skipped"


def _run_test(test: Test, library: Path, missing: dict[str, str], *, check: bool = False) -> Row:
    start = time.monotonic()
    lacks = [f"{package}: {missing[package]}" for package in test.packages if package in missing]
    lacks += [missing["PyPI"]] if test.pypi and "PyPI" in missing else []
    if lacks:
        passed, reason = False, f"not installed: {'; '.join(lacks)}"
    else:
        passed, reason = _run_checked(test, library) if check else _run_one(test, library, {}, test.seconds)
    seconds = round(time.monotonic() - start, 1)
    version = "" if lacks else _version(test.version)
    return Row(test.file, test.test, test.program, version, test.what, passed, reason, seconds)


def _read(path: Path) -> Report | None:
    """What an earlier run has left; None if there is nothing that can be read."""
    try:
        data: dict[str, Any] = json.loads(path.read_text())
        if data.pop("schema") != SCHEMA:
            return None
        rows = [Row(**row) for row in data.pop("rows")]
        return Report(**data, rows=rows)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def merge(old: Report | None, new: Report, still_there: set[str]) -> Report:
    """The rows of both, if the library is made from the same sources; the new one's count. Tests that are gone are left
    out."""
    if old is None or old.library["sources"] != new.library["sources"]:
        return new
    again = {row.test for row in new.rows}
    kept = [row for row in old.rows if row.test not in again and row.test in still_there]
    rows = sorted([*kept, *new.rows], key=lambda row: (row.program.lower(), row.test))
    return Report(new.library, new.machine, new.date, rows)


def write(report: Report, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps({"schema": SCHEMA, **asdict(report)}, indent=1) + "\n")
    unfinished.replace(path)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _failed(report: Report) -> list[Row]:
    return [row for row in report.rows if not row.passed]


def _summary(report: Report) -> str:
    failed = len(_failed(report))
    programs = len({row.program for row in report.rows})
    return f"{len(report.rows)} rows of {programs} programs, {len(report.rows) - failed} passed, {failed} failed."


def _failures(report: Report) -> list[str]:
    return [f"- **{row.program}**, {row.what}: {_cell(row.reason)}" for row in _failed(report)]


def _render_checked(report: Report) -> list[str]:
    lines = [
        "",
        "## In check mode",
        "",
        f"With `HAKMEM_CHECK={CHECKS}` ([safety.md](safety.md)): a row passes if, besides, nothing is reported.",
        _summary(report),
        "",
        f"Made by `./hakmem test --programs --check`. Last run {report.date}; library {report.library['build']}.",
    ]
    if _failed(report):
        lines += ["", *_failures(report)]
    return lines


def render(report: Report, checked: Report | None) -> str:
    """docs/compatibility.md."""
    lines = [
        "# Programs that run on hakmem",
        "",
        "Each row was run twice, without the library and with it preloaded. It passes when output and exit code are",
        "the same, the servers' data too, and the library was seen mapped in the process that does the work.",
        _summary(report),
        "",
        "Made by `./hakmem test --programs`, which installs what it needs from Debian, PyPI, crates.io, npm and the Go",
        "proxy by name, from `tests/programs/results/compatibility.json`. The tests are `tests/programs/test_*.py`.",
        "",
        f"Last run {report.date}; library {report.library['build']}, build id {report.library['build id']};",
        f"{report.machine['machine']}, {report.machine['kernel']}, {report.machine['libc']}.",
        "",
        "| program | version | what was run | result |",
        "|---|---|---|---|",
    ]
    for row in report.rows:
        result = "passed" if row.passed else "**failed**"
        lines.append(f"| {_cell(row.program)} | {_cell(row.version)} | {_cell(row.what)} | {result} |")
    if _failed(report):
        lines += ["", "## Failures", "", *_failures(report)]
    if checked is not None:
        lines += _render_checked(checked)
    return "\n".join(lines) + "\n"


@contextmanager
def _for_everyone(library: Path) -> Iterator[Path]:
    """A copy where other users can read it, as some servers' must: this tree may be in somebody's home directory."""
    with tempfile.TemporaryDirectory(prefix="hakmem-library-") as directory:
        os.chmod(directory, 0o755)
        yield Path(shutil.copy(library, directory))


def run(names: list[str], *, check: bool = False) -> list[Row]:
    """Runs the matrix, or a part of it, and writes result file and page; the rows that were run."""
    tests = all_tests()
    chosen = choose(tests, names)
    # Where we were started in the background it is ignored, which the programs would inherit and stumble over.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    library = build.ensure_library()
    missing = _install(chosen)
    pypi_failure = _install_pypi(chosen)
    if pypi_failure is not None:
        missing["PyPI"] = pypi_failure
    facts = {**dict(info.library_facts(library)), "sources": build.sources_digest()}
    report = Report(facts, dict(info.machine_facts()), datetime.date.today().isoformat())
    with _for_everyone(library) as copy:
        _run_all(chosen, copy, missing, report, {each.test for each in tests}, check=check)
    return report.rows


def _write_page() -> None:
    report = _read(RESULTS)
    if report is not None:
        PAGE.write_text(render(report, _read(RESULTS_CHECKED)), encoding="utf-8")


def _run_all(
    chosen: list[Test], library: Path, missing: dict[str, str], report: Report, there: set[str], *, check: bool
) -> None:
    """Writes what is known after each row: who interrupts the matrix keeps what was run."""
    results = RESULTS_CHECKED if check else RESULTS
    for number, test in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {test.program}: {test.what}", flush=True)
        row = _run_test(test, library, missing, check=check)
        print(f"        {'passed' if row.passed else 'FAILED: ' + row.reason}, {row.seconds:.1f} s", flush=True)
        report.rows.append(row)
        write(merge(_read(results), report, there), results)
        _write_page()


def matrix(names: list[str], *, check: bool = False) -> int:
    """`hakmem test --programs`, in check mode on request."""
    rows = run(names, check=check)
    failed = [row for row in rows if not row.passed]
    for row in failed:
        print(f"failed: {row.program}: {row.what}: {row.reason}")
    print(f"{len(rows) - len(failed)} passed, {len(failed)} failed", flush=True)
    return 1 if failed else 0
