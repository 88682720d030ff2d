"""Per size class: what was requested, what rounding up to the class costs, and what is free."""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from hakmem_observe.snapshot import Snapshot
from hakmem_observe.stacks import Amount, Profile


@dataclass(frozen=True)
class ClassRow:
    size: int
    live_blocks: int
    cached_blocks: int
    slabs: int
    requested_bytes: int | None
    """Of the live blocks; None: nobody knows."""
    estimated: bool

    @property
    def live_bytes(self) -> int:
        return self.size * self.live_blocks

    @property
    def cached_bytes(self) -> int:
        return self.size * self.cached_blocks

    @property
    def all_bytes(self) -> int:
        return self.live_bytes + self.cached_bytes

    @property
    def lost_bytes(self) -> int:
        return max(self.live_bytes - self.requested_bytes, 0) if self.requested_bytes is not None else 0


def rows(snapshot: Snapshot, profile: Profile | None) -> list[ClassRow]:
    told = [one for one in snapshot.classes if _whole(one, "size") > 0]
    sizes = sorted({_whole(one, "size") for one in told})
    shares = _requested_shares(sizes, profile)
    found = []
    for one in told:
        size, live_blocks = _whole(one, "size"), _whole(one, "live_blocks")
        requested = one.get("requested_bytes")
        estimated = not isinstance(requested, int)
        if estimated:
            requested = int(shares[size] * size * live_blocks) if size in shares else None
        found.append(
            ClassRow(size, live_blocks, _whole(one, "cached_blocks"), _whole(one, "slabs"), requested, estimated)
        )
    return sorted((row for row in found if row.live_blocks or row.cached_blocks), key=lambda row: row.size)


def _whole(row: dict[str, object], key: str) -> int:
    value = row.get(key)
    return int(value) if isinstance(value, (int, float)) and value > 0 else 0


def _requested_shares(sizes: list[int], profile: Profile | None) -> dict[int, float]:
    """Requested bytes over rounded ones, for each class that was sampled: of its live blocks, or else of all."""
    live: dict[int, Amount] = {}
    allocated: dict[int, Amount] = {}
    for site in profile.sites if profile else ():
        at = bisect.bisect_left(sizes, site.block_bytes)
        if site.block_bytes and at < len(sizes):
            live[sizes[at]] = live.get(sizes[at], Amount()) + site.live
            allocated[sizes[at]] = allocated.get(sizes[at], Amount()) + site.allocated
    shares = {}
    for size, every in allocated.items():
        amount = live[size] if live[size].objects else every
        if amount.objects:
            shares[size] = min(amount.bytes / (amount.objects * size), 1.0)
    return shares
