"""Reading and asking a process from outside, and what a damaged or hostile one can do: nothing but a line."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import fakes

from hakmem_cli.say import CannotError
from hakmem_observe import elf, locate, procfs, scratch
from hakmem_observe.checks import running
from hakmem_observe.checks.finding import Level
from hakmem_observe.errors import AbsentError, EndedError, TornError
from hakmem_observe.layout import CONTROL_BYTES, HEAD_BYTES
from hakmem_observe.remote import Process, Request
from hakmem_observe.snapshot import Snapshot, from_json
from hakmem_observe.watch import chooser

UNIT = 16384


class Places(unittest.TestCase):
    def test_links_of_a_process_lead_nowhere_else(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "dev" / "shm").mkdir(parents=True)
            (root / "tmp").symlink_to("/tmp")
            (root / "var").symlink_to("/var")
            os.close(scratch._opened(root, "dev/shm"))
            for place in ("tmp", "var/tmp"):
                with self.assertRaises(OSError):
                    scratch._opened(root, place)


class Reading(fakes.FakeTest):
    def check(self, pid: int) -> None:
        """The numbers of fake.c."""
        taken = Process(pid).snapshot()
        self.assertEqual(taken.pid, pid)
        self.assertEqual(taken.memory["small_live_bytes"], (60 - 15) * 48)
        self.assertEqual(taken.memory["cached_bytes"], 15 * 48)
        self.assertEqual(taken.memory["slab_free_bytes"], 300 * 48)
        self.assertEqual(taken.memory["large_live_bytes"], 2 * UNIT)
        self.assertEqual(taken.memory["bigcache_bytes"], UNIT)
        self.assertEqual(taken.memory["stock_bytes"], UNIT)
        self.assertEqual(taken.memory["dirty_bytes"], UNIT)
        self.assertEqual(taken.memory["held_bytes"], 123456)
        self.assertIsNone(taken.memory["soft_limit_bytes"])
        self.assertEqual(taken.counters["heartbeats"], 10)
        self.assertEqual(taken.counters["refills"], 12)
        self.assertEqual(taken.counters["remote_sent_blocks"], 17)
        self.assertNotIn("slabs", taken.counters)
        self.assertEqual([row["remote_sent_blocks"] for row in taken.threads], [9, 8])
        self.assertGreaterEqual(taken.counters["requested_bytes"] or 0, 6000)
        (row,) = taken.classes
        self.assertEqual((row["class"], row["size"], row["live_blocks"], row["cached_blocks"]), (1, 48, 45, 15))
        self.assertEqual((row["slabs"], row["slab_free_blocks"], row["refills"]), (1, 300, 12))
        self.assertEqual([(row["heap"], row["thread"]) for row in taken.threads], [(1, 0), (2, 4711)])
        self.assertEqual(taken.threads[0]["requested_bytes"], 5000)
        self.assertEqual(taken.locks, [{"name": "span", "taken": 77, "waits": 5}])
        self.assertEqual((taken.os, taken.profile), ({"mmap": 9}, {"rate_bytes": 0}))
        self.assertEqual(taken.about["flushes"], "full magazines")
        self.assertEqual(from_json(taken.to_json(), "itself").memory, taken.memory)

    def test_preloaded_library(self) -> None:
        self.check(self.start().pid)

    def test_what_others_have_emptied_is_not_cached(self) -> None:
        taken = Process(self.start(wrong="emptied").pid).snapshot()
        (row,) = taken.classes
        self.assertEqual((row["live_blocks"], row["cached_blocks"]), (47, 13))
        self.assertEqual([thread["cached_bytes"] for thread in taken.threads], [10 * 48, 3 * 48])

    def test_static_program(self) -> None:
        self.check(self.start(str(fakes.static_program())).pid)

    def test_program_without_symbols(self) -> None:
        process = subprocess.Popen([str(fakes.stripped_program())], env={}, stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for(process)
        self.check(process.pid)

    def test_deleted_and_replaced_library(self) -> None:
        copy = fakes.directory() / "moved" / "libhakmem.so.1"
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(fakes.library(), copy)
        process = self.start(preload=copy)
        copy.unlink()
        self.check(process.pid)
        copy.write_bytes(b"\x7fELF something else")
        self.check(process.pid)

    def test_deleted_program(self) -> None:
        copy = fakes.directory() / "static-copy"
        shutil.copy(fakes.static_program(), copy)
        process = self.start(str(copy))
        copy.unlink()
        self.check(process.pid)

    def test_many_readers_at_once(self) -> None:
        pid = self.start().pid
        together = threading.Barrier(8, timeout=60)

        def read(_: int) -> list[Snapshot]:
            process = Process(pid)
            together.wait()
            return [process.snapshot() for _ in range(10)]

        with ThreadPoolExecutor(8) as readers:
            for taken in readers.map(read, range(8)):
                self.assertEqual([one.memory["small_live_bytes"] for one in taken], [(60 - 15) * 48] * 10)

    def test_process_whose_first_thread_ends(self) -> None:
        """The others go on, and with them the process."""
        text = (
            "#include <pthread.h>\n#include <signal.h>\n#include <unistd.h>\n"
            "static void ignore(int number) { (void)number; }\n"
            "int main(void) { signal(SIGUSR1, ignore); pause(); pthread_exit(NULL); }\n"
        )
        started = self.start(str(fakes.compile_c("headless", text=text)))
        watching, asking = Process(started.pid), Process(started.pid)
        started.send_signal(signal.SIGUSR1)
        status = Path(f"/proc/{started.pid}/status")
        self.assertTrue(fakes.becomes(lambda: "State:\tZ" in status.read_text()))
        self.check(started.pid)
        self.assertEqual(watching.snapshot().memory["small_live_bytes"], (60 - 15) * 48)
        self.assertEqual(asking.request(Request.PURGE), 0)
        with asking.scratch() as scratch:
            self.assertEqual(asking.request(Request.DUMP_PROFILE, path=f"{scratch.inside}/profile"), 0)
            self.assertEqual(scratch.read("profile"), b"{}\n")
        self.assertIn(started.pid, chooser.processes())
        self.assertEqual(procfs.command(started.pid), str(fakes.directory() / "headless"))
        found = running.check(started.pid, fakes.library())
        self.assertEqual([one.what for one in found if one.level is not Level.OK], [])
        started.kill()
        started.wait()
        with self.assertRaises(EndedError):
            watching.snapshot()

    def test_process_that_ends(self) -> None:
        started = self.start()
        process = Process(started.pid)
        process.snapshot()
        started.kill()
        os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
        with self.assertRaises(EndedError):
            process.snapshot()
        started.wait()
        with self.assertRaises(EndedError):
            process.snapshot()
        with self.assertRaises(EndedError):
            process.request(Request.PURGE)

    def test_process_without_hakmem(self) -> None:
        with self.assertRaisesRegex(AbsentError, "does not use hakmem"):
            Process(os.getpid())

    def test_process_that_becomes_another(self) -> None:
        gate = fakes.directory() / "gate"
        started = self.start(
            "/bin/sh", "-c", f"until test -e {gate}; do sleep 0.05; done; unset LD_PRELOAD; exec sleep 60"
        )
        process = Process(started.pid)
        process.snapshot()
        gate.touch()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and "sleep 60" not in procfs.command(started.pid)[:10]:
            time.sleep(0.02)
        with self.assertRaises(CannotError):
            process.snapshot()


class Damaged(fakes.FakeTest):
    def test_lists_that_never_end_and_wild_pointers(self) -> None:
        for wrong in ("cycle", "wild"):
            with self.subTest(wrong):
                started = self.start(wrong=wrong)
                before = time.monotonic()
                try:
                    taken = Process(started.pid).snapshot()
                    self.assertLessEqual(len(taken.threads), 2)
                    taken.to_line()
                except TornError as error:
                    self.assertIn("changed while it was read", str(error))
                self.assertLess(time.monotonic() - before, 5)

    def test_tables_that_are_not_there(self) -> None:
        for wrong in ("metrics", "texts", "bases"):
            with self.subTest(wrong), self.assertRaises(TornError):
                Process(self.start(wrong=wrong).pid).snapshot()

    def test_impossible_headers(self) -> None:
        for wrong, line in (
            ("version", r"another version of hakmem's control \(9\)"),
            ("layout", "impossible"),
            ("small", ""),
        ):
            with self.subTest(wrong), self.assertRaisesRegex(CannotError, line):
                Process(self.start(wrong=wrong).pid)

    def test_fuzzed_control_block(self) -> None:
        """Each word of the control block overwritten in turn: a snapshot or a line, never anything else, and soon."""
        started = self.start(wrong="idle")
        process = Process(started.pid)
        words = process._words
        control = words.read(0, CONTROL_BYTES)
        assert control is not None
        for offset in range(HEAD_BYTES, CONTROL_BYTES, 8):
            for value in (b"\xff" * 8, b"\0" * 8, b"\x01" * 8, (1 << 31).to_bytes(8, "little")):
                words.write(offset, value)
                before = time.monotonic()
                try:
                    Process(started.pid).snapshot()
                except CannotError:
                    pass
                self.assertLess(time.monotonic() - before, 5, offset)
            words.write(offset, control[offset : offset + 8])
        Reading.check(self, started.pid)  # type: ignore[arg-type]


class HostileFiles(unittest.TestCase):
    def test_tables_larger_than_anybody_would_wait_for(self) -> None:
        """A section of 48 GiB of symbols, most of it a hole in the file."""
        size, offset = 24 << 31, 4096
        names = b"\0.dynsym\0"
        header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, 0, 64, 0, 64, 56, 0, 64, 3, 2)
        sections = struct.pack("<IIQQQQIIQQ", *[0] * 10)
        sections += struct.pack("<IIQQQQIIQQ", 1, 11, 2, 0, offset, size, 2, 1, 8, 24)
        sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 512, len(names), 0, 0, 1, 0)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "libhakmem-x.so")
            path.write_bytes((header + sections).ljust(512, b"\0") + names)
            os.truncate(path, offset + size)
            before = time.monotonic()
            self.assertIsNone(locate.value_of(path, "hak_control"))
            self.assertEqual(elf.functions(path), [])
            self.assertLess(time.monotonic() - before, 2)


class Asking(fakes.FakeTest):
    def test_requests_are_served(self) -> None:
        process = Process(self.start().pid)
        before = process.snapshot().counters["purges"]
        self.assertEqual(process.request(Request.PURGE), 0)
        self.assertEqual(process.snapshot().counters["purges"], (before or 0) + 1)
        self.assertEqual(process.request(Request.START_PROFILER, 4096), 0)
        self.assertEqual(process.snapshot().profile["rate_bytes"], 4096)
        self.assertEqual(process.request(Request.WRITE_STATISTICS, path="/no/such/place"), 2)
        self.assertEqual(process.request(99), 22)
        with process.scratch() as scratch:
            self.assertEqual(Path(scratch.inside).stat().st_mode & 0o777, 0o700)
            self.assertEqual(process.request(Request.DUMP_PROFILE, path=f"{scratch.inside}/profile"), 0)
            self.assertEqual(scratch.read("profile"), b"{}\n")
        self.assertFalse(Path(scratch.inside).exists())

    def test_directory_that_cannot_be_written(self) -> None:
        process = Process(self.start().pid)
        with mock.patch("tempfile.mkdtemp", side_effect=OSError(errno.EROFS, "Read-only file system")):
            told = r"nothing can be written where it sees it \(/tmp: Read-only file system, /dev/shm: Read-only"
            with self.assertRaisesRegex(CannotError, told), process.scratch():
                self.fail("it is no directory")

    def test_directory_elsewhere(self) -> None:
        """In a container whose /tmp is read-only, or which has none."""
        process = Process(self.start().pid)
        make = tempfile.mkdtemp
        refused = [OSError(errno.EROFS, "Read-only file system")]

        def first_refused(**where: str) -> str:
            if refused:
                raise refused.pop()
            return make(**where)

        with mock.patch("tempfile.mkdtemp", side_effect=first_refused), process.scratch() as scratch:
            self.assertEqual(Path(scratch.inside).parent, Path("/dev/shm"))
            self.assertEqual(process.request(Request.DUMP_PROFILE, path=f"{scratch.inside}/profile"), 0)
            self.assertEqual(scratch.read("profile"), b"{}\n")
        self.assertFalse(Path(scratch.inside).exists())

    def test_what_is_no_file_of_the_process_s_is_not_read(self) -> None:
        process = Process(self.start().pid)
        with process.scratch() as scratch:
            directory = Path(scratch.inside)
            (directory / "link").symlink_to("/dev/zero")
            os.mkfifo(directory / "pipe")
            (directory / "huge").touch()
            os.truncate(directory / "huge", 1 << 40)
            for name, told in (
                ("absent", "cannot be read: No such file"),
                ("link", "cannot be read: Too many levels of symbolic links"),
                ("pipe", "is no regular file of up to 256 MiB"),
                ("huge", "is no regular file of up to 256 MiB"),
            ):
                with self.subTest(name), self.assertRaisesRegex(CannotError, f"process {process.pid}: .* {told}"):
                    scratch.read(name)
        self.assertFalse(directory.exists())

    @unittest.skipUnless(os.geteuid() == 0, "only root is more than the process's user")
    def test_root_has_no_more_rights_there_than_the_process_s_user(self) -> None:
        process = Process(self.start().pid)
        secret = fakes.directory() / "secret"
        secret.write_text("root's alone")
        secret.chmod(0o600)
        real = tempfile.mkdtemp

        def replaced(prefix: str, dir: str) -> str:
            """Its user has put something of root's in the place of the new directory."""
            made = Path(real(prefix=prefix, dir=dir))
            made.rmdir()
            made.symlink_to(secret.parent)
            self.addCleanup(Path("/tmp", made.name).unlink, missing_ok=True)
            return str(made)

        before = os.getresuid(), os.getresgid(), os.getgroups()
        with mock.patch.object(procfs, "owner", return_value=(65534, 65534)):
            with process.scratch() as scratch:
                told = Path(scratch.inside).stat()
                self.assertEqual((told.st_uid, told.st_gid, told.st_mode & 0o777), (65534, 65534, 0o700))
                shutil.copy2(secret, Path(scratch.inside, "profile"))
                with self.assertRaisesRegex(CannotError, "cannot be read: Permission denied"):
                    scratch.read("profile")
            self.assertFalse(Path(scratch.inside).exists())
            with mock.patch("tempfile.mkdtemp", replaced), process.scratch() as scratch:
                with self.assertRaisesRegex(CannotError, "cannot be read: Permission denied"):
                    scratch.read("secret")
        self.assertEqual((os.getresuid(), os.getresgid(), os.getgroups()), before)
        self.assertEqual((secret.read_text(), secret.parent.stat().st_uid), ("root's alone", 0))

    def test_two_tools_at_once(self) -> None:
        """Each gets the result of its own request."""
        started = self.start(wrong="slow")
        before = Process(started.pid).snapshot().counters["purges"] or 0
        failures: list[BaseException] = []

        def ask(kind: Request, path: str, result: int) -> None:
            try:
                process = Process(started.pid)
                for _ in range(10):
                    self.assertEqual(process.request(kind, path=path), result)
            except BaseException as error:
                failures.append(error)

        asked = ((Request.PURGE, "", 0), (Request.WRITE_STATISTICS, "/no/such/place", 2))
        threads = [threading.Thread(target=ask, args=one) for one in asked]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(Process(started.pid).snapshot().counters["purges"], before + 10)

    def test_idle_process(self) -> None:
        process = Process(self.start(wrong="idle").pid)
        with self.assertRaisesRegex(CannotError, "idle or stopped"):
            process.request(Request.PURGE, wait_seconds=0.2)
        self.assertEqual(process._head().request, 0)

    def test_path_too_long(self) -> None:
        with self.assertRaisesRegex(CannotError, "511 bytes"):
            Process(self.start().pid).request(Request.DUMP_PROFILE, path="x" * 512)


if __name__ == "__main__":
    unittest.main()
