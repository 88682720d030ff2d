"""Where figures come from. What is measured of this tree is built from its sources first."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import tempfile
from pathlib import Path

from hakmem_bench import runner
from hakmem_bench.model import ROOT
from hakmem_cli import build, info


def _git(*words: str) -> str | None:
    """None: these sources are no repository of their own, or there is no git."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(ROOT.parent)}
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit() -> str:
    """With a mark if the sources differ from it."""
    name = _git("rev-parse", "--short=12", "HEAD")
    if name is None:
        return "unknown"
    return name + (" and uncommitted changes" if _git("status", "--porcelain", "--untracked-files=no") else "")


def memory() -> str:
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return f"{int(total.split()[1]) / 2**20:.0f} GiB"


def workloads_digest() -> str:
    """What is run, and what measures it: a change of these is no change of the library."""
    bench = ROOT / "bench"
    inputs = ROOT / "python" / "hakmem_bench" / "program_inputs.py"
    return build.digest_of([*sorted([*bench.glob("*.[ch]"), *(bench / "programs").glob("*")]), inputs])


def peaks() -> str | None:
    """Whether they are exact, or go in steps, as where nobody may look at another; None: `measure` is not built."""
    with tempfile.TemporaryDirectory(prefix="hakmem-bench-") as directory:
        report = Path(directory) / "report"
        command = [str(runner.PROGRAMS / "measure"), "--report", str(report), "/bin/true"]
        try:
            subprocess.run(command, env=runner.clean_environment(), stdin=subprocess.DEVNULL, check=True)
            return "exact" if json.loads(report.read_text())["looked"] else "of wait4"
        except (OSError, subprocess.CalledProcessError, KeyError):
            return None


def facts(library: Path, asked: str) -> dict[str, str]:
    """In the order to print."""
    found = peaks()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        **dict(info.library_facts(library)),
        "commit": commit(),
        "sources": build.sources_digest(),
        "workloads": workloads_digest(),
        **({"peaks": found} if found else {}),
        **dict(info.machine_facts()),
        "memory": memory(),
        "python": platform.python_version(),
        "asked for": asked,
    }
