"""Processes that look as if they used hakmem: see fake.c."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "py"))

from support import not_ignored as not_ignored  # noqa: E402

HAKMEM = (sys.executable, "-B", "-m", "hakmem_observe")

_SOURCE = Path(__file__).with_name("fake.c")
_MAIN = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"
_built: dict[str, Path] = {}


def directory() -> Path:
    """For the whole run of the tests."""
    if "" not in _built:
        _built[""] = Path(tempfile.mkdtemp(prefix="hakmem-observe-"))
        atexit.register(shutil.rmtree, _built[""], ignore_errors=True)
    return _built[""]


def compile_c(name: str, *words: str, text: str | None = None) -> Path:
    """The output of the C compiler, made once."""
    if name not in _built:
        target = directory() / name
        subprocess.run(
            ["cc", "-O1", "-pthread", "-o", str(target), *words, *(["-xc", "-"] if text is not None else [])],
            input=text,
            text=True,
            check=True,
        )
        _built[name] = target
    return _built[name]


def library() -> Path:
    return compile_c("libhakmem.so.1", "-shared", "-fPIC", str(_SOURCE))


def program() -> Path:
    return compile_c("waits", text=_MAIN)


def static_program() -> Path:
    return compile_c("static", "-static", str(_SOURCE), text=_MAIN)


def stripped_program() -> Path:
    """One that is dynamically linked, has all of the library in it, and no symbols."""
    return compile_c("stripped", "-s", str(_SOURCE), text=_MAIN)


def hakmem(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """One of the commands, run to its end."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "COLUMNS": "100", **(environment or {})}
    return subprocess.run(
        [*HAKMEM, *words],
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def becomes(holds: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class FakeTest(unittest.TestCase):
    def start(self, *command: str, wrong: str = "", preload: Path | None = None) -> subprocess.Popen[bytes]:
        """A process that is up and has the library."""
        path = preload or library()
        environment = {**os.environ, "LD_PRELOAD": str(path), **({"FAKE": wrong} if wrong else {})}
        process = subprocess.Popen(command or [str(program())], env=environment, stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for(process)
        return process

    def wait_for(self, process: subprocess.Popen[bytes]) -> None:
        """Until it sleeps in its main."""
        for _ in range(1000):
            state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "S":
                time.sleep(0.05)
                return
            time.sleep(0.01)
        self.fail("the process did not start")

    def assert_refused(self, done: subprocess.CompletedProcess[str], *words: str) -> None:
        """One line that names the fault, exit code 2."""
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Ahakmem: [^\n]*\n\Z")
        for word in words:
            self.assertIn(word, done.stderr)

    def end(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()
