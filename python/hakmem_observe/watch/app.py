"""The application: reads in a thread of its own, shows in panes. Where there is room all panes are there at once."""

from __future__ import annotations

import threading
import time
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.widget import Widget
from textual.widgets import Footer, Static

from hakmem_cli.say import CannotError
from hakmem_observe import procfs, words
from hakmem_observe.errors import EndedError
from hakmem_observe.remote import Process, Request
from hakmem_observe.snapshot import Snapshot
from hakmem_observe.watch import ending, panes
from hakmem_observe.watch.history import History
from hakmem_observe.watch.sheet import Sheet

INTERVAL_SECONDS = 1.0
_WIDE = (150, 40)  # columns and rows from which all panes are shown
# Of a long time between two looks at most this share is spent on looking.
_SHARE = 0.2

_PANES = {"memory": "Memory", "rates": "Rates", "classes": "Classes", "threads": "Threads", "learner": "Learner"}


class Taken(Message):
    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot


class Failed(Message):
    def __init__(self, error: CannotError) -> None:
        super().__init__()
        self.error = error


class Told(Message):
    def __init__(self, text: str, severity: SeverityLevel = "information") -> None:
        super().__init__()
        self.text = text
        self.severity: SeverityLevel = severity


class Top(App[int]):
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; }
    #title, #state, #tabs { height: 1; }
    #tabs { margin-bottom: 1; }
    #panes { height: 1fr; }
    #panes > * { height: 1fr; width: 1fr; }
    #panes.wide { layout: grid; grid-size: 2; grid-gutter: 1; }
    #panes.wide > * { border-top: solid $secondary; }
    #panes.wide > *:focus { border-top: heavy $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "Quit", key_display="q", priority=True),
        Binding("tab,right", "step(1)", "Next pane", key_display="tab", priority=True),
        Binding("shift+tab,left", "step(-1)", show=False, priority=True),
        Binding("s", "sort", "Sort"),
        Binding("p", "pause", "Pause"),
        Binding("g", "purge", "Purge"),
        *(Binding(str(i + 1), f"pane('{name}')", show=False) for i, name in enumerate(_PANES)),
    ]

    def __init__(self, process: Process, interval: float = INTERVAL_SECONDS) -> None:
        super().__init__()
        self._process = process
        self._interval = interval
        self._command = procfs.command(process.pid)
        self.history = History()
        self._active = "memory"
        self._stop = threading.Event()
        self._going = threading.Event()
        self._extent = Size(80, 24)
        self._going.set()
        self._trouble = ""
        self._ended = False

        self._title, self._state, self._tabs = Static(id="title"), Static(id="state"), Static(id="tabs")
        self._memory = panes.MemoryPane(id="memory")
        self._sheets = {
            "rates": panes.rates_sheet(),
            "classes": panes.classes_sheet(),
            "threads": panes.threads_sheet(),
            "learner": panes.learner_sheet(),
        }
        self._panes: dict[str, Widget] = {"memory": self._memory, **self._sheets}
        self._all = Container(*self._panes.values(), id="panes")

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._state
        yield self._tabs
        yield self._all
        yield Footer()

    def on_mount(self) -> None:
        ending.from_outside(self)
        self._extent = self.size
        for name in _PANES:
            self._panes[name].border_title = _PANES[name]
        self._arrange()
        threading.Thread(target=self._read, daemon=True).start()

    def on_unmount(self) -> None:
        self._stop.set()

    # In the reader's thread.
    def _read(self) -> None:
        while not self._stop.is_set():
            self._going.wait()
            started = time.monotonic()
            try:
                self.post_message(Taken(self._process.snapshot()))
            except CannotError as error:
                self.post_message(Failed(error))
                if isinstance(error, EndedError):
                    return
            taken = time.monotonic() - started
            self._stop.wait(max(self._interval - taken, taken / _SHARE - taken, 0.01))

    def on_taken(self, message: Taken) -> None:
        self._trouble = ""
        self.history.add(message.snapshot)
        self._fill()

    def on_failed(self, message: Failed) -> None:
        self._trouble = str(message.error)
        if isinstance(message.error, EndedError):
            self._ended = True
            self._trouble += "; q quits"
        self._show_state()

    def _names(self) -> list[str]:
        """Of the panes that there is something for."""
        newest = self.history.newest
        has_learner = newest is not None and "learner" in newest.more
        return [name for name in _PANES if name != "learner" or has_learner]

    def on_resize(self, event: Resize) -> None:
        self._extent = event.size
        self._arrange()

    def _arrange(self) -> None:
        size = self._extent
        wide = size.width >= _WIDE[0] and size.height >= _WIDE[1]
        names = self._names()
        self._all.set_class(wide, "wide")
        for name, pane in self._panes.items():
            pane.display = name in names and (wide or name == self._active)
        self._tabs.display = not wide
        self._panes[self._active].focus()
        tabs = Text(" ")
        for i, name in enumerate(names):
            tabs.append(f" {i + 1} {_PANES[name]} ", "reverse bold" if name == self._active else "")
            tabs.append(" ")
        self._tabs.update(tabs)
        self._show_state()

    def _fill(self) -> None:
        history = self.history
        if history.newest is None:
            return
        if self._active not in self._names():  # the program learns no more
            self._active = "memory"
            self._arrange()
        self._memory.show(history)
        rates = self._sheets["rates"]
        rates.show(panes.rates_rows(history, rates.wide_column()))
        self._sheets["classes"].show(panes.classes_rows(history))
        self._sheets["threads"].show(panes.threads_rows(history))
        if "learner" in self._names():
            first = not self._sheets["learner"].has_rows()
            self._sheets["learner"].show(panes.learner_rows(history.newest.more["learner"]))
            if first:
                self._arrange()
        self._show_state()

    def _show_state(self) -> None:
        snapshot = self.history.newest
        title = Text(f" {self._process.pid} ", "reverse bold", no_wrap=True, overflow="ellipsis", end="")
        title.append(f" {self._command}", "not reverse bold")
        self._title.update(title)
        parts = []
        if snapshot is not None:
            parts = [
                f"up {words.duration(snapshot.uptime_ms)}",
                *([f"mode {snapshot.mode}"] if snapshot.mode else []),
                f"live {words.count_bytes(snapshot.live_bytes)} of {words.count_bytes(snapshot.parts_bytes)}",
                f"requested {words.count_bytes(self.history.rate('requested_bytes'))}/s",
                _profiler(snapshot),
                _limits(snapshot),
            ]
        state = Text(" ", no_wrap=True, overflow="ellipsis", end="")
        if self._trouble:
            state.append(f" {self._trouble} ", "bold reverse red")
            state.append(" ")
        elif not self._going.is_set():
            state.append(" paused ", "bold reverse")
            state.append(" ")
        state.append(" · ".join(part for part in parts if part))
        self._state.update(state)

    def action_step(self, by: int) -> None:
        names = self._names()
        self.action_pane(names[(names.index(self._active) + by) % len(names)])

    def action_pane(self, name: str) -> None:
        if name in self._names():
            self._active = name
            self._arrange()

    def action_sort(self) -> None:
        pane = self._panes[self._active]
        if isinstance(pane, Sheet):
            self.notify(f"sorted by {pane.sort_by_next()}", timeout=2)

    def action_pause(self) -> None:
        if self._going.is_set():
            self._going.clear()
        else:
            self._going.set()
        self._show_state()

    def action_purge(self) -> None:
        """The command ends after it: what is asked of a process that does not answer is withdrawn."""
        threading.Thread(target=self._purge, daemon=False).start()

    # In a thread of its own.
    def _purge(self) -> None:
        try:
            result = self._process.request(Request.PURGE, given_up=self._stop.is_set)
        except CannotError as error:
            self.post_message(Told(str(error), "warning"))
        else:
            text = "asked to give back what nobody uses" if result == 0 else f"the purge failed: error {result}"
            self.post_message(Told(text))

    def on_told(self, message: Told) -> None:
        self.notify(message.text, severity=message.severity)

    async def action_quit(self) -> None:
        self.exit(0)


def _profiler(snapshot: Snapshot) -> str:
    if "rate_bytes" not in snapshot.profile:
        return ""
    rate = snapshot.profile["rate_bytes"] or 0
    if rate == 0:
        return "profiler off"
    return f"profiler every {words.count_bytes(rate)}, {words.count(snapshot.profile.get('samples', 0))} samples"


def _limits(snapshot: Snapshot) -> str:
    limits = {kind: snapshot.memory.get(f"{kind}_limit_bytes") for kind in ("soft", "hard")}
    return ", ".join(f"{kind} limit {words.count_bytes(limit)}" for kind, limit in limits.items() if limit is not None)
