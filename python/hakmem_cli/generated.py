"""Generated parts of documents that are written by hand otherwise."""

from __future__ import annotations

from hakmem_cli.say import CannotError


def replaced(document: str, begin: str, end: str, text: str) -> str:
    """The document with the text between the two marks, in place of what stands there."""
    if document.count(begin) != 1 or document.count(end) != 1:
        raise CannotError(f"the document has not one {begin.strip()} and one {end.strip()}")
    before, rest = document.split(begin)
    return before + begin + "\n" + text + "\n" + end + rest.split(end)[1]
