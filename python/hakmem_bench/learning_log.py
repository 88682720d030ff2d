"""What mode research writes of each epoch (src/learn/epoch_log.c), as series in equal steps of time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

STEP = 0.25
"""Seconds: as the rows of bench/phases.c."""

_EPOCH = re.compile(
    r"^hakmem: epoch: (\d+) ms: (\w+), arm (\d+) of champion (\d+), lasts (\d+) ms, requested (\d+) KiB, "
    r"cost (\d+) ns, held (\d+) KiB, work (\d+) ns, ratings(.*)$"
)
_KILL = re.compile(r"^hakmem: learner: (\d+) ms: stops: ")


@dataclass(frozen=True)
class Epoch:
    end: float
    """Seconds since the start of the process."""
    state: str
    arm: int
    champion: int
    seconds: float
    kib: int
    ns: int
    held: int
    work: int
    ratings: dict[int, tuple[int, int]]
    """Arm: rating and deviation."""


def _rating(text: str) -> tuple[int, tuple[int, int]]:
    arm, rating, deviation = text.split(":")
    return int(arm), (int(rating), int(deviation))


def epochs(text: str) -> Iterator[Epoch]:
    for line in text.splitlines():
        found = _EPOCH.match(line)
        if found:
            end, state, *numbers, ratings = found.groups()
            arm, champion, ms, kib, ns, held, work = map(int, numbers)
            told = dict(map(_rating, ratings.split()))
            yield Epoch(int(end) / 1000, state, arm, champion, ms / 1000, kib, ns, held, work, told)


def spread(begin: float, end: float) -> Iterator[tuple[int, float]]:
    """The steps that such a time lies in, with its parts in each. Clocks are coarse: it may begin when it ends."""
    step = int(begin / STEP)
    if begin >= end:
        yield step, 1.0
        return
    while step * STEP < end:
        inside = min(end, (step + 1) * STEP) - max(begin, step * STEP)
        yield step, inside / (end - begin)
        step += 1


def series(text: str) -> dict[str, Any]:
    """`costs`: rows of time, ns, MiB requested. `ratings`: of each arm, points of time and rating. `trying`: the share
    of the epochs in which a challenger was in force; `resting`: in which the learner rested."""
    found = list(epochs(text))
    ns: dict[int, float] = {}
    mib: dict[int, float] = {}
    ratings: dict[int, dict[int, int]] = {}
    for epoch in found:
        for step, part in spread(max(epoch.end - max(epoch.seconds, 0.001), 0), epoch.end):
            ns[step] = ns.get(step, 0) + epoch.ns * part
            mib[step] = mib.get(step, 0) + epoch.kib / 1024 * part
        for arm, (rating, _) in epoch.ratings.items():
            ratings.setdefault(arm, {})[int(epoch.end / STEP)] = rating
    count = max(len(found), 1)
    return {
        "costs": [[step * STEP, round(ns[step]), round(mib[step], 3)] for step in sorted(ns)],
        "ratings": {str(arm): [[step * STEP, one] for step, one in many.items()] for arm, many in ratings.items()},
        "champions": _champions(found),
        "epochs": len(found),
        "trying": round(sum(epoch.arm != epoch.champion for epoch in found) / count, 4),
        "resting": round(sum(epoch.state == "rests" for epoch in found) / count, 4),
        "kills": sum(_KILL.match(line) is not None for line in text.splitlines()),
    }


def _champions(found: list[Epoch]) -> list[list[float]]:
    """When each came into force, and its number."""
    changes: list[list[float]] = []
    for epoch in found:
        if not changes or changes[-1][1] != epoch.champion:
            changes.append([round(epoch.end - epoch.seconds, 3), epoch.champion])
    return changes
