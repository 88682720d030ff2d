"""What documents point at is there: files, and headings within them."""

from __future__ import annotations

import os
import re
import tempfile
import unittest
from pathlib import Path
from urllib.parse import unquote

from support import ROOT

DECISIONS = ROOT / "docs" / "decisions"
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def anchor_of(heading: str) -> str:
    """As GitHub makes it of a heading's text."""
    text = LINK.sub("]", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors(document: Path) -> set[str]:
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    return {anchor_of(line.lstrip("#").strip()) for line in text.splitlines() if line.startswith("#")}


def broken(document: Path) -> list[str]:
    found = []
    name = os.path.relpath(document, ROOT)
    for target in LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        path, _, anchor = unquote(target).partition("#")
        to = (document.parent / path).resolve() if path else document
        if not to.exists():
            found.append(f"{name}: {target}: no such file")
        elif anchor and to.suffix == ".md" and anchor not in anchors(to):
            found.append(f"{name}: {target}: no such heading")
    return found


class Documents(unittest.TestCase):
    def test_links_lead_somewhere(self) -> None:
        self.assertEqual([line for document in documents() for line in broken(document)], [])

    def test_a_link_to_nothing_is_found(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            document = Path(directory) / "it.md"
            document.write_text(
                "# Does it pay? `malloc`, and more\n[](no.md) [](#no) [](#does-it-pay-malloc-and-more) [](it.md#none)\n"
            )
            self.assertEqual(
                [line.split(": ", 1)[1] for line in broken(document)],
                ["no.md: no such file", "#no: no such heading", "it.md#none: no such heading"],
            )

    def test_each_decision_stands_in_the_index(self) -> None:
        index = set(LINK.findall((DECISIONS / "README.md").read_text(encoding="utf-8")))
        self.assertEqual(index, {path.name for path in DECISIONS.glob("0*.md")})


if __name__ == "__main__":
    unittest.main()
