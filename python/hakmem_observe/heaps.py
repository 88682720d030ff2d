"""The heaps of a process and what their threads have: read whole, one after the other, and summed up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hakmem_observe.layout import COUNT, COUNT_CLASS, MOST_HEAPS, PROCESS, WORD, Layout, Metric
from hakmem_observe.memory import Memory

_MOST_SIZE = 1 << 32


@dataclass
class ClassSums:
    out: int = 0  # blocks that are not in slabs
    cached: int = 0  # of them, in magazines; those borrowed of the next fixed class are among that one's `out`
    more: dict[str, int] = field(default_factory=dict)


@dataclass
class Heaps:
    threads: list[dict[str, Any]]
    classes: list[ClassSums]
    sums: dict[str, int]  # of metrics that heaps have, by name
    requested: int
    whole: bool  # False: the list of heaps broke off


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _i64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little", signed=True)


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u16(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "little")


def class_sizes(memory: Memory, layout: Layout) -> list[int]:
    pieces = [(layout.classes + i * layout.class_stride, 4) for i in range(layout.class_count)]
    sizes = [int.from_bytes(data or b"", "little") for data in memory.read_many(pieces)]
    return [size if size < _MOST_SIZE else 0 for size in sizes]


def _cached(data: bytes, layout: Layout, i: int) -> int:
    """Blocks in the magazine of class i: slots up to the top, less those that others have emptied."""
    shelf = layout.shelves + i * layout.shelf_stride
    slots = _u64(data, shelf + layout.slots)
    bytes_used = _u64(data, layout.bins + i * layout.bin_stride) - slots
    fits = slots != 0 and 0 <= bytes_used <= 8 * _u16(data, shelf + layout.capacity)
    holes = _u16(data, shelf + layout.holes) if layout.holes != 0 else 0
    return max(0, bytes_used // 8 - holes) if fits else 0


def _words(data: bytes, metric: Metric) -> list[int]:
    at = range(metric.at, metric.at + metric.count * max(metric.stride, 1), max(metric.stride, 1))
    return [int.from_bytes(data[i : i + metric.width], "little") * metric.scale for i in at]


def _add_heap(
    heaps: Heaps, data: bytes, counts: bytes | None, layout: Layout, metrics: list[Metric], sizes: list[int]
) -> None:
    live_bytes = cached_bytes = 0
    for i, one in enumerate(heaps.classes):
        out = _u64(data, layout.shelves + i * layout.shelf_stride + layout.blocks_out)
        cached = _cached(data, layout, i)
        one.out += out
        one.cached += cached
        live_bytes += (out - cached) * sizes[i]
        cached_bytes += cached * sizes[i]
    requested = max(0, _i64(data, layout.granted) - _i64(data, layout.budget) - _i64(data, layout.twin_budget))
    heaps.requested += requested
    own: dict[str, int] = {}
    for metric in metrics:
        source = counts if metric.scope in (COUNT, COUNT_CLASS) else data
        if source is None:
            continue
        words = _words(source, metric)
        if metric.is_of_class:
            for one, word in zip(heaps.classes, words):
                one.more[metric.name] = one.more.get(metric.name, 0) + word
        total = sum(words)
        heaps.sums[metric.name] = (heaps.sums.get(metric.name, 0) + total) % WORD
        if metric.group in ("memory", "counters") and not (metric.is_of_class and not metric.is_counter):
            own[metric.name] = total
    thread = int.from_bytes(data[layout.thread : layout.thread + 4], "little", signed=True)
    heaps.threads.append(
        {
            "heap": _u32(data, layout.number),
            "thread": max(0, thread) if _u64(data, layout.tls) != 0 else 0,
            "requested_bytes": requested,
            "live_bytes": max(0, live_bytes),
            "cached_bytes": cached_bytes,
            **own,
        }
    )


def read_heaps(memory: Memory, layout: Layout, metrics: list[Metric], sizes: list[int]) -> Heaps:
    own = [metric for metric in metrics if metric.scope != PROCESS]
    count_bytes = max((metric.end for metric in own if metric.scope in (COUNT, COUNT_CLASS)), default=0)
    heaps = Heaps([], [ClassSums() for _ in sizes], {metric.name: 0 for metric in own}, 0, True)
    seen: set[int] = set()
    address = memory.word(layout.heaps) if layout.heaps != 0 else 0
    while address is not None and address != 0 and address not in seen and len(seen) < MOST_HEAPS:
        seen.add(address)
        data = memory.read(address, layout.heap_bytes)
        if data is None:
            break
        counts = memory.read(_u64(data, layout.counts), count_bytes) if count_bytes > 0 else None
        _add_heap(heaps, data, counts, layout, own, sizes)
        address = _u64(data, layout.next)
    heaps.whole = address == 0
    heaps.threads.sort(key=lambda row: int(row["heap"]))
    return heaps
