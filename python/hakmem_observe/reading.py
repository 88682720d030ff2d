"""A snapshot from a process's memory: what the table of metrics has by name, and what only a walk over heaps and
superslabs tells."""

from __future__ import annotations

import time
from typing import Any

from hakmem_cli.modes import LEARNS, MODES, STATES
from hakmem_observe import layout as lay
from hakmem_observe import procfs
from hakmem_observe.errors import AbsentError, TornError
from hakmem_observe.heaps import Heaps, class_sizes, read_heaps
from hakmem_observe.layout import GROUPS, PROCESS, WORD, Layout, Metric
from hakmem_observe.memory import Memory
from hakmem_observe.snapshot import Number, Snapshot, sound_memory
from hakmem_observe.superslab_map import count_unread, read_map
from hakmem_observe.units import SlabSums, Units, read_units

_INSTEAD_OF_WALK = {"large_live_bytes", "bigcache_bytes", "dirty_bytes", "stock_bytes", "slab_bytes", "slabs"}
_WALK_PAUSE = 20  # times as long as a walk took


class Reader:
    """Of one process's control block. What never changes is read once."""

    def __init__(self, memory: Memory, address: int, library: str = "") -> None:
        self._library = library
        self._memory = memory
        self._address = address
        self._metrics: list[Metric] | None = None
        self._blocks: dict[tuple[int, int], float] = {}  # of a slab, by class and size
        self._walk_after = 0.0
        data = memory.read(address, lay.CONTROL_BYTES)
        pid = memory.pid
        if data is None or data[: len(lay.MAGIC)] != lay.MAGIC:
            raise AbsentError(f"process {pid}: no control block of hakmem where its symbol says")
        head = lay.read_head(data)
        if head.version != lay.VERSION:
            raise AbsentError(
                f"process {pid} runs another version of hakmem's control ({head.version}); legal here is {lay.VERSION}"
            )
        layout = lay.read_layout(data) if head.size >= lay.CONTROL_BYTES else None
        if layout is None:
            raise TornError(pid, "the layout of its control block is impossible")
        self._layout: Layout = layout
        self._tables = lay.read_tables(data)

    def is_there(self) -> bool:
        """False after the process has become another program."""
        return self._memory.read(self._address, len(lay.MAGIC)) == lay.MAGIC

    def _read_metrics(self) -> list[Metric]:
        tables = self._tables
        if tables is None:
            return []
        numbers = self._read_rows(tables.metrics, tables.rows, tables.metric_bytes)
        texts = self._read_rows(tables.texts, tables.rows, tables.text_bytes)
        words = self._read_rows(tables.bases, tables.base_count, 8)
        bases = [int.from_bytes(word, "little") for word in words]
        made = [
            lay.make_metric(lay.read_metric(row), *lay.read_text(text), bases, self._layout.heap_bytes)
            for row, text in zip(numbers, texts)
        ]
        return [metric for metric in made if metric is not None]

    def _read_rows(self, address: int, rows: int, size: int) -> list[bytes]:
        data = self._memory.read(address, rows * size)
        if data is None:
            raise TornError(self._memory.pid, "its table of metrics cannot be read")
        return [data[i * size : (i + 1) * size] for i in range(rows)]

    def _values(self, metrics: list[Metric]) -> dict[str, int]:
        """Of those that are the process's."""
        own = [metric for metric in metrics if metric.scope == PROCESS]
        words = self._memory.read_many([(m.at + i * m.stride, m.width) for m in own for i in range(m.count)])
        values = {}
        at = 0
        for metric in own:
            some = words[at : at + metric.count]
            at += metric.count
            if None not in some:
                total = sum(int.from_bytes(word or b"", "little") for word in some)
                # A shard may be below zero: what is freed there came from another.
                values[metric.name] = metric.scale * total % WORD
        return values

    def _units(self, metrics: list[Metric], heaps: Heaps, sizes: list[int]) -> Units:
        """By a walk over all units: 0.5 s per GiB. Where the library counts what the walk is for, one walk is enough to
        learn how many blocks a slab of each class has."""
        names = {metric.name for metric in metrics}
        if not names >= _INSTEAD_OF_WALK:
            return read_units(self._memory, self._layout)
        used = {i for i, sums in enumerate(heaps.classes) if sums.more.get("slabs")}
        if {(i, sizes[i]) for i in used} - self._blocks.keys() and time.monotonic() >= self._walk_after:
            before = time.monotonic()
            walked = read_units(self._memory, self._layout).slabs
            self._blocks.update({(i, sizes[i]): sums.blocks / sums.slabs for i, sums in walked.items() if sums.slabs})
            self._walk_after = time.monotonic() + _WALK_PAUSE * (time.monotonic() - before)
        units = Units()
        for i in used:
            sums = heaps.classes[i]
            room = int(sums.more["slabs"] * self._blocks.get((i, sizes[i]), 0))
            units.slabs[i] = SlabSums(slabs=sums.more["slabs"], free_blocks=max(0, room - sums.out))
        return units

    def map(self) -> dict[str, Any]:
        read = {"superslabs": read_map(self._memory, self._layout), "unit_bytes": self._layout.unit_bytes}
        unread = count_unread(self._memory, self._layout)
        return {**read, "superslabs_unread": unread} if unread else read

    def read(self) -> Snapshot:
        pid = self._memory.pid
        if self._metrics is None:
            self._metrics = self._read_metrics()
        metrics = self._metrics
        values = self._values(metrics)
        sizes = class_sizes(self._memory, self._layout)
        heaps = read_heaps(self._memory, self._layout, metrics, sizes)
        units = self._units(metrics, heaps, sizes)
        values.update(heaps.sums)
        groups: dict[str, dict[str, Number]] = {name: {} for name in GROUPS}
        for metric in metrics:
            # How many there are now, of each class: no sum since the start.
            is_gauge = metric.is_of_class and not metric.is_counter
            if metric.name in values and not is_gauge:
                groups[metric.group][metric.name] = values[metric.name]
        classes = _classes(sizes, heaps, units, {m.name for m in metrics if m.group == "counters"})
        counters = {"requested_bytes": heaps.requested, **groups["counters"]}
        return Snapshot(
            pid=pid,
            unix_ms=int(time.time() * 1000),
            library=self._library,
            uptime_ms=procfs.age_ms(pid),
            memory=_memory(
                groups["memory"], counters, _live_bytes(sizes, heaps), classes, units, self._layout.unit_bytes
            ),
            counters=counters,
            classes=classes,
            threads=heaps.threads,
            locks=_locks(groups["locks"]),
            os=groups["os"],
            profile=groups["profile"],
            mode=_named(MODES, groups["learner"].get("mode")),
            more={
                "faults": procfs.faults(pid),
                **_learner(groups["learner"]),
                **({} if heaps.whole else {"incomplete": True}),
            },
            about={m.name: m.about for m in metrics if m.about},
        )


def _classes(sizes: list[int], heaps: Heaps, units: Units, counters: set[str]) -> list[dict[str, Any]]:
    rows = []
    for i, (size, sums) in enumerate(zip(sizes, heaps.classes)):
        slabs = units.slabs.get(i, SlabSums())
        # A magazine may hold blocks of another heap's slabs: only the sums over all heaps can be subtracted.
        row = {
            "class": i,
            "size": size,
            "live_blocks": max(0, sums.out - sums.cached),
            "cached_blocks": sums.cached,
            "slabs": slabs.slabs,
            "slab_free_blocks": slabs.free_blocks,
            **{name: value for name, value in sums.more.items() if name in counters},
        }
        if any(value for name, value in row.items() if name not in ("class", "size")):
            rows.append(row)
    return rows


def _live_bytes(sizes: list[int], heaps: Heaps) -> int:
    """What one class has borrowed of another is too much there and too little here."""
    return max(0, sum((sums.out - sums.cached) * size for size, sums in zip(sizes, heaps.classes)))


# What counts as charged, and is not in memory.
_ABSENT = ("hole_bytes", "stock_clean_bytes", "untouched_bytes", "fence_bytes")


def _memory(
    told: dict[str, Number],
    counters: dict[str, Number],
    live: int,
    classes: list[dict[str, Any]],
    units: Units,
    unit: int,
) -> dict[str, Number]:
    """What the library counts itself counts; the rest comes from the walk."""
    cached = sum(row["cached_blocks"] * row["size"] for row in classes)
    free = sum(row["slab_free_blocks"] * row["size"] for row in classes)
    slabs = int(told.get("slab_bytes") or live + cached + free)
    metadata = int(told.get("metadata_bytes") or 0)
    found: dict[str, Number] = {
        "small_live_bytes": live,
        "large_live_bytes": units.large * unit,
        "cached_bytes": cached,
        "slab_free_bytes": max(0, slabs - live - cached - int(told.get("hole_bytes") or 0)),
        "stock_bytes": units.stock * unit,
        "bigcache_bytes": units.kept * unit,
        "dirty_bytes": units.dirty * unit,
        "metadata_bytes": metadata,
    }
    if "charged_bytes" in told:
        absent = sum(int(told.get(name) or 0) for name in _ABSENT) - int(told.get("filled_bytes") or 0)
        found["held_bytes"] = max(0, int(told["charged_bytes"] or 0) + metadata - max(0, absent))
    if "usable_bytes" in told:
        found["committed_bytes"] = int(told["usable_bytes"] or 0) + metadata
    purged = [int(counters[name] or 0) for name in ("purged_unit_bytes", "purged_hole_bytes") if name in counters]
    if purged:
        found["purged_bytes"] = sum(purged)
    return sound_memory({**found, **told})


def _named(names: tuple[str, ...], number: Number) -> str:
    """What a later version knows has no name here."""
    return names[int(number)] if number is not None and number < len(names) else ""


def _learner(told: dict[str, Number]) -> dict[str, Any]:
    """Nothing while it is off."""
    if not told.get("learns"):
        return {}
    rest = {name: _signed(value) for name, value in told.items() if name not in ("mode", "learns", "state")}
    state = _named(STATES, told.get("state"))
    return {"learner": {"learns": _named(LEARNS, told["learns"]), "state": state, **rest}}


def _signed(value: Number) -> Number:
    return int(value) - WORD if value is not None and value >= WORD // 2 else value


def _locks(told: dict[str, Number]) -> list[dict[str, Any]]:
    """One row a lock, of metrics named LOCK.taken and LOCK.waits."""
    rows: dict[str, dict[str, Any]] = {}
    for name, value in told.items():
        lock, _, what = name.partition(".")
        rows.setdefault(lock, {"name": lock})[what or "value"] = value
    return list(rows.values())
