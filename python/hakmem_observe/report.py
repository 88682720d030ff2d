"""`hakmem report`: a profile, a recorded series, or both as one HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path

from hakmem_cli import files
from hakmem_cli.say import CannotError, say
from hakmem_observe import profile_files, report_page, snapshot

USE = "hakmem report FILE [FILE] [--output FILE] [--force]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a profile (heap_v2, .pb.gz) or statistics (JSON)")
    parser.add_argument("--output", metavar="FILE", help="the page (default: report.html)")
    parser.add_argument("--force", action="store_true", help="write over a file that exists")


def _given(files: list[str]) -> report_page.Given:
    """Each file is known by its content."""
    profiles, series = [], []
    for name in files:
        path = Path(name)
        data = profile_files.read_bytes(path)
        if profile_files.is_profile(data):
            profiles.append(profile_files.decode(data, name))
        elif data.lstrip()[:1] == b"{":
            series.append(snapshot.read_series(path))
        else:
            raise CannotError(f"{name}: neither a profile (heap_v2, .pb.gz) nor statistics (JSON lines) of hakmem")
    if len(profiles) > 1 or len(series) > 1:
        what = "profiles" if len(profiles) > 1 else "recorded series"
        raise CannotError(f"{max(len(profiles), len(series))} {what}; legal are one profile and one series")
    return report_page.Given(profiles[0] if profiles else None, series[0] if series else [], files)


def report(parsed: argparse.Namespace) -> int:
    target = Path(parsed.output or "report.html")
    files.check_target(target, force=parsed.force)
    page = report_page.render(_given(parsed.files))
    # Not all names are UTF-8.
    files.write(target, page.encode(errors="replace"), force=parsed.force)
    say(f"written: {target}")
    return 0
