"""The flame graph's tree: calls from the root, with the bytes of all that is above them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hakmem_observe.names import printable
from hakmem_observe.stacks import VALUES, Frame, Profile

_SMALLEST = 1 / 5000
"""Of the total: what is less in all values cannot be seen, and is left out."""
_DEEPEST = 256


@dataclass
class _Node:
    name: str
    place: str = ""
    values: list[int] = field(default_factory=lambda: [0] * len(VALUES))
    children: dict[Frame, _Node] = field(default_factory=dict)

    def told(self, least: list[float]) -> dict[str, Any]:
        children = [child.told(least) for child in self.children.values() if child.is_visible(least)]
        told: dict[str, Any] = {"n": self.name, "v": self.values}
        if self.place:
            told["p"] = self.place
        if children:
            told["c"] = children
        return told

    def is_visible(self, least: list[float]) -> bool:
        return any(value > smallest for value, smallest in zip(self.values, least))


def tree(profile: Profile) -> dict[str, Any]:
    root = _Node(profile.modules[0].name if profile.modules else "all")
    for site in profile.sites:
        values = [site.amount(what).bytes for what in VALUES]
        node = root
        _add(node, values)
        # What is nearest to the allocation is kept if a stack is very deep.
        for frame in reversed(site.frames()[:_DEEPEST]):
            shown = Frame(printable(frame.name), printable(frame.file), frame.line)
            found = node.children.get(shown)
            if found is None:
                found = node.children[shown] = _Node(shown.function, shown.place)
            node = found
            _add(node, values)
    return root.told([value * _SMALLEST for value in root.values])


def _add(node: _Node, values: list[int]) -> None:
    for at, value in enumerate(values):
        node.values[at] += value
