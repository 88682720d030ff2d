"""A result as tables on the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hakmem_bench import figures as fig
from hakmem_bench.figures import REFERENCE, VALUES, Figures
from hakmem_bench.model import OURS, Counts, Peer, Result, Test, TestResult
from hakmem_bench.stats import Ratio, paired

_COLOURS = {"better": "green", "worse": "red", "tie": ""}
_UNBOUNDED = 100_000
_ROUNDING = 1e-6
"""Sizes repeat exactly and have intervals without width: what is left of the arithmetic is no change."""

_MEASURING = ("workloads", "peaks")
"""Of the provenance, what must be the same."""

COUNTED = ("instructions", "loads", "stores", "branches", "missed branches", "L1 misses", "LL misses")


def print_result(result: Result, console: Console) -> None:
    """Everything: a table per group and value, the means, what failed, what was counted, where it comes from."""
    figures = Figures(result)
    for part in _parts(figures, console):
        console.print(part, "")


def _parts(figures: Figures, console: Console) -> Iterator[RenderableType]:
    result = figures.result
    for group in dict.fromkeys(test.group for test in result.tests):
        for value in VALUES:
            tests = figures.groups(value).get(group, [])
            if tests:
                yield from _group(figures, group, tests, value, console)
    yield _summary(figures)
    yield from _lines("Failures", fig.failures(result), "yellow")
    if result.counts:
        yield from _counts(result.counts)
    yield _pairs_of("Where it comes from", result.provenance)
    yield from _lines("Note", fig.cautions(figures), "yellow")


def _group(
    figures: Figures, group: str, tests: list[TestResult], value: str, console: Console
) -> Iterator[RenderableType]:
    """The most telling form that fits: intervals everywhere, of the best peer, nowhere; else several tables."""
    title = f"{group}: {VALUES[value]}"
    names = [peer.name for peer in figures.peers]
    for cell, best in ((fig.full, fig.full), (fig.short, fig.full), (fig.short, fig.short)):
        table = _ratios(figures, title, tests, value, names, cell, best)
        if _width(table, console) <= console.width:
            yield table
            return
    first = _ratios(figures, title, tests, value, [], fig.short, fig.full)
    yield first
    for part in _split(names, lambda some: _ratios(figures, "", tests, value, some, fig.short, None), console):
        yield _ratios(figures, "", tests, value, part, fig.short, None)


def _split(names: list[str], build: Callable[[list[str]], Table], console: Console) -> list[list[str]]:
    """The names in as few parts as fit, of about equal size."""
    for count in range(1, len(names)):
        size = -(-len(names) // count)
        parts = [names[start : start + size] for start in range(0, len(names), size)]
        if all(_width(build(part), console) <= console.width for part in parts):
            return parts
    return [[name] for name in names]


def _width(table: Table, console: Console) -> int:
    return Measurement.get(console, console.options.update(width=_UNBOUNDED), table).maximum


def _ratios(
    figures: Figures,
    title: str,
    tests: list[TestResult],
    value: str,
    names: list[str],
    cell: Callable[[Ratio], str],
    best: Callable[[Ratio], str] | None,
) -> Table:
    """With `best`: hakmem's own value and the best peer as well."""
    table = _table(title)
    table.add_column("test")
    if best:
        table.add_column(OURS, justify="right")
        table.add_column("best peer")
        table.add_column("ratio to it", justify="left")
    for name in names:
        table.add_column(name.replace("-", "-\n"), justify="right")
    for test in tests:
        row: list[str | Text] = [test.name]
        if best:
            row += [figures.typical(test, OURS, value), *_best(figures, test, value, best)]
        for name in names:
            ratio = figures.ratio(test, name, value)
            row.append(_coloured(cell(ratio), ratio) if ratio else Text(fig.what_happened(test, name), "yellow"))
        table.add_row(*row)
    return table


def _best(figures: Figures, test: TestResult, value: str, write: Callable[[Ratio], str]) -> tuple[str, str | Text]:
    found = figures.best(test, value)
    return (found[0], _coloured(write(found[1]), found[1])) if found else ("–", "–")


def _summary(figures: Figures) -> Table:
    table = _table("Geometric means over the tests: hakmem / peer, below 1 is better")
    for heading in ("peer", "version"):
        table.add_column(heading)
    for value in VALUES.values():
        table.add_column(value)
        table.add_column("tests", justify="right")
    for peer in figures.peers:
        row: list[str | Text] = [peer.name, peer.version]
        for value in VALUES:
            overall = figures.overall(peer.name, value)
            total = len(figures.tests(value))
            row.append(_coloured(fig.full(overall.ratio), overall.ratio) if overall else "–")
            row.append(f"{overall.tests if overall else 0} of {total}")
        table.add_row(*row)
    for peer in figures.missing:
        table.add_row(peer.name, peer.version, Text("missing", "yellow"), "", Text("missing", "yellow"), "")
    return table


def _counts(counts: list[Counts]) -> Iterator[Table]:
    for test in dict.fromkeys(count.test for count in counts):
        table = _table(f"{test}: counted under valgrind, per operation")
        table.add_column("allocator", overflow="fold")
        for heading in COUNTED:
            table.add_column(heading.replace(" ", "\n"), justify="right", overflow="fold")
        for count in in_order(counts, test):
            if count.status != "ok":
                table.add_row(count.peer, Text(count.status, "yellow"))
                continue
            table.add_row(count.peer, *count_cells(count), style="bold" if count.peer == OURS else "")
        yield table


def count_cells(count: Counts) -> list[str]:
    numbers = (count.instructions, count.loads, count.stores, count.branches)
    misses = (count.branch_misses, count.first_level_misses, count.last_level_misses)
    return [f"{number:.1f}" for number in numbers] + [f"{number:.4f}" for number in misses]


def in_order(counts: list[Counts], test: str) -> list[Counts]:
    """Those of a test, the fewest instructions first and the failed last."""
    return sorted((one for one in counts if one.test == test), key=lambda one: (one.status != "ok", one.instructions))


def compare_results(a: Result, b: Result, console: Console) -> None:
    """What changed for hakmem from a to b. Its ratio to the reference peer stands for it, so that the machine's own
    drift cancels."""
    before = {test.name: test for test in a.tests}
    after = {test.name: test for test in b.tests}
    other = _measured_otherwise(a, b)
    for part in _lines("Note", other, "yellow"):
        console.print(part, "")
    for value, what in VALUES.items():
        _print_changes(before, after, value, what, console, judges=not other)
    only = [f"{name}: only in the first" for name in before if name not in after]
    only += [f"{name}: only in the second" for name in after if name not in before]
    only += [
        f"{name}: other parameters, not compared"
        for name in before
        if name in after and not _same_work(before[name], after[name])
    ]
    for part in (*_lines("Not compared", only, "yellow"), *_count_changes(a.counts, b.counts)):
        console.print(part, "")


def _measured_otherwise(a: Result, b: Result) -> list[str]:
    """Programs of ours that have changed do so for hakmem and its peer, but need not do so alike."""
    told = [(name, *(one.provenance.get(name, "not told") for one in (a, b))) for name in _MEASURING]
    differ = [f"{name}: {first}, {second}" for name, first, second in told if first != second or first == "not told"]
    return [f"workloads or measuring differ ({'; '.join(differ)}): no change is judged"] if differ else []


def print_peers(peers: Sequence[Peer], console: Console) -> None:
    """What was fetched, and what cannot be had."""
    table = _table("Allocators")
    for heading in ("name", "version", "source"):
        table.add_column(heading, overflow="fold")
    for peer in peers:
        lack = Text(f"cannot be had: {peer.missing}", "yellow")
        table.add_row(Text(peer.name), lack if peer.missing else Text(peer.version), Text(peer.source))
    console.print(table)


def print_suite(tests: Sequence[Test], console: Console) -> None:
    """Which tests there are; those of the quick run have a mark."""
    table = _table("Tests")
    for heading in ("group", "name", "quick", "what"):
        table.add_column(heading)
    for test in tests:
        mark = "" if test.quick is None else "yes"
        table.add_row(Text(test.group), Text(test.name), Text(mark), Text(test.what))
    console.print(table)


def _print_changes(
    before: dict[str, TestResult],
    after: dict[str, TestResult],
    value: str,
    what: str,
    console: Console,
    *,
    judges: bool,
) -> None:
    """`judges`: says what is better or worse."""
    table = _table(f"{what}: hakmem / {REFERENCE}")
    table.add_column("test")
    for heading in ("first", "second", "second / first"):
        table.add_column(heading, justify="right")
    table.add_column("")
    if judges:
        table.caption = f"better, worse: the intervals do not overlap, and are of {fig.LEAST_PAIRS} pairs or more"
        table.caption_justify = "left"
    for name, old in before.items():
        new = after.get(name)
        if new is None or not _same_work(old, new) or (value == fig.TIME and old.memory_only):
            continue
        first, second = paired(old, REFERENCE, value), paired(new, REFERENCE, value)
        if not first or not second:
            table.add_row(name, *(fig.full(one) if one else f"no pair with {REFERENCE}" for one in (first, second)))
            continue
        verdict = _verdict(first, second) if judges else "tie"
        change = fig.digits(second.median / first.median) if first.median > 0 else "–"
        row = (change, "" if verdict == "tie" else verdict)
        table.add_row(name, fig.full(first), fig.full(second), *(Text(text, _COLOURS[verdict]) for text in row))
    if table.row_count:
        console.print(table, "")


def _verdict(first: Ratio, second: Ratio) -> str:
    if min(first.pairs, second.pairs) < fig.LEAST_PAIRS:
        return "tie"  # intervals of few pairs hold the median too rarely
    if second.high < first.low * (1 - _ROUNDING):
        return "better"
    return "worse" if second.low > first.high * (1 + _ROUNDING) else "tie"


def _same_work(old: TestResult, new: TestResult) -> bool:
    """The arguments are the same; the program, and the sources with its scripts, may lie elsewhere."""
    return _arguments(old) == _arguments(new)


def _arguments(test: TestResult) -> list[str]:
    """With the scripts where commands say that they are, whether the result tells their path or not."""
    return [re.sub(r"^/.*/bench/programs/", "{scripts}/", word) for word in test.command[1:]]


def _count_changes(a: list[Counts], b: list[Counts]) -> Iterator[Table]:
    table = _table("Instructions per operation of hakmem")
    for heading in ("test", "first", "second", "second / first"):
        table.add_column(heading, justify="left" if heading == "test" else "right")
    after = {count.test: count for count in b if count.peer == OURS and count.status == "ok"}
    for old in a:
        new = after.get(old.test)
        if old.peer == OURS and old.status == "ok" and old.instructions > 0 and new:
            change = f"{new.instructions / old.instructions:.3f}"
            table.add_row(old.test, f"{old.instructions:.1f}", f"{new.instructions:.1f}", change)
    if table.row_count:
        yield table


def _coloured(text: str, ratio: Ratio) -> Text:
    return Text(text, _COLOURS[fig.kind(ratio)])


def _table(title: str) -> Table:
    table = Table(title=title or None, title_justify="left", title_style="bold cyan", box=box.SIMPLE_HEAD)
    table.padding = (0, 1, 0, 0)
    table.show_edge = False
    return table


def _lines(title: str, lines: list[str], style: str) -> Iterator[Text]:
    if lines:
        yield Text(f"{title}\n", "bold cyan").append("".join(f"  {line}\n" for line in lines), style)


def _pairs_of(title: str, pairs: dict[str, str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold cyan", box=None, show_header=False)
    for name, text in pairs.items():
        table.add_row(Text(name), Text(text))
    return table
