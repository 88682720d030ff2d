"""Check mode, as its users see it: what is reported of each class of bug, and that nothing else is."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from collections.abc import Iterator
from pathlib import Path

import bugs
from support import LAUNCHER, LIBRARY, ROOT, not_ignored, run, stat_fields

CHECKED = dict(os.environ, HAKMEM_CHECK="1", LD_PRELOAD=str(LIBRARY))  # without the launcher, which reads the report
RUN = (sys.executable, str(LAUNCHER), "run", "--check", "--")


# From now on the system call ends with EPERM. 0, or it could not be done.
REFUSE = """
    #include <errno.h>
    #include <linux/filter.h>
    #include <linux/seccomp.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    static int refuse(int number)
    {
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
    }
"""


class Check(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def compiled(self, text: str, before: str = "") -> Path:
        source = self.directory / "program.c"
        source.write_text(before + text)
        program = source.with_suffix("")
        subprocess.run(["cc", "-g", "-O0", "-w", "-pthread", "-o", program, source, "-lstdc++"], check=True)
        return program

    def test_each_bug_is_reported(self) -> None:
        for bug in bugs.BUGS:
            with self.subTest(bug.source):
                done = bugs.check(bugs.build(bug, self.directory))
                self.assertEqual(bug.status, done.returncode, done.stderr)
                self.assertIsNone(bugs.missing(bug, done.stderr), done.stderr)

    def test_the_document_shows_what_is_reported(self) -> None:
        text = bugs.DOCUMENT.read_text()
        for bug in bugs.BUGS:
            with self.subTest(bug.source):
                self.assertIn((bugs.SOURCES / bug.source).read_text().strip(), text)
                shown = text.split(f"<!-- {bug.source} -->\n```\n")[1].split("```")[0]
                self.assertIsNone(bugs.missing(bug, shown), shown)

    def test_every_program_has_its_place(self) -> None:
        self.assertEqual(sorted(bug.source for bug in bugs.BUGS), sorted(path.name for path in bugs.SOURCES.iterdir()))

    def test_nothing_is_reported_of_correct_programs(self) -> None:
        for command in (
            ["/bin/sh", "-c", "echo $((6 * 7))"],
            ["ls", "-l", "/usr/bin"],
            [sys.executable, "-c", "import json; print(len(json.dumps(list(range(10000)))))"],
        ):
            with self.subTest(command):
                plain = run(*command)
                done = run(*RUN, *command)
                self.assertEqual(done.stdout, plain.stdout)
                said = re.findall(r"(?:ERROR|WARNING): hakmem.*", done.stderr)
                errors = [line for line in said if "memory leaks" not in line]  # some may leak indeed
                self.assertEqual((done.returncode, errors), (0, []), done.stderr)

    def test_exit_codes_and_signals_are_the_programs_own(self) -> None:
        self.assertEqual(run(*RUN, "/bin/sh", "-c", "exit 42").returncode, 42)
        self.assertEqual(run(*RUN, "/bin/sh", "-c", "kill -KILL $$").returncode, -signal.SIGKILL)
        self.assertEqual(run(*RUN, "/nowhere/to/be/found").returncode, 127)

    def test_signals_are_handed_on(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            not_ignored(self, number)
            traps = f"trap 'exit 3' {number.value}; echo ready; for i in $(seq 300); do sleep 0.1; done; exit 4"
            command = [*RUN, "/bin/sh", "-c", traps]
            with (
                self.subTest(number),
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process,
            ):
                assert process.stdout is not None
                self.assertEqual(process.stdout.readline(), "ready\n")
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=60), 3)

    def test_the_launcher_ends_as_the_program_does(self) -> None:
        environment = {**os.environ, "TMPDIR": str(self.directory)}
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            not_ignored(self, number)
            with self.subTest(number):
                command = [*RUN, "/bin/sh", "-c", "echo ready; exec sleep 30"]
                with subprocess.Popen(
                    command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                ) as process:
                    assert process.stdout is not None
                    self.assertEqual(process.stdout.readline(), b"ready\n")
                    process.send_signal(number)
                    self.assertEqual(process.wait(timeout=60), -number)
                self.assertEqual(list(self.directory.iterdir()), [])

    def read_until(self, screen: int, *words: str) -> str:
        """What is on it until all of the words are there, and for a moment more."""
        shown, deadline, quiet = "", time.monotonic() + 60, 0.0
        while quiet < 0.5:
            self.assertLess(time.monotonic(), deadline, shown)
            before = len(shown)
            with contextlib.suppress(BlockingIOError):
                shown += os.read(screen, 4096).decode()
            quiet = quiet + 0.05 if len(shown) == before and all(word in shown for word in words) else 0
            time.sleep(0.05)
        return shown

    def test_signals_reach_the_program_once(self) -> None:
        """Those of a terminal, which it sends to the launcher too, and those that only the launcher gets."""
        program = self.compiled("""
            #include <signal.h>
            #include <unistd.h>
            static void tell(int number)
            {
                char line[] = {'<', '0' + number / 10, '0' + number % 10, '>'};
                write(1, line, sizeof line);
            }
            int main(void)
            {
                signal(SIGINT, tell), signal(SIGQUIT, tell), signal(SIGWINCH, tell);
                write(1, "up", 2);
                for (;;)
                    pause();
            }
        """)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            not_ignored(self, number)
        process, screen = pty.fork()
        if process == 0:
            os.execv(RUN[0], [*RUN, str(program)])
        self.addCleanup(os.close, screen)
        os.set_blocking(screen, False)
        self.read_until(screen, "up")
        shown = ""
        for send, word in (
            (lambda: os.write(screen, b"\x03"), "<02>"),
            (lambda: os.write(screen, b"\x1c"), "<03>"),
            (lambda: fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("4H", 30, 90, 0, 0)), "<28>"),
            (lambda: os.kill(process, signal.SIGINT), "<02>"),
            (lambda: os.kill(process, signal.SIGQUIT), "<03>"),
            (lambda: os.kill(process, signal.SIGWINCH), "<28>"),
        ):
            send()
            shown += self.read_until(screen, word)
        self.assertEqual(re.findall("<..>", shown), ["<02>", "<03>", "<28>"] * 2)
        os.kill(process, signal.SIGTERM)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), -signal.SIGTERM)

    def test_a_signal_of_the_program_s_own_does_not_come_back(self) -> None:
        not_ignored(self, signal.SIGTERM)
        script = "trap 'echo trapped' TERM; kill -TERM 0; sleep 0.3; sleep 0.3"
        done = subprocess.run(
            [*RUN, "sh", "-c", script], start_new_session=True, capture_output=True, text=True, timeout=60, check=False
        )
        self.assertEqual((done.returncode, done.stdout), (0, "trapped\n"))

    def test_the_program_begins_with_the_same_signals(self) -> None:
        asked = ("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
        for script in ('exec "$@"', "trap '' INT CHLD WINCH; exec \"$@\""):
            plain, checked = (run("sh", "-c", script, "sh", *words, *asked) for words in ((), RUN))
            self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, plain.stdout, ""))

    def test_reports_of_processes_that_go_on_are_shown(self) -> None:
        """Also while the program, which has ended, is still being told of."""
        program = self.compiled("""
            #include <stdlib.h>
            #include <unistd.h>
            void *_Znwm(unsigned long);
            int main(void)
            {
                if (fork() == 0) {
                    for (int i = 0; i < 15; i++) {
                        usleep(100000);
                        free(_Znwm(10));
                    }
                    return 0;
                }
                free(_Znwm(10));
                return 7;
            }
        """)
        tool = self.directory / "bin" / "addr2line"
        tool.parent.mkdir()
        tool.write_text("#!/bin/sh\nsleep 0.2\n")
        tool.chmod(0o755)
        environment = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}
        done = run(*RUN, program, environment=environment)
        self.assertEqual((done.returncode, done.stderr.count("WARNING: hakmem: alloc-dealloc-mismatch")), (7, 16))

    @contextlib.contextmanager
    def naming_a_stack(self) -> Iterator[tuple[subprocess.Popen[str], Path]]:
        """The launcher of a program that ends with 7, and a file: the first stack has no names before that is there."""
        program = self.compiled("""
            #include <stdlib.h>
            void *_Znwm(unsigned long);
            int main(void) { free(_Znwm(10)); return 7; }
        """)
        naming, go = self.directory / "naming", self.directory / "go"
        tool = self.directory / "bin" / "addr2line"
        tool.parent.mkdir()
        # It may outlive the launcher, and then the directory.
        tool.write_text(f"#!/bin/sh\necho > {naming}\nwhile test -e {naming} && ! test -e {go}; do sleep 0.05; done\n")
        tool.chmod(0o755)
        environment = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}
        with subprocess.Popen([*RUN, program], env=environment, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and not naming.exists():
                time.sleep(0.01)
            self.assertIsNone(process.poll())
            try:
                yield process, go
            finally:
                go.touch()

    def await_programs_end(self, launcher: int) -> None:
        """The launcher keeps it, a zombie, until its report has been shown."""
        children = Path(f"/proc/{launcher}/task/{launcher}/children")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for child in children.read_text().split():
                if stat_fields(child)[0] == "Z":
                    return
            time.sleep(0.01)
        self.fail("the program does not end")

    def test_who_has_seen_enough_may_interrupt_the_report(self) -> None:
        not_ignored(self, signal.SIGINT)
        with self.naming_a_stack() as (process, go):
            self.await_programs_end(process.pid)
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                process.send_signal(signal.SIGINT)
                time.sleep(0.1)
            self.assertEqual(process.poll(), 7)
            go.touch()
            _, err = process.communicate(timeout=60)
        self.assertIn("hakmem: interrupted: the rest of the reports is not shown\n", err)

    def test_late_signals_do_not_end_the_report(self) -> None:
        """Nor do they reach another process: the program has ended, and its report is still being shown."""
        with self.naming_a_stack() as (process, go):
            self.await_programs_end(process.pid)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)  # for it to do harm
            go.touch()
            _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 7, err)
        self.assertIn("alloc-dealloc-mismatch", err)
        self.assertNotIn("No such process", err)

    def test_what_is_traced_goes_to_the_file_that_is_named(self) -> None:
        program = bugs.build(bugs.BUGS[0], self.directory)
        trace = self.directory / "trace"
        done = run(*RUN, program, environment={**os.environ, "HAKMEM_TRACE": f"ptr:heap+0x10,{trace}"})
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGABRT, ""))
        self.assertIn("TRACE: hakmem: allocated", trace.read_text())
        self.assertIn("heap-buffer-overflow", trace.read_text())

    def test_the_option_counts_above_a_variable_that_turns_it_off(self) -> None:
        program = bugs.build(bugs.BUGS[0], self.directory)
        done = run(*RUN, program, environment={**os.environ, "HAKMEM_CHECK": "0"})
        self.assertEqual(done.returncode, -signal.SIGABRT, done.stderr)
        self.assertIn("heap-buffer-overflow", done.stderr)
        done = run(*RUN, "printenv", "HAKMEM_CHECK", environment={**os.environ, "HAKMEM_CHECK": "free"})
        self.assertEqual(done.stdout, "free\n")

    def test_a_report_goes_to_the_file_that_is_named(self) -> None:
        program = bugs.build(bugs.BUGS[0], self.directory)
        report = self.directory / "report"
        environment = {
            **os.environ,
            "LD_PRELOAD": str(LIBRARY.resolve()),
            "HAKMEM_CHECK": "1",
            "HAKMEM_REPORT": str(report),
        }
        done = run(program, environment=environment)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGABRT, ""))
        self.assertIn("heap-buffer-overflow", report.read_text())

    def test_a_place_that_was_never_handed_out_is_called_that(self) -> None:
        program = self.compiled("""
            #include <stdlib.h>
            int main(void)
            {
                char *block = malloc(100);
                free(block + 200);
                return 0;
            }
        """)
        done = run(*RUN, program)
        self.assertEqual(done.returncode, -signal.SIGABRT)
        self.assertRegex(
            done.stderr,
            r"ERROR: hakmem: invalid-free on address (0x[0-9a-f]+) \(free or realloc, thread \d+\)\n"
            r"    #0 [^\n]* in main [^\n]*\n(?:    #[^\n]*\n)*"
            r"\1 is in memory of the heap that was never handed out\n",
        )
        self.assertNotIn("-byte region", done.stderr)

    def test_a_call_of_data_is_no_closed_page(self) -> None:
        program = self.compiled("""
            #include <stdlib.h>
            #include <string.h>
            static void call(void *block) { ((void (*)(void))block)(); }
            int main(int count, char **words)
            {
                char *block = malloc(100);
                memset(block, 0x90, 100);
                if (count > 1)
                    free(block);
                call(block);
                return 0;
            }
        """)
        for words, kind in ((), "wild-jump"), (("freed",), "heap-use-after-free"):
            done = run(*RUN, program, *words)
            self.assertEqual(done.returncode, -signal.SIGSEGV)
            self.assertRegex(done.stderr, rf"ERROR: hakmem: {kind} on address 0x[0-9a-f]+ \((?:EXECUTE|access), thread")
            self.assertRegex(done.stderr, r"is located 0 bytes inside of 100-byte region")

    def test_programs_may_lie_deep(self) -> None:
        """Of each call the place in its file is told, however long the name of that is."""
        program = self.compiled("""
            #include <stdlib.h>
            int main(void) { char *volatile block = malloc(10); free(block); free(block); return 0; }
        """)
        deep = program.parent.joinpath(*(letter * 200 for letter in "abcd"))
        deep.mkdir(parents=True)
        copy = Path(shutil.copy(program, deep))
        done = run(str(copy), environment={"LD_PRELOAD": str(LIBRARY), "HAKMEM_CHECK": "1"})
        calls = re.findall(r"^    #\d+ 0x[0-9a-f]+ (.*)$", done.stderr, re.MULTILINE)
        self.assertGreater(len(calls), 2)
        for call in calls:
            self.assertRegex(call, r"^\(/.*\+0x[0-9a-f]+\)$")
        self.assertIn(f"({copy}+0x", done.stderr)

    def operators(self, body: str) -> Path:
        """A program with that body of main, to which each operator of C++ is a function of its own."""
        source = self.directory / "operators.cpp"
        source.write_text(f'#include "every_operator.h"\nint main()\n{{\n{body}}}\n')
        program = source.with_suffix("")
        headers = ROOT / "tests" / "linking"
        subprocess.run(["c++", "-g", "-std=c++17", "-w", f"-I{headers}", "-o", program, source], check=True)
        return program

    def test_operators_that_belong_together_are_no_mismatch(self) -> None:
        program = self.operators("""
            for (std::size_t n = 1; n < 100000; n = n * 7 + 1) {
                delete_plain(new_plain(n));
                delete_sized(new_nothrow(n, std::nothrow), n);
                delete_array(new_array(n));
                delete_array_nothrow(new_array_nothrow(n, std::nothrow), std::nothrow);
                for (std::size_t alignment = 1; alignment <= 8192; alignment *= 2) {
                    align_val_t a{alignment};
                    delete_aligned(new_aligned(n, a), a);
                    delete_aligned_sized(new_aligned_nothrow(n, a, std::nothrow), n, a);
                    delete_array_aligned(new_array_aligned(n, a), a);
                    delete_array_aligned_sized(new_array_aligned(n, a), n, a);
                    delete_array_aligned_nothrow(new_array_aligned_nothrow(n, a, std::nothrow), a, std::nothrow);
                }
            }
        """)
        done = run(*RUN, program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_alignment_makes_operators_others(self) -> None:
        program = self.operators("""
            align_val_t a{64};
            delete_plain(new_aligned(64, a));
            delete_aligned(new_plain(64), a);
            delete_array(new_array_aligned(64, a));
            delete_array_aligned_sized(new_aligned(64, a), 64, a);
        """)
        done = run(*RUN, program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            re.findall(r"alloc-dealloc-mismatch \((.*?)\)", done.stderr),
            [
                "operator new, aligned vs operator delete",
                "operator new vs operator delete, aligned",
                "operator new[], aligned vs operator delete[]",
                "operator new, aligned vs operator delete[], aligned",
            ],
        )

    def test_a_program_that_stops_itself_is_seen_to_stop(self) -> None:
        child = subprocess.Popen([*RUN, "sh", "-c", "kill -STOP $$; exit 7"])
        self.addCleanup(child.kill)
        until = time.monotonic() + 60
        while (told := os.waitpid(child.pid, os.WUNTRACED | os.WNOHANG)) == (0, 0) and time.monotonic() < until:
            time.sleep(0.01)
        self.assertTrue(os.WIFSTOPPED(told[1]), told)
        os.kill(child.pid, signal.SIGCONT)
        self.assertEqual(child.wait(timeout=60), 7)

    def test_there_is_no_profile(self) -> None:
        done = run("/bin/true", environment={**CHECKED, "HAKMEM_PROFILE": "1M"})
        said = "hakmem: warning: HAKMEM_PROFILE: there is no profile in check mode\n"
        self.assertEqual((done.returncode, done.stderr), (0, said))

    def test_mismatches_are_not_reported_without_end(self) -> None:
        program = self.compiled("""
            #include <stdlib.h>
            void *_Znwm(unsigned long);
            int main(void) { for (int i = 0; i < 100; i++) free(_Znwm(10)); return 0; }
        """)
        done = run(*RUN, program)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("alloc-dealloc-mismatch"), 20)
        self.assertIn("further mismatches are not reported", done.stderr)

    def test_programs_at_a_fixed_address_mix_nothing_up(self) -> None:
        """In them the address of a function of ours is that of a jump to it, and each may be taken or not."""
        new = "static_cast<void *(*)(std::size_t)>(::operator new{})"
        delete = "static_cast<void (*)(void *)>(::operator delete{})"
        aligned = "static_cast<void (*)(void *, std::align_val_t)>(::operator delete{})"
        operators = [way.format(array) for way in (new, delete, aligned) for array in ("", "[]")]
        for number, taken in enumerate(["malloc", "free", "0", *operators]):
            source = self.directory / f"fixed_{number}.cpp"
            source.write_text(f"""
                #include <cstdio>
                #include <cstdlib>
                #include <new>
                int main()
                {{
                    void *volatile address = (void *){taken};
                    for (int i = 0; i < 100; i++) {{
                        delete new int;
                        delete[] new int[10];
                        ::operator delete(::operator new(100, std::align_val_t(64)), std::align_val_t(64));
                        ::operator delete[](::operator new[](100, std::align_val_t(64)), std::align_val_t(64));
                        std::free(std::malloc(10));
                    }}
                    return address == nullptr && {int(taken != "0")};
                }}
            """)
            program = source.with_suffix("")
            subprocess.run(["c++", "-std=c++17", "-O0", "-w", "-fno-pie", "-no-pie", "-o", program, source], check=True)
            done = run(*RUN, program)
            self.assertEqual((done.returncode, done.stderr), (0, ""), taken)

    def test_an_alignment_that_is_none_is_refused(self) -> None:
        source = self.directory / "alignment.cpp"
        source.write_text("""
            #include <new>
            int main()
            {
                volatile std::size_t alignment = 24;
                return ::operator new(64, std::align_val_t(alignment), std::nothrow) != nullptr;
            }
        """)
        program = source.with_suffix("")
        subprocess.run(["c++", "-std=c++17", "-O0", "-o", program, source], check=True)
        self.assertEqual(run(*RUN, program).returncode, 0)

    def test_a_library_with_operators_of_its_own_mixes_nothing_up(self) -> None:
        """It has the C++ library within itself, as libLLVM does: its new is malloc to us, the program's delete ours."""
        (self.directory / "own.cpp").write_text('extern "C" int *make() { return new int[3]; }')
        (self.directory / "user.cpp").write_text('extern "C" int *make(); int main() { delete[] make(); }')
        library = self.directory / "libown.so"
        flags = ["-shared", "-fPIC", "-static-libstdc++", "-Wl,--exclude-libs,ALL", "-Wl,-Bsymbolic"]
        subprocess.run(["c++", *flags, "-o", library, self.directory / "own.cpp"], check=True)
        program = self.directory / "user"
        rpath = f"-Wl,-rpath,{self.directory}"
        subprocess.run(["c++", "-o", program, self.directory / "user.cpp", library, rpath], check=True)
        done = run(*RUN, program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_history_of_an_address_is_traced(self) -> None:
        bug = next(bug for bug in bugs.BUGS if bug.source == "double_free.c")
        program = bugs.build(bug, self.directory)
        report = run(*RUN, program).stderr
        place = re.search(r"HAKMEM_TRACE=(ptr:heap\+0x[0-9a-f]+)", report)
        assert place, report
        traced = run(*RUN, program, environment={**os.environ, "HAKMEM_TRACE": place[1]}).stderr
        self.assertRegex(
            traced,
            r"(?s)==\d+==TRACE: hakmem: allocated 0x[0-9a-f]+ \(heap\+0x[0-9a-f]+\), 100 bytes, thread \d+\n"
            r"    #0 [^\n]* in main .*TRACE: hakmem: freed [^\n]*\n"
            r"    #0 [^\n]* in close_file .*ERROR: hakmem: double-free",
        )

    def test_blocks_of_a_class_are_traced_to_a_file(self) -> None:
        program = self.compiled("""
            #include <stdlib.h>
            int main(void)
            {
                for (int i = 0; i < 3000; i++) {
                    free(malloc(1000));
                    free(malloc(20));
                }
                return 0;
            }
        """)
        trace = self.directory / "trace"
        environment = {**os.environ, "LD_PRELOAD": str(LIBRARY.resolve()), "HAKMEM_TRACE": f"class:1000,{trace}"}
        done = run(program, environment=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        events = re.findall(r"TRACE: hakmem: (allocated|freed) 0x[0-9a-f]+ \(heap\S+ (\d+) bytes", trace.read_text())
        self.assertEqual(len(events), 1000)
        self.assertEqual({size for _, size in events}, {"1000"})
        self.assertIn("no more than 1000 events are written", trace.read_text())

    def test_a_crash_shows_the_last_operations(self) -> None:
        program = self.compiled("""
            #include <stdlib.h>
            int main(void)
            {
                for (int i = 1; i < 100; i++)
                    free(malloc(i));
                *(volatile int *)16 = 1;
                return 0;
            }
        """)
        done = run(*RUN, program)
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        lines = re.findall(r"    (allocated|freed) 0x[0-9a-f]+, (\d+) bytes", done.stderr)
        self.assertEqual(lines[:4], [("freed", "99"), ("allocated", "99"), ("freed", "98"), ("allocated", "98")])
        self.assertEqual(len(lines), 16)

    def test_what_a_handler_has_interrupted_is_looked_at(self) -> None:
        """Also where the handler's stack lies in that of main."""
        program = self.compiled("""
            #include <signal.h>
            #include <stdlib.h>
            static void end(int number) { exit(0); }
            static void hold(void)
            {
                void *volatile blocks[100];
                for (int i = 0; i < 100; i++)
                    blocks[i] = malloc(10);
                raise(SIGUSR1);
            }
            int main(void)
            {
                char room[65536];
                stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
                struct sigaction action = {.sa_handler = end, .sa_flags = SA_ONSTACK};
                sigaltstack(&stack, NULL);
                sigaction(SIGUSR1, &action, NULL);
                hold();
                return 1;
            }
        """)
        done = run(*RUN, program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_stack_of_a_mismatch_needs_no_copies_by_the_kernel(self) -> None:
        program = self.compiled(
            """
            #include <stdlib.h>
            extern void *_Znwm(unsigned long);
            static void inner(void) { free(_Znwm(10)); }
            static void outer(void) { inner(); }
            int main(void)
            {
                if (refuse(SYS_process_vm_readv) != 0)
                    return 2;
                outer();
                return 0;
            }
            """,
            before=REFUSE,
        )
        done = run(*RUN, program)
        self.assertEqual(done.returncode, 0)
        report = done.stderr.partition("alloc-dealloc-mismatch")[2]
        self.assertRegex(report, r"\A.*\n    #0 .*inner.*\n    #1 .*outer.*\n    #2 .*main", report)

    def test_what_lies_below_a_thread_s_stack_is_looked_at(self) -> None:
        """In the same mapping, behind the same guard: and what the thread has left on its stack is not."""
        program = self.compiled("""
            #define _GNU_SOURCE
            #include <pthread.h>
            #include <stdlib.h>
            #include <string.h>
            #include <sys/mman.h>
            #include <unistd.h>
            enum { BYTES = 256 << 10, PAGES = 4 };
            static pthread_barrier_t there;
            static void leave(void)
            {
                void *volatile on_stack[2000];
                for (int i = 0; i < 2000; i++)
                    on_stack[i] = malloc(10);
            }
            static void *work(void *unused) { leave(); pthread_barrier_wait(&there); for (;;) pause(); }
            int main(void)
            {
                size_t page = sysconf(_SC_PAGESIZE);
                char *mapping = mmap(NULL, BYTES + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                mprotect(mapping + page, BYTES, PROT_READ | PROT_WRITE);
                void **data = (void **)(mapping + page);
                for (int i = 0; i < 10; i++)
                    data[i] = malloc(100);
                pthread_attr_t how;
                pthread_attr_init(&how);
                pthread_attr_setstack(&how, mapping + page * PAGES, BYTES - page * (PAGES - 1));
                pthread_t thread;
                pthread_barrier_init(&there, NULL, 2);
                pthread_create(&thread, &how, work, NULL);
                pthread_barrier_wait(&there);
                usleep(100000);
                exit(0);
            }
        """)
        done = run(*RUN, program)
        self.assertNotIn("of 100 byte", done.stderr)
        self.assertNotIn("1000 byte(s) in 10 object(s)", done.stderr)
        self.assertRegex(done.stderr, r"leak of [0-9]+ byte\(s\) in (?:1[5-9]|20)[0-9][0-9] object\(s\)")

    def test_leaks_from_very_many_places_are_all_counted(self) -> None:
        """Each path through the two calls is a place: 8192 of them, twice what is told apart."""
        program = self.compiled("""
            #include <stdlib.h>
            static void leak(int depth, int path)
            {
                if (depth == 0)
                    malloc(16);
                else if (path & 1)
                    leak(depth - 1, path >> 1);
                else
                    leak(depth - 1, path >> 1);
            }
            int main(void)
            {
                for (int path = 0; path < 8192; path++)
                    leak(13, path);
                void *volatile other = malloc(16); /* in place of the last one, where that was kept */
                free(other);
                return 0;
            }
        """)
        report = run(*RUN, program).stderr
        self.assertIn("131072 byte(s) leaked in 8192 allocation(s)", report)
        self.assertIn("and from more than 4063 other places", report)

    def test_what_other_threads_hold_is_not_leaked(self) -> None:
        program = self.compiled("""
            #include <pthread.h>
            #include <stdlib.h>
            #include <unistd.h>
            static pthread_barrier_t barrier;
            static __thread void *in_thread_local;
            static void *hold(void *unused)
            {
                void *volatile on_stack = malloc(100);
                in_thread_local = malloc(200);
                pthread_barrier_wait(&barrier);
                pause();
                return on_stack;
            }
            int main(void)
            {
                pthread_t thread;
                pthread_barrier_init(&barrier, NULL, 2);
                pthread_create(&thread, NULL, hold, NULL);
                pthread_barrier_wait(&barrier);
                usleep(100000);
                return 0;
            }
        """)
        self.assertEqual(run(*RUN, program).stderr, "")

    def test_what_was_freed_before_hides_no_leak(self) -> None:
        """Where smaller blocks have been."""
        program = self.compiled("""
            #include <stdlib.h>
            static void *blocks[10000];
            int main(void)
            {
                for (int i = 0; i < 10000; i++)
                    blocks[i] = malloc(64);
                for (int i = 0; i < 10000; i++) {
                    free(blocks[i]);
                    blocks[i] = NULL;
                }
                void *volatile lost = malloc(65536);
                lost = NULL;
                return 0;
            }
        """)
        report = run(program, environment={**CHECKED, "HAKMEM_CHECK": "leaks,stacks"}).stderr
        self.assertIn("Direct leak of 65536 byte(s) in 1 object(s)", report)

    def test_the_first_thread_may_end_first(self) -> None:
        """From then on the kernel shows nothing of the process's memory by the process's own number."""
        program = self.compiled("""
            #include <pthread.h>
            #include <stdlib.h>
            #include <unistd.h>
            static void *held;
            static void *work(void *unused)
            {
                usleep(100000);
                held = malloc(100);
                void *volatile lost = malloc(77);
                lost = NULL;
                exit(0);
            }
            int main(void)
            {
                pthread_t thread;
                pthread_create(&thread, NULL, work, NULL);
                pthread_exit(NULL);
            }
        """)
        report = run(*RUN, program).stderr
        self.assertIn("Direct leak of 77 byte(s) in 1 object(s)", report)
        self.assertIn(" in work ", report)
        self.assertIn("SUMMARY: hakmem: 77 byte(s) leaked in 1 allocation(s)", report)
        self.assertNotIn("warning", report)
        profile = self.directory / "profile"
        run(program, environment={**os.environ, "LD_PRELOAD": str(LIBRARY), "HAKMEM_PROFILE": f"1,{profile}"})
        self.assertIn(str(program), profile.read_text().partition("MAPPED_LIBRARIES:\n")[2])

    def test_of_large_blocks_only_what_was_written_is_searched(self) -> None:
        program = self.compiled("""
            #include <stdlib.h>
            static void **table;
            int main(void)
            {
                size_t words = (4ull << 30) / sizeof(void *);
                table = calloc(words, sizeof(void *));
                table[0] = malloc(100);
                table[words / 2] = malloc(100);
                table[words - 1] = malloc(100);
                return 0;
            }
        """)
        self.assertEqual(run(*RUN, program).stderr, "")

    def test_a_crash_names_what_it_may_have_come_of(self) -> None:
        program = self.compiled("""
            #include <stdlib.h>
            #include <string.h>
            struct record { char *name; int numbers[4]; }; /* as long as the text */
            int main(int count, char **words)
            {
                char *text = malloc(24);
                struct record *record = malloc(sizeof *record);
                record->name = words[0];
                memset(text, 'A', 90);
                if (count > 1)
                    abort();
                return record->name[0]; /* 0x4141414141414141, which is no address */
            }
        """)
        for arguments, crash in (((), r"SIGSEGV.*at an address that no memory can have"), (("1",), "SIGABRT")):
            report = run(program, *arguments, environment=CHECKED).stderr
            self.assertRegex(report, f"^hakmem: crash: {crash}")
            self.assertRegex(report, r"\nhakmem: crash: before that, heap-buffer-overflow on address 0x[0-9a-f]+:\n")
            self.assertRegex(report, r"\n0x[0-9a-f]+ is located 0 bytes after 24-byte region ")

    def test_handlers_may_allocate_while_it_is_looked_for_what_a_crash_may_have_come_of(self) -> None:
        program = self.compiled("""
            #include <signal.h>
            #include <stdlib.h>
            #include <sys/time.h>
            static void allocate(int number) { free(malloc(100)); }
            int main(void)
            {
                struct itimerval often = {{0, 500}, {0, 500}};
                for (int i = 0; i < 400000; i++)
                    malloc(40);
                signal(SIGALRM, allocate);
                setitimer(ITIMER_REAL, &often, NULL);
                *(volatile int *)16 = 1;
                return 0;
            }
        """)
        done = run(program, environment=CHECKED)
        self.assertEqual(done.returncode, -signal.SIGSEGV, done.stderr)

    def test_what_comes_once_ends_the_process_too(self) -> None:
        """The kernel may tell of failed memory who does not read it: then no instruction is run again."""
        program = self.compiled("""
            #define _GNU_SOURCE
            #include <signal.h>
            #include <sys/syscall.h>
            #include <unistd.h>
            int main(void)
            {
                siginfo_t info = {.si_signo = SIGBUS, .si_code = BUS_MCEERR_AO};
                return syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGBUS, &info) == 0 ? 0 : 2;
            }
        """)
        done = run(program, environment={"LD_PRELOAD": str(LIBRARY), "HAKMEM_CRASH": "1"})
        self.assertEqual(done.returncode, -signal.SIGBUS, done.stderr)
        self.assertIn("hakmem: crash: SIGBUS", done.stderr)

    def test_writes_beside_a_freed_block_are_found(self) -> None:
        program = self.compiled("""
            #include <stdlib.h>
            int main(int count, char **words)
            {
                char *block = malloc(40);
                volatile char *beside = block + atoi(words[1]);
                free(block);
                *beside = 1;
                return 0;
            }
        """)
        wanted = {-1: "heap-buffer-underflow", 3: "heap-use-after-free", 40: "heap-buffer-overflow"}
        for distance, kind in wanted.items():
            report = run(program, str(distance), environment=CHECKED).stderr
            self.assertRegex(report, f"ERROR: hakmem: {kind} on address 0x[0-9a-f]+ .found at the end of the program")
            self.assertIn("\nfreed by thread ", report)

    def test_a_crash_at_a_guarded_block_says_so(self) -> None:
        program = self.compiled("""
            #include <stdlib.h>
            int main(void)
            {
                for (int i = 0; i < 10000000; i++) { /* until one is guarded */
                    volatile char *p = malloc(24);
                    free((void *)p);
                    p[3];
                }
                return 0;
            }
        """)
        report = run(
            program, environment={"LD_PRELOAD": str(LIBRARY), "HAKMEM_GUARD": "1:64", "HAKMEM_CRASH": "1"}
        ).stderr
        self.assertIn("ERROR: hakmem: heap-use-after-free", report)
        self.assertRegex(
            report, "hakmem: crash: SIGSEGV at 0x[0-9a-f]+, thread [0-9]+: the address is among the guarded blocks"
        )

    def test_a_fault_ends_the_process_where_it_may_not_set_its_action(self) -> None:
        program = self.compiled(
            """
            #include <signal.h>
            #include <stdlib.h>
            #include <string.h>
            int main(int count, char **words)
            {
                void *volatile block = malloc(100);
                free(block);
                if (refuse(SYS_rt_sigaction) != 0)
                    return 1;
                if (count > 1)
                    raise(SIGSEGV);
                *(volatile char *)strlen("") = 1;
                return 2;
            }
        """,
            REFUSE,
        )
        for words in ([], ["sent"]):
            done = run(program, *words, environment={"LD_PRELOAD": str(LIBRARY), "HAKMEM_CRASH": "1"})
            self.assertEqual(done.returncode, 128 + signal.SIGSEGV, done.stderr)
            self.assertIn("hakmem: crash: SIGSEGV", done.stderr)

    def test_the_purger_waits_where_it_may_not_end(self) -> None:
        program = self.compiled(
            """
            #include <stdlib.h>
            #include <string.h>
            #include <time.h>
            #include <unistd.h>
            static void *blocks[40000];
            int main(void)
            {
                if (refuse(SYS_exit) != 0)
                    return 1;
                for (int i = 0; i < 40000; i++)
                    memset(blocks[i] = malloc(1000), 1, 1000);
                for (int i = 0; i < 40000; i++)
                    free(blocks[i]);
                sleep(3);
                _exit(clock() < CLOCKS_PER_SEC ? 0 : 2);
            }
        """,
            REFUSE,
        )
        done = run(program, environment={"LD_PRELOAD": str(LIBRARY), "HAKMEM_PURGE": "delay=100"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_mismatch_in_a_program_at_a_fixed_address(self) -> None:
        source = self.directory / "fixed.cpp"
        source.write_text("#include <cstdlib>\nint main() { int *p = new int[3]; std::free(p); }")
        program = source.with_suffix("")
        subprocess.run(["c++", "-O0", "-w", "-fno-pie", "-no-pie", "-o", program, source], check=True)
        self.assertIn("alloc-dealloc-mismatch (operator new[] vs free)", run(*RUN, program).stderr)

    def test_a_block_that_is_one_closed_page_is_passed_over(self) -> None:
        program = self.compiled("""
            #include <stdlib.h>
            #include <sys/mman.h>
            static void *page;
            int main(void)
            {
                return posix_memalign(&page, 4096, 4096) != 0 || mprotect(page, 4096, PROT_NONE) != 0;
            }
        """)
        done = run(*RUN, program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_coroutines_hold_is_not_leaked(self) -> None:
        """Their stacks lie side by side, as one mapping; the program ends on the upper one, or on another thread's."""
        for thread in (0, 1):
            program = self.compiled(f"""
                #include <pthread.h>
                #include <stdlib.h>
                #include <sys/mman.h>
                #include <ucontext.h>
                enum {{ STACK = 1 << 16, GUARD = 1 << 12, ALL = GUARD + 2 * STACK }};
                static ucontext_t first, lower, upper;
                static void hold(void)
                {{
                    void *volatile on_stack = malloc(100);
                    swapcontext(&lower, &first);
                    free(on_stack);
                }}
                static void leave(void) {{ exit(0); }}
                static void make(ucontext_t *context, char *stack, void (*run)(void))
                {{
                    getcontext(context);
                    context->uc_stack.ss_sp = stack;
                    context->uc_stack.ss_size = STACK;
                    makecontext(context, run, 0);
                }}
                static void *all(void *unused)
                {{
                    char *stacks = mmap(0, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                    mprotect(stacks, GUARD, PROT_NONE);
                    make(&lower, stacks + GUARD, hold);
                    make(&upper, stacks + GUARD + STACK, leave);
                    swapcontext(&first, &lower);
                    setcontext(&upper);
                    return unused;
                }}
                int main(void)
                {{
                    pthread_t thread;
                    if ({thread} && pthread_create(&thread, 0, all, 0) == 0)
                        pthread_join(thread, 0);
                    return all(0) != 0;
                }}
            """)
            with self.subTest(thread=thread):
                done = run(*RUN, program)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_a_thread_had_on_its_stack_is_leaked(self) -> None:
        program = self.compiled("""
            #include <pthread.h>
            #include <stdlib.h>
            static void __attribute__((noinline)) lose(void)
            {
                void *volatile on_stack[4096] = {malloc(100)};
            }
            static void *work(void *unused)
            {
                lose();
                exit(0);
            }
            int main(void)
            {
                pthread_t thread;
                pthread_create(&thread, NULL, work, NULL);
                return pthread_join(thread, NULL);
            }
        """)
        self.assertIn("Direct leak of 100 byte(s) in 1 object(s)", run(*RUN, program).stderr)

    @unittest.skipUnless(platform.machine() == "x86_64", "frame pointers are frame pointers elsewhere")
    def test_what_was_in_a_register_of_a_stack_that_was_taken_is_leaked(self) -> None:
        source = self.directory / "program.c"
        source.write_text("""
            #include <stdlib.h>
            static void *volatile more;
            static void __attribute__((noinline)) allocate(void)
            {
                more = malloc(50);
                __asm__ volatile("");
            }
            static void __attribute__((noinline)) lose(int depth)
            {
                if (depth > 0) {
                    lose(depth - 1);
                    __asm__ volatile("");
                    return;
                }
                register void *lost __asm__("rbp") = malloc(100);
                __asm__ volatile("" : "+r"(lost));
                allocate();
                __asm__ volatile("" : : "r"(lost));
            }
            int main(void)
            {
                lose(10);
                return 0;
            }
        """)
        program = source.with_suffix("")
        subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-w", "-o", program, source], check=True)
        self.assertIn("Direct leak of 100 byte(s) in 1 object(s)", run(*RUN, program).stderr)

    def test_a_program_may_read_its_own_report(self) -> None:
        """And allocate for what it reads, while the rest is still being written."""
        program = self.compiled(
            """
            #define _GNU_SOURCE
            #include <fcntl.h>
            #include <pthread.h>
            #include <stdlib.h>
            #include <unistd.h>
            static int ends[2], out;
            static void *copy(void *unused) {
                for (;;) {
                    char *piece = malloc(256);
                    ssize_t got = read(ends[0], piece, 256);
                    if (got > 0)
                        write(out, piece, got);
                    free(piece);
                    if (got <= 0)
                        return unused;
                }
            }
            static void leak(int depth) { if (depth > 0) leak(depth - 1); else malloc(100); }
            int main(void) {
                pthread_t reader;
                out = dup(STDERR_FILENO);
                pipe(ends);
                fcntl(ends[1], F_SETPIPE_SZ, 4096);
                for (int depth = 0; depth < 30; depth++)
                    leak(depth);
                dup2(ends[1], STDERR_FILENO);
                close(ends[1]);
                pthread_create(&reader, NULL, copy, NULL);
                return 3;
            }
            """
        )
        done = run(program, environment=CHECKED)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("detected memory leaks", done.stderr)
        self.assertGreater(len(done.stderr), 4096)

    def test_nobody_need_read_the_report(self) -> None:
        program = self.compiled("#include <stdlib.h>\nint main(void) { return malloc(10) == malloc(20); }")
        environment = dict(CHECKED, HAKMEM_STATS="exit")
        read, write = os.pipe()
        os.close(read)
        process = subprocess.Popen([program], env=environment, stderr=write)
        os.close(write)
        self.assertEqual(process.wait(60), 0)
        self.assertIn("detected memory leaks", run(program, environment=environment).stderr)

    def test_no_leaks_where_the_kernel_does_not_copy(self) -> None:
        program = self.compiled(
            """
            #include <stdlib.h>
            static void *kept;
            int main(void)
            {
                kept = malloc(100);
                return refuse(SYS_process_vm_readv);
            }
        """,
            REFUSE,
        )
        done = run(*RUN, program)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^hakmem: warning: leaks are not looked for: .*process_vm_readv is refused\n$")

    def test_who_freed_and_who_allocated_may_be_different_threads(self) -> None:
        program = self.compiled("""
            #include <pthread.h>
            #include <stdlib.h>
            static void *release(void *block)
            {
                free(block);
                return NULL;
            }
            int main(void)
            {
                pthread_t thread;
                char *block = malloc(50);
                pthread_create(&thread, NULL, release, block);
                pthread_join(thread, NULL);
                release(block);
                return 0;
            }
        """)
        done = run(*RUN, program)
        self.assertEqual(done.returncode, -signal.SIGABRT)
        self.assertRegex(
            done.stderr,
            r"(?s)double-free on address 0x[0-9a-f]+ \(free or realloc, thread (\d+)\)"
            r".*\nfreed by thread (?!\1)(\d+) here:.*in release.*\npreviously allocated by thread \1 here:.*in main",
        )


if __name__ == "__main__":
    unittest.main()
