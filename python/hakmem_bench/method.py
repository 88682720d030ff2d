"""How the figures came about, as the page and docs/benchmarks.md tell it."""

from __future__ import annotations

from hakmem_bench import stats
from hakmem_bench.figures import Figures


def sentences(figures: Figures) -> list[str]:
    pairs = figures.pairs()
    counted = f" ({'–'.join(str(count) for count in dict.fromkeys(pairs))} here)" if pairs else ""
    return [
        "In each repetition every allocator runs the test once, in an order that changes, so that a machine that "
        "becomes slower or faster does so for all of them.",
        "A ratio is hakmem's value over the peer's in the same repetition, so below 1 hakmem is better; shown is the "
        f"median over the repetitions{counted} with its 95 % interval, from one of the samples to another; an interval "
        "that spans 1, to two decimals, is a tie.",
        "Time is that of one operation where the test counts operations and wall time otherwise; peak memory is the "
        "largest resident set of the program itself, or of one of its descendants.",
        "Peers run as they come: no variable that tunes one is set. GLIBC_TUNABLES=glibc.pthread.rseq=0 lets Google's "
        "tcmalloc register its caches per processor, which a thread can do once, and the C library does otherwise.",
        "The mean over the tests is the geometric mean of their median ratios, over the tests in which both allocators "
        "have a good run, with its bootstrap 95 % interval.",
        "A run that something else on the machine disturbed was repeated "
        f"({figures.runs_repeated()} here); a crash or a time-out is a result, is listed, and is in no mean.",
        *_alone(figures),
    ]


def _alone(figures: Figures) -> list[str]:
    """Of those that have had more repetitions than all, if there are some."""
    names = [
        peer.name
        for peer in figures.allocators
        if any(len(test.samples.get(peer.name, [])) > stats.common_repetitions(test) for test in figures.result.tests)
    ]
    if not names:
        return []
    return [
        f"{' and '.join(names)} had more repetitions alone: ratios between them are of all of theirs, while values are "
        "medians of the repetitions that all allocators had, so that the two may differ a little."
    ]
