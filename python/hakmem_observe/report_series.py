"""What the report shows of a recorded series: memory over time, what was given back, and decisions."""

from __future__ import annotations

from typing import Any

from hakmem_cli.say import printable
from hakmem_observe import words
from hakmem_observe.snapshot import PARTS, Snapshot

_MOST_POINTS = 1500
_CLOCKS_DIFFER_MS = 20  # at most; the learner decides the same again after an epoch, no sooner

_LIMITS = {"soft_limit_bytes": "soft limit", "hard_limit_bytes": "hard limit"}


def thinned(series: list[Snapshot]) -> list[Snapshot]:
    """Few enough to draw: of neighbours the largest, and always the last."""
    if len(series) <= _MOST_POINTS:
        return series
    step = -(-len(series) // _MOST_POINTS)
    groups = [series[at : at + step] for at in range(0, len(series) - 1, step)]
    kept = [max(group, key=lambda one: one.parts_bytes) for group in groups]
    return kept if kept[-1] is series[-1] else [*kept, series[-1]]


def chart(series: list[Snapshot]) -> dict[str, Any]:
    """For the page's script: columns of numbers. Times are seconds since the process's start."""
    kept = thinned(series)
    parts = [part for part in PARTS if any(one.part(part) for one in kept)]
    highest = max((one.parts_bytes for one in kept), default=0)
    limits = [
        {"name": name, "bytes": kept[-1].part(key)}
        for key, name in _LIMITS.items()
        # One far above would press the rest together.
        if 0 < kept[-1].part(key) <= 2 * highest
    ]
    return {
        "seconds": [round(one.uptime_ms / 1000, 3) for one in kept],
        "start_ms": kept[0].unix_ms - kept[0].uptime_ms,
        "parts": [
            {"key": part, "name": words.LABELS.get(part, words.plain(part)), "bytes": [one.part(part) for one in kept]}
            for part in parts
        ],
        "limits": limits,
        "purged": _differences([_purged(one) for one in kept]),
        "decisions": decisions(series),
    }


def _differences(sums: list[int]) -> list[int]:
    return [0, *(max(after - before, 0) for before, after in zip(sums, sums[1:]))]


def _purged(one: Snapshot) -> int:
    """Since the start. What is read from a process's memory has it in parts: of slabs, and of whole units."""
    if "purged_bytes" in one.memory:
        return one.part("purged_bytes")
    names = [name for name in one.counters if name.startswith("purged_") and name.endswith("_bytes")]
    return sum(int(one.counters[name] or 0) for name in names)


def purged_bytes(series: list[Snapshot]) -> int:
    return sum(_differences([_purged(one) for one in series]))


def decisions(series: list[Snapshot]) -> list[dict[str, Any]]:
    """Of the learner, in order, each once. Each point tells the last ones again, with times from where its own two
    clocks say that the process began, a few milliseconds apart."""
    found: dict[str, list[int]] = {}
    for one in series:
        told = one.more.get("decisions")
        for row in told if isinstance(told, list) else []:
            if isinstance(row, dict) and isinstance(row.get("unix_ms"), int) and isinstance(row.get("text"), str):
                at = row["unix_ms"] - (one.unix_ms - one.uptime_ms)
                times = found.setdefault(printable(row["text"]), [])
                if all(abs(at - known) > _CLOCKS_DIFFER_MS for known in reversed(times)):
                    times.append(at)
    each = sorted((at, text) for text, times in found.items() for at in times)
    return [{"seconds": max(at, 0) / 1000, "text": text} for at, text in each]


def table(series: list[Snapshot]) -> list[dict[str, Any]]:
    """Each part at the highest point and at the end; the part that is on top of the stack first."""
    highest = max(series, key=lambda one: one.parts_bytes)
    rows = []
    for part in reversed(PARTS):
        values = [one.part(part) for one in (highest, series[-1])]
        if any(one.part(part) for one in series):
            share = 100 * values[1] / max(series[-1].parts_bytes, 1)
            rows.append(
                {
                    "key": part,
                    "name": words.LABELS.get(part, words.plain(part)),
                    "about": words.ABOUT.get(part, ""),
                    "moments": values,
                    "share": share,
                }
            )
    return rows
