"""Which process to watch, if there are several."""

from __future__ import annotations

import os
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from hakmem_cli.say import CannotError
from hakmem_observe import locate, procfs, words
from hakmem_observe.watch import ending


def _uses_hakmem(pid: int, inside: dict[tuple[int, int], bool]) -> bool:
    """`inside`: whether the library is linked into a program, by what its file is."""
    if any(locate.is_library(mapping) for mapping in procfs.mappings(pid)):
        return True
    program = procfs.directory(pid) / "exe"
    file = program.stat()
    key = file.st_dev, file.st_ino
    if key not in inside:
        inside[key] = locate.value_in_data(program) is not None
    return inside[key]


def processes() -> list[int]:
    """Of this user (root: of all) with the library mapped, or linked in."""
    found = []
    inside: dict[tuple[int, int], bool] = {}
    for pid in procfs.all_processes():
        try:
            mine = os.geteuid() in (0, procfs.owner(pid)[0])
            if mine and pid != os.getpid() and _uses_hakmem(pid, inside):
                found.append(pid)
        except (CannotError, OSError, ValueError, KeyError):
            continue  # it has ended, or is none of ours
    return sorted(found)


def describe(pid: int) -> str | None:
    """None if it has ended."""
    try:
        return f"{pid:>8}  {words.count_bytes(procfs.resident_bytes(pid)):>9}  {procfs.command(pid)}"
    except (CannotError, OSError):
        return None


class Chooser(App[int]):
    """Its result is the process's number; None: nobody chose."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: 1; text-style: bold; }
    OptionList { height: 1fr; border: none; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape,ctrl+c", "leave", "Quit", key_display="q", priority=True),
        Binding("enter", "none", "Watch"),
        Binding("r", "look", "Look again"),
    ]

    def compose(self) -> ComposeResult:
        yield Static(f"{'process':>10}  {'resident':>9}  command", id="head")
        yield OptionList()
        yield Footer()

    def on_mount(self) -> None:
        ending.from_outside(self)
        self.action_look()

    def action_look(self) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        for pid in processes():
            text = describe(pid)
            if text is not None:
                options.add_option(Option(text.replace("[", "\\["), id=str(pid)))
        options.highlighted = 0
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.exit(int(event.option.id or 0))

    def action_leave(self) -> None:
        self.exit(None)

    def action_none(self) -> None:
        """Enter is the list's own."""
