"""The flame graph's tree: calls from the root, with the bytes of all that is above them."""

from __future__ import annotations

from typing import Any

from hakmem_cli.say import printable
from hakmem_observe.stacks import VALUES, Frame, Profile

_SMALLEST = 1 / 5000
"""Of the total: what is less in all values cannot be seen, and is left out."""
_DEEPEST = 256


class _Node:
    __slots__ = ("values", "children")

    def __init__(self) -> None:
        self.values = [0] * len(VALUES)
        """While the tree is built, of stacks that end here; then of all that go through here."""
        self.children: dict[Frame, _Node] = {}

    def sum_up(self) -> list[int]:
        for child in self.children.values():
            for at, value in enumerate(child.sum_up()):
                self.values[at] += value
        return self.values

    def told(self, frame: Frame, least: list[float]) -> dict[str, Any]:
        children = [child.told(one, least) for one, child in self.children.items() if child.is_visible(least)]
        told: dict[str, Any] = {"n": printable(frame.name), "v": self.values}
        if frame.place:
            told["p"] = printable(frame.place)
        if children:
            told["c"] = children
        return told

    def is_visible(self, least: list[float]) -> bool:
        return any(value > smallest for value, smallest in zip(self.values, least))


def tree(profile: Profile) -> dict[str, Any]:
    root = _Node()
    for site in profile.sites:
        node = root
        # What is nearest to the allocation is kept if a stack is very deep.
        for frame in reversed(site.frames()[:_DEEPEST]):
            found = node.children.get(frame)
            if found is None:
                found = node.children[frame] = _Node()
            node = found
        for at, what in enumerate(VALUES):
            node.values[at] += site.amount(what).bytes
    values = root.sum_up()
    name = profile.main.name if profile.main else "all"
    return root.told(Frame(name), [value * _SMALLEST for value in values])
