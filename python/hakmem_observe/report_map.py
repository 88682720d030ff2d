"""The map of superslabs: what each unit of memory is used for, and how full the slabs are."""

from __future__ import annotations

from typing import Any

from hakmem_cli.policy_words import count_bytes
from hakmem_observe.snapshot import Snapshot

KINDS = {
    "slab": "small blocks; the paler, the fewer of them live",
    "large": "large blocks",
    "kept": "freed large blocks, kept (BigCache)",
    "checked": "blocks of check mode",
    "sampled": "blocks that the profiler looks at",
    "stock": "free, kept by a thread's heap",
    "dirty": "free, not given back yet",
    "free": "free, given back",
    "hole": "taken out: given back from within a slab or block",
}
_MOST = 512
_UNITS = 256
_LARGEST_UNIT = 1 << 30


def of(snapshot: Snapshot) -> dict[str, Any] | None:
    """For the page's script: rows of [kind's number, fill in percent]. None: the series has no map."""
    told = snapshot.more.get("superslabs")
    if not isinstance(told, list) or not told:
        return None
    names = list(KINDS)
    found, counts = [], {name: [0, 0.0] for name in names}
    for superslab in told:
        units = superslab.get("units") if isinstance(superslab, dict) else None
        if not isinstance(units, list):
            continue
        row = []
        for unit in units[:_UNITS]:
            kind, fill = _unit(unit)
            counts[kind][0] += 1
            counts[kind][1] += fill
            row.append([names.index(kind), round(100 * fill)])
        found.append({"index": superslab.get("index"), "units": row})
    if not found:
        return None
    kinds = [
        {"name": name, "about": KINDS[name], "units": int(units), "fill": fill / units if units else 0}
        for name, (units, fill) in counts.items()
    ]
    unit = snapshot.more.get("unit_bytes")
    sizes = None
    if isinstance(unit, int) and 4096 <= unit <= _LARGEST_UNIT:
        sizes = count_bytes(max(len(row["units"]) for row in found) * unit), count_bytes(unit)
    unread = snapshot.more.get("superslabs_unread")
    return {
        "rows": found[:_MOST],
        "total": len(found),
        "unread": unread if isinstance(unread, int) and unread > 0 else 0,
        "kinds": kinds,
        "names": names,
        "sizes": sizes,
    }


def _unit(unit: Any) -> tuple[str, float]:
    if not isinstance(unit, list) or len(unit) != 2:
        return "free", 0.0
    what, fill = unit
    part = min(max(float(fill), 0.0), 1.0) if isinstance(fill, (int, float)) else 0.0
    if isinstance(what, str):
        return (what if what in KINDS else "large"), part
    return "slab", part
