"""Objects that come and go: classes, dictionaries, lists, strings, cycles for the collector.

objects.py ROUNDS
"""

from __future__ import annotations

import gc
import random
import sys

ACCOUNTS = 4000
EVENTS_PER_ROUND = 20000


class Event:
    """A small object with a dictionary of its own."""

    def __init__(self, number: int, kind: str, previous: Event | None) -> None:
        self.number = number
        self.kind = kind
        self.previous = previous
        self.tags = [kind, str(number % 97)]
        self.attributes = {"label": f"{kind}-{number:06d}", "size": str(number * 7919)}


class Point:
    """A small object without one."""

    __slots__ = ("x", "y", "partner")

    def __init__(self, x: float, y: float) -> None:
        self.x = x
        self.y = y
        self.partner: Point | None = None


def fill(accounts: list[list[Event]], source: random.Random, start: int) -> None:
    """New events at random accounts, of which each keeps its last few."""
    kinds = ("open", "pay", "refund", "close")
    for number in range(start, start + EVENTS_PER_ROUND):
        history = accounts[source.randrange(ACCOUNTS)]
        history.append(Event(number, kinds[number % 4], history[-1] if history else None))
        if len(history) > 12:
            history[0].previous = None
            del history[: source.randrange(1, 8)]
            history[0].previous = None


def totals(accounts: list[list[Event]]) -> dict[str, int]:
    """Events by tag, through strings that are made and dropped."""
    result: dict[str, int] = {}
    for history in accounts:
        for event in history:
            tag = "/".join([*event.tags, event.kind.upper(), event.attributes["label"][-1]])
            result[tag] = result.get(tag, 0) + 1
    return result


def cycles(count: int) -> float:
    """Pairs that point at each other: only the collector frees them."""
    points = [Point(i * 0.5, i * 0.25) for i in range(count)]
    for point, other in zip(points, reversed(points)):
        point.partner = other
    return sum(point.x - (point.partner.y if point.partner else 0.0) for point in points)


def main() -> None:
    rounds = int(sys.argv[1])
    source = random.Random(7)
    accounts: list[list[Event]] = [[] for _ in range(ACCOUNTS)]
    checksum = 0.0
    for turn in range(rounds):
        fill(accounts, source, turn * EVENTS_PER_ROUND)
        found = totals(accounts)
        if sum(found.values()) != sum(map(len, accounts)):
            sys.exit("objects.py: an event was lost")
        checksum += cycles(5000) + len(sorted(found))
    gc.collect()
    print("checksum", checksum, sum(history[-1].number for history in accounts if history))


main()
