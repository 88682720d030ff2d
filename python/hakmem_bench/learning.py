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

# Programs that begin with what an earlier run of them has learned, from other numbers drawn: one that is over before
# much can be learned, the same at eight times the size, and one in which another policy than the mode's always pays.


def _warm_classes(name: str, mib: int, seed: str) -> Test:
    words = ("badsizes", "bad", "200000", seed, "--live", str(mib << 20))
    return Test(
        name=name,
        group="learning",
        what=f"{mib} MiB of live blocks whose sizes fall just above a size class, then 200,000 of them replaced",
        command=words,
        quick=words,
    )


def _warm_records(name: str, seed: str) -> Test:
    words = ("phases", "3", seed, "--only", "1")
    return Test(
        name=name,
        group="learning",
        what="128 blocks of 1 to 16 KiB are allocated, then freed, again and again (bench/phases.c)",
        command=words,
        quick=words,
    )


WARM_CLASSES = tuple(_warm_classes(f"warm-badsizes-{mib}", mib, "42") for mib in (8, 64))
WARM_RECORDS = _warm_records("warm-records", "42")
WARM_NAMES = frozenset(test.name for test in (*WARM_CLASSES, WARM_RECORDS))
EARLIER_CLASSES = _warm_classes("earlier-badsizes", 8, "7")
EARLIER_RECORDS = _warm_records("earlier-records", "7")

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
