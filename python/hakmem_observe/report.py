"""`hakmem report`: a profile, a recorded series, or both as one HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path

from hakmem_cli import files
from hakmem_cli.say import CannotError, say
from hakmem_observe import processes, profile_files, report_page, snapshot

USE = "hakmem report FILE [FILE] [--pid N] [--output FILE] [--force]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a profile (heap_v2, .pb.gz) or statistics (JSON)")
    processes.add_argument(parser)
    parser.add_argument("--output", metavar="FILE", help="the page (default: report.html)")
    parser.add_argument("--force", action="store_true", help="write over a file that exists")


def _given(files: list[str], pid: int | None) -> report_page.Given:
    """Each file is known by its content."""
    profiles, series = [], []
    for name in files:
        data = profile_files.read_bytes(Path(name))
        if profile_files.is_profile(data):
            profiles.append(profile_files.decode(data, name))
        elif snapshot.is_series(data):
            series.append(snapshot.decode_series(data, name))
        else:
            raise CannotError(f"{name}: neither a profile (heap_v2, .pb.gz) nor statistics (JSON lines) of hakmem")
    if len(profiles) > 1 or len(series) > 1:
        what = "profiles" if len(profiles) > 1 else "recorded series"
        raise CannotError(f"{max(len(profiles), len(series))} {what}; legal are one profile and one series")
    if pid is not None and not series:
        raise CannotError(f"--pid {pid}: only with a recorded series; use: {USE}")
    profile = profiles[0] if profiles else None
    prefer = profile.pid if profile else None
    chosen = processes.choose(series[0], pid, prefer) if series else processes.Chosen([])
    return report_page.Given(profile, chosen.series, files, chosen.caution)


def report(parsed: argparse.Namespace) -> int:
    target = Path(parsed.output or "report.html")
    files.check_target(target, force=parsed.force)
    page = report_page.render(_given(parsed.files, parsed.pid))
    # Not all names are UTF-8.
    files.write(target, page.encode(errors="replace"), force=parsed.force)
    say(f"written: {target}")
    return 0
