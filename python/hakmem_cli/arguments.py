"""Arguments and errors as all of hakmem's commands have them."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from hakmem_cli.say import CANNOT, CannotError, say

if TYPE_CHECKING:
    from types import FrameType

    from _typeshed import SupportsWrite


class Parser(argparse.ArgumentParser):
    """Errors in one line that says what is legal, with our exit code."""

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self.color = False  # from Python 3.14 on the usage has escape sequences, which our one line shows as they are

    def error(self, message: str) -> NoReturn:
        usage = " ".join(self.format_usage().split()).replace("usage:", "use:", 1)
        raise CannotError(f"{message}; {usage}")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """argparse's own hides that it cannot be written."""
        (sys.stdout if file is None else file).write(self.format_help())


def named(text: str, what: str, legal: Sequence[str]) -> list[str]:
    """The names in a list with commas, of things that are called `what`."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in legal:
            raise CannotError(f"{name}: no such {what}; legal are {', '.join(legal)}")
    if not names:
        raise CannotError(f"no {what}s named; legal are {', '.join(legal)}")
    return names


def whole_number(text: str, least: int, most: int) -> int | None:
    """None: it is no number, or one out of these bounds. Of one with thousands of digits int() raises ValueError."""
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    return int(text) if plain and least <= int(text) <= most else None


def number_between(text: str, least: float, most: float) -> float | None:
    """None: it is no number, or one out of these bounds."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if least <= number <= most else None


_MOST_COLUMNS = 1 << 16


def _prepare_streams() -> None:
    """Streams that were closed when this process was started lead nowhere. Any text can be written: not all names are
    UTF-8. A terminal of no columns would show nothing."""
    if "COLUMNS" in os.environ and whole_number(os.environ["COLUMNS"], 1, _MOST_COLUMNS) is None:
        del os.environ["COLUMNS"]
    sys.stdin = sys.stdin or open(os.devnull)
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _why_not_written(stream: TextIO) -> OSError | None:
    """Of what is left for a stream. It goes nowhere then: Python would try again at its end, and complain."""
    try:
        stream.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error
    return None


def _of_exit(exit: SystemExit) -> tuple[int, str]:
    """Its code, and what is to be said."""
    if exit.code is None or isinstance(exit.code, int):
        return exit.code or 0, ""
    return CANNOT, str(exit.code)


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(number)


def interrupt_at(*numbers: signal.Signals) -> None:
    """They end a command as the keyboard does. Those that are ignored stay so."""
    for number in numbers:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def ended(command: Callable[[], int]) -> int:
    """The exit code of a command, which may say that it cannot, or be interrupted: then it is a shell's for the signal.
    What the system refuses is one line too; that nobody reads on is no error."""
    _prepare_streams()
    said = ""
    try:
        code = int(command())
    except CannotError as error:
        code, said = CANNOT, str(error)
    except SystemExit as exit:  # --help; or rich, which ends where nobody reads on
        code, said = (0, "") if isinstance(exit.__context__, BrokenPipeError) else _of_exit(exit)
    except KeyboardInterrupt as interrupt:
        code = 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    except BrokenPipeError:
        code = 0
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        code, said = CANNOT, f"{where}{error.strerror or error}"
    why = _why_not_written(sys.stdout)
    if why is not None and not isinstance(why, BrokenPipeError):
        code, said = CANNOT, f"standard output: {why.strerror}"
    if said:
        say(said)
    _why_not_written(sys.stderr)
    return code
