"""Stacks a line each, the root first: what flame graph tools read."""

from __future__ import annotations

from hakmem_cli.say import printable
from hakmem_observe.stacks import Profile


def encode(profile: Profile, what: str) -> str:
    """`main;work;leaf BYTES`, equal stacks together."""
    stacks: dict[str, int] = {}
    for site in profile.sites:
        line = ";".join(_word(frame.name) for frame in reversed(site.frames()))
        stacks[line] = stacks.get(line, 0) + site.amount(what).bytes
    return "".join(f"{line} {count}\n" for line, count in sorted(stacks.items()) if count)


def _word(function: str) -> str:
    """A name that cannot be taken for more than one, nor for more than one line."""
    return printable(function).replace(";", ":")
