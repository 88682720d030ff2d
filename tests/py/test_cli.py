"""The launcher: what a program sees of it, how it says no, and when it builds."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from support import HARDENED, LAUNCHER, LIBRARY, ROOT, not_ignored, run

sys.path.insert(0, str(ROOT / "python"))

from hakmem_cli import arguments, build, info, live, venv  # noqa: E402

# Not by way of `env python3`: what PATH finds there may be a script that changes the environment.
HAKMEM = (sys.executable, str(LAUNCHER))

BARE_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "GREETING": "hello"}


def setUpModule() -> None:
    """The launcher says so where it has to build first."""
    for library in (build.LIBRARY, build.HARDENED):
        build.ensure_library(library)


class Program(unittest.TestCase):
    """What `run` does to a program: nothing but the library."""

    def test_has_the_library(self) -> None:
        done = run(*HAKMEM, "run", "--", "cat", "/proc/self/maps")
        self.assertIn(str(LIBRARY.resolve()), done.stdout)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_has_the_hardened_library(self) -> None:
        done = run(*HAKMEM, "run", "--hardened", "--", "cat", "/proc/self/maps")
        self.assertIn(str(HARDENED.resolve()), done.stdout)
        self.assertNotIn(str(LIBRARY.resolve()), done.stdout)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_keeps_its_exit_code(self) -> None:
        self.assertEqual(run(*HAKMEM, "run", "--", "sh", "-c", "exit 37").returncode, 37)

    def test_dies_of_its_own_signal(self) -> None:
        for name in ("TERM", "SEGV", "PIPE"):
            done = run(*HAKMEM, "run", "--", "sh", "-c", f"kill -{name} $$")
            self.assertEqual(done.returncode, -signal.Signals[f"SIG{name}"])

    def test_stops_when_its_reader_goes(self) -> None:
        with subprocess.Popen([*HAKMEM, "run", "--", "yes"], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline(), b"y\n")
            process.stdout.close()
            self.assertEqual(process.wait(60), -signal.SIGPIPE)

    def test_keeps_its_options_without_a_separator(self) -> None:
        self.assertEqual(run(*HAKMEM, "run", "echo", "--mode", "--", "-x").stdout, "--mode -- -x\n")

    def test_keeps_its_environment(self) -> None:
        done = run(*HAKMEM, "run", "--", "env", environment=BARE_ENVIRONMENT)
        expected = {**BARE_ENVIRONMENT, "LD_PRELOAD": str(LIBRARY.resolve())}
        self.assertEqual(dict(line.split("=", 1) for line in done.stdout.splitlines()), expected)

    def test_keeps_other_preloaded_libraries(self) -> None:
        environment = {**BARE_ENVIRONMENT, "LD_PRELOAD": "/nonexistent/other.so"}
        done = run(*HAKMEM, "run", "--", "printenv", "LD_PRELOAD", environment=environment)
        self.assertEqual(done.stdout, f"{LIBRARY.resolve()}:/nonexistent/other.so\n")

    def test_sees_the_mode(self) -> None:
        done = run(*HAKMEM, "run", "--mode", "fast", "--", "printenv", "HAKMEM_MODE")
        self.assertEqual((done.stdout, done.stderr), ("fast\n", ""))

    def test_sees_what_is_asked_of_it(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            words = ("run", "--stats", "file.json", "--live", "--", "env")
            done = run(*HAKMEM, *words, environment=BARE_ENVIRONMENT, cwd=Path(directory))
            self.assertIn(f"HAKMEM_STATS={Path(directory).resolve()}/file.json\n", done.stdout)
        self.assertIn(f"HAKMEM_LIVE={live.of_user(os.geteuid())}\n", done.stdout)

    def test_pages_of_killed_programs_go(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            pages = live.of_session(directory)
            pages.mkdir(mode=0o700)
            gone, other = pages / "4194304", pages / "notes"  # no process has a number as large as the first
            gone.touch()
            other.touch()
            environment = {**BARE_ENVIRONMENT, "XDG_RUNTIME_DIR": directory}
            done = run(*HAKMEM, "run", "--live", "--", "true", environment=environment)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(list(pages.iterdir()), [other])

    @unittest.skipUnless(os.geteuid() == 0, "only root may write in another user's directory")
    def test_live_pages_of_root_do_not_lie_in_another_user_s_directory(self) -> None:
        """As after su, which keeps the variable."""
        with tempfile.TemporaryDirectory() as directory:
            os.chown(directory, 65534, 65534)
            environment = {**BARE_ENVIRONMENT, "XDG_RUNTIME_DIR": directory}
            done = run(*HAKMEM, "run", "--live", "--", "printenv", "HAKMEM_LIVE", environment=environment)
            self.assertEqual((done.stdout, done.stderr), (f"{live.of_user(0)}\n", ""))
            self.assertEqual(os.listdir(directory), [])

    def test_live_pages_lie_where_only_the_user_looks(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            live.of_session(directory).mkdir()
            live.of_session(directory).chmod(0o777)
            environment = {**BARE_ENVIRONMENT, "XDG_RUNTIME_DIR": directory}
            done = run(*HAKMEM, "run", "--live", "--", "true", environment=environment)
        self.assertEqual(done.returncode, 2)
        self.assertIn("mode 0700", done.stderr)

    def test_each_namespace_of_numbers_has_its_own_live_pages(self) -> None:
        with mock.patch.object(os, "stat", return_value=mock.Mock(st_ino=77)):
            self.assertEqual(live.of_user(5), Path("/dev/shm/hakmem-5-77"))
            self.assertEqual(live.of_session("/run/user/5"), Path("/run/user/5/hakmem-77"))

    def test_its_exit_code_stays_where_nobody_can_be_told(self) -> None:
        for words, code in ((["--", "no-such-program"], 127), (["--", "/dev/null"], 126), (["--mode", "none"], 2)):
            with open("/dev/full", "w") as full:
                command = [*HAKMEM, "run", *words]
                self.assertEqual(subprocess.run(command, stderr=full, env=BARE_ENVIRONMENT).returncode, code)

    def test_may_be_a_script_for_the_shell(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            script = Path(directory, "script")
            script.write_text("echo $1; exit 3\n")
            script.chmod(0o755)
            done = run(*HAKMEM, "run", "--", str(script), "word")
        self.assertEqual((done.returncode, done.stdout), (3, "word\n"))

    def test_can_do_without_the_library(self) -> None:
        environment = {**BARE_ENVIRONMENT, "HAKMEM_DISABLE": "1"}
        done = run(*HAKMEM, "run", "--", "cat", "/proc/self/maps", environment=environment)
        self.assertNotIn("hakmem", done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_is_warned_of_a_bad_switch(self) -> None:
        environment = {**BARE_ENVIRONMENT, "HAKMEM_DISABLE": "yes"}
        done = run(*HAKMEM, "run", "--", "cat", "/proc/self/maps", environment=environment)
        self.assertIn(str(LIBRARY.resolve()), done.stdout)
        self.assertEqual(done.stderr, "hakmem: warning: HAKMEM_DISABLE=yes: legal values are 0, 1; using 0\n")


class Refusal(unittest.TestCase):
    """Each is one line that names the fault and what is legal."""

    def assert_refused(self, arguments: list[str], code: int, *words: str) -> None:
        done = run(*HAKMEM, *arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""))
        self.assertRegex(done.stderr, r"\Ahakmem: .*\n\Z")
        for word in words:
            self.assertIn(word, done.stderr)

    def test_no_command(self) -> None:
        self.assert_refused([], 2, "no command given")

    def test_unknown_command(self) -> None:
        self.assert_refused(["frobnicate"], 2, "frobnicate", "run", "test", "info")

    def test_unknown_options(self) -> None:
        self.assert_refused(["--frobnicate"], 2, "--frobnicate", "--version")
        self.assert_refused(["run", "--frobnicate", "true"], 2, "--frobnicate", "--mode")
        self.assert_refused(["test", "--frobnicate"], 2, "--frobnicate", "--all")
        self.assert_refused(["info", "word"], 2, "word", "hakmem info")

    def test_use_has_no_colours(self) -> None:
        """Python 3.14 has them unless this is said."""
        parser = arguments.Parser(prog="x")
        inner = parser.add_subparsers().add_parser("y")
        self.assertEqual((parser.color, inner.color), (False, False))

    def test_unknown_mode(self) -> None:
        self.assert_refused(["run", "--mode", "quick", "true"], 2, "quick", "minimal", "fast", "balanced")

    def test_statistics_that_cannot_be_written(self) -> None:
        self.assert_refused(["run", "--stats", "/no/such/file", "true"], 2, "/no/such/file", "no directory /no/such")
        self.assert_refused(["run", "--stats", "/tmp", "true"], 2, "/tmp", "a directory")
        for option in ("--stats", "--policy"):
            self.assert_refused(["run", option, "", "true"], 2, f"{option} ''", "the name of no file")

    def test_names_that_the_system_refuses(self) -> None:
        name = "/tmp/" + 300 * "x"
        told = f"hakmem: {name}: File name too long"
        for words in (["run", "--stats", name, "true"], ["run", "--policy", name, "true"], ["symbolize", name]):
            self.assert_refused(words, 2, told)

    def test_no_program(self) -> None:
        self.assert_refused(["run", "--"], 2, "no program given")
        for options in ([], ["--check"]):
            self.assert_refused(["run", *options, "--", ""], 2, "'' is the name of no program")

    def test_program_not_found(self) -> None:
        self.assert_refused(["run", "--", "no-such-program"], 127, "no-such-program")

    def test_interpreter_not_found(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            script = Path(directory, "script")
            for first, interpreter in (("#!/no/such -x", "'/no/such'"), ("#! /bin/sh\r", "'/bin/sh\\r'")):
                script.write_text(f"{first}\n")
                script.chmod(0o755)
                told = f"hakmem: {script}: its interpreter {interpreter}, named in the first line, does not exist"
                self.assert_refused(["run", "--", str(script)], 127, told)
            program = Path(directory, "program")
            loader = "-Wl,--dynamic-linker=/no/such"
            command = ["cc", loader, "-xc", "-o", str(program), "-"]
            subprocess.run(command, input="int main(void) { return 0; }", text=True, check=True)
            self.assert_refused(["run", "--", str(program)], 127, f"{program}: its loader")

    def test_program_not_executable(self) -> None:
        self.assert_refused(["run", "--", str(ROOT / "CMakeLists.txt")], 126, "CMakeLists.txt")


class Information(unittest.TestCase):
    def test_version(self) -> None:
        self.assertRegex(run(*HAKMEM, "--version").stdout, r"\Ahakmem \d+\.\d+\.\d+\n\Z")

    def test_help(self) -> None:
        done = run(*HAKMEM, "--help")
        self.assertEqual(done.returncode, 0)
        for command in ("run", "test", "info", "bench", "stat", "top", "doctor", "soak", "fuzz", "symbolize"):
            self.assertRegex(done.stdout, rf"(?m)^    {command}( |$)")

    def test_info(self) -> None:
        done = run(*HAKMEM, "info")
        rows = dict(line.split("  ", 1) for line in done.stdout.splitlines())
        self.assertRegex(rows["build id"].strip(), r"\A[0-9a-f]{40}\Z")
        self.assertIn("commit", rows["build"])
        self.assertIn(f"{os.sysconf('SC_PAGE_SIZE')} bytes", rows["page size"])
        self.assertLessEqual({"huge pages", "RLIMIT_AS", "cgroup memory", "processors", "kernel", "libc"}, set(rows))

    def test_a_library_that_this_python_cannot_load(self) -> None:
        """As musl's does not: it comes only with a program's start."""
        line = "hakmem 0.1.0, commit 0123456789ab-dirty, GNU 12.2.0, flags -O2 -g, release"
        with tempfile.TemporaryDirectory() as directory:
            library = Path(directory, "libhakmem.so")
            library.write_bytes(b"\x7fELF\0hakmem: fatal: \0" + line.encode() + b"\0hakmem 0.1.0\0")
            self.assertEqual(info.library_facts(library), [("build id", "none"), ("build", line)])


class Output(unittest.TestCase):
    """Where standard output cannot be written."""

    def hakmem(self, command: str) -> subprocess.CompletedProcess[str]:
        """By way of the shell, with another standard output."""
        return run("bash", "-c", command, "bash", *HAKMEM)

    def test_full(self) -> None:
        for words in ("--version", "info", "--help", "stat --help"):
            done = self.hakmem(f'"$@" {words} > /dev/full')
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, r"\Ahakmem: [^\n]*No space left on device\n\Z")

    def test_nobody_reads_on(self) -> None:
        for words in ("info", "--help", "stat --help"):
            done = self.hakmem(f'"$@" {words} | true; echo ${{PIPESTATUS[0]}}')
            self.assertEqual((done.stdout, done.stderr), ("0\n", ""), words)

    def test_closed(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            policy = Path(directory, "policy")
            policy.write_text("hakmem-policy 1\n")
            done = self.hakmem(f'"$@" policy export {policy} >&-')
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_closed_for_the_program_too(self) -> None:
        done = self.hakmem('"$@" run -- sh -c "test -e /proc/self/fd/1" >&-')
        self.assertEqual((done.returncode, done.stderr), (1, ""))


class Observers(unittest.TestCase):
    """`stat` and `doctor` run in an environment of their own, whatever the user's is."""

    @classmethod
    def setUpClass(cls) -> None:
        venv.OBSERVE.python()  # made once, which says so

    def test_nothing_comes_from_the_current_directory(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            for name in ("rich", "json", "types", "runpy", "stat"):
                Path(directory, f"{name}.py").write_text("raise SystemExit('planted')\n")
            done = run(*HAKMEM, "stat", "no-such", cwd=Path(directory))
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Ahakmem: no-such: no such file")

    def test_programs_have_the_user_s_variables(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            told = Path(directory, "told")
            environment = {**os.environ, "PYTHONPATH": directory}
            script = f'echo "$PYTHONPATH" > {told}; sleep 1'
            done = run(*HAKMEM, "doctor", "--run", "--", "sh", "-c", script, environment=environment)
            self.assertEqual(done.stderr, "")
            self.assertEqual(told.read_text(), f"{directory}\n")


class Soak(unittest.TestCase):
    """`soak` builds its program, and runs it with the library."""

    def test_runs_with_the_library(self) -> None:
        done = run(*HAKMEM, "soak", "--minutes", "0.02", "--rounds", "1", "--seed", "7", "--threads", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\Asoak: seed 7, up to 2 threads, 0.02 minutes, hakmem \d")
        self.assertRegex(done.stdout, r"(?m)^soak: round 1: .* blocks, peak .* MiB, after purge .* MiB")
        self.assertRegex(done.stdout, r"(?m)^soak: ok, 1 rounds, \d+ blocks in ")

    def test_says_what_is_legal(self) -> None:
        for words, legal in (
            (["--minutes", "soon"], "0.01 to 100000"),
            (["--rounds", "0"], "1 to 1000000000"),
            (["--seed", "-1"], "0 to 18446744073709551615"),
            (["--threads", "65"], "1 to 64"),
            (["--frobnicate"], "--minutes N"),
        ):
            done = run(*HAKMEM, "soak", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            # What a first build says comes before.
            line = done.stderr.splitlines()[-1]
            self.assertRegex(line, rf"\Asoak: .*{words[0]}")
            self.assertIn(legal, line)

    def test_helps(self) -> None:
        done = run(*HAKMEM, "soak", "--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--minutes N", done.stdout)


FAKE_CMAKE = """#!/bin/sh
echo "$*" >> "{directory}/log"
test "$1" = --build || exit 0
echo "[1/2] one half"
until test -e "{until}"; do /bin/sleep 0.01; done
echo "[2/2] the other"
echo "a compiler's words"
/bin/mkdir -p build/release
/bin/cp "{library}" build/release/libhakmem.so
exit {status}
"""


class Building(unittest.TestCase):
    """When `run` builds, in a copy of the launcher's tree with a cmake that only pretends."""

    def setUp(self) -> None:
        self.make_tree("hakmem-cli-")

    def make_tree(self, prefix: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=prefix))
        self.addCleanup(shutil.rmtree, self.directory)
        self.root = self.directory / "tree"
        self.root.mkdir()
        shutil.copy(LAUNCHER, self.root)
        shutil.copytree(ROOT / "python", self.root / "python")
        (self.root / "CMakeLists.txt").touch()
        (self.root / "src").mkdir()
        (self.root / "src" / "one.c").touch()
        (self.root / "src" / "two.c").touch()
        self.tools = self.directory / "tools"
        self.tools.mkdir()
        for tool in ("cc", "c++", "make"):
            (self.tools / tool).symlink_to("/bin/true")
        self.pretend()

    def pretend(self, *, status: int = 0, until: Path = Path("/")) -> None:
        """Sets up how the build goes: it takes until that file exists."""
        cmake = self.tools / "cmake"
        cmake.write_text(
            FAKE_CMAKE.format(directory=self.directory, library=LIBRARY.resolve(), status=status, until=until)
        )
        cmake.chmod(0o755)

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.root / "hakmem"), "run", "--", "/bin/echo", "started"],
            env={"PATH": str(self.tools)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run_program(self) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of one start of a program."""
        process = self.start()
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def builds(self) -> int:
        """How often something was built."""
        log = self.directory / "log"
        return log.read_text().count("--build ") if log.exists() else 0

    def test_builds_first_and_says_so(self) -> None:
        code, out, err = self.run_program()
        self.assertEqual((code, out, self.builds()), (0, "started\n", 1))
        self.assertIn("hakmem: building the release library (first run)\n", err)
        self.assertIn("50 %", err)

    def test_is_silent_when_nothing_changed(self) -> None:
        self.run_program()
        self.assertEqual(self.run_program(), (0, "started\n", ""))
        self.assertEqual(self.builds(), 1)

    def test_builds_when_a_source_is_new_changed_or_gone(self) -> None:
        self.run_program()
        source = self.root / "src" / "one.c"
        changes: list[Callable[[], None]] = [source.touch, (self.root / "src" / "three.c").touch, source.unlink]
        for number, change in enumerate(changes, 2):
            time.sleep(0.05)
            change()
            self.assertEqual(self.run_program()[:2], (0, "started\n"))
            self.assertEqual(self.builds(), number)

    def test_is_silent_when_interrupted_while_modules_are_loaded(self) -> None:
        loading = self.directory / "loading"
        module = self.root / "python" / "hakmem_cli" / "modes.py"
        waits = f"import pathlib, time\npathlib.Path({str(loading)!r}).touch()\ntime.sleep(60)\n"
        module.write_text(module.read_text() + waits)
        not_ignored(self, signal.SIGINT)
        process = self.start()
        while process.poll() is None and not loading.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out, err), (-signal.SIGINT, "", ""))

    def test_two_at_once_build_once(self) -> None:
        go = self.directory / "go"
        self.pretend(until=go)
        processes = [self.start(), self.start()]
        said = ["", ""]
        while not any("waiting for another build" in text for text in said):
            for i, process in enumerate(processes):
                assert process.stderr is not None
                if select.select([process.stderr], [], [], 0.05)[0]:
                    text = os.read(process.stderr.fileno(), 4096).decode()
                    self.assertTrue(text, said)
                    said[i] += text
        go.touch()
        results = [process.communicate(timeout=60) for process in processes]
        self.assertEqual([out for out, _ in results], ["started\n"] * 2)
        self.assertEqual(self.builds(), 1)

    def test_starts_nothing_when_the_build_fails(self) -> None:
        self.pretend(status=1)
        code, out, err = self.run_program()
        self.assertEqual((code, out), (2, ""))
        self.assertIn("a compiler's words\n", err)
        self.assertRegex(err.splitlines()[-1], r"\Ahakmem: building release failed")

    def test_says_what_to_install(self) -> None:
        for tool, what, package in (
            ("cmake", "cmake", "cmake"),
            ("cc", "a C compiler", "gcc"),
            ("c++", "a C++ compiler", "g++"),
            ("make", "make or ninja", "make"),
        ):
            hidden = (self.tools / tool).rename(self.directory / tool)
            line = f"hakmem: {what} not found; install it, for example: apt-get install {package}\n"
            self.assertEqual(self.run_program(), (2, "", line))
            hidden.rename(self.tools / tool)

    @unittest.skipUnless(os.geteuid() == 0, "only root installs")
    def test_installs_what_is_missing_where_it_may(self) -> None:
        hidden = (self.tools / "cc").rename(self.directory / "cc")
        apt = self.tools / "apt-get"
        apt.write_text(f'#!/bin/sh\ncase "$*" in *install*gcc) /bin/mv {hidden} {self.tools}/cc;; esac\n')
        apt.chmod(0o755)
        code, out, err = self.run_program()
        self.assertEqual((code, out), (0, "started\n"))
        self.assertIn("hakmem: a C compiler not found; installing: apt-get install gcc\n", err)

    def test_starts_afresh_where_the_tree_has_been_moved(self) -> None:
        cache = self.root / "build" / "release" / "CMakeCache.txt"
        cache.parent.mkdir(parents=True)
        cache.write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/where/it/was\n")
        self.assertEqual(self.run_program()[:2], (0, "started\n"))
        self.assertFalse(cache.exists())

    def test_refuses_a_path_that_the_loader_would_split(self) -> None:
        self.make_tree("hakmem cli ")
        code, out, err = self.run_program()
        self.assertEqual((code, out), (2, ""))
        self.assertIn("the loader cannot preload a path with a colon or a space", err)
