"""`hakmem stat`: three forms of the same numbers, series, and refusals in one line."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from unittest import mock

import fakes
from prometheus_client import parser
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from rich.console import Console

from hakmem_observe import stat, tables
from hakmem_observe.errors import EndedError, TornError
from hakmem_observe.snapshot import Snapshot, read_series


class Forms(fakes.FakeTest):
    def test_table(self) -> None:
        done = fakes.hakmem("stat", str(self.start().pid))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for pattern in (
            r"large live +32.0 KiB +33%",
            r"(?m)^ 48 B +2.1 KiB +45 +720 B +14.1 KiB +1 ",
            r"4711 +1.2 KiB +240 B",
            r"span +77 +5 +6.49%",
            r"soft limit +none",
            r"heartbeats +10",
        ):
            self.assertRegex(done.stdout, pattern)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)

    def test_a_terminal_of_no_columns_is_none(self) -> None:
        done = fakes.hakmem("stat", str(self.start().pid), environment={"COLUMNS": "0"})
        self.assertIn("large live", done.stdout)

    def test_numbers_are_whole_or_left_out(self) -> None:
        many = 123_456
        sizes = [{"class": 1, "size": 3408, "live_blocks": many, "cached_blocks": 9, "slab_free_blocks": many}]
        sizes = [{**row, "slabs": many, "refills": many, "flushes": many} for row in sizes]
        heaps = [{"heap": many, "thread": many, "live_bytes": 1 << 40, "cached_bytes": many, "requested_bytes": many}]
        heaps = [{**row, "refills": many, "flushes": many, "large_blocks": many} for row in heaps]
        taken = Snapshot(pid=1, unix_ms=1, classes=sizes, threads=heaps)
        for width, shown, left_out in (
            (120, "live blocks.*free in slabs.*slabs.*refills.*flushes", "no such column"),
            (80, "live blocks.*free in slabs.*slabs", "123 456 +123 456 +123 456"),
            (40, "size +live +live blocks", "cached"),
        ):
            out = io.StringIO()
            tables.print_snapshot(taken, Console(width=width, file=out))
            self.assertNotIn("…", out.getvalue())
            of_classes = out.getvalue().partition("Threads")[0]
            self.assertRegex(of_classes, shown)
            self.assertNotRegex(of_classes, left_out)

    def test_explains(self) -> None:
        done = fakes.hakmem("stat", str(self.start().pid), "--explain")
        self.assertRegex(done.stdout, r"heartbeats +10 +visits for the budget")
        self.assertIn("free units that heaps keep by them", done.stdout)

    def test_json_can_be_read_again(self) -> None:
        done = fakes.hakmem("stat", str(self.start().pid), "--json")
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "s.json"
            path.write_text(done.stdout)
            (taken,) = read_series(path)
            self.assertEqual(taken.to_json(), json.loads(done.stdout))
            again = fakes.hakmem("stat", str(path), "--json")
            self.assertEqual(again.stdout, done.stdout)
            self.assertIn("large live", fakes.hakmem("stat", str(path)).stdout)

    def test_file_with_any_name_and_text(self) -> None:
        told = {"schema": "hakmem-stats", "version": 1, "library": "\x1b[2J\ud800", "pid": 1, "unix_ms": 1}
        told |= {"counters": {"\x1bodd": 1}, "future": {"\x1b": "\x1b"}, "locks": [{"name": "\x1b", "taken": 3}]}
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / os.fsdecode(b"caf\xe9.jsonl")
            path.write_text(json.dumps(told))
            done = fakes.hakmem("stat", str(path))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("/caf?.jsonl, hakmem ?[2J?", done.stdout)
        self.assertNotIn("\x1b", done.stdout)

    def test_openmetrics_is_valid(self) -> None:
        done = fakes.hakmem("stat", str(self.start().pid), "--openmetrics")
        self.assertTrue(done.stdout.endswith("# EOF\n"))
        families = {family.name: family for family in text_string_to_metric_families(done.stdout)}
        self.assertTrue(all(name.startswith("hakmem_") for name in families))
        self.assertEqual(
            (families["hakmem_refills"].type, families["hakmem_refills"].samples[0].value), ("counter", 12)
        )
        (sample,) = families["hakmem_class_live_blocks"].samples
        self.assertEqual((sample.labels, sample.value), ({"class": "1", "size": "48"}, 45))
        self.assertEqual(families["hakmem_requested_bytes"].unit, "bytes")
        self.assertEqual(families["hakmem_heartbeats"].documentation, "visits for the budget")

    def test_openmetrics_of_what_the_library_writes(self) -> None:
        """It has gauges in the rows of threads, and the sum of all system calls."""
        told = {"schema": "hakmem-stats", "version": 1, "library": "0.1.0", "pid": 1, "unix_ms": 1}
        told |= {"memory": {"slab_bytes": 9, "purged_bytes": 4}, "os": {"calls": 5, "mmap": 3, "munmap": 2}}
        told["threads"] = [{"heap": 1, "thread": 2, "slab_bytes": 9, "live_bytes": 8, "large_blocks": 7}]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(told, file)
            file.flush()
            done = fakes.hakmem("stat", file.name, "--openmetrics")
        families = {family.name: family for family in text_string_to_metric_families(done.stdout)}
        kinds = {name: families[f"hakmem_thread_{name}"].type for name in ("slab_bytes", "live_bytes", "large_blocks")}
        self.assertEqual(kinds, {"slab_bytes": "gauge", "live_bytes": "gauge", "large_blocks": "counter"})
        # The sums of a heap are one series, whichever thread has it.
        self.assertEqual(families["hakmem_thread_live_bytes"].samples[0].labels, {"heap": "1"})
        self.assertEqual(families["hakmem_thread_live_bytes"].documentation, "live small blocks of the heap's slabs")
        self.assertEqual(families["hakmem_heap"].samples[0].labels, {"heap": "1", "thread": "2"})
        calls = {sample.labels["call"]: sample.value for sample in families["hakmem_system_calls"].samples}
        self.assertEqual(calls, {"mmap": 3, "munmap": 2})

    def test_openmetrics_with_any_text(self) -> None:
        told = {"schema": "hakmem-stats", "version": 1, "library": 'a"b\\c\nd', "pid": 1, "unix_ms": 1}
        told |= {"counters": {"odd-name": 1, "x_total": 2}, "locks": [{"name": '"', "taken": 3}]}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(told, file)
            file.flush()
            done = fakes.hakmem("stat", file.name, "--openmetrics")
        families = {family.name: family for family in text_string_to_metric_families(done.stdout)}
        self.assertEqual(families["hakmem_library"].samples[0].labels["version"], 'a"b\\c\nd')
        self.assertEqual(families["hakmem_x"].samples[0].value, 2)

    def test_the_older_text_is_valid(self) -> None:
        told = {"schema": "hakmem-stats", "version": 1, "library": "0.1.0", "pid": 7, "unix_ms": 1}
        told |= {"counters": {"refills": 3}, "memory": {"held_bytes": 9}}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(told, file)
            file.flush()
            done = fakes.hakmem("stat", file.name, "--prometheus")
        samples = {
            sample.name: sample
            for family in parser.text_string_to_metric_families(done.stdout)
            for sample in family.samples
        }
        self.assertEqual({sample.labels["pid"] for sample in samples.values()}, {"7"})
        self.assertEqual((samples["hakmem_refills_total"].value, samples["hakmem_memory_held_bytes"].value), (3, 9))
        self.assertIn("# TYPE hakmem_refills_total counter\n", done.stdout)
        self.assertIn("# TYPE hakmem_library_info gauge\n", done.stdout)
        self.assertNotRegex(done.stdout, "# UNIT|# EOF| info")

    def test_names_are_no_markup(self) -> None:
        told = {"schema": "hakmem-stats", "version": 1, "library": "[/x]", "pid": 1, "unix_ms": 1}
        told |= {"memory": {"a[/b]": 1}, "counters": {"c[/d]": 1}, "locks": [{"name": "[/e]", "taken": 3}]}
        told |= {"classes": [{"size": 8, "live_blocks": 1, "f[/g]": 1}]}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(told, file)
            file.flush()
            done = fakes.hakmem("stat", file.name, "--explain")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in ("[/x]", "a[/b]", "c[/d]", "[/e]", "f[/g]"):
            self.assertIn(name, done.stdout)


class Series(fakes.FakeTest):
    def record(self, pid: int, *words: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(fakes.ROOT / "python")}
        command = [*fakes.HAKMEM, "stat", str(pid), "--every", "0.05", *words]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_until_the_process_ends(self) -> None:
        process = self.start()
        recorder = self.record(process.pid)
        assert recorder.stdout is not None
        lines = [recorder.stdout.readline() for _ in range(6)]
        self.end(process)
        out, err = recorder.communicate(timeout=20)
        self.assertEqual((recorder.returncode, err), (0, ""))
        times = [json.loads(line)["unix_ms"] for line in [*lines, *out.splitlines()]]
        self.assertGreater(len(times), 5)
        self.assertEqual(times, sorted(times))

    def test_goes_on_when_it_is_late(self) -> None:
        process = self.start()
        recorder = self.record(process.pid)
        assert recorder.stdout is not None
        for _ in range(3):
            self.assertNotEqual(recorder.stdout.readline(), "")
            recorder.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            recorder.send_signal(signal.SIGCONT)
        self.end(process)
        _, err = recorder.communicate(timeout=20)
        self.assertEqual((recorder.returncode, err), (0, ""))

    def test_goes_on_after_what_was_torn(self) -> None:
        process, out = mock.Mock(), io.StringIO()
        torn = TornError(1, "x")
        taken = mock.Mock(**{"to_line.return_value": "{}"})
        process.snapshot.side_effect = [taken, *9 * [torn], taken, *9 * [torn], taken, EndedError(1)]
        self.assertEqual(stat._record(process, 0.0, out), 0)
        self.assertEqual(out.getvalue(), "{}\n" * 3)
        process.snapshot.side_effect = 99 * [torn]
        with self.assertRaises(TornError):
            stat._record(process, 0.0, out)

    def test_until_interrupted_into_a_file(self) -> None:
        process = self.start()
        fakes.not_ignored(self, signal.SIGINT)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "series.jsonl"
            recorder = self.record(process.pid, "--output", str(path))
            while recorder.poll() is None and not (path.exists() and path.read_text().count("\n") > 5):
                time.sleep(0.05)
            recorder.send_signal(signal.SIGINT)
            _, err = recorder.communicate(timeout=20)
            self.assertEqual((recorder.returncode, err), (0, ""))
            self.assertGreater(len(read_series(path)), 5)
            done = fakes.hakmem("stat", str(process.pid), "--every", "1", "--output", str(path))
            self.assert_refused(done, str(path), "it exists")

    def test_goes_on_where_interrupts_are_ignored(self) -> None:
        """As what a shell's script starts in the background."""
        process = self.start()
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        recorder = self.record(process.pid)
        assert recorder.stdout is not None
        recorder.stdout.readline()
        recorder.send_signal(signal.SIGINT)
        self.assertTrue(all(recorder.stdout.readline() for _ in range(6)))
        self.end(process)
        _, err = recorder.communicate(timeout=20)
        self.assertEqual((recorder.returncode, err), (0, ""))

    def test_reader_that_goes(self) -> None:
        recorder = self.record(self.start().pid)
        assert recorder.stdout is not None
        recorder.stdout.readline()
        recorder.stdout.close()
        self.assertEqual(recorder.wait(20), 0)
        assert recorder.stderr is not None
        self.assertEqual(recorder.stderr.read(), "")
        recorder.stderr.close()


class Refusals(fakes.FakeTest):
    def test_full_output(self) -> None:
        pid = self.start().pid
        environment = {**os.environ, "PYTHONPATH": str(fakes.ROOT / "python")}
        for words in ([], ["--json"], ["--openmetrics"], ["--every", "1"]):
            with self.subTest(words), open("/dev/full", "w") as full:
                done = subprocess.run(
                    [*fakes.HAKMEM, "stat", str(pid), *words],
                    env=environment,
                    stdout=full,
                    stderr=subprocess.PIPE,
                    text=True,
                    timeout=60,
                    check=False,
                )
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, r"\Ahakmem: [^\n]*No space left on device\n\Z")

    def test_each_is_one_line(self) -> None:
        own = str(os.getpid())
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"schema":"hakmem-stats"')
            file.flush()
            for words, told in (
                (["frob"], ("frob", "PID|FILE")),
                (["0"], ("0: no process", "1 to")),
                (["99999999"], ("99999999", "1 to")),
                (["9" * 5000], ("9: no process", "1 to")),
                (["/no/such"], ("/no/such", "no such file")),
                (["/tmp"], ("/tmp", "a directory")),
                ([file.name], (file.name, "no JSON at line 1")),
                (["1", "--json", "--openmetrics"], ("--openmetrics",)),
                (["1", "--every", "0"], ("--every", "0.01 to 86400")),
                (["1", "--every", "soon"], ("soon", "0.01 to 86400")),
                (["1", "--output", "x"], ("--output", "only with --every")),
                ([file.name, "--every", "1"], ("--every", "is a file")),
                ([own, "--every", "1", "--output", "/no/such/x"], ("does not use hakmem",)),
                ([own], ("does not use hakmem", "hakmem run")),
                ([], ("PID|FILE",)),
                (["1", "--frob"], ("--frob",)),
            ):
                with self.subTest(" ".join(words)[:80]):
                    self.assert_refused(fakes.hakmem("stat", *words), *told)

    def test_process_of_another_version(self) -> None:
        done = fakes.hakmem("stat", str(self.start(wrong="version").pid))
        self.assert_refused(done, "another version of hakmem's control (9)")
