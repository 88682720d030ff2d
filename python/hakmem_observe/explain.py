"""`hakmem explain`: what was learned, from what evidence, what it changed and what it saved, in sentences."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hakmem_cli import policy_text, policy_words
from hakmem_cli.amounts import grouped, plural
from hakmem_cli.policy_lines import Line
from hakmem_cli.policy_words import share
from hakmem_cli.say import CannotError, printable
from hakmem_observe import processes, procfs, report_series, waiting, words
from hakmem_observe.remote import Process, Request
from hakmem_observe.snapshot import Snapshot, decode_series, read_series

USE = (
    "hakmem explain PID|FILE [--pid N] [--all] [--wait SECONDS]; FILE: statistics, or a learned policy; "
    "one whose name is a number: ./NUMBER"
)

_LATEST = 20
_MOST_INDEX = 64  # of a knob that there is one of for each class, or for large blocks by their size

_STATES = {
    "learns": "It is learning: policies compete, in epochs by turns.",
    "frozen": "It has settled: the best policy it knows is in force, and it watches whether the program changes.",
    "canary": "It is trying, for one match, whether the policy in force is still the best.",
    "rests": "It rests: what it tried has not paid for itself, and the mode's own values are in force.",
}

_EVENTS = {
    "drifts": "The program changed {}, and was learned anew.",
    "rollbacks": "A policy cost more than the one it was compared with, and was taken back {}.",
    "kills": "Learning was stopped {} because it did not pay.",
}

# Less than a tenth of a percent of the cost is said to be nothing.
_NOTABLE_PPM = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="PID|FILE", help="a process, a file of statistics, or a learned policy")
    processes.add_argument(parser)
    waiting.add_argument(parser)
    parser.add_argument("--all", action="store_true", help=f"all decisions, not only the latest {_LATEST}")


def _number(told: dict[str, Any], name: str) -> float:
    value = told.get(name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def _cost(told: dict[str, Any]) -> Iterator[str]:
    """In nanoseconds for each MiB that the program requests."""
    before, now, saved = (_number(told, name) for name in ("mode_cost", "cost", "saved_ppm"))
    if before and now:
        yield (
            f"For each MiB that the program requests, the allocator now costs {now / 1000:.3g} µs; with the mode's own"
            f" values it cost {before / 1000:.3g} µs."
        )
    if saved >= _NOTABLE_PPM:
        yield f"All in all, what was tried in vain included, {share(saved)} of the cost was saved."
    elif saved <= -_NOTABLE_PPM:
        yield f"All in all, what was tried has cost {share(-saved)} more than it saved so far."
    elif now:
        yield "All in all, learning has neither saved nor cost anything worth mentioning so far."


def _remembered(snapshot: Snapshot) -> Iterator[str]:
    told = snapshot.more.get("remembered")
    if isinstance(told, dict):
        epochs, ms = _number(told, "epochs"), int(_number(told, "seconds") * 1000)
        if epochs:
            over = policy_words.duration(ms)
            yield f"It began with what earlier runs had learned, in {plural(epochs, 'epoch')} over {over}."
        else:
            yield "It began with a policy that names no epochs in which it was learned."


def _rows(snapshot: Snapshot, name: str) -> list[dict[str, Any]]:
    told = snapshot.more.get(name)
    return [row for row in told if isinstance(row, dict)] if isinstance(told, list) else []


def _fitted(snapshot: Snapshot) -> bool:
    """Has it opened or closed size classes, and may go on?"""
    kinds = [str(row.get("kind")) for row in _rows(snapshot, "decisions")]
    return snapshot.mode in ("balanced", "minimal") and any(kind.startswith("class ") for kind in kinds)


def _learner(snapshot: Snapshot) -> Iterator[str]:
    told = snapshot.more.get("learner")
    mode = f"mode {snapshot.mode}" if snapshot.mode else "the mode"
    if not isinstance(told, dict) or told.get("learns") == "off":
        but = ", but for what is listed below" if any(_knobs(snapshot)) else ""
        yield f"Nothing learns: the learner is off. What is in force are the values of {mode}{but}."
        if _fitted(snapshot):
            yield "Size classes were opened or closed for it all the same, as in each process with large heaps."
        return
    if told.get("learns") == "observe":
        yield "The learner only watches: it changes nothing, and says what it would do. What it expects are estimates."
    epochs = _number(told, "epochs")
    if epochs:
        matches = _number(told, "matches")
        rival = f", in {plural(matches, 'match', 'matches')} of policies" if matches else ""
        yield f"It has learned from {plural(epochs, 'epoch')}{rival}."
    else:
        yield "It has learned nothing yet: the program has not requested enough memory."
    state = told.get("state")
    if isinstance(state, str) and state in _STATES:
        yield _STATES[state]
    yield from _cost(told)
    for name, text in _EVENTS.items():
        count = _number(told, name)
        if count:
            yield text.format("once" if count == 1 else f"{grouped(count)} times")


def _is_below(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most


def _knobs(snapshot: Snapshot) -> Iterator[str]:
    """What differs from the mode, and who has set it."""
    rows = _rows(snapshot, "knobs")
    for pinned in (False, True):
        lines = []
        for row in rows:
            name, index, value = row.get("name"), row.get("index"), row.get("value")
            is_knob = isinstance(name, str) and name.isidentifier() and _is_below(value, 1 << 64)
            is_knob = is_knob and (index is None or _is_below(index, _MOST_INDEX))
            if is_knob and bool(row.get("pinned")) == pinned:
                lines.append(Line("knob", name if index is None else f"{name}[{index}]", str(value)))
        if lines:
            yield "Set by the environment:" if pinned else f"Other than in mode {snapshot.mode}:"
            yield from (f"  - {printable(sentence)}" for sentence in policy_words.knob_sentences(lines))


def _decisions(series: list[Snapshot], most: int | None) -> Iterator[str]:
    found = report_series.decisions(series)
    left_out = len(found) - most if most is not None else 0
    if found:
        yield "Decisions, by seconds since the start:"
    if left_out > 0:
        yield f"  … {plural(left_out, 'earlier one')}: --all"
    for one in found[max(left_out, 0) :]:
        yield f"  {one['seconds']:>9.1f}  {one['text']}"


def of_series(series: list[Snapshot], what: str, most: int | None = _LATEST) -> list[str]:
    last = series[-1]
    mode = f"mode {last.mode}" if last.mode else ""
    age = f"up {words.duration(last.uptime_ms)}" if last.uptime_ms else ""
    head = ", ".join(part for part in (f"Process {last.pid}", what, mode, age) if part)
    return [printable(head), *_remembered(last), *_learner(last), *_knobs(last), *_decisions(series, most)]


def _of_process(pid: int, wait_seconds: float | None) -> list[Snapshot]:
    """As the process writes it, on its page or when it is asked: from outside neither decisions nor knobs are read."""
    process = Process(pid)
    taken = process.snapshot()
    if "knobs" in taken.more:
        return [taken]
    with process.scratch() as scratch:
        path = f"{scratch.inside}/statistics"
        result = process.request(Request.WRITE_STATISTICS, path=path, wait_seconds=wait_seconds)
        if result:
            raise CannotError(f"process {pid}: its statistics cannot be written: {os.strerror(result)}")
        series = decode_series(scratch.read("statistics"), f"process {pid}")
        return [replace(told, pid=pid) for told in series]  # in its container it may have another number


def _of_file(path: Path, pid: int | None, most: int | None) -> list[str]:
    if not path.is_file():
        kind = "a directory" if path.is_dir() else "no regular file"
        what = kind if path.exists() else "no such file"
        raise CannotError(f"{path}: {what}; legal are a process's number, statistics, or a learned policy")
    with path.open("rb") as file:
        start = file.read(65536).decode(errors="replace")
    if not policy_text.is_policy(start):
        chosen = processes.choose(read_series(path), pid)
        return [*of_series(chosen.series, path.name, most), *([chosen.caution] if chosen.caution else [])]
    if pid is not None:
        raise CannotError(f"--pid {pid}: only with a file of statistics, and {path} is a learned policy")
    lines = []
    for part in policy_text.read(path):
        lines += [printable(part.name), f"  {policy_words.evidence(part)} Loaded by that program, it means:"]
        lines += [f"  - {printable(sentence)}" for sentence in policy_words.sentences(part)]
    return lines or [f"{path}: no program"]


def explain(parsed: argparse.Namespace) -> int:
    most = None if parsed.all else _LATEST
    if parsed.source.isdigit():
        if parsed.pid is not None:
            raise CannotError(f"--pid {parsed.pid}: only with a file of statistics, and {parsed.source} is a process")
        pid = procfs.parse_pid(parsed.source)
        lines = of_series(_of_process(pid, parsed.wait), procfs.command(pid), most)
    else:
        if parsed.wait is not None:
            raise CannotError(f"--wait {parsed.wait:g}: only with a process, and {parsed.source} is a file")
        lines = _of_file(Path(parsed.source), parsed.pid, most)
    print("\n".join(lines))
    return 0
