"""The probes, seen by bpftrace: what it counts is what the library counts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

from support import LIBRARY, skip_or_fail

# Waits until the tracer is there; then allocates what is known, and ends.
START = """
import sys
sys.stdin.readline()
"""
PROGRAM = (
    START
    + """
for _ in range(200):
    kept = [bytes(2000) for _ in range(500)]
"""
)
REQUESTED = 200 * 500 * (2000 + 33)


def counted(stats: dict[str, Any]) -> tuple[int, int]:
    """Refills and flushes."""
    return sum(row["refills"] for row in stats["classes"]), sum(row["flushes"] for row in stats["classes"])


def script(library: Path) -> str:
    probe = f"usdt:{library}"
    return (
        f"{probe}:otel_memory:alloc {{ @samples = count(); @weight = sum(arg2); }} "
        f"{probe}:otel_memory:free {{ @freed = count(); }} "
        f"{probe}:hakmem:refill {{ @refills = count(); @filled = sum(arg1); }} "
        f"{probe}:hakmem:flush {{ @flushes = count(); }} "
        'BEGIN { printf("attached\\n"); }'
    )


class Probes(unittest.TestCase):
    def test_what_is_seen_is_what_is_counted(self) -> None:
        if shutil.which("bpftrace") is None:
            skip_or_fail("bpftrace is not installed")
        library = LIBRARY.resolve()
        with tempfile.TemporaryDirectory() as directory:
            report = Path(directory) / "report"
            settings = {"LD_PRELOAD": str(library), "HAKMEM_PROFILE": "16K", "HAKMEM_STATS": "exit"}
            with subprocess.Popen(
                ["/usr/bin/python3", "-c", PROGRAM],
                env={**os.environ, **settings, "HAKMEM_REPORT": str(report)},
                stdin=subprocess.PIPE,
                text=True,
            ) as program:
                seen = self.trace(program, script(library))
            stats = json.loads(report.read_text())
            report.unlink()
            environment = {**os.environ, **settings, "HAKMEM_REPORT": str(report)}
            subprocess.run(["/usr/bin/python3", "-c", START], env=environment, input="\n", text=True, check=True)
            started = json.loads(report.read_text())
        # Before the tracer came Python had started.
        self.assertLess(abs(seen["weight"] / REQUESTED - 1), 0.15)
        self.assertLessEqual(seen["samples"], stats["profile"]["samples"])
        self.assertGreater(seen["samples"], 0.9 * stats["profile"]["samples"] - 200)
        self.assertGreater(seen["freed"], 0.9 * seen["samples"])
        self.assertGreater(seen["filled"], seen["refills"])
        for name, whole, start in zip(("refills", "flushes"), counted(stats), counted(started)):
            self.assertLessEqual(seen[name], whole, name)
            self.assertGreaterEqual(seen[name], 0.9 * (whole - start) - 10, name)
            self.assertGreater(whole - start, 100, name)

    def trace(self, program: subprocess.Popen[str], text: str) -> dict[str, int]:
        """Lets the program go when the probes are attached; what was counted until its end."""
        command = ["bpftrace", "-p", str(program.pid), "-e", text]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stdout is not None and tracer.stderr is not None and program.stdin is not None
            for line in tracer.stdout:
                if line.startswith("attached"):
                    break
            else:
                program.kill()
                reason = " ".join(tracer.stderr.read().split())
                raise unittest.SkipTest(f"bpftrace cannot trace here: {reason}")
            program.stdin.write("\n")
            program.stdin.close()
            program.wait(timeout=120)
            output = tracer.communicate(timeout=60)[0]
        return {name: int(value) for name, value in re.findall(r"^@(\w+): (\d+)$", output, re.MULTILINE)}


if __name__ == "__main__":
    unittest.main()
