"""Arguments and errors as all of hakmem's commands have them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NoReturn

from hakmem_cli.say import CANNOT, CannotError, say


class Parser(argparse.ArgumentParser):
    """Errors in one line that says what is legal, with our exit code."""

    def error(self, message: str) -> NoReturn:
        usage = " ".join(self.format_usage().split()).replace("usage:", "use:", 1)
        raise CannotError(f"{message}; {usage}")


def named(text: str, what: str, legal: Sequence[str]) -> list[str]:
    """The names in a list with commas, of things that are called `what`."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in legal:
            raise CannotError(f"{name}: no such {what}; legal are {', '.join(legal)}")
    if not names:
        raise CannotError(f"no {what}s named; legal are {', '.join(legal)}")
    return names


def ended(command: Callable[[], int]) -> int:
    """The exit code of a command, which may say that it cannot, or be interrupted."""
    try:
        return int(command())
    except CannotError as error:
        say(str(error))
        return CANNOT
    except KeyboardInterrupt:
        return 130
