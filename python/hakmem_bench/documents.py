"""What docs/ shows of a result file: whole pages, or generated parts of pages that are otherwise written by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from hakmem_bench import (
    attack_section,
    attacks,
    cost_section,
    learning_chart,
    learning_run,
    learning_section,
    learning_warm_section,
    markdown,
    memory_page,
    watching,
)
from hakmem_bench import figures as fig
from hakmem_bench.model import ROOT, CannotError, Result, read

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = ROOT / "docs"
_NOTES = ROOT / "bench" / "notes.json"
_LESS = {"--quick", "--tests", "--peers", "--no-counts"}
_LEAST_REPETITIONS = 3


def showing(path: Path, docs: Path) -> dict[Path, str]:
    """The files in `docs` that show the result file, each with its text as it should be. Nothing is written."""
    if attacks.is_result(path):
        safety = docs / "safety.md"
        return {safety: attack_section.put_into(safety.read_text(encoding="utf-8"), attacks.read(path))}
    return dict(_of_result(read(path), docs))


def _of_result(result: Result, docs: Path) -> Iterator[tuple[Path, str]]:
    if watching.is_result(result):
        page = docs / "observability.md"
        yield page, watching.put_into(page.read_text(encoding="utf-8"), result)
    elif learning_run.is_result(result):
        yield from _of_learning(result, docs)
    elif (part := cost_section.part_of(result)) is not None:
        page = docs / part.document
        yield page, cost_section.put_into(page.read_text(encoding="utf-8"), part, result)
    else:
        _check_whole(result)
        notes: dict[str, str] = json.loads(_NOTES.read_text())
        yield docs / "benchmarks.md", markdown.benchmarks_page(result, notes)
        yield docs / "benchmarks.svg", markdown.picture(result)
        yield docs / "memory.md", memory_page.memory_page(result, notes)
        yield docs / "memory.svg", memory_page.picture(result)


def _measures_less(asked: str) -> bool:
    """Than all tests and counts, with all peers, often enough for an interval."""
    repetitions = re.findall(r"--repetitions[ =](\d+)", asked)
    few = bool(repetitions) and int(repetitions[-1]) < _LEAST_REPETITIONS
    return few or bool(_LESS & {word.partition("=")[0] for word in asked.split()})


def _check_whole(result: Result) -> None:
    """The pages of all tests are of nothing less."""
    asked = result.provenance.get("asked for", "")
    less = _measures_less(asked) or not result.complete
    if less or not re.match(r"bench\b", asked) or fig.REFERENCE not in {peer.name for peer in result.peers}:
        raise CannotError(
            f"a result of `{asked}`{'' if result.complete else ', which was interrupted'}, is no document's; legal are "
            f"those of `bench` with all tests, peers and counts and {_LEAST_REPETITIONS} repetitions or more, "
            "`bench --modes`, `checks`, `hardened`, `learning`, `watching`, `attacks`"
        )


def _of_learning(result: Result, docs: Path) -> Iterator[tuple[Path, str]]:
    page = docs / "learning.md"
    text = page.read_text(encoding="utf-8")
    for part in (learning_section, learning_warm_section):
        if part.is_of(result):
            text = part.put_into(text, result)
    yield page, text
    for name, picture in learning_chart.pictures(result).items():
        yield docs / f"{name}.svg", picture
