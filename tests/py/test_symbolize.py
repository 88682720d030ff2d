"""Reports with names: what addr2line knows is filled in, all else is left as it is."""

from __future__ import annotations

import errno
import io
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

from support import LAUNCHER, LIBRARY, ROOT, run

sys.path.insert(0, str(ROOT / "python"))

from hakmem_cli import symbolize  # noqa: E402

HAKMEM = (sys.executable, str(LAUNCHER))

SOURCE = """\
#include <stdlib.h>
static inline __attribute__((always_inline)) void give_up(void)
{
    abort();
}
__attribute__((noinline)) void fall(void)
{
    give_up();
}
int main(void)
{
    fall();
    return 0;
}
"""


def symbolized(text: str) -> str:
    done = subprocess.run([*HAKMEM, "symbolize"], input=text, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


class Symbolize(unittest.TestCase):
    def setUp(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.source = Path(self.directory.name, "falling.c")
        self.program = Path(self.directory.name, "falling")
        self.source.write_text(SOURCE)

    def test_the_user_s_language_is_not_asked(self) -> None:
        """addr2line's words are translated."""
        tool = Path(self.directory.name, "tool")
        tool.write_text('#!/bin/sh\necho "0x0000000000000010: f at $LC_ALL:1"\n')
        tool.chmod(0o755)
        with mock.patch.object(symbolize, "TOOL", str(tool)), mock.patch.dict(os.environ, {"LC_ALL": "fr_FR.UTF-8"}):
            self.assertEqual(symbolize.ask(str(self.source), [0x10]), {0x10: ["f at C:1"]})

    def test_a_last_line_without_an_end(self) -> None:
        ended = threading.Event()
        ended.set()
        self.assertEqual(list(symbolize._growing(io.StringIO("one\ntwo"), ended)), ["one\n", "two"])

    def report(self, *flags: str) -> str:
        """What the library says when the program dies."""
        subprocess.run(["cc", *flags, "-o", self.program, self.source], check=True)
        environment = {**os.environ, "LD_PRELOAD": str(LIBRARY.resolve()), "HAKMEM_CRASH": "1"}
        return run(str(self.program), environment=environment).stderr

    def test_names_functions_files_and_lines(self) -> None:
        for optimization in ("-O0", "-O2"):
            text = symbolized(self.report("-g", optimization))
            self.assertRegex(
                text, rf"(?m)^    #\d+ 0x[0-9a-f]+ in give_up {self.source}:4 \({self.program}\+0x[0-9a-f]+\)$"
            )
            self.assertRegex(text, rf"(?m)^    #\d+ 0x[0-9a-f]+ in fall {self.source}:8 \(")
            self.assertRegex(text, rf"(?m)^    #\d+ 0x[0-9a-f]+ in main {self.source}:12 \(")
            self.assertRegex(text, r"\Ahakmem: crash: SIGABRT, thread \d+\n")

    def test_names_functions_without_lines(self) -> None:
        text = symbolized(self.report("-O0"))
        self.assertRegex(text, rf"(?m)^    #\d+ 0x[0-9a-f]+ in main \({self.program}\+0x[0-9a-f]+\)$")

    def test_names_no_function_that_does_not_cover_the_place(self) -> None:
        """Of a stripped library only what it exports has a name: what lies behind that has none."""
        self.source.write_text(
            "static int inner(int n);\n"
            "int outer(int n) { return inner(n + 1); }\n"
            "static int inner(int n) { return n * 3; }\n"
        )
        library = self.program.with_suffix(".so")
        subprocess.run(["cc", "-O0", "-shared", "-fPIC", "-o", library, self.source], check=True)
        table = subprocess.run(["nm", library], check=True, capture_output=True, text=True).stdout
        places = {line.split()[-1]: int(line.split()[0], 16) for line in table.splitlines() if line[0] != " "}
        self.assertLess(places["outer"], places["inner"])
        subprocess.run(["strip", library], check=True)
        calls = [f"    #0 0x1234 ({library}+{places[name] + 1:#x})\n" for name in ("outer", "inner")]
        self.assertEqual(symbolized("".join(calls)), calls[0].replace("(", "in outer (") + calls[1])

    def test_ends_of_lines_stay(self) -> None:
        text = b"10 %\r20 %\r\n\x0b\x1c\n    #0 0x1234 (/nonexistent/file+0x34)\r\n\r"
        done = subprocess.run([*HAKMEM, "symbolize"], input=text, capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, text, b""))
        subprocess.run(["cc", "-g", "-O0", "-o", self.program, self.source], check=True)
        table = subprocess.run(["nm", self.program], check=True, capture_output=True, text=True).stdout
        place = next(line.split()[0] for line in table.splitlines() if line.endswith(" T main"))
        text = f"    #0 0x1234 ({self.program}+0x{place})\r\n".encode()
        done = subprocess.run([*HAKMEM, "symbolize"], input=text, capture_output=True, timeout=60, check=False)
        self.assertRegex(done.stdout, rb"\A    #0 0x1234 in main [^\n]*:1[01] \([^\n]*\)\r\n\Z")

    def test_leaves_alone_what_it_does_not_know(self) -> None:
        text = "one line\n    #0 0x1234 (/nonexistent/file+0x34)\n    #1 0x5678\n\nthe last, without an end"
        self.assertEqual(symbolized(text), text)

    def test_leaves_calls_alone_where_no_tool_can_be_started(self) -> None:
        subprocess.run(["cc", "-O0", "-o", self.program, self.source], check=True)
        lines = ["before\n", f"    #0 0x1234 ({self.program}+0x1139)\n", "after\n"]
        real = subprocess.run
        for missing in ("addr2line", "nm"):

            def start(command: list[str], missing: str = missing, **how: object) -> object:
                if command[0] == missing:
                    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
                return real(command, **how)  # type: ignore[call-overload]

            symbolize._functions.cache_clear()
            with mock.patch.object(symbolize.subprocess, "run", side_effect=start) as started:
                self.assertEqual(list(symbolize.symbolized(lines)), lines)
            self.assertIn(missing, [call.args[0][0] for call in started.call_args_list])

    def test_reads_files(self) -> None:
        report = Path(self.directory.name, "report")
        report.write_text("nothing\n")
        done = run(*HAKMEM, "symbolize", str(report))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "nothing\n", ""))

    def test_names_that_are_not_utf_8(self) -> None:
        text = b"caf\xe9\n    #0 0x1234 (/nonexistent/caf\xe9+0x34)\n"
        done = subprocess.run([*HAKMEM, "symbolize"], input=text, capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, text, b""))
        directory = os.fsencode(self.directory.name)
        self.source, self.program = (Path(os.fsdecode(directory + name)) for name in (b"/caf\xe9.c", b"/caf\xe9"))
        self.source.write_text(SOURCE)
        subprocess.run(["cc", "-g", "-O0", "-o", self.program, self.source], check=True)
        done = subprocess.run(
            [*HAKMEM, "run", "--check", "--", self.program],
            env={**os.environ, "HAKMEM_CRASH": "1"},
            capture_output=True,
            timeout=60,
            check=False,
        )
        where = rb"    #\d+ 0x[0-9a-f]+ in main .*/caf.*\.c:12 \(" + re.escape(os.fsencode(self.program)) + rb"\+0x"
        self.assertRegex(done.stderr, where)
        self.assertNotIn(b"Traceback", done.stderr)

    def test_stops_when_its_reader_goes(self) -> None:
        report = Path(self.directory.name, "report")
        report.write_text("a line\n" * 100_000)
        with subprocess.Popen(
            [*HAKMEM, "symbolize", report], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            self.assertEqual(process.stdout.readline(), "a line\n")
            process.stdout.close()
            self.assertEqual((process.wait(60), process.stderr.read()), (0, ""))

    def test_says_what_is_wrong(self) -> None:
        done = run(*HAKMEM, "symbolize", "/nonexistent/report")
        self.assertEqual(
            (done.returncode, done.stderr), (2, "hakmem: /nonexistent/report: No such file or directory\n")
        )
