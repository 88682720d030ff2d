"""What the tests of this directory share: where things are, and running a command."""

from __future__ import annotations

import os
import signal
import subprocess
import unittest
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
LIBRARY = RELEASE / "libhakmem.so"
HARDENED = RELEASE / "libhakmem-hardened.so"
LAUNCHER = ROOT / "hakmem"


def output_of(*command: str) -> str:
    """What the command prints; an error if it fails."""
    return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def run(
    *command: str | Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end, whatever that is."""
    return subprocess.run(
        command,
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def stat_fields(pid: int | str) -> list[str]:
    """Of the process's stat in /proc, those behind its name: the state is the first."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def not_ignored(test: unittest.TestCase, number: signal.Signals) -> None:
    """What whoever has started the tests (nohup) ignores, the processes that they start would too."""
    before = signal.getsignal(number)
    if before is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        test.addCleanup(signal.signal, number, before)


def skip_or_fail(reason: str) -> None:
    """A missing program is no reason to fail on a stranger's machine, but in CI nothing goes untested."""
    if os.environ.get("CI") == "true":
        raise AssertionError(reason)
    raise unittest.SkipTest(reason)
