"""A snapshot as text for Prometheus, in either of its forms: OpenMetrics (https://prometheus.io/docs/specs/om/open_metrics_spec/),
and the older one, which node_exporter reads from files."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from hakmem_observe import words
from hakmem_observe.snapshot import PARTS, Number, Snapshot

_UNITS = ("bytes", "seconds")
# Of rows of classes and threads: how it is now, as is what "memory" has too. All else there is a sum since the start.
_ROW_GAUGES = ("live_blocks", "cached_blocks", "slabs", "slab_free_blocks", "live_bytes", "cached_bytes")


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Form(Enum):
    OPENMETRICS = "openmetrics"
    PROMETHEUS = "prometheus"


class _Families:
    """Metric families in order of their names' first use; the samples of a family stand together."""

    def __init__(self, snapshot: Snapshot, form: Form) -> None:
        self._form = form
        # One reader may be given files of several processes.
        self._labels = {"pid": snapshot.pid} if form is Form.PROMETHEUS else {}
        self._lines: dict[str, list[str]] = {}
        self._kinds: dict[str, str] = {}
        self._about = {**words.ABOUT, **snapshot.about}
        self.row_gauges = {*_ROW_GAUGES, *snapshot.memory} - {*words.COUNTER_BYTES}

    def add(self, name: str, value: Number, kind: str, about: str = "", **labels: object) -> None:
        """`about`: a name that has a text, or the text itself."""
        if value is None:
            return
        family = "hakmem_" + re.sub(r"[^A-Za-z0-9_]", "_", name)
        family = family.removesuffix("_total") if kind == "counter" else family
        if self._kinds.setdefault(family, kind) != kind:
            return  # a name of two kinds: the first one counts
        sample = family + {"counter": "_total", "info": "_info"}.get(kind, "")
        if family not in self._lines:
            self._lines[family] = self._head(family, sample, kind, self._about.get(about or name, about))
        shown = ",".join(f'{key}="{_quote(str(label))}"' for key, label in {**self._labels, **labels}.items())
        braces = f"{{{shown}}}" if shown else ""
        self._lines[family].append(f"{sample}{braces} {value}")

    def _head(self, family: str, sample: str, kind: str, text: str) -> list[str]:
        """The older form knows no families and no units, and nothing of kind info."""
        is_old = self._form is Form.PROMETHEUS
        named = sample if is_old else family
        lines = [f"# TYPE {named} {'gauge' if is_old and kind == 'info' else kind}"]
        unit = family.rpartition("_")[2]
        lines += [f"# UNIT {family} {unit}"] if unit in _UNITS and not is_old else []
        return lines + ([f"# HELP {named} {_quote(text)}"] if text else [])

    def text(self) -> str:
        end = "# EOF\n" if self._form is Form.OPENMETRICS else ""
        return "\n".join(line for lines in self._lines.values() for line in lines) + "\n" + end


def _about_row(prefix: str, name: str) -> str:
    """A thread's columns have texts of their own; other metrics of these names are not the same."""
    return words.ABOUT.get(name, name) if prefix == "thread" else name


def _add_rows(families: _Families, prefix: str, rows: list[dict[str, Any]], keys: dict[str, str]) -> None:
    """`keys` are the columns that name a row, and their labels."""
    for row in rows:
        labels = {label: row.get(key, 0) for key, label in keys.items()}
        for name, value in row.items():
            if name == "waited_ns":
                name, value = "waited_seconds", (value or 0) / 1e9
            if name not in keys and isinstance(value, (int, float)):
                kind = "gauge" if name in families.row_gauges else "counter"
                families.add(f"{prefix}_{name}", value, kind, _about_row(prefix, name), **labels)


def render(snapshot: Snapshot, form: Form = Form.OPENMETRICS) -> str:
    families = _Families(snapshot, form)
    families.add("library", 1, "info", "which library it is", version=snapshot.library, pid=snapshot.pid)
    if snapshot.mode:
        families.add("mode", 1, "info", "which values the allocator's policy has", mode=snapshot.mode)
    families.add("uptime_seconds", snapshot.uptime_ms / 1000, "gauge", "age of the process")
    families.add("snapshot_unix_seconds", snapshot.unix_ms / 1000, "gauge", "when these statistics were taken")
    for name in PARTS:
        if name in snapshot.memory:
            about = "memory by state; the states do not overlap"
            families.add("memory_state_bytes", snapshot.memory[name], "gauge", about, state=name.removesuffix("_bytes"))
    for name, value in snapshot.memory.items():
        if name not in PARTS:
            kind = "counter" if name in words.COUNTER_BYTES else "gauge"
            families.add(f"memory_{name}", value, kind, name)
    for name, value in snapshot.counters.items():
        families.add(name, value, "counter")
    _add_rows(families, "class", snapshot.classes, {"class": "class", "size": "size"})
    for row in snapshot.threads:  # apart: the sums stay with the heap, whose thread may be another by and by
        labels = {"heap": row.get("heap", 0), "thread": row.get("thread", 0)}
        families.add("heap", 1, "info", "which thread has the heap", **labels)
    sums = [{name: value for name, value in row.items() if name != "thread"} for row in snapshot.threads]
    _add_rows(families, "thread", sums, {"heap": "heap"})
    _add_rows(families, "lock", snapshot.locks, {"name": "lock"})
    for name, value in snapshot.os.items():
        if name != "calls":  # the sum of the others
            families.add("system_calls", value, "counter", "calls of the system, by name", call=name)
    for name, value in snapshot.profile.items():
        kind = "counter" if name in ("samples", "dropped") else "gauge"
        families.add(f"profile_{name}", value, kind, name)
    learner = snapshot.more.get("learner")
    for name, value in learner.items() if isinstance(learner, dict) else ():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            families.add(f"learner_{name}", value, "gauge", name)
    return families.text()
