"""Writes the part of docs/safety.md that shows each bug and its report. Run by hand, after a build for release."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import bugs
from support import ROOT

sys.path.insert(0, str(ROOT / "python"))

from hakmem_cli import generated  # noqa: E402


def _section(bug: bugs.Bug, directory: Path) -> str:
    source = (bugs.SOURCES / bug.source).read_text()
    heading = source.splitlines()[0].removeprefix("/* ").removesuffix(". */")
    language = "cpp" if bug.source.endswith(".cpp") else "c"
    report = bugs.for_readers(bugs.check(bugs.build(bug, directory)).stderr)
    return f"### {heading}\n\n```{language}\n{source.strip()}\n```\n\n<!-- {bug.source} -->\n```\n{report}```\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        sections = [_section(bug, Path(directory)) for bug in bugs.BUGS]
    document = bugs.DOCUMENT.read_text()
    bugs.DOCUMENT.write_text(generated.replaced(document, bugs.BEGIN, bugs.END, "\n".join(sections)))


if __name__ == "__main__":
    main()
