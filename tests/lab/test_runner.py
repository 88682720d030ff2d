"""One run: what is measured, and each way in which it can fail."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import refusal  # noqa: E402

from hakmem_bench import attacks, counting, memory, runner  # noqa: E402
from hakmem_bench.model import CannotError, Peer, Sample, Test, TestResult  # noqa: E402

PLAIN = Peer("glibc", "", "")
STOPPED_FOR_A_WHILE = (
    "(until grep -q '^State:.[Tt]' /proc/$$/status; do sleep 0.01; done; sleep 0.3; kill -CONT $$) & kill -STOP $$"
)


def shell(script: str, **more: object) -> Test:
    return Test("a-test", "group", "a shell's script", ("/bin/sh", "-c", script), **more)  # type: ignore[arg-type]


def run(script: str, peer: Peer = PLAIN, **more: object) -> Sample:
    return runner.run(shell(script, **more), peer, quick=False)


class Run(unittest.TestCase):
    def test_wall_time_and_what_was_used(self) -> None:
        sample = run("sleep 0.2; i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done")
        self.assertEqual(sample.status, "ok")
        self.assertGreater(sample.wall, 0.2)
        self.assertEqual(sample.seconds, sample.wall)
        self.assertTrue(0 < sample.user + sample.system < sample.wall)
        self.assertTrue(200 < sample.peak_kib < 100_000)
        self.assertGreater(sample.minor_faults, 10)

    def test_peak_is_the_programs_not_ours(self) -> None:
        ours = bytearray(256 << 20)
        self.assertLess(run("exit 0").peak_kib, 16 << 10)
        self.assertEqual(len(ours), 256 << 20)

    def test_peak_is_exact_to_the_page(self) -> None:
        tell = """while read -r name value rest; do [ $name = VmHWM: ] && echo "Extra = {\\"held\\": $value}"; done"""
        for _ in range(10):
            sample = run(tell + " </proc/$$/status; exit 0")
            self.assertGreaterEqual(sample.peak_kib, sample.extra["held"])

    def test_start_up_tells_the_exact_peak_of_a_typical_run(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            told = Path(directory) / "told"
            script = f"grep VmHWM /proc/$$/status >>{told}; exit 0"
            command = [str(runner.PROGRAMS / "startup"), "3", "/bin/sh", "-c", script]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            held = [int(number) for number in re.findall(r"\d+", told.read_text())]
        found = re.fullmatch(r'Throughput = .+\nExtra = {"peak_kib": (\d+)}\n', done.stdout)
        assert found, done.stdout
        self.assertEqual(len(held), 3 + 15)
        self.assertTrue(statistics.median(held[3:]) <= int(found[1]) <= max(held) + 64)

    def test_signals_reach_the_program(self) -> None:
        self.assertEqual(run("trap 'exit 7' USR1; kill -USR1 $$").status, "exit 7: nothing on stderr")
        self.assertEqual(run("trap '' USR1; kill -USR1 $$").status, "ok")

    def test_a_program_that_is_stopped_waits(self) -> None:
        sample = run(STOPPED_FOR_A_WHILE)
        self.assertEqual(sample.status, "ok")
        self.assertGreater(sample.wall, 0.3)

    def test_a_program_that_may_not_be_looked_at_is_measured_too(self) -> None:
        child = os.fork()
        if child == 0:
            done = False
            try:
                refusal.refuse(refusal.PTRACE)
                sample = run(STOPPED_FOR_A_WHILE)
                done = sample.status == "ok" and sample.wall > 0.3 and 200 < sample.peak_kib < 100_000
                often = runner.run(Test("startup", "", "", ("startup", "3", "/bin/true")), PLAIN, quick=False)
                done &= often.good and 200 < often.peak_kib < 100_000
            finally:
                os._exit(0 if done else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_operations_count_where_they_are_told(self) -> None:
        sample = run("echo 'Throughput = 4000000 operations per second (1.000 s)'")
        self.assertEqual(sample.seconds, 0.25)

    def test_a_driver_may_tell_a_servers_figures(self) -> None:
        sample = run("""echo 'Sample = {"seconds": 1.5, "peak_kib": 77}'; echo 'Extra = {"curve": [[0, 1]]}'""")
        self.assertEqual((sample.seconds, sample.peak_kib, sample.extra), (1.5, 77, {"curve": [[0, 1]]}))

    def test_failures_are_results(self) -> None:
        self.assertEqual(run("echo first >&2; echo the reason >&2; exit 3").status, "exit 3: the reason")
        self.assertEqual(run("kill -SEGV $$").status, "signal 11")
        self.assertEqual(run("sleep 60", seconds=1).status, "no end after 1 s")
        absent = Test("absent", "group", "a program that is not there", ("/no/such",))
        self.assertRegex(runner.run(absent, PLAIN, quick=False).status, r"\Aexit 127: .*/no/such")

    def await_end(self, number: int) -> None:
        """Of a process, or until it waits to be reaped by whoever reaps orphans here."""
        deadline = time.monotonic() + 10
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            while not Path(f"/proc/{number}/stat").read_text().rpartition(") ")[2].startswith("Z"):
                self.assertLess(time.monotonic(), deadline)

    def test_what_it_leaves_running_is_ended(self) -> None:
        sample = run('sleep 60 & echo "Extra = {\\"child\\": $!}"')
        self.await_end(sample.extra["child"])

    def test_the_environment_is_the_peers(self) -> None:
        tell = """echo "Extra = {\\"told\\": \\"$A $HAKMEM_MODE $LD_PRELOAD\\"}" """
        with mock.patch.dict(os.environ, {"HAKMEM_MODE": "fast", "LD_PRELOAD": "", "A": "ours"}):
            self.assertEqual(run(tell, Peer("p", "", "", environment={"A": "theirs"})).extra["told"], "theirs  ")

    def test_a_library_that_the_loader_leaves_out_has_not_served(self) -> None:
        with tempfile.NamedTemporaryFile(prefix="no-library-", suffix=".so") as file:
            peer = Peer("p", "", "", library=file.name)
            sample = run("exit 0", peer)
            self.assertEqual(sample.status, f"not served: {Path(file.name).name} was not loaded")
            self.assertFalse(sample.good)
            if shutil.which("strace") is not None:
                self.assertEqual(runner.system_calls(shell("exit 0"), peer), {})
            with self.assertRaisesRegex(CannotError, r"\Aoverflow 16 heap, p: not served: no-lib.* was not loaded\Z"):
                attacks.run(Path("/bin/true"), attacks.Attack("overflow", 16, "heap"), peer)
            if shutil.which("valgrind") is not None:
                counted = counting.count(counting.Counted("c", ("/bin/true", "{}"), 1, 2), peer, simulates=False)
                self.assertRegex(counted.status, r"\Anot served: no-library-")
        self.assertEqual(run("echo 'ERROR: ld.so: ...' >&2", PLAIN).status, "ok")

    def test_a_driver_gets_it_to_hand_on(self) -> None:
        tell = """test -z "$LD_PRELOAD" && echo "Extra = $HAK_BENCH_ENVIRONMENT" """
        peer = Peer("p", "", "", library="/some/library.so", environment={"A": "B"})
        self.assertEqual(run(tell, peer, preloads_itself=True).extra, {"A": "B", "LD_PRELOAD": "/some/library.so"})

    def test_data_is_made_anew(self) -> None:
        def setup(directory: os.PathLike[str]) -> None:
            with open(os.path.join(directory, "input"), "x") as file:
                file.write("content")

        test = Test("its-data", "g", "w", ("/bin/sh", "-c", "grep -q content {data}/input"), setup=setup)
        for _ in range(2):
            runner.prepare(test)
            self.assertEqual(runner.run(test, PLAIN, quick=False).status, "ok")

    def test_idle_tells_what_the_page_on_memory_takes(self) -> None:
        sample = runner.run(Test("idle", "g", "w", ("idle", "42", "--seconds", "0")), PLAIN, quick=False)
        test = TestResult("idle", "g", "w", ["idle"], 1, True, {"glibc": [sample]})
        one = memory.idle(test, "glibc")
        assert one is not None, sample
        self.assertTrue(0 < one.kept < one.empty < one.freed < one.peak)
        if Path("/proc/self/smaps_rollup").exists():
            self.assertEqual(one.lazy, 0)
            self.assertTrue(0 <= sample.extra["huge_kib"] <= one.peak)

    def test_the_peak_of_idle_is_its_curves_even_where_free_takes_memory(self) -> None:
        source = "static char at[4096][4096]; static int n; void free(void *p) { if (p && n < 4096) *at[n++] = 1; }"
        with tempfile.TemporaryDirectory() as directory:
            library = Path(directory) / "takes.so"
            compile_it = ["cc", "-shared", "-fPIC", "-fno-builtin", "-x", "c", "-", "-o", str(library)]
            subprocess.run(compile_it, input=source, text=True, check=True)
            peer = Peer("takes", "", "", library=str(library))
            sample = runner.run(Test("idle", "g", "w", ("idle", "42", "--seconds", "0")), peer, quick=False)
        self.assertEqual(sample.status, "ok")
        self.assertEqual(sample.peak_kib, max(kib for _, kib in sample.extra["curve"]))
        self.assertGreater(sample.peak_kib, sample.extra["curve"][1][1] + 8192)

    def test_system_calls_are_counted(self) -> None:
        if shutil.which("strace") is None:
            self.skipTest("strace is not installed")
        self.assertEqual(runner.system_calls(shell("exit 0"), PLAIN).get("execve"), 1)

    def test_what_is_traced_for_too_long_is_ended(self) -> None:
        if shutil.which("strace") is None:
            self.skipTest("strace is not installed")
        with tempfile.TemporaryDirectory() as directory:
            number = Path(directory) / "number"
            self.assertEqual(runner.system_calls(shell(f"echo $$ > {number}; sleep 60", seconds=0.5), PLAIN), {})
            self.await_end(int(number.read_text()))


if __name__ == "__main__":
    unittest.main()
