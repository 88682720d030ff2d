"""What was seen of a process so far: the newest snapshots, and how fast its counters go."""

from __future__ import annotations

from collections import deque
from typing import Any

from hakmem_observe.snapshot import PARTS, Snapshot

_KEPT = 1000

LOCK_WAITS = "waits for locks"


class History:
    def __init__(self) -> None:
        self.newest: Snapshot | None = None
        self._before: Snapshot | None = None
        self.parts: deque[tuple[int, ...]] = deque(maxlen=_KEPT)  # of PARTS, in bytes
        self.seconds: deque[float] = deque(maxlen=_KEPT)  # between each snapshot and the one before
        self.rates: dict[str, deque[float]] = {}  # a second, by name of the counter
        self.totals: dict[str, float] = {}

    def add(self, snapshot: Snapshot) -> None:
        self._before, self.newest = self.newest, snapshot
        self.parts.append(tuple(snapshot.part(name) for name in PARTS))
        self.seconds.append(self.elapsed())
        before = self.totals
        self.totals = _counters(snapshot)
        for name, total in self.totals.items():
            rate = (total - before.get(name, total)) / self.elapsed() if self._before is not None else 0.0
            self.rates.setdefault(name, deque(maxlen=_KEPT)).append(max(0.0, rate))

    def elapsed(self) -> float:
        """Seconds between the two newest, by the time that the process has been there: clocks on the wall are set."""
        if self.newest is None or self._before is None:
            return 1.0
        return max(0.001, (self.newest.uptime_ms - self._before.uptime_ms) / 1000)

    def rate(self, name: str) -> float:
        rates = self.rates.get(name)
        return rates[-1] if rates else 0.0

    def row_rate(self, kind: str, row: dict[str, Any], name: str) -> float:
        """Of a counter of a class or a thread: its row then is found by the class's or the heap's number."""
        if self._before is None:
            return 0.0
        key = {"classes": "class", "threads": "heap"}[kind]
        rows: list[dict[str, Any]] = getattr(self._before, kind)
        then = next((one for one in rows if one.get(key) == row.get(key)), {})
        return max(0.0, ((row.get(name) or 0) - (then.get(name) or 0)) / self.elapsed())


def _counters(snapshot: Snapshot) -> dict[str, float]:
    """All sums since the start, in the order in which they are shown."""
    found = {name: float(value or 0) for name, value in snapshot.counters.items()}
    for name in ("refills", "flushes"):
        found.setdefault(name, float(sum(row.get(name) or 0 for row in snapshot.classes)))
    if "purged_bytes" in snapshot.memory:
        found["purged_bytes"] = float(snapshot.part("purged_bytes"))
    if snapshot.locks:
        found[LOCK_WAITS] = float(sum(row.get("waits") or 0 for row in snapshot.locks))
    for row in snapshot.locks:
        for what in ("waits", "taken"):
            if what in row:
                found[f"{row.get('name', '')} lock {what}"] = float(row[what] or 0)
    found.update({f"{name}()": float(value or 0) for name, value in snapshot.os.items()})
    return found
