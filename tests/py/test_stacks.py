"""Stacks in programs without frame pointers: how many reach the start of the program."""

from __future__ import annotations

import os
import re
import tempfile
import unittest
from pathlib import Path

from support import LIBRARY, output_of, run, skip_or_fail

PYTHON = Path("/usr/bin/python3")

WORK = """
import json, re, collections, decimal, threading
def deep(n):
    return [str(n)] + (deep(n - 1) if n else [])
class Thing:
    def __init__(self, n):
        self.names = {str(i): [i] * 9 for i in range(n)}
def work():
    for i in range(40):
        deep(8)
        json.loads(json.dumps(Thing(i).names))
        re.sub(r'(\\d+)', lambda m: m[1] * 2, 'abc 123 def 456')
        sorted(collections.Counter('hakmem' * i), key=lambda c: -ord(c))
        decimal.Decimal(i).sqrt()
work()
"""

# Events of the trace are written up to so many calls (src/check/stack_text.c).
CALLS_MOST = 64


def entry_point(program: Path) -> int:
    found = re.search(r"Entry point address:\s+0x([0-9a-f]+)", output_of("readelf", "-h", str(program)))
    assert found
    return int(found[1], 16)


class Stacks(unittest.TestCase):
    def traced(self, size: int) -> list[list[str]]:
        """The stacks of blocks of this class, each the lines of its calls."""
        with tempfile.TemporaryDirectory() as directory:
            trace = Path(directory, "trace")
            environment = {
                **os.environ,
                "PYTHONMALLOC": "malloc",
                "LD_PRELOAD": str(LIBRARY.resolve()),
                "HAKMEM_TRACE": f"class:{size},{trace}",
            }
            done = run(PYTHON, "-c", WORK, environment=environment)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            events = re.split(r"==\d+==TRACE.*\n", trace.read_text())
            return [event.splitlines() for event in events if event]

    def test_stacks_reach_the_start_of_cpython(self) -> None:
        if not PYTHON.exists():
            skip_or_fail("Debian's CPython is not installed (Debian: python3)")
        start = entry_point(PYTHON.resolve())
        reached = whole = 0
        for size in (24, 48, 100, 400, 1200, 5000):
            for stack in self.traced(size):
                if len(stack) == CALLS_MOST:
                    continue
                whole += 1
                last = re.search(r"\((\S+)\+0x([0-9a-f]+)\)$", stack[-1])
                reached += last is not None and 0 <= int(last[2], 16) - start < 64
        self.assertGreater(whole, 1000)
        self.assertGreaterEqual(reached / whole, 0.95, f"{reached} of {whole}")


if __name__ == "__main__":
    unittest.main()
