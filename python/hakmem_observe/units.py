"""The superslabs of a process, unit by unit: which slabs there are, and what the other units are used for."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from hakmem_observe.layout import MOST_SUPERSLABS, Layout
from hakmem_observe.memory import Memory

LARGE, KEPT, CHECKED, SAMPLED = 1, 2, 4, 5  # tags, as arena/arena.h has them

_CHUNK = 256  # superslabs read at a time
_MOST_BLOCKS = 1 << 24
_MOST_SLABS = 1 << 22


@dataclass
class SlabSums:
    slabs: int = 0
    blocks: int = 0
    free_blocks: int = 0


@dataclass
class Units:
    """In units, but for the slabs."""

    large: int = 0
    kept: int = 0
    stock: int = 0
    dirty: int = 0
    slabs: dict[int, SlabSums] = field(default_factory=dict)  # by class
    kinds: dict[int, int] = field(default_factory=dict)  # of spans, by the address of their record


def _bits(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 16], "little")


def _superslabs(memory: Memory, layout: Layout, table: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Index, used and dirty units of each that is committed."""
    for first in range(0, count, _CHUNK):
        some = min(_CHUNK, count - first)
        data = memory.read(table + first * layout.superslab_bytes, some * layout.superslab_bytes)
        if data is None:
            return
        for i in range(some):
            record = data[i * layout.superslab_bytes : (i + 1) * layout.superslab_bytes]
            if record[layout.committed] == 1:
                yield first + i, _bits(record, layout.used), _bits(record, layout.dirty)


def _add(units: Units, layout: Layout, used: int, tags: tuple[int, ...], spans: tuple[int, ...]) -> set[int]:
    """Sorts the units in use of one superslab; returns the records of its slabs."""
    slabs: set[int] = set()
    for unit in range(layout.units_per_superslab):
        if not used >> unit & 1:
            continue
        span, tag = spans[unit], tags[unit]
        if span == 0:
            units.stock += tag == 0
            continue
        if tag != 0:
            units.kinds[span] = tag
        kind = units.kinds.get(span, LARGE)
        if kind >= layout.tag_kinds:
            slabs.add(span)
        elif kind == KEPT:
            units.kept += 1
        elif kind == LARGE:
            units.large += 1
    return slabs


def _count_slabs(memory: Memory, layout: Layout, addresses: list[int], units: Units) -> None:
    size = max(layout.slab_blocks + 4, layout.slab_free + 4, layout.slab_class + 1)
    for data in memory.read_many([(address, size) for address in addresses]):
        if data is None or data[layout.slab_class] >= layout.class_count:
            continue
        sums = units.slabs.setdefault(data[layout.slab_class], SlabSums())
        blocks, free = (struct.unpack_from("<I", data, at)[0] for at in (layout.slab_blocks, layout.slab_free))
        if free <= blocks <= _MOST_BLOCKS:
            sums.slabs += 1
            sums.blocks += blocks
            sums.free_blocks += free


def read_units(memory: Memory, layout: Layout) -> Units:
    units = Units()
    words = (layout.superslabs, layout.superslab_count, layout.tags, layout.spans)
    table, count, tags_at, spans_at = (memory.word(address) or 0 for address in words)
    if table == 0 or tags_at == 0 or spans_at == 0:
        return units
    per = layout.units_per_superslab
    words_of = struct.Struct(f"<{per}Q")
    everywhere = (1 << per) - 1
    batch: list[tuple[int, int]] = []
    slabs: set[int] = set()

    def look() -> None:
        pieces = [(at + index * per * 8, per * 8) for index, _ in batch for at in (tags_at, spans_at)]
        found = memory.read_many(pieces)
        for (_, used), tags, spans in zip(batch, found[::2], found[1::2]):
            if tags is not None and spans is not None:
                slabs.update(_add(units, layout, used, words_of.unpack(tags), words_of.unpack(spans)))
        batch.clear()

    for index, used, dirty in _superslabs(memory, layout, table, min(count, MOST_SUPERSLABS)):
        units.dirty += bin(dirty & ~used & everywhere).count("1")
        if used != 0:
            batch.append((index, used))
        if len(batch) == _CHUNK:
            look()
        if len(slabs) > _MOST_SLABS:
            break
    look()
    _count_slabs(memory, layout, sorted(slabs), units)
    return units
