"""Numbers as people read them, and names that the library does not explain itself."""

from __future__ import annotations

from hakmem_cli.amounts import grouped, long_duration
from hakmem_cli.say import printable
from hakmem_observe.snapshot import Number

LABELS = {
    "small_live_bytes": "small live",
    "large_live_bytes": "large live",
    "checked_live_bytes": "checked live",
    "sampled_live_bytes": "sampled live",
    "cached_bytes": "thread caches",
    "slab_free_bytes": "free in slabs",
    "stock_bytes": "heaps' stock",
    "bigcache_bytes": "kept large",
    "dirty_bytes": "free, dirty",
    "metadata_bytes": "metadata",
}

ABOUT = {
    "small_live_bytes": "live blocks up to 32 KiB, rounded up to their size classes",
    "large_live_bytes": "live blocks above 32 KiB",
    "checked_live_bytes": "live blocks of check mode, as they were requested",
    "sampled_live_bytes": "live small blocks that the heap profiler has sampled",
    "cached_bytes": "free blocks in threads' magazines",
    "slab_free_bytes": "free blocks in slabs, less holes",
    "stock_bytes": "free units that heaps keep by them",
    "bigcache_bytes": "freed large blocks that are kept for the next ones",
    "dirty_bytes": "other free units that still have their pages",
    "metadata_bytes": "the allocator's own tables",
    "hole_bytes": "pages of slabs without a block in use that have no memory: given back, or not used yet",
    "held_bytes": "what the allocator has of the system's memory; counts for the soft limit",
    "committed_bytes": "address space that may be used",
    "reserved_bytes": "address space of the heap",
    "soft_limit_bytes": "beyond it memory is given back sooner",
    "hard_limit_bytes": "beyond it requests fail",
    "purged_bytes": "given back to the system since the start",
    "live_bytes": "live small blocks of the heap's slabs",
    "live_blocks": "live blocks of the class",
    "cached_blocks": "free blocks of the class in threads' magazines",
    "slab_free_blocks": "free blocks of the class in slabs",
    "slabs": "slabs of the class",
    "taken": "how often the lock was taken",
    "waits": "how often a thread had to wait for the lock",
    "waited_seconds": "how long threads had to wait for the lock, in sum",
    "rate_bytes": "bytes between samples; 0: the profiler is off",
    "samples": "allocations that the profiler has sampled",
    "live_samples": "samples whose block is live",
    "dropped": "samples for which there was no room",
    "requested_bytes": "what the program asked for since the start",
}

COUNTER_BYTES = ("purged_bytes",)  # sums that stand among the gauges of "memory"

_STEPS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def count_bytes(value: Number) -> str:
    """12.3 MiB; three digits."""
    if value is None:
        return "none"
    size = float(value)
    for step in _STEPS:
        if abs(size) < 999.5 or step == _STEPS[-1]:
            break
        size /= 1024
    digits = 0 if step == "B" or abs(size) >= 99.95 else 1
    return f"{size:.{digits}f} {step}"


def count(value: Number) -> str:
    """Whole numbers with blanks between thousands; large ones in k, M, G."""
    if value is None:
        return "none"
    if abs(value) < 1e6:
        return grouped(value)
    for factor, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {letter}" if abs(value) < 999.5 * factor else f"{value / factor:.0f} {letter}"
    return f"{value}"


def value(name: str, number: Number) -> str:
    """In the unit that the name ends with."""
    if name == "rate_bytes" and number == 0:
        return "off"
    return count_bytes(number) if name.endswith("_bytes") else count(number)


def duration(ms: float) -> str:
    seconds = int(ms / 1000)
    return f"{ms / 1000:.1f} s" if seconds < 60 else long_duration(seconds)


def plain(name: str) -> str:
    """Of a name, words."""
    return printable(name.removesuffix("_bytes").replace("_", " ").replace(".", " "))
