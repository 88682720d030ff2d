"""Generated parts of documents that are written by hand otherwise."""

from __future__ import annotations


def replaced(document: str, begin: str, end: str, text: str) -> str:
    """The document with the text between the two marks, in place of what stands there."""
    before, rest = document.split(begin)
    return before + begin + "\n" + text + "\n" + end + rest.split(end)[1]
