"""A profile and a recorded series as one page that needs nothing else."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

from hakmem_cli.say import printable
from hakmem_observe import report_classes, report_flame, report_map, report_series, report_sites
from hakmem_observe.snapshot import Snapshot
from hakmem_observe.stacks import VALUES, Profile
from hakmem_observe.words import count, count_bytes, duration

_HERE = Path(__file__).parent
_HOUSE = _HERE.parent / "hakmem_bench" / "templates"
"""Whose colours all our pages have."""
_SCRIPTS = ("common.js", "memory.js", "map.js", "flame.js", "tables.js")


@dataclass(frozen=True)
class Given:
    """What the page is made from; one of them at least is there."""

    profile: Profile | None
    series: list[Snapshot]  # of one process
    files: list[str]
    caution: str = ""
    """About what the series has, and the page does not show."""


def render(given: Given) -> str:
    profile, series = given.profile, given.series
    last = series[-1] if series else None
    # Snapshots of one moment, as of a program that ended at once, are no line over time.
    chart = report_series.chart(series) if series and series[0].uptime_ms < series[-1].uptime_ms else None
    superslabs = report_map.of(last) if last else None
    data = {
        "chart": chart,
        "map": superslabs,
        "flame": report_flame.tree(profile) if profile and profile.sites else None,
        "values": list(VALUES),
    }
    return (
        _templates()
        .get_template("report.html")
        .render(
            title=_title(given),
            facts=_facts(given),
            cards=_cards(given),
            cautions=_cautions(given),
            profile=profile,
            series=series,
            last=last,
            chart=chart,
            parts=report_series.table(series) if series else [],
            purged=report_series.purged_bytes(series) if series else 0,
            decisions=report_series.decisions(series) if series else [],
            classes=report_classes.rows(last, profile) if last else [],
            superslabs=superslabs,
            sites=report_sites.rows(profile) if profile else [],
            files=given.files,
            values=VALUES,
            data=embedded(data),
            size=count_bytes,
            count=count,
            duration=duration,
        )
    )


def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_HERE / "templates", _HOUSE]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["vendored"] = lambda name: _text(_HERE / "vendor" / name)
    environment.globals["scripts"] = [_text(_HERE / "templates" / name) for name in _SCRIPTS]
    return environment


def _text(path: Path) -> markupsafe.Markup:
    return markupsafe.Markup(path.read_text(encoding="utf-8"))


def embedded(data: Any) -> markupsafe.Markup:
    """JSON in a <script> element: no name in it can end the element or begin another."""
    text = json.dumps(data, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return markupsafe.Markup(text)


def _program(given: Given) -> str:
    main = given.profile.main if given.profile else None
    return printable(main.name) if main else ""


def _pid(given: Given) -> int:
    return given.profile.pid if given.profile else given.series[-1].pid


def _title(given: Given) -> str:
    return f"{_program(given)}, process {_pid(given)}" if _program(given) else f"Process {_pid(given)}"


def _facts(given: Given) -> list[str]:
    facts = []
    if given.series:
        first, last = given.series[0], given.series[-1]
        if last.library:
            facts.append(f"hakmem {printable(last.library)}")
        facts.append(f"recorded {_clock(first.unix_ms)} to {_clock(last.unix_ms)}, {len(given.series)} snapshots")
    if given.profile:
        sampled = (
            f"one sample in {count_bytes(given.profile.rate)}" if given.profile.rate > 1 else "every block sampled"
        )
        over = duration(max(given.profile.now_ms - given.profile.started_ms, 0))
        facts.append(f"profile of {_clock(given.profile.now_ms)}, {sampled}, over {over}")
    return facts


def _clock(ms: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))
    except (ValueError, OverflowError, OSError):
        return "?"


def _cards(given: Given) -> list[tuple[str, str, str]]:
    """Heading, number, explanation."""
    cards = []
    if given.series:
        last = given.series[-1]
        peak = max(given.series, key=lambda one: one.live_bytes)
        extra = last.parts_bytes - last.live_bytes
        cards.append(("Live at the end", count_bytes(last.live_bytes), f"at most {count_bytes(peak.live_bytes)}"))
        part = f"{100 * extra / last.parts_bytes:.0f} % of all it has" if last.parts_bytes else ""
        cards.append(("Free or the allocator's own", count_bytes(extra), part))
        if len(given.series) > 1:
            cards.append(("Given back to the system", count_bytes(report_series.purged_bytes(given.series)), "in all"))
    if given.profile:
        live, allocated = given.profile.total("live"), given.profile.total("allocated")
        cards.append(("Live, profiled", count_bytes(live.bytes), f"about {count(live.objects)} blocks"))
        cards.append(("Allocated, profiled", count_bytes(allocated.bytes), f"about {count(allocated.objects)} blocks"))
    return cards


def _cautions(given: Given) -> list[str]:
    cautions = [printable(note) for note in given.profile.notes] if given.profile else []
    if given.caution:
        cautions.append(given.caution)
    if given.profile and given.series and given.profile.pid != given.series[-1].pid:
        cautions.append(
            f"The profile is of process {given.profile.pid}, the series of process {given.series[-1].pid}: "
            "what follows shows two processes."
        )
    return cautions
