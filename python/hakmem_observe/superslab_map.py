"""The map of a process's superslabs, as the report draws it: what each unit is used for, and how full its slabs are."""

from __future__ import annotations

import struct
from typing import Any

from hakmem_observe.layout import MOST_SUPERSLABS, Layout
from hakmem_observe.memory import Memory
from hakmem_observe.units import CHECKED, KEPT, LARGE, SAMPLED

_MOST = 4096
"""Superslabs: 4 GiB. Of a larger heap the first."""
_KINDS: dict[int, list[Any]] = {KEPT: ["kept", 0], CHECKED: ["checked", 1], SAMPLED: ["sampled", 1]}


def read_map(memory: Memory, layout: Layout) -> list[dict[str, Any]]:
    """Of each committed superslab its index and units: [class's number, part of its blocks that is live or cached], or
    ["large", "kept", "checked", "sampled", "stock", "dirty" or "free", 0 or 1]. What is read may be torn: then a unit
    is shown as another."""
    words = (layout.superslabs, layout.superslab_count, layout.tags, layout.spans)
    table, count, tags, spans = (memory.word(address) or 0 for address in words)
    if not (table and tags and spans):
        return []
    found = []
    before = ["free", 0]
    for index in range(min(count, MOST_SUPERSLABS, _MOST)):
        record = memory.read(table + index * layout.superslab_bytes, layout.superslab_bytes)
        if record is None:
            break
        units: list[list[Any]] = []
        if record[layout.committed] == 1:
            units = _units(memory, layout, record, tags, spans, index, before)
            if units:
                found.append({"index": index, "units": units})
        before = units[-1] if units else ["free", 0]
    return found


def count_unread(memory: Memory, layout: Layout) -> int:
    """Superslabs behind those that read_map reads."""
    return max(0, min(memory.word(layout.superslab_count) or 0, MOST_SUPERSLABS) - _MOST)


def _units(
    memory: Memory, layout: Layout, record: bytes, tags_at: int, spans_at: int, index: int, before: list[Any]
) -> list[list[Any]]:
    """`before`: what the unit before the first one is."""
    per = layout.units_per_superslab
    used, dirty = (int.from_bytes(record[at : at + 16], "little") for at in (layout.used, layout.dirty))
    read = memory.read_many([(at + index * per * 8, per * 8) for at in (tags_at, spans_at)])
    if read[0] is None or read[1] is None:
        return []
    tags, spans = (struct.unpack(f"<{per}Q", data) for data in read if data is not None)
    kinds: dict[int, int] = {}
    for span, tag in zip(spans, tags):
        if span and tag:
            kinds.setdefault(span, tag)
    slabs = _slabs(memory, layout, [span for span, tag in kinds.items() if tag >= layout.tag_kinds])
    units = []
    for at, span in enumerate(spans):
        if not used >> at & 1:
            before = ["dirty" if dirty >> at & 1 else "free", 0]
        elif span in slabs:
            before = slabs[span]
        elif span:
            before = _KINDS.get(kinds.get(span, LARGE), ["large", 1])
        # A large block is known by its first unit; the others have no span of their own, as those in stock have none.
        elif before[0] not in ("large", "kept"):
            before = ["stock", 0]
        units.append(before)
    return units


def _slabs(memory: Memory, layout: Layout, spans: list[int]) -> dict[int, list[Any]]:
    """Of each its class and how full it is, by the address of its record."""
    size = max(layout.slab_blocks + 4, layout.slab_free + 4, layout.slab_class + 1)
    found: dict[int, list[Any]] = {}
    for span, data in zip(spans, memory.read_many([(span, size) for span in spans])):
        if data is None or data[layout.slab_class] >= layout.class_count:
            continue
        blocks, free = (struct.unpack_from("<I", data, at)[0] for at in (layout.slab_blocks, layout.slab_free))
        full = 1 - free / blocks if 0 < free <= blocks else 1
        found[span] = [data[layout.slab_class], round(full, 2)]
    return found
