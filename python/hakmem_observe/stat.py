"""`hakmem stat`: statistics of a running process, or of a file of them."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from rich.console import Console

from hakmem_cli.arguments import number_between
from hakmem_cli.say import CannotError
from hakmem_observe import openmetrics, procfs, tables
from hakmem_observe.errors import EndedError, TornError
from hakmem_observe.remote import Process
from hakmem_observe.snapshot import Snapshot, read_series

USE = (
    "hakmem stat PID|FILE [--json | --openmetrics | --prometheus | --explain], "
    "hakmem stat PID --every SECONDS [--output FILE]; a file whose name is a number: ./NUMBER"
)


def seconds(text: str) -> float:
    value = number_between(text, 0.01, 86400)
    if value is None:
        raise argparse.ArgumentTypeError(f"{text}: legal values are 0.01 to 86400 seconds")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="PID|FILE", help="a process, or a file of statistics (of a series the last)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="one JSON object")
    how.add_argument("--openmetrics", action="store_true", help="OpenMetrics text, as Prometheus reads it")
    how.add_argument("--prometheus", action="store_true", help="its older text, as node_exporter reads it from files")
    how.add_argument("--explain", action="store_true", help="tables that say what the numbers mean")
    how.add_argument(
        "--every", type=seconds, metavar="SECONDS", help="a series: a JSON object a line, until interrupted"
    )
    parser.add_argument("--output", metavar="FILE", help="where the series goes (default: standard output)")


def show(snapshot: Snapshot, parsed: argparse.Namespace, what: str = "") -> int:
    if parsed.json:
        print(snapshot.to_line())
    elif parsed.openmetrics:
        print(openmetrics.render(snapshot), end="")
    elif parsed.prometheus:
        print(openmetrics.render(snapshot, openmetrics.Form.PROMETHEUS), end="")
    else:
        width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160
        console = Console(width=width, markup=False, emoji=False)  # names are others': nothing in them is markup
        with console.capture() as captured:
            tables.print_snapshot(snapshot, console, what, parsed.explain)
        print(captured.get(), end="")
    return 0


_TORN_MOST = 10


def _snapshots(process: Process) -> Iterator[Snapshot | None]:
    """None for one that was read in the middle of a change, as happens now and then; of many in a row their error."""
    torn = 0
    while True:
        try:
            taken = process.snapshot()
            torn = 0
        except TornError:
            taken = None
            torn += 1
            if torn == _TORN_MOST:
                raise
        yield taken


def _record(process: Process, every: float, out: TextIO) -> int:
    """Until interrupted or the process ends: neither is an error."""
    due = time.monotonic()
    try:
        for taken in _snapshots(process):
            if taken is not None:
                out.write(f"{taken.to_line()}\n")
                out.flush()
            now = time.monotonic()
            due = max(due + every, now)
            time.sleep(due - now)
    except (EndedError, KeyboardInterrupt):
        pass
    return 0


def _record_to(process: Process, every: float, output: str | None) -> int:
    if output is None:
        return _record(process, every, sys.stdout)
    try:
        # What was recorded before may be all there is of it.
        with open(output, "x") as out:
            code = _record(process, every, out)
            with suppress(CannotError):  # it may have ended
                out.write(f"{process.with_map().to_line()}\n")
            return code
    except FileExistsError as error:
        raise CannotError(f"--output {output}: it exists; legal is a new file") from error
    except OSError as error:
        raise CannotError(f"--output {output}: {error.strerror}; legal is a new file") from error


def stat(parsed: argparse.Namespace) -> int:
    if parsed.output is not None and parsed.every is None:
        raise CannotError(f"--output {parsed.output}: only with --every; use: {USE}")
    source = parsed.source
    is_file = not source.isdigit() and ("/" in source or Path(source).exists())
    if is_file and parsed.every is not None:
        raise CannotError(f"--every: {source} is a file; legal is the number of a process")
    if is_file:
        return show(read_series(Path(source))[-1], parsed, source)
    if not source.isdigit():
        raise CannotError(f"{source}: no such file, and no number of a process; use: {USE}")
    pid = procfs.parse_pid(source)
    process = Process(pid)
    if parsed.every is not None:
        return _record_to(process, parsed.every, parsed.output)
    return show(process.snapshot(), parsed, procfs.command(pid)[:60])
