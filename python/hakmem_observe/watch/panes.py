"""What is shown of a history in each pane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text
from textual.widget import Widget

from hakmem_cli.say import printable
from hakmem_observe import tables, words
from hakmem_observe.snapshot import PARTS, RARE_PARTS
from hakmem_observe.watch import chart
from hakmem_observe.watch.history import LOCK_WAITS, History
from hakmem_observe.watch.sheet import Cell, Column, Sheet, number, word

_LEGEND = 31
_NARROWEST = 20  # chart
# What else there is of "memory", below the states.
_BELOW = ("hole_bytes", "held_bytes", "committed_bytes", "reserved_bytes", "soft_limit_bytes", "hard_limit_bytes")
_MOST_THREADS = 2000
_FIRST = (
    "requested_bytes",
    "refills",
    "flushes",
    "remote_sent_blocks",
    "remote_received_blocks",
    "large_blocks",
    "purged_bytes",
    LOCK_WAITS,
)


class MemoryPane(Widget, can_focus=True):
    """The chart, and beside it what its colours mean, with the newest numbers: these alone where both have no room."""

    history: History | None = None

    def show(self, history: History) -> None:
        self.history = history
        self.refresh()

    def render(self) -> Text:
        history = self.history
        if history is None or history.newest is None:
            return Text("nothing yet", "dim")
        width, height = self.size.width, self.size.height
        legend = _legend(history)
        room = width - _LEGEND - 1
        drawn = chart.draw(history.parts, history.seconds, room, height).split("\n") if room >= _NARROWEST else []
        lines = []
        for i in range(height):
            line = drawn[i] if i < len(drawn) else Text()
            if drawn:
                line.pad_right(max(0, width - _LEGEND - line.cell_len))
            line.append_text(legend[i] if i < len(legend) else Text())
            line.truncate(width)
            lines.append(line)
        return Text("\n", no_wrap=True).join(lines)


def _legend(history: History) -> list[Text]:
    """From the top of the stack down."""
    assert history.newest is not None
    snapshot = history.newest
    lines = []
    for state in range(len(PARTS) - 1, -1, -1):
        name = PARTS[state]
        size = snapshot.part(name)
        if size == 0 and name in RARE_PARTS:
            continue
        share = size / (snapshot.parts_bytes or 1)
        lines.append(
            Text.assemble(chart.mark(state), f" {words.LABELS[name]:<13} {words.count_bytes(size):>9} {share:>4.0%}")
        )
    lines.append(Text(f"  {'together':<13} {words.count_bytes(snapshot.parts_bytes):>9}", "bold"))
    lines.append(Text())
    for name in _BELOW:
        if name in snapshot.memory:
            lines.append(Text(f"  {words.plain(name):<13} {words.count_bytes(snapshot.memory[name]):>9}"))
    return lines


def _bytes(value: float) -> Cell:
    return number(words.count_bytes(value), value)


def _count(value: float) -> Cell:
    return number(words.count(value), value)


def _rate(name: str, value: float) -> Cell:
    return number(words.value(name, value) if value else "0", value)


def classes_sheet() -> Sheet:
    columns = [
        Column("size", 9),
        Column("live", 10),
        Column("blocks", 10),
        Column("cached", 10),
        Column("slab free", 10),
        Column("slabs", 8),
        Column("refills/s", 9),
    ]
    return Sheet(columns, sort=1, nothing="no class is in use", id="classes")


def classes_rows(history: History) -> list[list[Cell]]:
    assert history.newest is not None
    return [_class_row(history, row) for row in history.newest.classes]


def _class_row(history: History, row: dict[str, Any]) -> list[Cell]:
    size = row.get("size") or 0
    blocks, cached, free = (row.get(name) or 0 for name in ("live_blocks", "cached_blocks", "slab_free_blocks"))
    return [
        number(f"{size} B" if size < 16384 else words.count_bytes(size), size),
        _bytes(blocks * size),
        _count(blocks),
        _bytes(cached * size),
        _bytes(free * size) if "slab_free_blocks" in row else number("", 0),  # the library's own statistics have none
        _count(row.get("slabs") or 0),
        _rate("refills", history.row_rate("classes", row, "refills")),
    ]


def threads_sheet() -> Sheet:
    columns = [
        Column("thread", 8),
        Column("name", 16, right=False),
        Column("heap", 5),
        Column("live", 10),
        Column("cached", 10),
        Column("requested/s", 11),
        Column("refills/s", 9),
    ]
    return Sheet(columns, sort=5, nothing="no thread has a heap", id="threads")


def threads_rows(history: History) -> list[list[Cell]]:
    assert history.newest is not None
    pid = history.newest.pid
    return [_thread_row(history, pid, row) for row in history.newest.threads[:_MOST_THREADS]]


def _thread_name(pid: int, thread: int) -> str:
    try:
        text = Path(f"/proc/{pid}/task/{thread}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""
    return printable(text)


def _thread_row(history: History, pid: int, row: dict[str, Any]) -> list[Cell]:
    thread = int(row.get("thread") or 0)
    return [
        number(str(thread) if thread else "none", thread),
        word(_thread_name(pid, thread) if thread else ""),
        _count(row.get("heap") or 0),
        _bytes(row.get("live_bytes") or 0),
        _bytes(row.get("cached_bytes") or 0),
        _rate("requested_bytes", history.row_rate("threads", row, "requested_bytes")),
        _rate("refills", history.row_rate("threads", row, "refills")),
    ]


def rates_sheet() -> Sheet:
    columns = [Column("counter", 22, right=False), Column("a second", 10), Column("in all", 10), Column("lately", 0)]
    return Sheet(columns, sort=None, id="rates")


def rates_rows(history: History, width: int) -> list[list[Cell]]:
    rows = []
    for name in _in_order(history):
        rates = history.rates[name]
        cells = [
            _rate(name, rates[-1]),
            number(words.value(name, history.totals.get(name, 0)), history.totals.get(name, 0)),
        ]
        label = "requested memory" if name == "requested_bytes" else words.plain(name)
        rows.append([word(label), *cells, number(chart.sparkline(rates, width), max(rates))])
    return rows


def _in_order(history: History) -> list[str]:
    """What most want to see first; what has never happened last."""
    first = [name for name in _FIRST if name in history.rates]
    others = [name for name in history.rates if name not in _FIRST]
    return [*first, *sorted(others, key=lambda name: history.totals.get(name, 0) == 0)]


def learner_sheet() -> Sheet:
    return Sheet([Column("learner", 36, right=False), Column("value", 0, right=False)], sort=None, id="learner")


def learner_rows(told: object) -> list[list[Cell]]:
    return [[word(name), word(text)] for name, text in tables.flat("", told)]
