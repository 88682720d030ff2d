"""`hakmem top`: watch a running process."""

from __future__ import annotations

import argparse
import os
import sys

from hakmem_cli.say import CannotError
from hakmem_observe import procfs
from hakmem_observe.remote import Process
from hakmem_observe.watch.app import Top
from hakmem_observe.watch.chooser import Chooser, processes

USE = "hakmem top [PID]"

_INSTEAD = "for scripts there is `hakmem stat PID`, with --json, --every SECONDS"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pid", nargs="?", metavar="PID", help="the process (default: the one that uses hakmem, or a list)"
    )


def _choose() -> int:
    """Ends the command if nobody chooses."""
    found = processes()
    if not found:
        raise CannotError(
            "no process of yours uses hakmem; start one with `hakmem run -- PROGRAM`, or ask `hakmem doctor`"
        )
    if len(found) == 1:
        return found[0]
    chooser = Chooser()
    chosen = chooser.run()
    if chosen is None:
        raise SystemExit(chooser.return_code or 0)
    return chosen


def top(parsed: argparse.Namespace) -> int:
    pid = procfs.parse_pid(parsed.pid) if parsed.pid is not None else None
    terminal = os.environ.get("TERM", "")
    # The screen is drawn on standard error.
    if not all(file.isatty() for file in (sys.stdin, sys.stdout, sys.stderr)):
        raise CannotError(f"top: this is no terminal; {_INSTEAD}")
    if terminal in ("", "dumb"):
        raise CannotError(f"top: TERM={terminal}: nothing can be drawn on such a terminal; {_INSTEAD}")
    app = Top(Process(pid if pid is not None else _choose()))
    app.run()
    return app.return_code or 0
