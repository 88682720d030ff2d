"""The whole way, with the library itself: a service that grows, and the line that leaks."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import fake_profile
import fakes

from hakmem_observe import layout, profile_files, report_map, snapshot
from hakmem_observe.remote import Process
from hakmem_observe.stacks import Profile

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build" / "release" / "libhakmem.so"


class Live(unittest.TestCase):
    def setUp(self) -> None:
        self.assertTrue(LIBRARY.exists(), "the library is not built")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.program = fake_profile.build(self.directory)

    def start(self, *words: str, **environment: str) -> int:
        """A process of the service's, after its first requests."""
        process = subprocess.Popen(
            [self.program, *words],
            env={**os.environ, "LD_PRELOAD": str(LIBRARY), **environment},
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process.pid

    def prof(self, *words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-B", "-m", "hakmem_observe", "prof", *map(str, words)]
        return subprocess.run(
            command,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def dump(self, pid: int, *words: str) -> Profile:
        done = self.prof("dump", pid, "--force", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("note:", done.stderr)
        return profile_files.read(self.directory / f"hakmem.{pid}.pb.gz")

    def assert_removed(self, pid: int) -> None:
        """What the process was asked to write last, where other commands' files are too."""
        path = Process(pid)._words.read(layout.PATH, layout.PATH_BYTES)
        assert path is not None
        asked = Path(os.fsdecode(path.partition(b"\0")[0]))
        self.assertRegex(str(asked), r"^/tmp/hakmem-\w+/profile$")
        self.assertFalse(asked.parent.exists())

    def leaks(self, profile: Profile) -> list[str]:
        """Sites with live bytes, those with most first."""
        sites = sorted((site for site in profile.sites if site.live.bytes), key=lambda site: -site.live.bytes)
        return [f"{site.frames()[0].function} {site.frames()[0].short_place}" for site in sites]

    def test_the_line_that_leaks(self) -> None:
        pid = self.start("100", "20")
        done = self.prof("dump", pid)
        self.assertEqual(done.returncode, 2)
        self.assert_removed(pid)
        self.assertRegex(done.stderr, rf"\Ahakmem: process {pid}: no profile there; start one: [^\n]*\n\Z")
        done = self.prof("start", pid, "--rate", "4K")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(self.prof("start", pid).stderr, "it runs already")
        time.sleep(1)
        profile = self.dump(pid)
        self.assert_removed(pid)
        self.assertEqual((profile.pid, profile.rate), (pid, 4096))
        self.assertLess(abs(profile.now_ms - time.time_ns() // 1_000_000), 60_000)
        self.assertEqual(self.leaks(profile)[0], "copy_of leaker.c:14")
        # As many were allocated as are live; the buffers are gone at once.
        copies = next(site for site in profile.sites if site.frames()[0].function == "copy_of")
        self.assertEqual((copies.live, sum(copies.lifetimes)), (copies.allocated, 0))
        buffers = next(site for site in profile.sites if site.frames()[0].function == "new_buffer")
        self.assertGreater(sum(buffers.lifetimes[:2]), 0.9 * buffers.allocated.objects)
        names = [frame.function for frame in copies.frames()]
        self.assertEqual(names[:4], ["copy_of", "open_session", "serve", "main"])
        self.assertEqual(self.prof("stop", pid).returncode, 0)
        self.assertEqual(sorted(path.name for path in self.directory.iterdir()), [f"hakmem.{pid}.pb.gz", "leaker"])

    def test_what_a_command_asked_for_goes_with_it(self) -> None:
        pid = self.start("100", "20")
        os.kill(pid, signal.SIGSTOP)
        command = [sys.executable, "-B", "-m", "hakmem_observe", "prof", "start", str(pid)]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as asking:
            process = Process(pid)
            while process._head().request == 0:
                time.sleep(0.01)
            asking.terminate()
            self.assertEqual((asking.wait(30), process._head().request), (128 + signal.SIGTERM, 0))
        os.kill(pid, signal.SIGCONT)
        self.assertRegex(self.prof("dump", pid).stderr, "no profile there")

    def test_a_program_that_is_built_anew_meanwhile(self) -> None:
        """Names are those of the program that runs."""
        pid = self.start("100", "20")
        self.assertEqual(self.prof("start", pid, "--rate", "4K").returncode, 0)
        time.sleep(1)
        self.program.unlink()
        shutil.copy("/bin/true", self.program)
        self.assertEqual(self.leaks(self.dump(pid))[0], "copy_of leaker.c:14")

    def test_a_recorded_series_ends_with_the_map(self) -> None:
        pid = self.start("100", "20")
        command = [
            sys.executable,
            "-B",
            "-m",
            "hakmem_observe",
            "stat",
            str(pid),
            "--every",
            "0.1",
            "--output",
            "s.jsonl",
        ]
        fakes.not_ignored(self, signal.SIGINT)
        path = self.directory / "s.jsonl"
        with subprocess.Popen(command, cwd=self.directory, stdin=subprocess.DEVNULL) as recording:
            while recording.poll() is None and not (path.exists() and path.read_text().count("\n") > 5):
                time.sleep(0.05)
            recording.send_signal(signal.SIGINT)
            self.assertEqual(recording.wait(30), 0)
        series = snapshot.read_series(path)
        self.assertEqual([bool(one.more.get("superslabs")) for one in series], [False] * (len(series) - 1) + [True])
        drawn = report_map.of(series[-1])
        assert drawn is not None
        slabs = next(kind["units"] for kind in drawn["kinds"] if kind["name"] == "slab")
        self.assertAlmostEqual(slabs * (8 << 10), series[-1].part("slab_bytes"), delta=1 << 20)

    def profile_of_all(self) -> Path:
        """The file that the library writes when the program ends."""
        file = self.directory / "end.heap"
        environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), "HAKMEM_PROFILE": f"1,{file}"}
        subprocess.run([self.program, "1000"], env=environment, check=True, timeout=60)
        return file

    def test_a_program_that_is_built_anew_after_it_has_ended(self) -> None:
        file = self.profile_of_all()
        before = profile_files.read(file)
        self.program.unlink()
        fake_profile.build(self.directory, "-O0")
        after = profile_files.read(file)
        self.assertEqual(before.notes, ())
        note = f"not of the build that the process ran (by build id), no names from there: {self.program}"
        self.assertEqual(after.notes, (note,))
        self.assertRegex(self.leaks(after)[0], r"^leaker\+0x")

    def test_all_blocks_are_counted_with_rate_1(self) -> None:
        profile = profile_files.read(self.profile_of_all())
        self.assertEqual(self.leaks(profile)[0], "copy_of leaker.c:14")
        copies = next(site for site in profile.sites if site.frames()[0].function == "copy_of")
        lengths = [len(f"session {number} of a client with a long name") + 1 for number in range(1000)]
        self.assertEqual((copies.live.objects, copies.live.bytes), (1000, sum(lengths)))
        table = next(site for site in profile.sites if site.frames()[0].function == "load_table")
        self.assertEqual((table.live.bytes, table.allocated.bytes), (0, 8 << 20))
        self.assertTrue(re.search("leaker$", profile.program))
