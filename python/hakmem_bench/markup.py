"""What the pages in Markdown are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hakmem_bench import figures as fig
from hakmem_bench.figures import Figures
from hakmem_bench.model import OURS, TestResult
from hakmem_bench.stats import Ratio

INTERRUPTED = "**This run was interrupted: what had been measured by then is here.**"


def table(headings: list[str], rows: list[list[str]], left: int = 1) -> str:
    """The first `left` columns are text, the others numbers."""
    rule = ["---"] * left + ["---:"] * (len(headings) - left)
    lines = [headings, rule, *([cell(text) for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(text: str) -> str:
    """Text that Markdown must not take for anything else; lines stay lines."""
    for special in ("\\", "|", "<", "[", "`"):
        text = text.replace(special, "\\" + special)
    return "<br>".join(" ".join(line.split()) for line in text.split("\n"))


def facts_line(provenance: Mapping[str, str], names: Iterable[str]) -> str:
    """Those of the facts that there are."""
    return "; ".join(f"{name}: {cell(provenance[name])}" for name in names if name in provenance)


def ratio_text(ratio: Ratio) -> str:
    """The median with its interval; heavy where hakmem is behind."""
    text = f"{fig.digits(ratio.median)} {interval_text(ratio)}"
    return {"tie": f"{text} tie", "worse": f"**{text}**", "better": text}[fig.kind(ratio)]


def interval_text(ratio: Ratio) -> str:
    return f"({fig.digits(ratio.low)} to {fig.digits(ratio.high)})"


def few_pairs(ratios: Iterable[Ratio | None]) -> list[str]:
    """A sentence if some of the intervals hold the true median in less than 95 of 100 cases."""
    pairs = min((ratio.pairs for ratio in ratios if ratio), default=fig.LEAST_PAIRS)
    if pairs >= fig.LEAST_PAIRS:
        return []
    few = f"{pairs} pair{'s' if pairs != 1 else ''}"
    return [f"An interval of {few} is the range of all, which holds the true median in {fig.held(pairs)} of cases."]


def value_and_ratio(figures: Figures, test: TestResult, allocator: str, value: str) -> str:
    """The absolute value, and for a peer hakmem's ratio to it below."""
    ratio = figures.ratio(test, allocator, value) if allocator != OURS else None
    absolute = figures.typical(test, allocator, value)
    return f"{absolute}\n{ratio_text(ratio)}" if ratio else absolute


def allocator_table(figures: Figures, test: TestResult, headings: list[str], cells: Callable[[str], list[str]]) -> str:
    """A row for each allocator: its cells, or in the first of them why there are none."""
    rows = []
    for peer in figures.allocators:
        samples = test.samples.get(peer.name, [])
        found = cells(peer.name) if any(sample.good for sample in samples) else []
        why = fig.what_happened(test, peer.name) if samples else "not run"
        rows.append([peer.name, *(found or _alone(why, headings))])
    rows += [[peer.name, *_alone("missing", headings)] for peer in figures.missing]
    return table(["allocator", *headings], rows)


def _alone(text: str, headings: list[str]) -> list[str]:
    return [text] + [""] * (len(headings) - 1)
