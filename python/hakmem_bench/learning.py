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

# Large blocks, counted after a second in which a learner may learn.
LARGE = (
    Test(
        name="vm-warm",
        group="learning",
        what="2 MiB allocated, one byte per page written, freed; counted after 1 s",
        command=("vm", "100000", "--warm-up", "1"),
        quick=("vm", "20000", "--warm-up", "1"),
    ),
    Test(
        name="large-warm",
        group="learning",
        what="one of 64 blocks of 64 KiB to 16 MiB replaced at random, one in four written; counted after 1 s",
        command=("large", "12000", "42", "--warm-up", "1"),
        quick=("large", "2000", "42", "--warm-up", "1"),
    ),
)

PHASES = Test(
    name="phases",
    group="learning",
    what="a program that becomes another every few seconds (bench/phases.c)",
    command=("phases", "3", "42"),
    quick=("phases", "1", "42"),
    seconds=300,
)

ADVERSE = Test(
    name="adversary",
    group="learning",
    what="phases of 20 ms to 1.3 s in which what was learned before is wrong (bench/phases.c --adverse 1)",
    command=("phases", "1", "42", "--adverse", "1"),
    seconds=300,
)

# Long enough to be drawn.
DRAWN = tuple(
    Test(name=f"{name}-drawn", group="learning", what=what, command=command, quick=quick)
    for name, what, command, quick in (
        (
            "vm",
            "2 MiB allocated, one byte per page written, freed",
            ("vm", "20000", "--warm-up", "6"),
            ("vm", "2000", "--warm-up", "2"),
        ),
        (
            "large",
            "one of 64 blocks of 64 KiB to 16 MiB replaced at random, one in four written",
            ("large", "2000", "42", "--warm-up", "6"),
            ("large", "200", "42", "--warm-up", "2"),
        ),
    )
)
