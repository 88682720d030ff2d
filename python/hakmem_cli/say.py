"""How the launcher speaks: one line on stderr, and the exit code for "cannot do it"."""

import sys

CANNOT = 2


class CannotError(Exception):
    """What was asked for cannot be done; the message is the one line the user sees."""


def say(text: str) -> None:
    print(f"hakmem: {text}", file=sys.stderr, flush=True)
