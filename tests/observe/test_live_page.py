"""The page of `run --live`: read when memory may not be, refused when it is stale, torn or another user's."""

from __future__ import annotations

import os
import struct
import tempfile
import time
import unittest
from unittest import mock

import fakes

from hakmem_cli import live
from hakmem_cli.say import CannotError
from hakmem_observe import live_page, locate, procfs
from hakmem_observe.errors import DeniedError
from hakmem_observe.layout import VERSION
from hakmem_observe.remote import Process

TEXT = b'{"schema":"hakmem-stats","version":1,"pid":%d,"unix_ms":1,"memory":{"cached_bytes":77}}'


class Page(fakes.FakeTest):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.process = self.start()
        self.path = live.of_session(directory.name) / str(self.process.pid)
        self.path.parent.mkdir()
        environment = mock.patch.dict(os.environ, {"XDG_RUNTIME_DIR": directory.name})
        environment.start()
        self.addCleanup(environment.stop)
        denied = mock.patch.object(locate, "control_address", side_effect=DeniedError("its memory may not be read"))
        denied.start()
        self.addCleanup(denied.stop)

    def write(
        self, *, sequence: int = 2, started: int | None = None, version: int = VERSION, text: bytes | None = None
    ) -> None:
        pid = self.process.pid
        text = TEXT % pid if text is None else text
        started = procfs.start_time(pid) if started is None else started
        head = b"hakmemL\0" + struct.pack("<II", version, 1024)
        page = head.ljust(552, b"\0") + struct.pack("<QIIQQ", sequence, len(text), pid, started, 1)
        self.path.write_bytes(page.ljust(1024, b"\0") + text.ljust(4096, b"\0"))

    def refused(self, pattern: str) -> None:
        with self.assertRaisesRegex(CannotError, pattern):
            Process(self.process.pid).snapshot()

    def test_is_read(self) -> None:
        self.write()
        self.assertEqual(Process(self.process.pid).snapshot().memory["cached_bytes"], 77)

    def test_its_owner_cuts_it_short(self) -> None:
        self.write()
        process = Process(self.process.pid)
        process.snapshot()
        os.truncate(self.path, 0)
        with self.assertRaisesRegex(CannotError, "its live page has been cut short"):
            process.snapshot()

    def test_times_of_an_idle_process(self) -> None:
        """Its page is old; the process is 200 s old, and was 50 when it was written."""
        now_ms = int(time.time() * 1000)
        text = TEXT % self.process.pid
        self.write(text=text.replace(b'"unix_ms":1,', b'"unix_ms":%d,' % (now_ms - 150_000)))
        process = Process(self.process.pid)
        with mock.patch.object(procfs, "age_ms", return_value=200_000):
            taken = process.snapshot()
        self.assertEqual(taken.unix_ms, now_ms - 150_000)
        self.assertAlmostEqual(taken.uptime_ms, 50_000, delta=5000)

    def test_an_idle_process_is_one(self) -> None:
        """However its age and the time are rounded, until it writes again."""
        text = (TEXT % self.process.pid).replace(b'"unix_ms":1,', b'"unix_ms":%d,' % (time.time() * 1000 - 150_000))
        self.write(text=text)
        process = Process(self.process.pid)

        def uptime_ms(age_ms: int) -> int:
            with mock.patch.object(procfs, "age_ms", return_value=age_ms):
                return process.snapshot().uptime_ms

        self.assertEqual(len({uptime_ms(age) for age in (200_000, 199_000, 201_000)}), 1)
        self.write(text=text, sequence=4)
        self.assertAlmostEqual(uptime_ms(300_000), 150_000, delta=5000)

    def test_is_asked(self) -> None:
        self.write()
        process = Process(self.process.pid)
        with self.assertRaisesRegex(CannotError, "idle or stopped"):
            process.request(4, 5, "/x", wait_seconds=0.05)
        data = self.path.read_bytes()
        self.assertEqual(struct.unpack_from("<IxxxxxxxxxxxxQ", data, 16), (0, 5))
        self.assertEqual(data[40:43], b"/x\0")

    def test_missing(self) -> None:
        self.refused("its memory may not be read$")

    def test_stale(self) -> None:
        self.write(started=1)
        self.refused("stale, of an earlier process")

    def test_other_version(self) -> None:
        self.write(version=5)
        self.refused(r"live page \(5\)")

    def test_never_at_rest(self) -> None:
        self.write(sequence=3)
        self.refused("never at rest")

    def test_empty(self) -> None:
        self.write(text=b"")
        self.refused("its live page is empty: the statistics do not fit into its")

    def test_of_the_program_that_it_has_become(self) -> None:
        self.write()
        process = Process(self.process.pid)
        before = process.snapshot().unix_ms
        self.path.unlink()
        self.write(text=TEXT.replace(b'"unix_ms":1,', b'"unix_ms":77,') % self.process.pid)
        self.assertEqual((before, process.snapshot().unix_ms), (1, 77))

    def test_page_that_goes_while_it_is_read(self) -> None:
        """As at the end of a process, which is no error of a series."""
        self.write()
        process = Process(self.process.pid)
        self.path.unlink()
        self.assertEqual(process.snapshot().memory["cached_bytes"], 77)

    def test_no_json(self) -> None:
        self.write(text=b"{")
        self.refused("no JSON")

    def test_too_short_and_no_file(self) -> None:
        self.path.write_bytes(b"hakmemL\0")
        self.refused("its memory may not be read$")
        self.path.unlink()
        os.mkfifo(self.path)
        self.refused("its memory may not be read$")

    def test_link_is_not_followed(self) -> None:
        self.write()
        self.path.rename(self.path.with_suffix(".x"))
        self.path.symlink_to(self.path.with_suffix(".x"))
        self.refused("its memory may not be read$")

    @unittest.skipUnless(os.geteuid() == 0, "only root gives files away")
    def test_other_users(self) -> None:
        self.write()
        os.chown(self.path, 12345, -1)
        self.refused("its memory may not be read$")

    def test_length_is_not_believed(self) -> None:
        self.write()
        data = bytearray(self.path.read_bytes())
        struct.pack_into("<I", data, 560, 0xFFFFFFFF)
        self.path.write_bytes(data)
        self.refused("never at rest")

    def test_places(self) -> None:
        self.assertEqual(live_page.places(7, 42)[-1], live.of_user(42) / "7")


if __name__ == "__main__":
    unittest.main()
