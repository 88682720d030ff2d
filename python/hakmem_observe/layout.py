"""`struct hak_control` and what it leads to, byte by byte as the library lays them out (src/heap/control.h). Numbers
that cannot be are refused here, so that nobody else needs to look at them again."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hakmem_cli.say import printable

MAGIC = b"hakmem\0\0"
VERSION = 4

# Where the words of a request are; the live page has them at the same place.
REQUEST = 16
ARGUMENT = 32
PATH = 40
PATH_BYTES = 512
HEAD_BYTES = 552

_LAYOUT = 592
_LAYOUT_BYTES = 176
CONTROL_BYTES = _LAYOUT + _LAYOUT_BYTES

_MOST_VERSION = 1 << 16
_MOST_CONTROL_BYTES = 1 << 16

WORD = 1 << 64  # sums are modulo this, as the library's own

MOST_HEAPS = 65536
MOST_CLASSES = 64
MOST_METRICS = 512
MOST_SUPERSLABS = 1 << 20
_MOST_WORDS = 4096  # of a metric
_MOST_STRIDE = 1 << 20
_MOST_HEAP_BYTES = 1 << 22
_MOST_COUNT_BYTES = 1 << 16

_METRIC_BYTES = 32
_METRIC = struct.Struct("<QQIIBBBBB3x")
_NAME_BYTES = 24  # of a text; the rest says what it is
_MOST_TEXT_BYTES = 512
_MOST_BASES = 256

# Scopes: an offset from a base; an offset in each heap, and a word for each class there; the same within its counts.
PROCESS, HEAP, CLASS, COUNT, COUNT_CLASS = range(5)
GROUPS = ("memory", "counters", "os", "profile", "locks", "learner")


class Head(NamedTuple):
    version: int
    size: int
    request: int
    served: int
    result: int


_HEAD = struct.Struct("<IIIIi")


def read_head(data: bytes) -> Head:
    return Head(*_HEAD.unpack_from(data, len(MAGIC)))


def control_offsets(data: bytes) -> Iterator[int]:
    """Where in these words of memory there is what looks like a control block, of any version."""
    at = data.find(MAGIC)
    while at != -1:
        if at % 8 == 0 and at + len(MAGIC) + _HEAD.size <= len(data):
            head = read_head(data[at : at + len(MAGIC) + _HEAD.size])
            if 0 < head.version <= _MOST_VERSION and HEAD_BYTES <= head.size <= _MOST_CONTROL_BYTES:
                yield at
        at = data.find(MAGIC, at + 1)


@dataclass(frozen=True)
class Metric:
    name: str
    about: str
    at: int
    scale: int
    stride: int
    count: int
    is_counter: bool
    scope: int
    width: int
    group: str

    @property
    def is_of_class(self) -> bool:
        return self.scope in (CLASS, COUNT_CLASS)

    @property
    def end(self) -> int:
        """Of its words, from `at`'s base."""
        return self.at + (self.count - 1) * self.stride + self.width


class RawMetric(NamedTuple):
    at: int
    scale: int
    stride: int
    words: int
    kind: int
    scope: int
    width: int
    group: int
    base: int


def read_metric(data: bytes) -> RawMetric:
    return RawMetric(*_METRIC.unpack_from(data))


def _string(data: bytes) -> str:
    return printable(data.split(b"\0", 1)[0].decode(errors="replace"))


def read_text(data: bytes) -> tuple[str, str]:
    """A metric's name, and what it says. Nothing unprintable is left."""
    return _string(data[:_NAME_BYTES]), _string(data[_NAME_BYTES:])


def make_metric(raw: RawMetric, name: str, about: str, bases: list[int], heap_bytes: int) -> Metric | None:
    """None if it cannot be, or is of a kind that a later version knows."""
    known = raw.scope <= COUNT_CLASS and raw.group < len(GROUPS) and raw.width in (4, 8)
    if not known or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]{0,63}", name):
        return None
    if not 1 <= raw.words <= _MOST_WORDS or raw.stride > _MOST_STRIDE or not 1 <= raw.scale <= 1 << 32:
        return None
    at = raw.at
    if raw.scope == PROCESS:
        if raw.base >= len(bases):
            return None
        at = (at + bases[raw.base]) % WORD
    metric = Metric(
        name, about, at, raw.scale, raw.stride, raw.words, raw.kind == 1, raw.scope, raw.width, GROUPS[raw.group]
    )
    most = {HEAP: heap_bytes, CLASS: heap_bytes, COUNT: _MOST_COUNT_BYTES, COUNT_CLASS: _MOST_COUNT_BYTES}
    return metric if metric.scope == PROCESS or metric.end <= most[metric.scope] else None


class Layout(NamedTuple):
    heaps: int
    classes: int
    class_stride: int
    class_count: int
    unit_bytes: int
    heap_bytes: int
    next: int
    number: int
    tls: int
    thread: int
    budget: int
    twin_budget: int
    granted: int
    bins: int
    bin_stride: int
    shelves: int
    shelf_stride: int
    slots: int
    capacity: int
    blocks_out: int
    counts: int
    holes: int  # 0: the library does not tell
    superslabs: int
    superslab_count: int
    arena_base: int
    tags: int
    spans: int
    superslab_bytes: int
    units_per_superslab: int
    used: int
    dirty: int
    committed: int
    tag_kinds: int
    slab_blocks: int
    slab_free: int
    slab_class: int


_LAYOUT_STRUCT = struct.Struct("<QQ20I5Q9I4x")  # the fields of Layout in order


def _is_sound(layout: Layout) -> bool:
    last = layout.class_count - 1
    words = (layout.next, layout.counts, layout.tls, layout.budget, layout.twin_budget, layout.granted)
    shelf_end = max(layout.slots + 8, layout.capacity + 2, layout.blocks_out + 8, layout.holes + 2)
    return (
        1 <= layout.class_count <= MOST_CLASSES
        and 4 <= layout.class_stride <= _MOST_STRIDE
        and 8 <= layout.heap_bytes <= _MOST_HEAP_BYTES
        and max(words) + 8 <= layout.heap_bytes
        and max(layout.number, layout.thread) + 4 <= layout.heap_bytes
        and layout.bins + last * layout.bin_stride + 8 <= layout.heap_bytes
        and layout.shelves + last * layout.shelf_stride + shelf_end <= layout.heap_bytes
        and 4096 <= layout.unit_bytes <= 1 << 24
        and layout.units_per_superslab in (64, 128)
        and max(layout.used + 16, layout.dirty + 16, layout.committed + 1) <= layout.superslab_bytes <= 4096
        and max(layout.slab_blocks + 4, layout.slab_free + 4, layout.slab_class + 1) <= 4096
    )


def read_layout(control: bytes) -> Layout | None:
    """None if it cannot be."""
    layout = Layout(*_LAYOUT_STRUCT.unpack_from(control, _LAYOUT))
    return layout if _is_sound(layout) else None


class Tables(NamedTuple):
    """Of metrics and of their texts: addresses, how many of each, bytes of one. And of the bases of metrics."""

    metrics: int
    rows: int
    metric_bytes: int
    texts: int
    text_bytes: int
    base_count: int
    bases: int


def read_tables(control: bytes) -> Tables | None:
    """None if there are none, or they cannot be."""
    tables = Tables(*struct.unpack_from("<QIIQIIQ", control, HEAD_BYTES))
    is_sound = _METRIC_BYTES <= tables.metric_bytes <= 4096 and _NAME_BYTES < tables.text_bytes <= _MOST_TEXT_BYTES
    is_sound = is_sound and 1 <= tables.base_count <= _MOST_BASES
    return tables._replace(rows=min(tables.rows, MOST_METRICS)) if tables.rows > 0 and is_sound else None
