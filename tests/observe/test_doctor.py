"""`hakmem doctor`: what stands in the library's way is named, with what to do; and what does not is no finding."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import resource
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import fakes

from hakmem_cli import info
from hakmem_cli.say import CannotError
from hakmem_observe import doctor
from hakmem_observe.checks import environment, machine, program, running
from hakmem_observe.checks.finding import Finding, Level
from hakmem_observe.snapshot import Snapshot

MAIN = "int main(void) { return 0; }\n"


def texts(findings: list[Finding], level: Level) -> str:
    return "\n".join(finding.what for finding in findings if finding.level is level)


class Programs(fakes.FakeTest):
    def check(self, path: Path | str) -> list[Finding]:
        return program.check(Path(path), fakes.library())

    def assert_problem(self, path: Path | str, pattern: str) -> None:
        found = self.check(path)
        self.assertRegex(texts(found, Level.PROBLEM), pattern)
        self.assertTrue(all(finding.advice for finding in found if finding.level is not Level.OK))

    def assert_fine(self, path: Path | str, pattern: str) -> None:
        found = self.check(path)
        self.assertRegex(texts(found, Level.OK), pattern)
        self.assertEqual([finding for finding in found if finding.level is not Level.OK], [])

    def test_plain_program(self) -> None:
        self.assert_fine(fakes.program(), "dynamically linked")

    def test_static_program(self) -> None:
        self.assert_problem(fakes.compile_c("plain-static", "-static", text=MAIN), "a static program")
        self.assert_problem(fakes.compile_c("static-pie", "-static-pie", "-fPIE", text=MAIN), "a static program")

    def test_program_linked_with_the_archive(self) -> None:
        self.assert_fine(fakes.static_program(), "has hakmem inside")
        self.assert_fine(fakes.stripped_program(), "has hakmem inside")

    def test_own_malloc(self) -> None:
        text = "#include <stddef.h>\nvoid *malloc(size_t n) { (void)n; return NULL; }\n" + MAIN
        self.assert_problem(fakes.compile_c("own", text=text), "defines malloc itself")

    def test_allocators_inside(self) -> None:
        for name, told in (
            ("je_malloc", "jemalloc"),
            ("_rjem_mallocx", "jemalloc"),
            ("mi_malloc", "mimalloc"),
            ("tc_new", "tcmalloc"),
        ):
            text = f"void {name}(void) {{}}\n{MAIN}"
            self.assert_problem(fakes.compile_c(f"has-{name}", text=text), f"has {told} inside \\({name}\\)")

    def test_allocators_beside(self) -> None:
        text = "void *mallocx(unsigned long n, int f) { return (void *)(n + (unsigned)f); }\n"
        text += "void *malloc_stats_x(void) { return 0; }\n"
        library = fakes.compile_c("libjemalloc.so.2", "-shared", "-fPIC", "-Wl,-soname,libjemalloc.so.2", text=text)
        quiet = "void *malloc_stats_x(void);\nint main(void) { return malloc_stats_x() != 0; }\n"
        calls = "void *mallocx(unsigned long, int);\nint main(void) { return mallocx(1, 0) != 0; }\n"
        link = ["-Wl,--no-as-needed", f"-L{library.parent}", "-l:libjemalloc.so.2"]
        self.assert_fine(self.compile_late("beside", quiet, link), "linked with libjemalloc.so.2, but calls malloc")
        self.assert_problem(self.compile_late("calls", calls, link), r"calls jemalloc by names of its own \(mallocx\)")

    def compile_late(self, name: str, text: str, link: list[str]) -> Path:
        source = fakes.directory() / f"{name}.c"
        source.write_text(text)
        return fakes.compile_c(name, str(source), *link)

    def test_set_user_id(self) -> None:
        copy = fakes.directory() / "suid"
        shutil.copy(fakes.program(), copy)
        copy.chmod(0o4755)
        self.assertIn("set-user-ID", texts(self.check(copy), Level.WARNING))
        with mock.patch("os.getuid", return_value=os.getuid() + 1):
            self.assert_problem(copy, "set-user-ID: the loader ignores LD_PRELOAD there")

    def test_file_capabilities(self) -> None:
        with mock.patch("os.getxattr", return_value=b"x"), mock.patch("os.getuid", return_value=1000):
            self.assert_problem(fakes.program(), "file capabilities")

    def test_scripts(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            script = Path(directory, "script")
            for first, told in (("#!/bin/sh", "/bin/sh"), ("#!/usr/bin/env -S sh -e", "/sh"), ("echo", "/bin/sh")):
                script.write_text(f"{first}\n")
                self.assert_fine(script, f"a script; what it runs on is .*{told}")
            script.write_text("#!/usr/bin/env no-such-interpreter\n")
            with self.assertRaisesRegex(CannotError, f"{script}: its interpreter 'no-such-interpreter': no such"):
                self.check(script)
            for first, told in (("#!/bin/sh", "/bin/sh"), ("#! /usr/bin/env sh", "sh")):
                script.write_bytes(f"{first}\r\n".encode())
                with self.assertRaisesRegex(CannotError, rf"{script}: its interpreter '{told}\\r': no such program"):
                    self.check(script)
            script.write_text(f"#!{script}\n")
            script.chmod(0o755)
            with self.assertRaisesRegex(CannotError, "and so on"):
                self.check(script)

    def test_damaged_files(self) -> None:
        whole = fakes.program().read_bytes()
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "damaged")
            path.write_bytes(b"\0\1\2\3")
            with self.assertRaisesRegex(CannotError, "neither an ELF file nor a script"):
                self.check(path)
            for size in (4, 5, 20, 64, 100, 1000, len(whole) - 1000):
                path.write_bytes(whole[:size])
                with mock.patch("sys.stderr"):
                    try:
                        self.check(path)
                    except CannotError:
                        pass

    def test_other_machine(self) -> None:
        data = bytearray(fakes.program().read_bytes())
        data[18] = 183  # AArch64
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "foreign")
            path.write_bytes(data)
            self.assert_problem(path, "is for AArch64, 64 bits, the library for x64")


class Environment(unittest.TestCase):
    """Asks the real library, which the launcher's tests build."""

    library = fakes.ROOT / "build" / "release" / "libhakmem.so"

    def check(self, **variables: str) -> list[Finding]:
        return list(environment.check(variables, self.library.resolve()))

    def setUp(self) -> None:
        if not self.library.exists():
            self.skipTest("the release library is not built")

    def test_values_and_names(self) -> None:
        found = self.check(HAKMEM_MODE="quick", HAKMEM_FROB="1", HAKMEM_PURGE="delay=5", HAKMEM_DISABLE="1")
        told = texts(found, Level.WARNING)
        self.assertIn("HAKMEM_MODE=quick: legal values are minimal", told)
        self.assertIn("HAKMEM_FROB=1: no such option", told)
        self.assertIn("HAKMEM_DISABLE=1", told)
        self.assertEqual(texts(found, Level.OK), "set here: HAKMEM_PURGE=delay=5")

    def test_files_are_not_written(self) -> None:
        path = fakes.directory() / "report"
        found = self.check(HAKMEM_REPORT=str(path), HAKMEM_TRACE=f"class:16,{path}")
        self.assertEqual(texts(found, Level.WARNING), "")
        self.assertIn(str(path), texts(found, Level.OK))
        self.assertFalse(path.exists())

    def test_live_pages_have_a_directory(self) -> None:
        directory = fakes.directory() / "pages"
        directory.mkdir()
        found = self.check(HAKMEM_LIVE=str(directory))
        self.assertEqual(texts(found, Level.WARNING), "")
        self.assertEqual(texts(found, Level.OK), f"set here: HAKMEM_LIVE={directory}")
        self.assertEqual(list(directory.iterdir()), [])

    def test_learned_policy_is_read(self) -> None:
        path = fakes.directory() / "learned.policy"
        missing = self.check(HAKMEM_POLICY=str(path))
        self.assertIn(f"{path}: no such file, or an empty one, and nothing learns", texts(missing, Level.WARNING))
        for how in ({"HAKMEM_MODE": "learning"}, {"HAKMEM_LEARN": "on:bigcache"}):
            self.assertEqual(texts(self.check(HAKMEM_POLICY=str(path), **how), Level.WARNING), "")
        path.write_text("hakmem-policy 1\n")
        found = self.check(HAKMEM_POLICY=str(path))
        self.assertEqual(texts(found, Level.WARNING), "")
        self.assertIn(f"HAKMEM_POLICY={path}", texts(found, Level.OK))
        path.write_text("notes\n")
        self.assertIn(f"{path}: line 1: ", texts(self.check(HAKMEM_POLICY=str(path)), Level.WARNING))
        self.assertEqual(path.read_text(), "notes\n")

    def test_what_is_no_file_is_not_opened(self) -> None:
        pipe = fakes.directory() / "pipe"
        os.mkfifo(pipe)
        for place in (environment.Place(), environment.Place("/proc/self/root", "/proc/self/cwd")):
            with mock.patch.object(environment.subprocess, "run", side_effect=AssertionError):
                found = list(environment.check({"HAKMEM_POLICY": str(pipe)}, self.library.resolve(), place))
            self.assertEqual(texts(found, Level.WARNING), f"HAKMEM_POLICY={pipe}: no regular file")

    def test_files_of_a_container(self) -> None:
        root = fakes.directory() / "root"
        (root / "opt").mkdir(parents=True)
        (root / "opt" / "libhakmem.so.1").touch()
        policy = root / "opt" / "x.policy"
        policy.write_text("hakmem-policy 1\n")
        place = environment.Place(str(root), str(root / "opt"))

        def check(**variables: str) -> list[Finding]:
            return list(environment.check(variables, self.library.resolve(), place))

        for name in ("/opt/libhakmem.so.1", "./libhakmem.so.1"):
            self.assertIn("names the library", texts(check(LD_PRELOAD=name), Level.OK))
        missing = "LD_PRELOAD names /opt/libhakmem.so.2, which is not there"
        self.assertIn(missing, texts(check(LD_PRELOAD="/opt/libhakmem.so.2"), Level.PROBLEM))
        self.assertEqual(texts(check(HAKMEM_POLICY="/opt/x.policy"), Level.WARNING), "")
        policy.write_text("notes\n")
        told = texts(check(HAKMEM_POLICY="/opt/x.policy"), Level.WARNING)
        self.assertIn("/opt/x.policy: line 1: ", told)
        self.assertNotIn(str(root), told)

    def test_disabled(self) -> None:
        self.assertIn("without the library", texts(self.check(HAKMEM_DISABLE="1"), Level.WARNING))
        told = texts(self.check(HAKMEM_DISABLE="yes"), Level.WARNING)
        self.assertIn("HAKMEM_DISABLE=yes: legal values are 0, 1; using 0", told)
        self.assertEqual(texts(self.check(HAKMEM_DISABLE="0"), Level.WARNING), "")

    def test_preload(self) -> None:
        self.assertIn("not there", texts(self.check(LD_PRELOAD="/x/libhakmem.so.1"), Level.PROBLEM))
        self.assertIn("after /a.so", texts(self.check(LD_PRELOAD=f"/a.so {fakes.library()}"), Level.WARNING))
        self.assertIn("names the library", texts(self.check(LD_PRELOAD=str(fakes.library())), Level.OK))
        for name in ("/opt/$LIB/libx.so", "${ORIGIN}/../libx.so"):
            found = self.check(LD_PRELOAD=name)
            self.assertIn(f"in use here ({name})", texts(found, Level.OK))
            self.assertEqual(texts(found, Level.WARNING), "")
        self.assertIn("names the library", texts(self.check(LD_PRELOAD="/opt/$LIB/libhakmem.so.1"), Level.OK))
        beside = fakes.program()
        found = self.check(LD_PRELOAD=f"/a.so:{beside}")
        self.assertIn(f"in use here ({beside})", texts(found, Level.OK))
        self.assertIn("LD_PRELOAD names /a.so, which is not there", texts(found, Level.WARNING))


class Machine(unittest.TestCase):
    def warnings(self, **files: str) -> str:
        real = machine._read
        names = {key: text for key, text in files.items()}

        def read(path: str) -> str:
            return names.get(path.rpartition("/")[2], real(path))

        with mock.patch.object(machine, "_read", read), mock.patch.object(machine, "_may_trace", return_value=False):
            return texts(list(machine.check()), Level.WARNING)

    def test_each(self) -> None:
        self.assertIn("ptrace_scope is 1: only parents", self.warnings(ptrace_scope="1"))
        self.assertIn("ptrace_scope is 3: nobody", self.warnings(ptrace_scope="3"))
        self.assertIn("overcommit_memory is 2", self.warnings(overcommit_memory="2"))
        self.assertIn("max_map_count is 1000", self.warnings(max_map_count="1000"))
        with mock.patch.object(resource, "getrlimit", return_value=(1 << 30, 1 << 30)):
            self.assertIn("RLIMIT_AS is 1.0 GiB", self.warnings())

    def test_the_group_s_limit(self) -> None:
        files = {
            "/proc/9/cgroup": "0::/a/b\n",
            "/sys/fs/cgroup/a/memory.high": "8388608",
            "/sys/fs/cgroup/memory.max": "max",
        }
        with mock.patch.object(info, "_read", lambda path, otherwise="": files.get(str(path), otherwise)):
            self.assertEqual(info.cgroup_limit("9"), 8 << 20)
            self.assertIn("memory: 8.0 MiB; hakmem's soft limit is 7.0 MiB", texts(list(machine.check("9")), Level.OK))
            self.assertIsNone(info.cgroup_limit("10"))


class Running(fakes.FakeTest):
    def check(self, pid: int) -> list[Finding]:
        return running.check(pid, fakes.library())

    def test_one_that_will_not_be_looked_at(self) -> None:
        refused = CannotError("it may not be looked at")
        with mock.patch.object(running, "_RUN_SECONDS", 0.2), mock.patch.object(running, "check", side_effect=refused):
            found = running.run(["sleep", "60"], fakes.library())
        self.assertIn("it may not be looked at", texts(found, Level.WARNING))

    def test_one_that_becomes_another_user_s(self) -> None:
        started = []
        real = subprocess.Popen

        def start(*words: Any, **more: Any) -> Any:
            started.append(real(*words, **more))
            return started[-1]

        with (
            mock.patch.object(running, "_RUN_SECONDS", 0.2),
            mock.patch.object(running.os, "killpg", side_effect=PermissionError),
            mock.patch.object(running.subprocess, "Popen", start),
        ):
            found = running.run(["sleep", "60"], fakes.library())
        started[0].kill()
        started[0].wait()
        self.assertIn(f"process {started[0].pid} has become another user's and goes on", texts(found, Level.WARNING))

    def test_what_was_requested_is_counted_once(self) -> None:
        """A series has sums since each process's start."""
        series = [
            Snapshot(pid, 1000 * at, uptime_ms=1000 * at, counters={"requested_bytes": at << 20})
            for at in (1, 2, 3)
            for pid in (4711, 4712)
        ]
        with mock.patch.object(running, "read_series", return_value=series):
            self.assertIn("6.0 MiB requested until its end", texts(running._by_statistics(Path("stats")), Level.OK))

    def test_served(self) -> None:
        found = self.check(self.start().pid)
        self.assertRegex(texts(found, Level.OK), "it is served: .* requested so far")
        self.assertEqual(texts(found, Level.WARNING) + texts(found, Level.PROBLEM), "")

    def test_served_and_static(self) -> None:
        for program_file in (fakes.static_program(), fakes.stripped_program()):
            process = subprocess.Popen([str(program_file)], env={}, stdin=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            self.wait_for(process)
            found = self.check(process.pid)
            self.assertIn("it is served", texts(found, Level.OK))
            self.assertEqual(texts(found, Level.WARNING) + texts(found, Level.PROBLEM), "")

    def test_library_that_was_replaced(self) -> None:
        copy = fakes.directory() / "gone" / "libhakmem.so.1"
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(fakes.library(), copy)
        process = self.start(preload=copy)
        copy.unlink()
        self.assertIn("replaced or removed", texts(self.check(process.pid), Level.WARNING))

    def test_not_served(self) -> None:
        process = subprocess.Popen([str(fakes.program())], env={}, stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for(process)
        self.assertIn("libhakmem is not mapped, nor does", texts(self.check(process.pid), Level.PROBLEM))

    def test_process_that_has_ended(self) -> None:
        process = subprocess.Popen(["true"])
        self.addCleanup(process.wait)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self.assertRaisesRegex(CannotError, f"process {process.pid} has ended"):
            self.check(process.pid)

    def test_static_although_preloaded(self) -> None:
        path = fakes.compile_c(
            "waits-static", "-static", text="#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"
        )
        told = texts(self.check(self.start(str(path)).pid), Level.PROBLEM)
        self.assertIn("although its LD_PRELOAD names it", told)
        self.assertIn("a static program", told)

    def test_library_of_another_version(self) -> None:
        told = texts(self.check(self.start(wrong="version").pid), Level.WARNING)
        self.assertIn("another version", told)

    def test_program_is_run(self) -> None:
        found = running.run([str(fakes.program())], fakes.library())
        self.assertIn("it is served", texts(found, Level.OK))
        found = running.run(["/bin/true"], fakes.program())
        self.assertIn("it ended", texts(found, Level.WARNING))


class Command(fakes.FakeTest):
    def test_exit_codes(self) -> None:
        fine = fakes.hakmem("doctor", str(self.start().pid))
        self.assertEqual(fine.returncode, 0, fine.stdout)
        self.assertTrue(fine.stdout.endswith("all is fine\n"))
        found = fakes.hakmem("doctor", str(os.getpid()))
        self.assertEqual(found.returncode, 1)
        self.assertRegex(found.stdout, r"problem  ?libhakmem is not mapped")

    def test_library_that_run_refuses(self) -> None:
        copy = fakes.directory() / "of two words" / "libhakmem.so"
        copy.parent.mkdir()
        shutil.copy(fakes.library(), copy)
        out = io.StringIO()
        parsed = argparse.Namespace(what=["--", str(fakes.program())], run=False)
        with mock.patch.object(doctor.build, "ensure_library", return_value=copy), contextlib.redirect_stdout(out):
            self.assertEqual(doctor.doctor(parsed), 1)
        self.assertRegex(out.getvalue(), f"problem +the loader cannot preload a path with a colon or a space: {copy}")

    def test_names_that_are_not_utf_8_and_that_steer_terminals(self) -> None:
        copy = fakes.directory() / os.fsdecode(b"caf\xe9")
        shutil.copy(fakes.program(), copy)
        report = os.fsdecode(b"/tmp/caf\xe9\x1b[2J")
        done = fakes.hakmem("doctor", "--", str(copy), environment={"HAKMEM_REPORT": report})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("/caf? is dynamically linked", done.stdout)
        self.assertIn("HAKMEM_REPORT=/tmp/caf??[2J", done.stdout)

    def test_refusals(self) -> None:
        for words, told in (
            (["--", "no-such-program"], "no-such-program: no such program"),
            (["--", "/etc/passwd"], "/etc/passwd: not executable"),
            (["99999999"], "99999999: no process"),
            (["--run"], "no program given"),
            (["--"], "no program given"),
            (["--frob"], "--frob"),
            (["--run", "1"], "1 is a process"),
            (["1", "--", "true"], "1 -- true: a process or a program, not both"),
        ):
            with self.subTest(" ".join(words)):
                self.assert_refused(fakes.hakmem("doctor", *words), told)


if __name__ == "__main__":
    unittest.main()
