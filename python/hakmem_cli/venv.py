"""Private virtual environments for the parts that need libraries of Python's: made on first use, nothing installed
globally."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from hakmem_cli import apt, build
from hakmem_cli.say import CannotError, say

_PYTHON = build.ROOT / "python"

# A module of ours by its name, as -m has it, but never one from the current directory, and with PYTHONPATH left to
# the programs that are started. An interrupt meanwhile is no error to show.
_START = (
    "import signal; signal.getsignal(2) is signal.default_int_handler and signal.signal(2, signal.SIG_DFL); "
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def _run(command: list[str], what: str = "") -> str | None:
    """The reason if it fails. On a terminal, `what` and the tool's newest line are shown meanwhile."""
    live = bool(what) and sys.stderr.isatty()
    newest = ""
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            newest = line.strip() or newest
            if live:
                print(f"\r\033[K{f'hakmem: {what}: {newest}':.79}", end="", file=sys.stderr, flush=True)
    if live:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return None if process.returncode == 0 else newest or f"exit {process.returncode}"


@dataclass(frozen=True)
class Environment:
    name: str  # of its directory, and of its file of requirements
    what: str  # that needs it, in words
    module: str  # that has its command

    @property
    def directory(self) -> Path:
        return build.ROOT / ".venv" / self.name

    @property
    def _python(self) -> Path:
        return self.directory / "bin" / "python"

    @property
    def _requirements(self) -> Path:
        return _PYTHON / f"{self.name}-requirements.txt"

    @property
    def _stamp(self) -> Path:
        """What was installed there last, and by which interpreter."""
        return self.directory / "requirements"

    def _wanted(self) -> str:
        return f"{sys.version}\n{self._requirements.read_text()}"

    def _is_current(self) -> bool:
        return self._python.exists() and self._stamp.exists() and self._stamp.read_text() == self._wanted()

    def _make(self) -> None:
        say(f"installing what {self.what} needs into {self.directory.relative_to(build.ROOT)}")
        # Debian keeps what a new environment needs in a package of its own.
        # Isolated: what is imported comes from Python, not from the directory that we were started in.
        if _run([sys.executable, "-I", "-c", "import ensurepip, venv"]) is not None:
            reason = apt.install(["python3-venv"])
            if reason is not None:
                raise CannotError(f"{self.what} needs Python's venv and ensurepip (Debian: python3-venv): {reason}")
        pip = [str(self._python), "-I", "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
        for command in (
            [sys.executable, "-I", "-m", "venv", "--clear", str(self.directory)],
            [*pip, "-r", str(self._requirements)],
        ):
            reason = _run(command, self.name)
            if reason is not None:
                raise CannotError(f"{' '.join(command)}: {reason}")
        self._stamp.write_text(self._wanted())

    def python(self) -> Path:
        """The interpreter, made when it is missing or its requirements have changed."""
        if self._is_current():
            return self._python
        try:
            self.directory.parent.mkdir(exist_ok=True)
            with (self.directory.parent / ".lock").open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if not self._is_current():
                    self._make()
        except OSError as error:
            raise CannotError(f"{self.directory}: cannot be made: {error.strerror}") from error
        return self._python

    def variables(self) -> dict[str, str]:
        """What our modules are found with by other scripts."""
        return {**os.environ, "PYTHONPATH": str(_PYTHON)}

    def become(self, words: list[str]) -> NoReturn:
        """Its command, in place of this process."""
        interpreter = str(self.python())
        os.execv(interpreter, [interpreter, "-B", "-I", "-c", _START, str(_PYTHON), self.module, *words])


LAB = Environment("lab", "the lab", "hakmem_bench")
OBSERVE = Environment("observe", "looking from outside", "hakmem_observe")
