"""`hakmem prof`: what is asked of a process, what is written, and each error as one line."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import re
import tempfile
import unittest
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import fake_stacks

from hakmem_cli.say import CannotError
from hakmem_observe import __main__ as command
from hakmem_observe import pprof, pprof_schema, procfs, prof_actions, profile_files
from hakmem_observe.errors import DeniedError
from hakmem_observe.remote import Request

TEXT = """\
heap profile: 1: 4096 [2: 8192] @ heap_v2/1
# hakmem-profile 1 pid=17 rate=1 started_ms=1790000000000 now_ms=1790000001000 dropped=0 peak_bytes=4096
1: 4096 [2: 8192] @ 0x7f0000000123 0x7f0000000456
# peak 1 4096 lifetimes 1 0 0 0 0 0 0 0
MAPPED_LIBRARIES:
7f0000000000-7f0000001000 r-xp 00000000 fe:00 1 /no/such/program
"""


@dataclass
class FakeScratch:
    inside: str

    def read(self, name: str) -> bytes:
        return Path(self.inside, name).read_bytes()


class FakeProcess:
    """A process that writes TEXT."""

    def __init__(self, result: int = 0) -> None:
        self.pid = os.getpid()
        self.result = result
        self.asked: list[tuple[int, int, str]] = []

    def request(self, kind: int, argument: int = 0, path: str = "", wait_seconds: float = 3.0) -> int:
        self.asked.append((kind, argument, path))
        if kind == Request.DUMP_PROFILE and not self.result:
            Path(path).write_text(TEXT)
        return self.result

    @contextlib.contextmanager
    def scratch(self) -> Iterator[FakeScratch]:
        with tempfile.TemporaryDirectory() as directory:
            yield FakeScratch(directory)


class Commands(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        before = os.getcwd()
        os.chdir(directory.name)
        self.addCleanup(os.chdir, before)
        Path("p.heap").write_text(TEXT)

    def run_words(self, words: str, process: FakeProcess | None = None) -> tuple[int, str, str]:
        out, errors = io.StringIO(), io.StringIO()
        fake = process or FakeProcess()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            with mock.patch.object(prof_actions, "Process", lambda pid: fake):
                code = command.main(words.split())
        return code, out.getvalue(), errors.getvalue()

    def check(self, words: str, line: str, process: FakeProcess | None = None) -> None:
        """It ends with 2 and one line."""
        code, _, errors = self.run_words(words, process)
        self.assertEqual(code, 2, words)
        self.assertRegex(errors, rf"\Ahakmem: [^\n]*{line}[^\n]*\n\Z")

    def test_dump_asks_for_mappings_where_there_are_none(self) -> None:
        """Those of a process whose memory may not be read may not be either, and it has written its own."""
        start, maps, _ = TEXT.partition("MAPPED_LIBRARIES:\n")
        pid = FakeProcess().pid
        for text, asks in ((TEXT, 0), (start + maps + "# no mappings\n", 1)):
            denied = mock.patch.object(procfs, "read", side_effect=DeniedError("may not be read"))
            with self.subTest(asks=asks), mock.patch.dict(globals(), TEXT=text), denied as read:
                self.assertEqual(self.run_words(f"prof dump {pid} --format heap_v2 --output told{asks}")[0], 0)
                self.assertEqual(read.call_count, asks)
                self.assertEqual(Path(f"told{asks}").read_text().partition("MAPPED")[2], text.partition("MAPPED")[2])

    def test_start_and_stop(self) -> None:
        process = FakeProcess()
        pid = process.pid
        self.assertEqual(self.run_words(f"prof start {pid}", process)[0], 0)
        self.assertEqual(self.run_words(f"prof start {pid} --rate 64k", process)[0], 0)
        self.assertEqual(self.run_words(f"prof stop {pid}", process)[0], 0)
        self.assertEqual([one[:2] for one in process.asked], [(1, 0), (1, 65536), (2, 0)])

    def test_what_the_process_cannot_do(self) -> None:
        pid = os.getpid()
        self.check(
            f"prof dump {pid}", f"no profile there; start one: hakmem prof start {pid}", FakeProcess(errno.ENODATA)
        )
        self.check(f"prof start {pid}", "cannot be started: it runs already", FakeProcess(errno.EALREADY))
        self.check(f"prof start {pid}", "started: there is no profile in check mode", FakeProcess(errno.ENOTSUP))
        self.check(f"prof start {pid}", "cannot be started: Cannot allocate memory", FakeProcess(errno.ENOMEM))
        self.assertEqual(os.listdir(), ["p.heap"])

    def test_dump(self) -> None:
        pid = os.getpid()
        code, _, errors = self.run_words(f"prof dump {pid}")
        self.assertEqual(code, 0, errors)
        written = profile_files.read(Path(f"hakmem.{pid}.pb.gz"))
        self.assertEqual(written.total("live").bytes, 4096)
        self.run_words(f"prof dump {pid} --format heap_v2 --output raw")
        # In a container it may have written another number.
        self.assertEqual(Path("raw").read_text(), re.sub(r" pid=\d+", f" pid={pid}", TEXT))
        self.assertEqual(written.pid, pid)
        self.run_words(f"prof dump {pid} --format collapsed --what allocated")
        line = Path(f"hakmem.{pid}.collapsed").read_text()
        self.assertEqual(line, "program+0x455;program+0x122 8192\n")
        self.assertFalse([name for name in os.listdir() if name.endswith(".part")])

    def test_files_are_not_written_over(self) -> None:
        process = FakeProcess()
        Path("here").write_text("mine")
        self.check(f"prof dump {process.pid} --output here", "here: exists; --force", process)
        self.assertEqual(process.asked, [])
        self.check("prof convert p.heap --output here", "here: exists")
        self.assertEqual(Path("here").read_text(), "mine")
        self.assertEqual(self.run_words("prof convert p.heap --output here --force")[0], 0)
        self.assertEqual(Path("here").read_bytes()[:2], pprof.MAGIC)
        self.check("prof convert p.heap --format heap_v2 --force", "is the file to convert")
        self.assertEqual(Path("p.heap").read_text(), TEXT)

    def test_file_systems_without_hard_links(self) -> None:
        with mock.patch("os.link", side_effect=PermissionError(errno.EPERM, "Operation not permitted")):
            code, _, errors = self.run_words("prof convert p.heap --output new")
        self.assertEqual(code, 0, errors)
        self.assertEqual(sorted(os.listdir()), ["new", "p.heap"])

    def test_convert_knows_files_by_content(self) -> None:
        self.run_words("prof convert p.heap --output any.name")
        self.assertEqual(self.run_words("prof convert any.name --format collapsed")[0], 0)
        self.assertEqual(Path("any.name.collapsed").read_text(), "program+0x455;program+0x122 4096\n")
        self.check("prof convert any.name --format heap_v2", "cannot be turned back into heap_v2")

    def test_show(self) -> None:
        Path("p.pb.gz").write_bytes(pprof.encode(fake_stacks.profile(50, hostile=True)))
        code, out, _ = self.run_words("prof show p.pb.gz --top 3")
        self.assertEqual(code, 0)
        self.assertIn("/srv/shop/bin/shopd, process 4711", out)
        self.assertIn("more; --top N shows more", out)
        self.assertNotIn("\x1b", out)

    def test_show_counts_the_stacks_that_it_leaves_out(self) -> None:
        one = "1: 4096 [2: 8192] @ 0x7f0000000123 0x7f0000000456\n# peak 1 4096 lifetimes 1 0 0 0 0 0 0 0\n"
        dead = one.replace("1: 4096", "0: 0").replace("0456", "0abc").replace("lifetimes 1", "lifetimes 2")
        Path("p.heap").write_text(TEXT.replace(one, one + one.replace("0456", "0789") + dead))
        _, out, _ = self.run_words("prof show p.heap")
        self.assertRegex(out, r"program\+0x122 ← program\+0x(455|788) and 1 other stack *\n")
        _, out, _ = self.run_words("prof show p.heap --what allocated")
        self.assertRegex(out, r" and 2 other stacks *\n")
        _, _, said = self.run_words("prof convert p.heap")
        self.assertIn("(8.0 KiB live, 2 sites)", said)

    def test_code_compiled_at_run_time_below_the_program(self) -> None:
        maps = "40000000-40001000 r-xp 00000000 00:00 0\n7f0000000000"
        text = TEXT.replace("\n7f0000000000", f"\n{maps}").replace("@ 0x7f", "@ 0x40000010 0x7f")
        Path("p.heap").write_text(text)
        code, out, _ = self.run_words("prof show p.heap")
        self.assertEqual(code, 0)
        self.assertIn("/no/such/program, process 17: ", out)
        self.assertIn("0x4000000f", out)
        self.run_words("prof convert p.heap")
        message = pprof_schema.Message.FromString(gzip.decompress(Path("p.pb.gz").read_bytes()))
        names = [message.string_table[one.filename] for one in message.mapping]
        self.assertEqual(names, ["/no/such/program", ""])
        self.run_words("report p.heap")
        self.assertIn("program, process 17", Path("report.html").read_text())

    def test_names_cannot_steer_a_terminal(self) -> None:
        Path("p.heap").write_text(TEXT.replace("/no/such/program", "/no/\x1b[31mred"))
        for words in ("prof show p.heap", "prof convert p.heap"):
            _, out, errors = self.run_words(words)
            self.assertNotIn("\x1b", out + errors)

    def test_errors_are_one_line(self) -> None:
        Path("text").write_text("hello\n")
        Path("cut").write_text(TEXT[:200])
        many = f"{9 * 10**17}: {9 * 10**17}"
        huge = TEXT.replace("1: 4096 [2: 8192] @ 0x", f"{many} [{many}] @ 0x").replace("/1\n", "/9999\n")
        Path("huge").write_text(huge.replace("rate=1 ", "rate=9999 "))
        Path("late").write_text(TEXT.replace("now_ms=1790000001000", "now_ms=999999999999999999"))
        os.mkfifo("pipe")
        for words, line in (
            ("prof convert late", "late: line 2: now_ms=9{18}: legal are up to"),
            ("prof convert huge", "a number that pprof cannot hold"),
            (f"prof start 1 --rate {5000 * '9'}", "9: legal are 1 to"),
            (f"prof show p.heap --top {5000 * '9'}", "9: legal are 1 to"),
            (f"prof dump {5000 * '9'}", "9: no process; legal is"),
            ("prof", "ACTION.*use: hakmem prof start"),
            ("prof frob", "frob"),
            ("prof dump", "PID"),
            ("prof dump x", "x"),
            ("prof start 1 --rate 0", "0: legal are 1 to"),
            ("prof start 1 --wait x", "x: legal are 0.1 to 86400 seconds"),
            ("prof start 1 --rate 2T", "2T: legal are"),
            ("prof convert /no/such", "/no/such: No such file"),
            ("prof convert text", "text: not a heap profile"),
            ("prof show cut", "cut: truncated"),
            ("prof show p.heap --top 0", "0: legal are 1 to"),
            ("prof convert p.heap --output /no/such/file", "/no/such/file: no such directory"),
            ("prof convert p.heap --output .", "is a directory"),
            ("prof convert /no/such --output text --force", "/no/such: No such file"),
            ("prof convert p.heap --output pipe --force", "pipe: no regular file"),
            (f"prof convert p.heap --output {300 * 'x'}", "x: File name too long"),
            ("prof convert p.heap --what peak", "--what peak: only with --format collapsed"),
            ("prof convert p.heap --format svg", "svg"),
        ):
            with self.subTest(words[:80]):
                self.check(words, line)

    def test_no_such_process(self) -> None:
        with self.assertRaises(CannotError):
            prof_actions.procfs.parse_pid("0")
