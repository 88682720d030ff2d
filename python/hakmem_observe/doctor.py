"""`hakmem doctor`: is the library really in use? Exit code 0 all is fine, 1 something was found, 2 it cannot look."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hakmem_cli import build
from hakmem_cli.say import CannotError, printable
from hakmem_observe import procfs
from hakmem_observe.checks import environment, machine, program, running
from hakmem_observe.checks.finding import Finding, Level

USE = "hakmem doctor [PID | [--run] -- PROGRAM ARGS...]"

_STYLES = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}
_WIDTH = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", action="store_true", help="start the program for a moment, and look at it as it runs")
    parser.add_argument("what", nargs=argparse.REMAINDER, metavar="PID | -- PROGRAM", help="a process, or a program")


def _show(console: Console, title: str, findings: Iterable[Finding]) -> list[Finding]:
    """Each when it is known."""
    console.print(Text(printable(title), "bold"))
    shown = []
    for finding in findings:
        level = finding.level
        what = Text(printable(finding.what), "default")
        console.print(Text(f"  {level.value:<{_WIDTH}}", _STYLES[level]) + what, soft_wrap=True)
        if finding.advice:
            label = "do: " if level is not Level.OK else "note: "
            console.print(Text(f"  {'':<{_WIDTH}}{label}{printable(finding.advice)}"), soft_wrap=True)
        shown.append(finding)
    return shown


def _look(console: Console, words: list[str], library: Path, really: bool) -> list[Finding]:
    if words and words[0] != "--" and len(words) == 1 and words[0].isdigit():
        if really:
            raise CannotError(f"--run: only with a program, and {words[0]} is a process; use: {USE}")
        pid = procfs.parse_pid(words[0])
        return _show(console, f"Process {pid}, {procfs.command(pid)[:80]}", running.check(pid, library))
    if words[0].isdigit() and words[1:2] == ["--"]:
        raise CannotError(f"{words[0]} -- {' '.join(words[2:])}: a process or a program, not both; use: {USE}")
    command = words[1:] if words[0] == "--" else words
    if not command:
        raise CannotError(f"no program given; use: {USE}")
    path = program.find(command[0])
    found = _show(console, f"Program {path}", program.check(path, library))
    if really:
        found += _show(console, "Running it", running.run(command, library))
    return found


def doctor(parsed: argparse.Namespace) -> int:
    words = parsed.what
    if "--run" in words[: words.index("--") if "--" in words else 0]:
        words, parsed.run = words[words.index("--") :], True
    if parsed.run and not words:
        raise CannotError(f"--run: no program given; use: {USE}")
    library = build.ensure_library()
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    found = _look(console, words, library, parsed.run) if words else []
    if not words or not words[0].isdigit():
        findings = chain(environment.check_library(library), environment.check(os.environ, library))
        found += _show(console, "Environment", findings)
    found += _show(console, "Machine", machine.check(words[0] if words and words[0].isdigit() else "self"))
    counts = {level: sum(finding.level is level for finding in found) for level in Level}
    bad = counts[Level.WARNING] + counts[Level.PROBLEM]
    text = (
        "all is fine"
        if bad == 0
        else f"{_many(counts[Level.PROBLEM], 'problem')}, {_many(counts[Level.WARNING], 'warning')}"
    )
    console.print(Text(text, "bold"))
    return 1 if bad else 0


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
