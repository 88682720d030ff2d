"""`--wait`: how long a tool waits for a process's answer."""

from __future__ import annotations

import argparse

from hakmem_cli.arguments import number_between


def _seconds(text: str) -> float:
    seconds = number_between(text, 0.1, 86400)
    if seconds is None:
        raise argparse.ArgumentTypeError(f"{text}: legal are 0.1 to 86400 seconds")
    return seconds


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Without it a request waits as long as it does by itself."""
    parser.add_argument(
        "--wait",
        type=_seconds,
        metavar="SECONDS",
        help="for its answer, which an idle process gives late (default: 3)",
    )
