"""The suite: which workloads with which parameters."""

from __future__ import annotations

from collections.abc import Iterable

from hakmem_bench.model import Test


def _random_mixed() -> Iterable[Test]:
    """The original's sizes with its 8192 slots, and the mixed sizes with few, some and many."""
    for size in ("128", "256", "512", "1024"):
        yield Test(
            name=f"random-mixed-{size}",
            group="random_mixed",
            what=f"malloc or free of one of 8192 blocks of {size} bytes, chosen at random",
            command=("random_mixed", "25000000", size, "42"),
        )
    for name, slots, cycles in (
        ("256", "256", "20000000"),
        ("8192", "8192", "20000000"),
        ("1m", "1000000", "8000000"),
    ):
        yield Test(
            name=f"random-mixed-{name}-slots",
            group="random_mixed",
            what=f"malloc or free of one of {slots} blocks of 16 to 1040 bytes, chosen at random",
            command=("random_mixed", cycles, "mixed", "42", "--slots", slots),
            quick=("random_mixed", "3000000", "mixed", "42", "--slots", slots),
        )


def _larson() -> Iterable[Test]:
    """Threads that replace each other's blocks: the original's profile on 1, 2 and 8 threads, and two others on 2."""
    for name, least, most, blocks, threads in (
        ("1", "8", "1000", "5000", 1),
        ("2", "8", "1000", "5000", 2),
        ("8", "8", "1000", "5000", 8),
        ("small", "8", "128", "1024", 2),
        ("mid", "16", "1040", "1000", 2),
    ):
        words = (least, most, blocks, "100", "4141", str(threads))
        yield Test(
            name=f"larson-{name}",
            group="larson",
            what=f"{threads} threads replace {blocks} blocks each of {least} to {most} bytes and hand them on",
            command=("larson", "1", *words),
            quick=("larson", "1", *words) if name in ("1", "8") else None,
            threads=threads,
        )
