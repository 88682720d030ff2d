"""`--wait`: how long a tool waits for a process's answer."""

from __future__ import annotations

import argparse


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0.1 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"{text}: legal are 0.1 to 86400 seconds")
    return seconds


def add_argument(parser: argparse.ArgumentParser, default: float | None) -> None:
    """None: as long as a request waits by itself."""
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=default,
        metavar="SECONDS",
        help="for its answer, which an idle process gives late (default: 3)",
    )
