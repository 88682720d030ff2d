"""`hakmem run`: the program with the library preloaded, in place of this process."""

import os
from typing import Optional

from hakmem_cli import build
from hakmem_cli.say import CANNOT, CannotError, say

NOT_EXECUTABLE = 126
NOT_FOUND = 127


def _environment(mode: Optional[str]) -> dict[str, str]:
    environment = dict(os.environ)
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


def run(words: list[str], mode: Optional[str]) -> int:
    program = words[1:] if words[:1] == ["--"] else words
    if not program:
        raise CannotError("run: no program given; use: hakmem run [--mode M] -- PROGRAM ARGS...")
    if program[0].startswith("-"):
        raise CannotError(f"run: unknown option {program[0]}; the options are --mode; put -- before the program")
    environment = _environment(mode)
    try:
        os.execvpe(program[0], program, environment)
    except FileNotFoundError:
        say(f"{program[0]}: no such program")
        return NOT_FOUND
    except PermissionError:
        say(f"{program[0]}: not executable")
        return NOT_EXECUTABLE
    except OSError as error:
        say(f"{program[0]}: {error.strerror}")
        return NOT_EXECUTABLE
    return CANNOT
