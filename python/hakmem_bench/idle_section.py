"""The part of docs/memory.md on programs that free and then do nothing."""

from __future__ import annotations

from hakmem_bench import figures as fig
from hakmem_bench import memory
from hakmem_bench.figures import Figures
from hakmem_bench.markup import allocator_table, cell
from hakmem_bench.memory import Idle
from hakmem_bench.model import OURS, TestResult
from hakmem_bench.notes import note_of

_HEADINGS = ["returned", "bound", "of empty pages", "90 % after", "peak", "at the end", "kept"]


def idle_section(figures: Figures, notes: dict[str, str]) -> str:
    parts = ["## What comes back from an idle program", *_explained(figures)]
    parts.append("![Resident memory over time of each allocator](memory.svg)")
    for name in memory.IDLE:
        test = figures.test(name)
        parts.append(f"### {name}")
        lack = f"Test {name} is missing: {cell(figures.why_not_run(name))}."
        parts += _of_test(figures, test, notes) if test else [lack]
    return "\n\n".join(parts)


def _explained(figures: Figures) -> list[str]:
    """What the words of the tables mean, with the numbers of the first allocator that has some: hakmem's, as a rule."""
    found = next(
        ((name, one) for test in map(figures.test, memory.IDLE) if test for name, one in _idles(figures, test).items()),
        None,
    )
    if found is None:
        return []
    name, one = found
    lines = [
        f"The program frees {fig.size(one.freed)} of small blocks, keeps {fig.size(one.kept)} strewn between them, and "
        f"sleeps {one.slept:.0f} s. Nobody calls the allocator meanwhile.",
        "- returned: the share of the freed bytes by which resident memory has fallen at the end.",
        "- bound: the most that it could be where blocks do not move: the pages without a kept block (the empty pages) "
        f"over the freed bytes. With {name} {fig.percent(one.bound)}; more where blocks lie apart, since what is "
        "between them can come back too.",
        "- of empty pages: the same fall as a share of these pages.",
        "- 90 % after: seconds from the peak until nine tenths of the fall were done; looks are half a second apart. A "
        "dash: it did not fall by 1 % of the freed bytes.",
        "- kept: bytes of the blocks that the program still uses.",
    ]
    seen = "What to see: how far a line falls, and how soon. The dotted line is hakmem's bound."
    return [lines[0], "\n".join(lines[1:]), seen]


def _idles(figures: Figures, test: TestResult) -> dict[str, Idle]:
    return {peer.name: one for peer in figures.allocators if (one := memory.idle(test, peer.name))}


def _of_test(figures: Figures, test: TestResult, notes: dict[str, str]) -> list[str]:
    idles = _idles(figures, test)
    parts = [_seen(idles), allocator_table(figures, test, _HEADINGS, lambda name: _cells(idles.get(name)))]
    if OURS in idles and not memory.gives_back_most(idles[OURS]):
        note = note_of(notes, f"{test.name} returned")
        parts.append(f"Why hakmem keeps empty pages: {cell(note)}.")
    lazy = [f"{name} {fig.size(one.lazy)}" for name, one in idles.items() if one.lazy]
    if lazy:
        parts.append(f"Resident at the end, but the kernel may take it (MADV_FREE): {', '.join(lazy)}.")
    return parts


def _seen(idles: dict[str, Idle]) -> str:
    if not idles:
        return "No run tells what came back."
    giving = [name for name, one in idles.items() if memory.gives_back(one)]
    if not giving:
        return f"None of the {len(idles)} allocators returns 1 % of what was freed."
    least = min(idles, key=lambda name: idles[name].end)
    text = f"{len(giving)} of {len(idles)} allocators return{'s' if len(giving) == 1 else ''} 1 % or more of what was "
    text += f"freed: {', '.join(giving)}. Least is resident at the end with {least}: {fig.size(idles[least].end)}"
    if least != OURS and OURS in idles:
        text += f"; with {OURS} {fig.size(idles[OURS].end)}"
    return text + "."


def _cells(one: Idle | None) -> list[str]:
    if one is None:
        return ["not told"] + [""] * (len(_HEADINGS) - 1)
    return [
        fig.percent(one.returned),
        fig.percent(one.bound),
        fig.percent(one.returned_of_empty),
        f"{fig.digits(one.seconds)} s" if one.seconds is not None else "–",
        fig.size(one.peak),
        fig.size(one.end),
        fig.size(one.kept),
    ]
