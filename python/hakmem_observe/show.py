"""`prof show`: a profile on the terminal, the sites that hold the most first."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hakmem_cli.say import printable
from hakmem_observe.names import is_standard
from hakmem_observe.stacks import LIFETIMES, VALUES, Amount, Frame, Profile, Site, by_frame, sum_of
from hakmem_observe.words import count, count_bytes, duration

_LEVELS = "▁▂▃▄▅▆▇█"
_CALLERS = 3
_WIDTH = 120
"""Of what does not go to a terminal."""


def console() -> Console:
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=_WIDTH)


def show(profile: Profile, what: str, rows: int, out: Console) -> None:
    groups = sorted(by_frame(profile), key=lambda group: -_total(group[1], what).bytes)
    groups = [group for group in groups if _total(group[1], what).bytes]
    for line in summary(profile):
        out.print(Text(line))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in VALUES:
        table.add_column(name, justify="right", no_wrap=True, style="bold" if name == what else "")
    table.add_column("blocks", justify="right", no_wrap=True)
    table.add_column("freed after", no_wrap=True)
    table.add_column("allocated by", overflow="fold", ratio=1)
    for frame, sites in groups[:rows]:
        cells = [count_bytes(_total(sites, name).bytes) for name in VALUES]
        table.add_row(*cells, count(_total(sites, what).objects), bars(sites), _where(frame, sites, what))
    out.print(table)
    if len(groups) > rows:
        out.print(Text(f"{len(groups) - rows} more; --top N shows more"))
    out.print(Text(f"blocks: of those that are {what}. freed after: {', '.join(LIFETIMES)}; '·' none.", style="dim"))
    for note in profile.notes:
        out.print(Text(f"note: {printable(note)}", style="yellow"))


def summary(profile: Profile) -> list[str]:
    totals = ", ".join(f"{count_bytes(profile.total(name).bytes)} {name}" for name in VALUES)
    sampled = f"one sample in {count_bytes(profile.rate)}" if profile.rate > 1 else "every block"
    age = duration(max(profile.now_ms - profile.started_ms, 0))
    process = f"process {profile.pid}"
    who = f"{printable(profile.program)}, {process}" if profile.program else process
    return [f"{who}: {totals}", f"{sampled}, over {age}"]


def _total(sites: list[Site], what: str) -> Amount:
    return sum_of(site.amount(what) for site in sites)


def bars(sites: list[Site]) -> str:
    """How old blocks were when they were freed: a bar for each of the ages."""
    sums = [sum(site.lifetimes[at] for site in sites) for at in range(len(LIFETIMES))]
    most = max(sums)
    return "".join(_LEVELS[min(number * 8 // most, 7)] if number else "·" for number in sums) if most else "never"


def _where(frame: Frame, sites: list[Site], what: str) -> Text:
    text = Text(printable(frame.name), style="bold")
    if frame.place:
        text.append(f" {printable(frame.short_place)}", style="cyan")
    for caller in _callers(max(sites, key=lambda site: site.amount(what).bytes)):
        text.append(f" ← {printable(caller.name)}", style="dim")
        if caller.place:
            text.append(f" {printable(caller.short_place)}", style="dim cyan")
    others = len({_callers(site) for site in sites if site.amount(what).bytes}) - 1
    if others > 0:
        text.append(f" and {others} other {'stack' if others == 1 else 'stacks'}", style="dim")
    return text


def _callers(site: Site) -> tuple[Frame, ...]:
    """Without the standard library, whose callers say more than it does itself."""
    return tuple(one for one in site.frames()[1:] if not is_standard(one.function))[:_CALLERS]
