"""The real library in a service under load, from outside: what is read agrees with what the library itself writes."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

import fakes
import service_sizes as sizes
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from hakmem_cli import build
from hakmem_observe import openmetrics, reading
from hakmem_observe.remote import Process, Request
from hakmem_observe.snapshot import Snapshot, decode_series, read_series

SERVICE = Path(__file__).with_name("service.py")
_SET_MODE = 8  # docs/control.md


def setUpModule() -> None:
    build.ensure_library()


class Service(unittest.TestCase):
    def start(self, *wrapper: str, **more: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "LD_PRELOAD": str(build.LIBRARY.resolve()), "PYTHONMALLOC": "malloc", **more}
        process = subprocess.Popen(
            [*wrapper, sys.executable, str(SERVICE)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.stop, process)
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def stop(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    def check(self, taken: Snapshot) -> None:
        self.assertGreater(taken.memory["small_live_bytes"] or 0, sizes.KEPT)
        self.assertLess(taken.memory["small_live_bytes"] or 0, 4 * sizes.KEPT)
        self.assertGreaterEqual(taken.memory["large_live_bytes"] or 0, sizes.LARGE)
        self.assertLess(taken.parts_bytes, 2 * (taken.memory["held_bytes"] or 0))
        # Of a class of its own, those of them that came after it was opened.
        serve = [row["live_blocks"] for row in taken.classes if sizes.BYTES <= row["size"] < 2 * sizes.BYTES]
        self.assertGreaterEqual(sum(serve), sizes.BLOCKS)
        self.assertGreaterEqual(len([row for row in taken.threads if row["thread"]]), 4)
        self.assertGreater(taken.counters["requested_bytes"] or 0, sizes.KEPT + sizes.LARGE)
        self.assertEqual({row["name"] for row in taken.locks} & {"span", "life"}, {"span", "life"})

    def test_read_from_outside(self) -> None:
        process = Process(self.start().pid)
        first = process.snapshot()
        self.check(first)
        for _ in range(20):
            last = process.snapshot()
        self.check(last)
        for name in ("requested_bytes", "large_blocks", "heartbeats"):
            self.assertGreaterEqual(last.counters[name] or 0, first.counters[name] or 0)

    def test_agrees_with_the_library(self) -> None:
        """Nothing is far apart, though both are a moment old; and no name is in one only."""
        process = Process(self.start().pid)
        with process.scratch() as scratch:
            self.assertEqual(process.request(Request.WRITE_STATISTICS, path=f"{scratch.inside}/s"), 0)
            own = decode_series(scratch.read("s"), "s")[-1]
        read = process.snapshot()
        self.check(own)
        for table in ("memory", "counters", "os"):
            ours, theirs = getattr(read, table), getattr(own, table)
            more = {"refills", "flushes"} if table == "counters" else {"calls"}
            self.assertLessEqual(set(theirs) - set(ours) | (set(ours) - set(theirs)), more, table)
        for name in ("small_live_bytes", "large_live_bytes", "held_bytes", "committed_bytes", "metadata_bytes"):
            ours, theirs = read.memory[name] or 0, own.memory[name] or 0
            self.assertLess(abs(ours - theirs), 0.1 * theirs + (4 << 20), name)
        self.assertEqual([row["name"] for row in read.locks], [row["name"] for row in own.locks])
        self.assertEqual([row["heap"] for row in read.threads], sorted(row["heap"] for row in own.threads))
        self.assertEqual({row["class"] for row in own.classes} - {row["class"] for row in read.classes}, set())

    def test_walk_agrees_with_counts(self) -> None:
        """Free blocks in slabs, by a walk over all units and by what the library counts."""
        process = Process(self.start().pid)
        with mock.patch.object(reading, "_INSTEAD_OF_WALK", {"no such metric"}):
            walked = process.snapshot()
        counted = process.snapshot()
        for table in (walked, counted):
            free = sum(row["slab_free_blocks"] * row["size"] for row in table.classes)
            told = (table.memory["slab_free_bytes"] or 0) + (table.memory["hole_bytes"] or 0)
            self.assertLess(abs(free - told), 0.2 * told + (1 << 20))

    def test_mode(self) -> None:
        process = Process(self.start(HAKMEM_MODE="fast", HAKMEM_LEARN="observe").pid)
        taken = process.snapshot()
        self.assertEqual((taken.mode, taken.more["learner"]["learns"]), ("fast", "observe"))
        self.assertEqual(process.request(_SET_MODE, path="minimal"), 0)
        self.assertEqual(process.snapshot().mode, "minimal")
        self.assertEqual(process.request(_SET_MODE, path="tiny"), errno.EINVAL)
        with process.scratch() as scratch:
            self.assertEqual(process.request(Request.WRITE_STATISTICS, path=f"{scratch.inside}/s"), 0)
            told = decode_series(scratch.read("s"), "s")[-1]
        self.assertEqual(told.mode, "minimal")

    def test_learner(self) -> None:
        """Read from its memory, it is as the library writes it."""
        process = Process(self.start(HAKMEM_MODE="learning").pid)
        with process.scratch() as scratch:
            self.assertEqual(process.request(Request.WRITE_STATISTICS, path=f"{scratch.inside}/s"), 0)
            told = decode_series(scratch.read("s"), "s")[-1].more["learner"]
        read = process.snapshot().more["learner"]
        self.assertEqual(set(told) - {"learn_ms"}, set(read))
        self.assertEqual((read["learns"], read["state"]), ("on", told["state"]))
        self.assertGreaterEqual(read["epochs"], told["epochs"])
        families = {
            family.name: family for family in text_string_to_metric_families(openmetrics.render(process.snapshot()))
        }
        self.assertEqual(families["hakmem_mode"].samples[0].labels, {"mode": "learning"})
        self.assertGreaterEqual(families["hakmem_learner_epochs"].samples[0].value, told["epochs"])

    def test_purge(self) -> None:
        self.assertEqual(Process(self.start().pid).request(Request.PURGE), 0)

    def test_commands(self) -> None:
        pid = str(self.start().pid)
        done = fakes.hakmem("stat", pid, "--openmetrics")
        families = {family.name: family for family in text_string_to_metric_families(done.stdout)}
        self.assertGreater(families["hakmem_class_live_blocks"].samples[0].value, 0)
        self.assertTrue(all(family.documentation for family in families.values()))
        explained = fakes.hakmem("stat", pid, "--explain")
        self.assertEqual((explained.returncode, explained.stderr), (0, ""))
        self.assertIn("free units that still have their pages", " ".join(explained.stdout.split()))
        healthy = fakes.hakmem("doctor", pid)
        self.assertEqual(healthy.returncode, 0, healthy.stdout)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root, and setpriv")
    def test_live_page_where_memory_may_not_be_read(self) -> None:
        live = str(fakes.directory() / "live")
        os.mkdir(live, 0o700)
        pid = self.start(HAKMEM_LIVE=live).pid
        # Root without the right to trace may not look into a process that has more rights than itself.
        weak = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
        command = [*weak, *fakes.HAKMEM, "stat", str(pid), "--json"]
        environment = {**os.environ, "PYTHONPATH": str(fakes.ROOT / "python"), "HAKMEM_LIVE": live}
        told = fakes.directory() / "live.json"
        # The page is written at heartbeats: at first it tells of a process that has just started.
        for _ in range(20):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            told.write_text(done.stdout)
            if (read_series(told)[-1].memory["small_live_bytes"] or 0) > sizes.KEPT:
                break
            time.sleep(0.5)
        self.check(read_series(told)[-1])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root, and setpriv")
    def test_denied_without_a_page(self) -> None:
        pid = self.start().pid
        weak = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
        environment = {**os.environ, "PYTHONPATH": str(fakes.ROOT / "python")}
        for command in ("stat", "doctor"):
            done = subprocess.run(
                [*weak, *fakes.HAKMEM, command, str(pid)],
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Ahakmem: process \d+: .*may not be (read|looked at)[^\n]*\n\Z")


if __name__ == "__main__":
    unittest.main()
