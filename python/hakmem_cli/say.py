"""How the launcher speaks: one line on stderr, and the exit code for "cannot do it"."""

import functools
import sys
from contextlib import suppress

CANNOT = 2

_MOST = 1 << 16
"""Of names that are remembered: a profile has each in thousands of stacks."""


class CannotError(Exception):
    """What was asked for cannot be done; the message is the one line the user sees."""


@functools.lru_cache(_MOST)
def printable(text: str) -> str:
    """Names come from files that others wrote: nothing in them may move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def say(text: str) -> None:
    """Where standard error cannot be written nobody can be told, which changes nothing else."""
    with suppress(OSError):
        print(f"hakmem: {printable(text)}", file=sys.stderr, flush=True)
