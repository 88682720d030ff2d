"""Statistics as users ask for them: at exit, by a signal, as a series, on the live page; and from outside."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import statistics_fields
from support import RELEASE, stat_fields

LIBRARY = RELEASE / "libhakmem.so"
PYTHON = os.path.realpath(sys.executable)

# Sleeps when told, allocates when told: one line of input, one of output.
OBEYS = """
import sys
kept = []
for line in sys.stdin:
    kept.append([bytearray(int(line)) for _ in range(20000)])
    print(len(kept), flush=True)
"""
HAS_FORKED = """
import os, sys
[bytearray(1000) for _ in range(20000)]
child = os.fork()
[bytearray(1000) for _ in range(20000)]
if child == 0:
    print(os.getpid(), os.path.exists(f"{sys.argv[1]}/{os.getpid()}"), flush=True)
    sys.exit(0)
os.waitpid(child, 0)
print(os.getpid(), os.path.exists(f"{sys.argv[1]}/{os.getpid()}"), flush=True)
"""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "LD_PRELOAD": str(LIBRARY), **more}


def run(program: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, "-c", program, *arguments],
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def start(**more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PYTHON, "-c", OBEYS],
        env=environment(**more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def allocate(process: subprocess.Popen[str], size: int) -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{size}\n")
    process.stdin.flush()
    process.stdout.readline()


def checked(text: str) -> dict[str, Any]:
    stats: dict[str, Any] = json.loads(text)
    assert (stats["schema"], stats["version"]) == ("hakmem-stats", 1)
    return stats


class Statistics(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.directory = Path(held.name)

    def check_sums(self, stats: dict[str, Any]) -> None:
        memory, classes, threads = stats["memory"], stats["classes"], stats["threads"]
        self.assertEqual(memory["small_live_bytes"], sum(row["live_blocks"] * row["size"] for row in classes))
        self.assertEqual(memory["small_live_bytes"], sum(row["live_bytes"] for row in threads))
        self.assertEqual(memory["cached_bytes"], sum(row["cached_blocks"] * row["size"] for row in classes))
        self.assertEqual(
            memory["slab_bytes"],
            memory["small_live_bytes"] + memory["cached_bytes"] + memory["slab_free_bytes"] + memory["hole_bytes"],
        )
        # The end of a slab may be less than a block.
        in_slabs = sum(row["slab_free_blocks"] * row["size"] for row in classes)
        self.assertLessEqual(in_slabs, memory["slab_free_bytes"] + memory["hole_bytes"])
        self.assertEqual(stats["counters"]["requested_bytes"], sum(row["requested_bytes"] for row in threads))
        self.assertGreater(stats["os"]["calls"], 0)
        self.assertGreater(stats["faults"]["minor"], 100)
        self.assertIn("span", [lock["name"] for lock in stats["locks"]])

    def test_at_exit(self) -> None:
        stats = checked(run("[bytes(100) for _ in range(1000)]", HAKMEM_STATS="exit").stderr)
        self.check_sums(stats)
        self.assertGreater(stats["counters"]["requested_bytes"], 100_000)

    def test_at_exit_goes_where_reports_go(self) -> None:
        report = self.directory / "report"
        done = run("pass", HAKMEM_STATS="exit", HAKMEM_REPORT=str(report))
        self.assertEqual(done.stderr, "")
        self.check_sums(checked(report.read_text()))

    def test_at_exit_writes_over_no_file_that_has_come_under_its_number(self) -> None:
        opened = self.directory / "opened"
        program = (
            "import os, sys; os.close(2); file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | int(sys.argv[2])); "
            "assert file == 2; os.write(file, b'data\\n')"
        )
        for flags, lines in ((0, 1), (os.O_APPEND, 2)):
            with self.subTest(flags):
                run(program, str(opened), str(flags), HAKMEM_STATS="exit")
                text = opened.read_text()
                self.assertTrue(text.startswith("data\n"))
                self.assertEqual(len(text.splitlines()), lines)
                opened.unlink()

    def test_what_is_not_written_is_said(self) -> None:
        prefix = "hakmem: warning: HAKMEM_STATS: the statistics were not written to"
        for settings, path, error in (
            ({"HAKMEM_STATS": "/nonexistent/x"}, "/nonexistent/x", 2),
            ({"HAKMEM_STATS": "/dev/full"}, "/dev/full", 28),
            ({"HAKMEM_STATS": "exit", "HAKMEM_REPORT": "/dev/full"}, "/dev/full", 28),
        ):
            with self.subTest(settings):
                self.assertEqual(run("pass", **settings).stderr, f"{prefix} {path}: error {error}\n")

    def test_by_signal(self) -> None:
        for name in ("USR1", "USR2", "HUP", "WINCH"):
            with self.subTest(name):
                with start(HAKMEM_STATS=name) as process:
                    allocate(process, 600)
                    process.send_signal(signal.Signals[f"SIG{name}"])
                    allocate(process, 700)
                    assert process.stdin is not None and process.stderr is not None
                    process.stdin.close()
                    lines = process.stderr.read().splitlines()
                self.assertEqual(process.returncode, 0)
                self.assertEqual(len(lines), 1)
                self.check_sums(checked(lines[0]))

    def test_a_signal_writes_the_profile_too(self) -> None:
        pattern = self.directory / "%p.heap"
        with start(HAKMEM_STATS="USR2", HAKMEM_PROFILE=f"4K,{pattern}") as process:
            allocate(process, 600)
            process.send_signal(signal.SIGUSR2)
            allocate(process, 700)
            profile = self.directory / f"{process.pid}.heap"
            self.assertTrue(profile.read_text().startswith("heap profile: "))
            profile.unlink()
            assert process.stdin is not None
            process.stdin.close()
        self.assertTrue(profile.exists())

    def test_series(self) -> None:
        series = self.directory / "series"
        began = time.monotonic()
        with start(HAKMEM_STATS=str(series)) as process:
            for _ in range(12):
                allocate(process, 600)
                time.sleep(0.25)
            assert process.stdin is not None
            process.stdin.close()
        seconds = time.monotonic() - began
        lines = [checked(line) for line in series.read_text().splitlines()]
        self.assertIn(len(lines), range(3, int(seconds) + 3))  # one a second, and the last at exit
        self.assertEqual(series.stat().st_mode & 0o777, 0o600)
        times = [line["unix_ms"] for line in lines]
        self.assertEqual(times, sorted(times))
        for stats in lines:
            self.check_sums(stats)

    def page(self, pid: int) -> tuple[dict[str, Any], bytes]:
        data = (self.directory / str(pid)).read_bytes()
        sequence, length, owner = struct.unpack_from("<QII", data, 552)
        self.assertEqual((sequence % 2, owner), (0, pid))
        return checked(data[1024 : 1024 + length].decode()), data

    def test_live_page(self) -> None:
        # Nothing is given back but by the purge that is asked for.
        with start(HAKMEM_LIVE=str(self.directory), HAKMEM_PURGE="delay=86400000,thread=off") as process:
            for _ in range(4):
                allocate(process, 800)
                time.sleep(0.25)
            stats, data = self.page(process.pid)
            self.assertEqual(data[:8], b"hakmemL\0")
            started = int(stat_fields(process.pid)[19])
            self.assertEqual(struct.unpack_from("<Q", data, 568)[0], started)
            self.check_sums(stats)
            self.assertEqual((self.directory / str(process.pid)).stat().st_mode & 0o777, 0o600)
            # Asked by the page.
            path = self.directory / "asked"
            with (self.directory / str(process.pid)).open("r+b") as page:
                page.seek(40)
                page.write(str(path).encode() + b"\0")
                page.seek(16)
                page.write(struct.pack("<I", 5))
            for _ in range(4):
                allocate(process, 800)
                time.sleep(0.25)
            self.check_sums(checked(path.read_text()))
            _, data = self.page(process.pid)
            self.assertEqual(struct.unpack_from("<IIi", data, 16), (0, 1, 0))
            # A purge, which needs the allocator's door, is one indeed.
            before = self.page(process.pid)[0]["memory"]["purged_bytes"]
            with (self.directory / str(process.pid)).open("r+b") as page:
                page.seek(16)
                page.write(struct.pack("<I", 4))
            for _ in range(4):
                allocate(process, 800)
                time.sleep(0.25)
            stats, data = self.page(process.pid)
            self.assertEqual(struct.unpack_from("<IIi", data, 16), (0, 2, 0))
            self.assertGreater(stats["memory"]["purged_bytes"], before)
            assert process.stdin is not None
            process.stdin.close()
        self.assertEqual([entry.name for entry in self.directory.iterdir()], ["asked"])

    def test_child_has_a_page_of_its_own(self) -> None:
        done = run(HAS_FORKED, str(self.directory), HAKMEM_LIVE=str(self.directory))
        self.assertEqual([line.split()[1] for line in done.stdout.splitlines()], ["True", "True"])
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_no_directory_no_page(self) -> None:
        done = run("print(1)", HAKMEM_LIVE=str(self.directory / "none"))
        warning = f"hakmem: warning: HAKMEM_LIVE: no page can be made in {self.directory / 'none'}: error 2\n"
        self.assertEqual((done.stdout, done.stderr), ("1\n", warning))

    def test_malloc_info_is_as_glibcs(self) -> None:
        program = """
import ctypes
c = ctypes.CDLL(None)
c.malloc_info(0, ctypes.c_void_p.in_dll(c, "stdout"))
c.fflush(None)
"""
        root = ElementTree.fromstring(run(program).stdout)
        self.assertEqual((root.tag, root.get("version")), ("malloc", "1"))
        fast = sum(int(total.get("size", 0)) for total in root.findall("heap/total[@type='fast']"))
        sizes = sum(int(size.get("total", 0)) for size in root.findall("heap/sizes/size"))
        whole = root.find("total[@type='fast']")
        assert whole is not None
        # The program's output needs blocks itself meanwhile.
        self.assertAlmostEqual(fast, int(whole.get("size", 0)), delta=20_000)
        self.assertEqual(fast, sizes)

    def test_routes(self) -> None:
        lines = run("[bytes(600) for _ in range(9000)]", HAKMEM_TRACE="route:50").stderr.splitlines()
        self.assertEqual(len(lines), 51)
        operation = r"(malloc|realloc|free) 0x[0-9a-f]+( of \d+ bytes)?, thread \d+"
        for number, line in enumerate(lines[:-1], 1):
            self.assertRegex(line, rf"^hakmem: route {number}: {operation}")
        self.assertIn("hakmem: route: that was the last; HAKMEM_TRACE=route:N shows N", lines[-1])
        self.assertTrue(any("served_by_new_slab 1" in line for line in lines))

    def test_each_field_is_explained(self) -> None:
        stats = checked(run("pass", HAKMEM_STATS="exit").stderr)
        document = statistics_fields.DOCUMENT.read_text()
        explained = {field.name for field in statistics_fields.fields()}
        for group in ("memory", "counters", "profile", "os"):
            for name in stats[group]:
                self.assertTrue(name in explained or f"`{name}`" in document, name)
        for row in [*stats["classes"], *stats["threads"]]:
            for name in row:
                self.assertTrue(name in explained or f"`{name}`" in document, name)
        for lock in stats["locks"]:
            for name in lock.keys() - {"name"}:
                self.assertIn(f"{lock['name']}.{name}", explained)
        self.assertIn(statistics_fields.table(), document, "run tests/py/write_statistics.py")

    def test_nothing_is_written_unasked(self) -> None:
        done = run("print(1)")
        self.assertEqual((done.stdout, done.stderr), ("1\n", ""))
        self.assertEqual(list(self.directory.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
