"""Runs a command with and without the library preloaded, and watches which of its processes have it mapped.

Each test of a class derived from ProgramTest is a row of docs/compatibility.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import unittest
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("HAK_TEST_LIBRARY", ROOT / "build" / "release" / "libhakmem.so")).resolve()

# The interpreter of the environment in which `pypi` requirements are installed.
VENV_PYTHON = ROOT / ".venv" / "programs" / "bin" / "python"


@dataclass
class Run:
    """What a command did."""

    status: int
    stdout: bytes
    stderr: bytes
    served: set[str] = field(default_factory=set)
    """Names of the processes, the command and its descendants, that had the library mapped."""
    shut_in: set[str] = field(default_factory=set)
    """Of those, the ones with a seccomp filter."""


def environment(preload: bool) -> dict[str, str]:
    """This process's environment in the C locale, with or without the library."""
    result = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    result["LC_ALL"] = "C"
    if preload:
        result["LD_PRELOAD"] = str(LIBRARY)
    return result


def descendants(pid: int) -> list[int]:
    """The process and what descends from it, as far as still running."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text(errors="replace")
            except OSError:
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry))
    found = [pid]
    for known in found:
        found.extend(children.get(known, []))
    return found


def maps_library(pid: int) -> bool:
    """True if the process has the library mapped."""
    try:
        return str(LIBRARY) in Path("/proc", str(pid), "maps").read_text(errors="replace")
    except OSError:
        return False


def _filters(pid: int | str) -> int:
    try:
        status = Path("/proc", str(pid), "status").read_text()
    except OSError:
        return 0
    return int((status.partition("\nSeccomp_filters:")[2].split() or ["0"])[0])


def is_shut_in(pid: int) -> bool:
    """True if the process has a seccomp filter that it has not inherited from this one."""
    return _filters(pid) > _filters("self")


def name_of(pid: int) -> str:
    """The name of the process, or nothing if it has gone."""
    try:
        return Path("/proc", str(pid), "comm").read_text().strip()
    except OSError:
        return ""


class Watcher(threading.Thread):
    """Samples a process and its descendants and collects the names of those that map the library."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.served: set[str] = set()
        self.shut_in: set[str] = set()
        self.finished = threading.Event()

    def run(self) -> None:
        pause = 0.001
        while not self.finished.wait(pause):
            for pid in descendants(self.pid):
                if maps_library(pid):
                    self.served.add(name_of(pid))
                    if is_shut_in(pid):
                        self.shut_in.add(name_of(pid))
            pause = min(pause * 2, 0.2)


def run(command: list[str], *, preload: bool, cwd: Path | None = None, seconds: float = 300) -> Run:
    """Runs the command to its end. Its output goes through files, so that nothing here slows it down."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment(preload), stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        watcher = Watcher(process.pid)
        watcher.start()
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            watcher.finished.set()
            watcher.join()
        out.seek(0)
        err.seek(0)
        return Run(status, out.read(), err.read(), watcher.served, watcher.shut_in)


class ProgramTest(unittest.TestCase):
    """A test that needs the library, installed programs and a directory of its own. The docstring of each test method,
    one line, says what was run."""

    title: str = ""
    """The program as people know it; by default the class's name."""
    packages: tuple[str, ...] = ()
    """Debian's packages that it needs."""
    pypi: tuple[str, ...] = ()
    """Requirements to be had from PyPI, for VENV_PYTHON."""
    programs: tuple[str, ...] = ()
    """Commands that must be there."""
    version: tuple[str, ...] = ()
    """A command whose first line of output says which version was run."""
    quick: bool = False
    """Also in CI: all tests of the class take less than 20 seconds, and its packages are small."""
    seconds: float = 600
    """A test that takes longer hangs."""

    def setUp(self) -> None:
        self.assertTrue(LIBRARY.exists(), f"{LIBRARY} is not built")
        missing = [program for program in self.programs if shutil.which(program) is None]
        self.assertEqual(missing, [], "not installed")
        self.directory = Path(tempfile.mkdtemp(prefix="hakmem-programs-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def assert_same(self, with_library: Run, without: Run) -> None:
        """Both ended in the same way, with the same output."""
        self.assertEqual(with_library.status, without.status, with_library.stderr.decode(errors="replace")[-4000:])
        self.assertEqual(with_library.stdout, without.stdout)
        self.assertEqual(with_library.stderr, without.stderr)
        self.assertEqual(without.served, set())

    def compare(self, command: list[str], *, served: str, cwd: Path | None = None, seconds: float = 300) -> Run:
        """Runs the command both ways, the process `served` having the library in one of them."""
        without = run(command, preload=False, cwd=cwd, seconds=seconds)
        with_library = run(command, preload=True, cwd=cwd, seconds=seconds)
        self.assert_same(with_library, without)
        self.assertIn(served, with_library.served)
        return with_library
