"""The map of superslabs, read from a memory that is made here; whatever is torn in it, a map comes out."""

from __future__ import annotations

import random
import struct
import unittest
from types import SimpleNamespace
from typing import Any

from hakmem_observe import report_map, superslab_map
from hakmem_observe.snapshot import Snapshot

TABLE, TAGS, SPANS, SLAB = 0x10000, 0x20000, 0x30000, 0x40000
UNITS = 128
LAYOUT: Any = SimpleNamespace(
    superslabs=0, superslab_count=8, tags=16, spans=24, superslab_bytes=64, units_per_superslab=UNITS, used=0, dirty=16,
    committed=32, tag_kinds=4096, slab_blocks=0, slab_free=4, slab_class=8, class_count=40,
)  # fmt: skip


class FakeMemory:
    def __init__(self) -> None:
        self.bytes = bytearray(0x50000)

    def read(self, address: int, size: int) -> bytes | None:
        return bytes(self.bytes[address : address + size]) if 0 <= address <= len(self.bytes) - size else None

    def read_many(self, pieces: list[tuple[int, int]]) -> list[bytes | None]:
        return [self.read(*piece) for piece in pieces]

    def word(self, address: int) -> int | None:
        return int.from_bytes(self.bytes[address : address + 8], "little")

    def put(self, at: int, *words: int) -> None:
        self.bytes[at : at + 8 * len(words)] = struct.pack(f"<{len(words)}Q", *words)


def memory(superslabs: int = 2) -> Any:
    """In the first superslab a slab of 2 units, one in stock, a kept block, dirty and free ones, and at the end a large
    block that goes on in the second."""
    made = FakeMemory()
    made.put(0, TABLE, superslabs, TAGS, SPANS)
    used = 0b11111 | 0b11 << (UNITS - 2)
    for index, bits in enumerate((used, 0b1)):
        made.bytes[TABLE + index * 64 : TABLE + index * 64 + 16] = bits.to_bytes(16, "little")
        made.bytes[TABLE + index * 64 + 16 : TABLE + index * 64 + 32] = (0b100000).to_bytes(16, "little")
        made.bytes[TABLE + index * 64 + 32] = 1
    made.bytes[SLAB : SLAB + 9] = struct.pack("<IIB", 100, 25, 7)
    made.put(SPANS, SLAB, SLAB, 0, SLAB + 64)
    made.put(TAGS, 0x1000_0007, 0x1000_0007, 0, 2)
    made.put(SPANS + 8 * (UNITS - 2), SLAB + 128)
    made.put(TAGS + 8 * (UNITS - 2), 1)
    return made


class Map(unittest.TestCase):
    def test_each_kind(self) -> None:
        first, second = superslab_map.read_map(memory(), LAYOUT)
        units = first["units"]
        self.assertEqual(
            units[:7], [[7, 0.75], [7, 0.75], ["stock", 0], ["kept", 0], ["kept", 0], ["dirty", 0], ["free", 0]]
        )
        self.assertEqual(units[-3:], [["free", 0], ["large", 1], ["large", 1]])
        self.assertEqual(second["units"][:2], [["large", 1], ["free", 0]])

    def test_the_page_counts_them(self) -> None:
        drawn = report_map.of(Snapshot(1, 0, more={"superslabs": superslab_map.read_map(memory(), LAYOUT)}))
        assert drawn is not None
        units = {kind["name"]: kind["units"] for kind in drawn["kinds"]}
        there = {"slab": 2, "large": 3, "kept": 2, "stock": 1, "dirty": 2, "free": 246}
        self.assertEqual(units, {**there, "checked": 0, "sampled": 0, "hole": 0})
        self.assertEqual(next(kind["fill"] for kind in drawn["kinds"] if kind["name"] == "slab"), 0.75)

    def test_what_check_mode_and_the_profiler_have_is_no_large_block(self) -> None:
        made = memory()
        made.put(TAGS, 4, 4, 0, 5)
        units = superslab_map.read_map(made, LAYOUT)[0]["units"]
        self.assertEqual(units[:5], [["checked", 1], ["checked", 1], ["stock", 0], ["sampled", 1], ["stock", 0]])

    def test_sizes_are_those_of_the_library(self) -> None:
        more = {"superslabs": superslab_map.read_map(memory(), LAYOUT)}
        told = {8192: ("1 MiB", "8 KiB"), 16384: ("2 MiB", "16 KiB"), None: None, "x": None, -1: None}
        for unit, sizes in told.items():
            drawn = report_map.of(Snapshot(1, 0, more={**more, "unit_bytes": unit}))
            assert drawn is not None
            self.assertEqual(drawn["sizes"], sizes)

    def test_what_was_not_read_is_said(self) -> None:
        self.assertEqual(superslab_map.count_unread(memory(), LAYOUT), 0)
        self.assertEqual(superslab_map.count_unread(memory(5000), LAYOUT), 5000 - 4096)
        more = {"superslabs": superslab_map.read_map(memory(), LAYOUT)}
        for told, unread in ((904, 904), (None, 0), ("x", 0), (-1, 0)):
            drawn = report_map.of(Snapshot(1, 0, more={**more, "superslabs_unread": told}))
            assert drawn is not None
            self.assertEqual(drawn["unread"], unread)

    def test_no_heap(self) -> None:
        empty = memory()
        empty.put(0, 0, 0, 0, 0)
        self.assertEqual(superslab_map.read_map(empty, LAYOUT), [])

    def test_torn_memory(self) -> None:
        numbers = random.Random(1)
        for _ in range(500):
            torn = memory()
            for _ in range(4):
                at = numbers.choice(
                    [0, 8, 16, 24, TABLE + 8 * numbers.randrange(16), SPANS + 8 * numbers.randrange(256), SLAB]
                )
                torn.put(at, numbers.choice([0, 1, 0xFF, 1 << 40, (1 << 64) - 1, numbers.getrandbits(64)]))
            for superslab in superslab_map.read_map(torn, LAYOUT):
                self.assertEqual(len(superslab["units"]), UNITS)
