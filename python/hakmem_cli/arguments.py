"""Arguments and errors as all of hakmem's commands have them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NoReturn

from hakmem_cli.say import CANNOT, CannotError, say


class Parser(argparse.ArgumentParser):
    """Errors in one line that says what is legal, with our exit code."""

    def error(self, message: str) -> NoReturn:
        usage = " ".join(self.format_usage().split()).replace("usage:", "use:", 1)
        raise CannotError(f"{message}; {usage}")


def ended(command: Callable[[], int]) -> int:
    """The exit code of a command, which may say that it cannot, or be interrupted."""
    try:
        return int(command())
    except CannotError as error:
        say(str(error))
        return CANNOT
    except KeyboardInterrupt:
        return 130
