"""The suite: which workloads with which parameters."""

from __future__ import annotations

from collections.abc import Iterable

from hakmem_bench import learning, programs
from hakmem_bench.model import OURS, CannotError, Test


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
            what=f"{blocks} blocks of {least} to {most} bytes per thread ({threads}), replaced at random and handed on",
            command=("larson", "1", *words),
            quick=("larson", "1", *words) if name in ("1", "8") else None,
            threads=threads,
        )
    yield Test(
        name="larson-minute",
        group="larson",
        what="larson-8 for a minute: it goes on, and its memory does not grow",
        command=("larson", "60", "8", "1000", "5000", "100", "4141", "8"),
        threads=8,
        memory_only=True,
        only=(OURS, "glibc", "mimalloc"),
    )


def _threads() -> Iterable[Test]:
    """Blocks that go from thread to thread, lines shared by accident, threads that come and go."""
    for kind, what, count, quick, threads in (
        ("oneway", "one thread allocates batches of blocks, another frees them", "8000000", "1500000", 2),
        ("ring", "4 threads in a ring free their neighbour's blocks and allocate new ones", "8000000", "1500000", 4),
        ("manytoone", "4 threads allocate, one frees all", "4000000", "800000", 5),
    ):
        yield Test(
            name=f"handover-{kind}",
            group="threads",
            what=what,
            command=("handover", kind, count, "42"),
            quick=("handover", kind, quick, "42") if kind == "ring" else None,
            threads=threads,
        )
    for kind, what in (
        ("active", "2 threads write small blocks of their own, which may lie in one cache line"),
        ("passive", "the same, each after freeing a block that lay beside the other's"),
    ):
        yield Test(
            name=f"sharing-{kind}",
            group="threads",
            what=what,
            command=("sharing", kind, "1500000"),
            threads=2,
        )
    yield Test(
        name="short-threads",
        group="threads",
        what="short threads, 4 at once, that leave some of their blocks to later ones",
        command=("short_threads", "8000", "42"),
        quick=("short_threads", "1500", "42"),
        threads=4,
    )


def _memory() -> Iterable[Test]:
    """Large live sets, and what is given back."""
    yield Test(
        name="lifetimes",
        group="memory",
        what="64 MiB of live blocks of 16 bytes to 32 KiB, each with a random time of death",
        command=("lifetimes", "2500000", "42"),
        quick=("lifetimes", "500000", "42"),
    )
    yield Test(
        name="lifetimes-small",
        group="memory",
        what="the same with blocks of up to 1 KiB",
        command=("lifetimes", "4000000", "42", "--most", "1024"),
    )
    yield Test(
        name="oscillate",
        group="memory",
        what="200 MiB of small blocks allocated and freed every 100 ms",
        command=("oscillate", "10"),
    )
    for name, words, threads in (("idle", (), 1), ("idle-4-threads", ("--threads", "4"), 4)):
        yield Test(
            name=name,
            group="memory",
            what=f"269 MiB of small blocks ({threads} thread{'s' if threads > 1 else ''}), all but 1 in 20 freed, "
            "then 10 s of sleep",
            command=("idle", "42", *words),
            threads=threads,
            memory_only=True,
        )


def _structures() -> Iterable[Test]:
    """What programs build of small blocks, and strings and vectors that grow."""
    for kind, what, count, rounds, quick in (
        ("tree", "binary search trees", "3000", "700", "180"),
        ("list", "linked lists, appended, spliced and thinned out", "20000", "700", "180"),
        ("hash", "hash tables that grow, with strings as keys", "10000", "300", "80"),
    ):
        yield Test(
            name=f"nodes-{kind}",
            group="structures",
            what=f"{what}, of nodes of 16 to 80 bytes",
            command=("nodes", kind, count, rounds, "42"),
            quick=("nodes", kind, count, quick, "42") if kind != "list" else None,
        )
    for kind, what, count, seed, quick_words in (
        ("inplace", "one vector after the other, grown to as much as 251 MiB", "60", "7", ()),
        ("moving", "8 vectors, grown in turn to as much as 32 MiB", "300", "42", ()),
        ("string", "1024 strings, grown by a few bytes at a time to as much as 8 KiB", "60000", "42", ("15000", "42")),
    ):
        yield Test(
            name=f"realloc-{kind}",
            group="structures",
            what=f"{what}, by realloc",
            command=("growing", kind, count, seed),
            quick=("growing", kind, *quick_words) if quick_words else None,
        )


def _requests() -> Iterable[Test]:
    """Requests other than plain small ones."""
    yield Test(
        name="aligned",
        group="requests",
        what="blocks aligned to 16 to 4096 bytes, a few to 64 KiB",
        command=("aligned", "5000000", "42"),
    )
    yield Test(
        name="calloc",
        group="requests",
        what="calloc of 16 bytes to 1 MiB",
        command=("zeroed", "120000", "42"),
        quick=("zeroed", "40000", "42"),
    )
    yield Test(
        name="vm",
        group="requests",
        what="2 MiB allocated, one byte per page written, freed",
        command=("vm", "60000"),
        quick=("vm", "60000"),
        seconds=30,
        least_repetitions=51,
    )
    yield Test(
        name="large",
        group="requests",
        what="one of 64 blocks of 64 KiB to 16 MiB replaced at random, one in four written",
        command=("large", "12000", "42"),
        quick=("large", "4000", "42"),
    )


def _startup() -> Iterable[Test]:
    yield Test(
        name="startup",
        group="start-up",
        what="/bin/true, again and again",
        command=("startup", "500", "/bin/true"),
        quick=("startup", "150", "/bin/true"),
    )


TESTS: tuple[Test, ...] = (
    *_random_mixed(),
    *_larson(),
    *_threads(),
    *_structures(),
    *_requests(),
    *_memory(),
    *_startup(),
    *programs.TESTS,
)


def choose(text: str | None, *, quick: bool) -> list[Test]:
    """From a list of names and groups with commas; without one, all that are part of such a run."""
    if text is None:
        return [test for test in TESTS if not quick or test.quick is not None]
    known = (*TESTS, *learning.CLASS_FIT)
    legal = {test.name for test in known} | {test.group for test in known}
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in legal:
            groups = ", ".join(dict.fromkeys(test.group for test in known))
            tests = ", ".join(test.name for test in known)
            raise CannotError(f"{name}: no such test; legal are the groups {groups}, and the tests {tests}")
    if not names:
        raise CannotError("no tests named; `hakmem bench list` shows them")
    return [test for test in known if test.name in names or test.group in names]
