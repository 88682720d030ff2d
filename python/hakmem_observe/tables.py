"""A snapshot as tables for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from hakmem_cli.say import printable
from hakmem_observe import words
from hakmem_observe.snapshot import PARTS, RARE_PARTS, Number, Snapshot

_BAR = 24
_ROWS = 40
# Of threads, and how the columns are called.
_OF_THREADS = {
    "live_bytes": "live",
    "cached_bytes": "cached",
    "requested_bytes": "requested",
    "refills": "refills",
    "flushes": "flushes",
    "large_blocks": "large",
    "remote_sent_blocks": "sent",
    "remote_received_blocks": "received",
}
_ANY_WIDTH = 1 << 16


def _table(title: str, *columns: str) -> Table:
    """The first column is words, the others are numbers."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1)
    )
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    return table


def fitted(table: Table, console: Console) -> Table:
    """Where there is no room, without its last columns: numbers that are cut off say nothing."""
    options = console.options.update(max_width=_ANY_WIDTH)
    while len(table.columns) > 1 and console.measure(table, options=options).maximum > console.width:
        table.columns.pop()
    return table


def memory(snapshot: Snapshot, explain: bool) -> Table:
    columns = ("state", "bytes", "share", "")
    table = _table("Memory", *columns, *(["meaning"] if explain else []))
    table.columns[3].justify = "left"
    if explain:
        table.columns[4].justify, table.columns[4].no_wrap = "left", False
    whole = snapshot.parts_bytes or 1
    for name in PARTS:
        if name in snapshot.memory and (snapshot.part(name) or name not in RARE_PARTS):
            share = snapshot.part(name) / whole
            bar = Text("█" * round(share * _BAR), "cyan")
            meaning = [_about(snapshot, name)] if explain else []
            table.add_row(words.LABELS[name], words.count_bytes(snapshot.part(name)), f"{share:.0%}", bar, *meaning)
    table.add_row("together", words.count_bytes(snapshot.parts_bytes), "", "", style="bold", end_section=True)
    for name, value in snapshot.memory.items():
        if name not in PARTS:
            meaning = [_about(snapshot, name)] if explain else []
            table.add_row(words.plain(name), words.value(name, value), "", "", *meaning)
    return table


def _about(snapshot: Snapshot, name: str) -> str:
    return snapshot.about.get(name) or words.ABOUT.get(name, "")


def _columns(rows: Iterable[dict[str, Any]], first: tuple[str, ...]) -> list[str]:
    """Of all rows, those asked for first; the others only if they are not 0 everywhere."""
    found = dict.fromkeys(first)
    for row in rows:
        found.update(dict.fromkeys(name for name, value in row.items() if value))
    return list(found)


def classes(snapshot: Snapshot) -> Table:
    own = ("class", "size", "live_blocks", "cached_blocks", "slabs", "slab_free_blocks")
    more = [name for name in _columns(snapshot.classes, ()) if name not in own]
    table = _table(
        "Size classes", "size", "live", "live blocks", "cached", "free in slabs", "slabs", *map(words.plain, more)
    )
    table.columns[0].justify = "right"
    rows = sorted(snapshot.classes, key=lambda row: -_live(row))
    for row in rows[:_ROWS]:
        size = row.get("size") or 0
        cells = (
            words.count_bytes(size) if size >= 16384 else f"{size} B",
            words.count_bytes(_live(row)),
            words.count(row.get("live_blocks", 0)),
            words.count_bytes((row.get("cached_blocks") or 0) * size),
            words.count_bytes((row.get("slab_free_blocks") or 0) * size) if "slab_free_blocks" in row else "",
            words.count(row.get("slabs", 0)),
        )
        table.add_row(*cells, *(words.value(name, row.get(name, 0)) for name in more))
    _left_out(table, rows)
    return table


def _live(row: dict[str, Any]) -> int:
    return int((row.get("live_blocks") or 0) * (row.get("size") or 0))


def _left_out(table: Table, rows: list[Any]) -> None:
    if len(rows) > _ROWS:
        table.caption = f"and {len(rows) - _ROWS} more (all of them: --json)"
        table.caption_justify = "left"


def threads(snapshot: Snapshot) -> Table:
    used = _columns(snapshot.threads, ())
    more = [name for name in _OF_THREADS if name in used or name.endswith("_bytes")]
    table = _table("Threads", "heap", "thread", *(_OF_THREADS[name] for name in more))
    table.columns[0].justify = "right"
    rows = sorted(snapshot.threads, key=lambda row: -(row.get("requested_bytes") or 0))
    for row in rows[:_ROWS]:
        thread = str(row.get("thread") or "none")
        table.add_row(str(row.get("heap", "")), thread, *(words.value(name, row.get(name, 0)) for name in more))
    _left_out(table, rows)
    return table


def numbers(title: str, told: dict[str, Number], snapshot: Snapshot, explain: bool) -> Table:
    table = _table(title, "name", "value", *(["meaning"] if explain else []))
    if explain:
        table.columns[2].justify, table.columns[2].no_wrap = "left", False
    for name, value in told.items():
        table.add_row(words.plain(name), words.value(name, value), *([_about(snapshot, name)] if explain else []))
    return table


def locks(snapshot: Snapshot) -> Table:
    table = _table("Locks", "lock", "taken", "waits", "share that waited", "waited")
    for row in snapshot.locks:
        taken, waits = row.get("taken") or 0, row.get("waits") or 0
        waited = f"{(row['waited_ns'] or 0) / 1e6:.3f} ms" if "waited_ns" in row else ""
        table.add_row(
            printable(str(row.get("name", ""))),
            words.count(taken),
            words.count(waits),
            f"{waits / taken if taken else 0:.2%}",
            waited,
        )
    return table


def flat(prefix: str, told: object) -> Iterable[tuple[str, str]]:
    """Whatever it is, as rows of a name and a value."""
    if isinstance(told, dict):
        for name, value in told.items():
            yield from flat(f"{prefix}.{name}" if prefix else str(name), value)
    elif isinstance(told, list):
        if told:
            yield prefix, f"{len(told)} rows"
    else:
        yield prefix, str(told)


def more(snapshot: Snapshot) -> Table:
    table = _table("More", "name", "value")
    for name, text in flat("", snapshot.more):
        table.add_row(Text(printable(name)), Text(printable(text)))
    return table


def header(snapshot: Snapshot, what: str) -> str:
    library = f"hakmem {snapshot.library}" if snapshot.library else "hakmem"
    limits = [
        f"{kind} limit {words.count_bytes(limit)}"
        for kind in ("soft", "hard")
        if (limit := snapshot.memory.get(f"{kind}_limit_bytes")) is not None
    ]
    age = f"up {words.duration(snapshot.uptime_ms)}" if snapshot.uptime_ms else ""
    mode = f"mode {snapshot.mode}" if snapshot.mode else ""
    parts = [f"process {snapshot.pid}", what, library, mode, age, *limits]
    return printable(", ".join(part for part in parts if part))


def print_snapshot(snapshot: Snapshot, console: Console, what: str = "", explain: bool = False) -> None:
    parts: list[RenderableType] = [Text(header(snapshot, what), "bold"), "", memory(snapshot, explain)]
    parts += [fitted(classes(snapshot), console)] if snapshot.classes else []
    parts += [fitted(threads(snapshot), console)] if snapshot.threads else []
    for title, told in (("Counters", snapshot.counters), ("System calls", snapshot.os), ("Profiler", snapshot.profile)):
        parts += [numbers(title, told, snapshot, explain)] if told else []
    parts += [locks(snapshot)] if snapshot.locks else []
    parts += [more(snapshot)] if snapshot.more else []
    console.print(Group(*parts), highlight=False)
