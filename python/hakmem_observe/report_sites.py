"""The table of sites: who asked for the memory, how much, and how long the blocks lived."""

from __future__ import annotations

from dataclasses import dataclass

from hakmem_cli.say import printable
from hakmem_observe.stacks import LIFETIMES, VALUES, Amount, Frame, Profile, Site, by_frame, sum_of

_MOST = 100
_DEEPEST = 40


@dataclass(frozen=True)
class SiteRow:
    function: str
    place: str
    short_place: str
    amounts: dict[str, Amount]
    stack: list[tuple[str, str]]
    """Of the stack with most: function and place, from the one that asked for the memory."""
    stacks: int
    lifetimes: list[int]

    @property
    def freed(self) -> int:
        return sum(self.lifetimes)

    @property
    def bars(self) -> list[tuple[str, int, int]]:
        """Age, blocks, and height in percent."""
        most = max(self.lifetimes) or 1
        return [(age, count, round(100 * count / most)) for age, count in zip(LIFETIMES, self.lifetimes)]

    @property
    def middle(self) -> int:
        """The age by which half of the freed blocks were gone, as its number among the ages; -1: none was freed."""
        seen = 0
        for at, count in enumerate(self.lifetimes):
            seen += count
            if count and 2 * seen >= self.freed:
                return at
        return -1

    @property
    def typical(self) -> str:
        return LIFETIMES[self.middle] if self.freed else "never"


def rows(profile: Profile) -> list[SiteRow]:
    found = [_row(frame, sites) for frame, sites in by_frame(profile)]
    found.sort(key=lambda row: tuple(-row.amounts[what].bytes for what in VALUES))
    # A site may be high in one value only.
    shown = {id(row): row for row in found[:_MOST]}
    for what in VALUES:
        shown.update({id(row): row for row in sorted(found, key=lambda one: -one.amounts[what].bytes)[: _MOST // 4]})
    return [row for row in found if id(row) in shown]


def _row(frame: Frame, sites: list[Site]) -> SiteRow:
    biggest = max(sites, key=lambda site: (site.live.bytes, site.allocated.bytes))
    return SiteRow(
        function=printable(frame.name),
        place=printable(frame.place),
        short_place=printable(frame.short_place),
        amounts={what: sum_of(site.amount(what) for site in sites) for what in VALUES},
        stack=[(printable(one.name), printable(one.short_place)) for one in biggest.frames()[:_DEEPEST]],
        stacks=len({tuple(call.address for call in site.calls) for site in sites}),
        lifetimes=[sum(site.lifetimes[at] for site in sites) for at in range(len(LIFETIMES))],
    )
