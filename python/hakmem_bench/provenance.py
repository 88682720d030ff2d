"""Where figures come from. What is measured of this tree is built from its sources first."""

from __future__ import annotations

import datetime
import platform
import subprocess
from pathlib import Path

from hakmem_bench.model import ROOT
from hakmem_cli import build, info


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def commit() -> str:
    """With a mark if the sources differ from it."""
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return _git("rev-parse", "--short=12", "HEAD") + (" and uncommitted changes" if changed else "")


def memory() -> str:
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return f"{int(total.split()[1]) / 2**20:.0f} GiB"


def facts(library: Path, asked: str) -> dict[str, str]:
    """In the order to print."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        **dict(info.library_facts(library)),
        "commit": commit(),
        "sources": build.sources_digest(),
        **dict(info.machine_facts()),
        "memory": memory(),
        "python": platform.python_version(),
        "asked for": asked,
    }
