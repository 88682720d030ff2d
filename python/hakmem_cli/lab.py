"""`hakmem bench`: the lab, in an environment of its own with the libraries that it needs."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from hakmem_cli import apt, build
from hakmem_cli.say import CannotError, say

ENVIRONMENT = build.ROOT / ".venv" / "lab"

_PYTHON = ENVIRONMENT / "bin" / "python"
_REQUIREMENTS = build.ROOT / "python" / "lab-requirements.txt"
# What was installed there last, and by which interpreter.
_STAMP = ENVIRONMENT / "requirements"


def _wanted() -> str:
    return f"{sys.version}\n{_REQUIREMENTS.read_text()}"


def _run(command: list[str]) -> str | None:
    """The reason if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return None if done.returncode == 0 else (lines or [f"exit {done.returncode}"])[-1]


def _make() -> None:
    say(f"installing what the lab needs into {ENVIRONMENT.relative_to(build.ROOT)}")
    # Debian keeps what a new environment needs in a package of its own.
    if _run([sys.executable, "-c", "import ensurepip, venv"]) is not None:
        reason = apt.install(["python3-venv"])
        if reason is not None:
            raise CannotError(f"the lab needs Python's venv and ensurepip (Debian: python3-venv): {reason}")
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)],
        [str(_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(_REQUIREMENTS)],
    ):
        reason = _run(command)
        if reason is not None:
            raise CannotError(f"{' '.join(command)}: {reason}")
    _STAMP.write_text(_wanted())


def python() -> Path:
    """The lab's interpreter, made when it is missing or its requirements have changed."""
    ENVIRONMENT.parent.mkdir(exist_ok=True)
    with (ENVIRONMENT.parent / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not _PYTHON.exists() or not _STAMP.exists() or _STAMP.read_text() != _wanted():
            _make()
    return _PYTHON


def environment() -> dict[str, str]:
    """What the lab's modules are found with."""
    return {**os.environ, "PYTHONPATH": str(build.ROOT / "python")}


def run(words: list[str]) -> int:
    """Becomes the lab's command."""
    interpreter = str(python())
    os.execve(interpreter, [interpreter, "-B", "-m", "hakmem_bench", *words], environment())
