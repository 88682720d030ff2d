"""Several processes may write one series: which of them are there, and which one is shown."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from hakmem_cli.arguments import whole_number
from hakmem_cli.say import CannotError
from hakmem_observe.snapshot import Snapshot

_MOST_NAMED = 10
_MOST_PID = 1 << 22
"""The kernel's PID_MAX_LIMIT."""
_ROUNDED_MS = 20
"""The kernel says in hundredths of a second when a process was started."""


@dataclass(frozen=True)
class Chosen:
    """One process's part of a series."""

    series: list[Snapshot]
    others: tuple[int, ...] = ()
    """Numbers of the processes that are left out. One number may be that of several, one after the other."""

    @property
    def caution(self) -> str:
        """Empty if nothing is left out."""
        if not self.others:
            return ""
        pid = self.series[-1].pid
        return (
            f"The series is of {len(self.others) + 1} processes; only process {pid} is shown, in "
            f"{len(self.series)} snapshot(s). Left out, and shown with --pid: {_named(self.others)}."
        )


def _named(pids: tuple[int, ...]) -> str:
    different = list(dict.fromkeys(pids))
    more = len(different) - _MOST_NAMED
    return ", ".join(map(str, different[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")


def _is_of_later(one: Snapshot, other: Snapshot) -> bool:
    later_ms = (one.unix_ms - one.uptime_ms) - (other.unix_ms - other.uptime_ms)
    return one.uptime_ms < other.uptime_ms and abs(later_ms) > _ROUNDED_MS


def split(series: list[Snapshot]) -> list[list[Snapshot]]:
    """By process, in the order of their first snapshots. A number is another process's when its uptime falls, but for
    what is rounded, and threads that write at once. When it was started says less by itself: wall clocks are set, and
    machines sleep."""
    found: list[list[Snapshot]] = []
    latest: dict[int, list[Snapshot]] = {}
    for one in series:
        group = latest.get(one.pid)
        if group is None or _is_of_later(one, group[-1]):
            group = latest[one.pid] = []
            found.append(group)
        group.append(one)
    return found


def choose(series: list[Snapshot], pid: int | None, prefer: int | None = None) -> Chosen:
    """That of the number `pid`, if one is asked for; else that of `prefer`, if it is there. Of several the one with the
    most snapshots, and of those with as many the first."""
    groups = split(series)
    wanted = [group for group in groups if group[0].pid == (prefer if pid is None else pid)]
    if pid is not None and not wanted:
        legal = _named(tuple(group[0].pid for group in groups))
        raise CannotError(f"--pid {pid}: no such process in the series; legal are {legal}")
    shown = max(wanted or groups, key=len)
    return Chosen(shown, tuple(group[0].pid for group in groups if group is not shown))


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pid", type=_pid, metavar="N", help="of a series of several processes that one (default: who has most of it)"
    )


def _pid(text: str) -> int:
    pid = whole_number(text, 1, _MOST_PID)
    if pid is None:
        raise argparse.ArgumentTypeError(f"{text[:40]}: legal are 1 to {_MOST_PID}")
    return pid
