"""Workloads for what is learned. The suite's stay as they are, so that its results can be compared over time."""

from __future__ import annotations

from hakmem_bench.model import Test

# Of class fit: where the favourite sizes fall between the fixed classes, and what follows the growth.
_KINDS = {
    "bad": "just above a size class",
    "good": "on a size class",
    "spread": "anywhere from 128 to 2048 bytes",
}

CLASS_FIT = tuple(
    Test(
        name=f"badsizes-{kind}",
        group="learning",
        what=f"64 MiB of live blocks whose sizes fall {falls}, replaced at random",
        command=("badsizes", kind, "8000000", "42"),
        quick=("badsizes", kind, "1000000", "42"),
    )
    for kind, falls in _KINDS.items()
)
