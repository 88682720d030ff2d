"""How the figures came about, as the page and docs/benchmarks.md tell it."""

from __future__ import annotations

from hakmem_bench import figures as fig
from hakmem_bench import stats
from hakmem_bench.figures import Figures


def sentences(figures: Figures) -> list[str]:
    return [*fig.method(figures), *_alone(figures)]


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
