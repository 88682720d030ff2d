"""`hakmem run`: the program with the library preloaded, in place of this process."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from pathlib import Path

from hakmem_cli import build
from hakmem_cli.say import CannotError, say

NOT_EXECUTABLE = 126
NOT_FOUND = 127


def _original_environment() -> dict[str, str]:
    """What this process was started with: Python may have added LC_CTYPE to its own (PEP 538)."""
    entries = os.fsdecode(Path("/proc/self/environ").read_bytes()).split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def _environment(mode: str | None) -> dict[str, str]:
    """What the program is started with."""
    environment = _original_environment()
    if mode is not None:
        environment["HAKMEM_MODE"] = mode
    disable = environment.get("HAKMEM_DISABLE", "0")
    if disable not in ("0", "1"):
        say(f"warning: HAKMEM_DISABLE={disable}: legal values are 0, 1; using 0")
    if disable == "1":
        return environment
    library = str(build.ensure_library())
    if ":" in library or " " in library:
        raise CannotError(f"the loader cannot preload a path with a colon or a space: {library}")
    others = environment.get("LD_PRELOAD")
    environment["LD_PRELOAD"] = f"{library}:{others}" if others else library
    return environment


def _become(program: list[str], environment: dict[str, str]) -> None:
    """Like execvp(3), which gives a script without a first line of its own to the shell."""
    # Python ignores these two; an ignored signal stays ignored in the program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvpe(program[0], program, environment)
    except OSError as error:
        script = shutil.which(program[0], path=environment.get("PATH"))
        if error.errno != errno.ENOEXEC or script is None:
            raise
        os.execve("/bin/sh", ["sh", script, *program[1:]], environment)


def run(words: list[str], mode: str | None) -> int:
    """Does not return if the program starts."""
    program = words[1:] if words[:1] == ["--"] else words
    if not program:
        raise CannotError("run: no program given; use: hakmem run [--mode M] -- PROGRAM ARGS...")
    environment = _environment(mode)
    try:
        _become(program, environment)
    except FileNotFoundError:
        say(f"{program[0]}: no such program")
        return NOT_FOUND
    except OSError as error:
        say(f"{program[0]}: cannot be executed: {error.strerror}")
    return NOT_EXECUTABLE
