"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    OK = "ok"
    WARNING = "warning"  # it works, but for something
    PROBLEM = "problem"  # the library is not in use, or cannot be


@dataclass(frozen=True)
class Finding:
    level: Level
    what: str
    advice: str = ""  # what to do


def ok(what: str, advice: str = "") -> Finding:
    return Finding(Level.OK, what, advice)


def warning(what: str, advice: str) -> Finding:
    return Finding(Level.WARNING, what, advice)


def problem(what: str, advice: str) -> Finding:
    return Finding(Level.PROBLEM, what, advice)
