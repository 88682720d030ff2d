"""A table that scrolls under its header and can be sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Union

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import MouseScrollDown, MouseScrollUp
from textual.widget import Widget

Key = Union[float, str]


@dataclass(frozen=True)
class Column:
    title: str
    width: int  # in characters; 0: what is left
    right: bool = True


@dataclass(frozen=True)
class Cell:
    text: str
    key: Key  # what it is sorted by


def number(text: str, key: float) -> Cell:
    return Cell(text, key)


def word(text: str) -> Cell:
    return Cell(text, text)


class Sheet(Widget, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("home", "move(-100000)", show=False),
        Binding("end", "move(100000)", show=False),
    ]

    def __init__(self, columns: list[Column], *, sort: int | None = 0, nothing: str = "nothing yet", id: str) -> None:
        super().__init__(id=id)
        self._columns = columns
        self._sort = sort  # None: the order in which the rows come
        self._nothing = nothing
        self._rows: list[list[Cell]] = []
        self._first = 0

    def show(self, rows: list[list[Cell]]) -> None:
        self._rows = rows
        self._order()
        self.refresh()

    def has_rows(self) -> bool:
        return bool(self._rows)

    def sort_by_next(self) -> str:
        """The new column's title."""
        self._sort = 0 if self._sort is None else (self._sort + 1) % len(self._columns)
        self._order()
        self.refresh()
        return self._columns[self._sort].title

    def _order(self) -> None:
        sort = self._sort
        if sort is not None:
            is_word = any(isinstance(row[sort].key, str) for row in self._rows)
            self._rows.sort(key=lambda row: str(row[sort].key) if is_word else row[sort].key, reverse=not is_word)

    def _room(self) -> int:
        return max(1, self.size.height - 2)

    def action_move(self, by: int) -> None:
        self._first = max(0, min(self._first + by, len(self._rows) - self._room()))
        self.refresh()

    def on_mouse_scroll_down(self, _: MouseScrollDown) -> None:
        self.action_move(3)

    def on_mouse_scroll_up(self, _: MouseScrollUp) -> None:
        self.action_move(-3)

    def wide_column(self) -> int:
        """Characters for the column that takes what is left."""
        taken = sum(column.width + 1 for column in self._columns if column.width)
        return max(8, self.size.width - taken - 1)

    def _line(self, cells: list[str], style: str, marked: int | None = None) -> Text:
        line = Text(no_wrap=True, end="")
        for i, (column, text) in enumerate(zip(self._columns, cells)):
            width = column.width or self.wide_column()
            text = text if len(text) <= width else text[: width - 1] + "…"
            line.append(
                text.rjust(width) if column.right else text.ljust(width), f"{style} reverse" if i == marked else style
            )
            line.append(" ")
        line.truncate(max(1, self.size.width))
        return line

    def render(self) -> Text:
        """The header, as many rows as there is room for, and which these are."""
        room = self._room()
        self._first = max(0, min(self._first, len(self._rows) - room))
        lines = [self._line([column.title for column in self._columns], "bold", self._sort)]
        shown = self._rows[self._first : self._first + room]
        lines += [self._line([cell.text for cell in row], "") for row in shown]
        if not self._rows:
            lines.append(Text(self._nothing, "dim"))
        elif len(shown) < len(self._rows):
            told = f"{self._first + 1} to {self._first + len(shown)} of {len(self._rows)}; ↑ ↓ move"
            lines.append(Text(told, "dim"))
        return Text("\n").join(lines)
