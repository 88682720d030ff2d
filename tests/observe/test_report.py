"""The report's page: one file, complete, and safe whatever names and numbers are in it."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import os
import re
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

import fake_series
import fake_stacks
import fakes

from hakmem_observe import __main__ as command
from hakmem_observe import pprof, processes, report_classes, report_flame, report_page, report_series, snapshot

VENDOR = Path(report_page.__file__).parent / "vendor"


class Page(HTMLParser):
    """What a browser would see of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open[-1] if self._open else "", []).append(data)

    def ids(self) -> set[str]:
        return {attributes["id"] or "" for _, attributes in self.tags if "id" in attributes}


class Report(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        before = os.getcwd()
        os.chdir(directory.name)
        self.addCleanup(os.chdir, before)
        self.write("p.pb.gz")
        Path("s.json").write_text(fake_series.text(fake_series.series(50)))

    def write(self, name: str, hostile: bool = False) -> None:
        Path(name).write_bytes(pprof.encode(fake_stacks.profile(60, hostile=hostile)))

    def report(self, *words: str) -> tuple[int, str]:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            code = command.main(["report", *words])
        return code, errors.getvalue()

    def page(self, *words: str) -> Page:
        code, errors = self.report(*words, "--output", "r.html", "--force")
        self.assertEqual(code, 0, errors)
        return Page(Path("r.html").read_text())

    def test_both_in_any_order(self) -> None:
        for words in (("p.pb.gz", "s.json"), ("s.json", "p.pb.gz")):
            ids = self.page(*words).ids()
            self.assertLessEqual({"memory", "sizes", "map", "flame", "sites", "about"}, ids)

    def test_in_any_locale(self) -> None:
        """Neither our files nor the user's are in its encoding."""
        told = {**json.loads(fake_series.text(fake_series.series(1))), "note": "é"}
        Path("t.json").write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")
        ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        for words in (("report", "p.pb.gz", "t.json"), ("stat", "t.json", "--json")):
            done = fakes.hakmem(*words, environment=ascii_only)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["note"], "é")
        self.assertIn("d3", Path("report.html").read_text(encoding="utf-8"))

    def test_what_is_absent_is_left_out(self) -> None:
        self.assertEqual(self.page("p.pb.gz").ids() & {"memory", "sizes", "map", "flame"}, {"flame"})
        told = fake_series.series(50, more=False)
        Path("s.json").write_text(fake_series.text(told))
        self.assertEqual(self.page("s.json").ids() & {"memory", "sizes", "map", "flame"}, {"memory", "sizes"})
        # What the library writes at exit: one object, no series.
        Path("s.json").write_text(fake_series.text(told[-1:]))
        ids = self.page("s.json").ids()
        self.assertIn("memory", ids)
        self.assertNotIn("memory-chart", ids)
        # A program that ends at once: two moments that are one.
        Path("s.json").write_text(fake_series.text([{**one, "uptime_ms": 0} for one in told[-2:]]))
        self.assertNotIn("memory-chart", self.page("s.json").ids())

    def test_poor_statistics(self) -> None:
        for told in (
            {"schema": "hakmem-stats", "version": 1},
            {"schema": "hakmem-stats", "version": 1, "memory": {}, "classes": [{}], "superslabs": [], "decisions": {}},
            {"schema": "hakmem-stats", "version": 1, "superslabs": [{"units": [1, [], ["x", "y"], [3, 7], [3, -1]]}]},
            {"schema": "hakmem-stats", "version": 1, "superslabs": 3, "decisions": [{"unix_ms": 1}, 4]},
            {"schema": "hakmem-stats", "version": 1, "unix_ms": 10**18, "uptime_ms": 10**15},
        ):
            Path("s.json").write_text((json.dumps(told) + "\n") * 3)
            with self.subTest(told):
                self.page("s.json")

    def test_one_process_of_several(self) -> None:
        """Else time would run backwards, and one's peak would be another's."""
        many, few = fake_series.series(50, pid=17), fake_series.series(20, seed=2, pid=18)
        mixed = [one for pair in zip(few, many) for one in pair] + many[len(few) :]
        Path("s.json").write_text(fake_series.text(mixed))
        page = self.page("s.json")
        self.assertEqual(page.texts["title"], ["Process 17: hakmem report"])
        told = "".join(sum(page.texts.values(), []))
        self.assertIn("The series is of 2 processes; only process 17 is shown, in 50 snapshot(s). Left out", told)
        seconds = json.loads(page.texts["script"][0])["chart"]["seconds"]
        self.assertEqual(len(seconds), 50)
        self.assertEqual(seconds, sorted(seconds))
        self.assertEqual(self.page("s.json", "--pid", "18").texts["title"], ["Process 18: hakmem report"])
        # Beside a profile, that of its process.
        profile = dataclasses.replace(fake_stacks.profile(20), pid=18)
        Path("p.pb.gz").write_bytes(pprof.encode(profile))
        told = "".join(sum(self.page("p.pb.gz", "s.json").texts.values(), []))
        self.assertIn("only process 18 is shown", told)
        self.assertNotIn("what follows shows two processes", told)

    def test_nothing_is_loaded(self) -> None:
        page = self.page("p.pb.gz", "s.json")
        for tag, attributes in page.tags:
            self.assertNotIn(tag, ("link", "img", "iframe", "object", "embed", "base", "form"))
            self.assertNotIn("src", attributes)
            self.assertRegex(attributes.get("href") or "#", "^#")
        self.assertNotRegex("".join(page.texts["style"]), r"url\(|@import")
        policy = next(attributes for tag, attributes in page.tags if attributes.get("http-equiv"))
        self.assertIn("default-src 'none'", policy["content"] or "")

    def test_hostile_names(self) -> None:
        scripts = sum(tag == "script" for tag, _ in self.page("p.pb.gz").tags)
        self.write("evil.pb.gz", hostile=True)
        os.mkdir("<img src=x onerror=alert(1)>")
        evil = Path("<img src=x onerror=alert(1)>") / "s.json"
        told = fake_series.series(5)
        told[-1]["library"] = fake_stacks.HOSTILE
        told[-1]["decisions"] = [{"unix_ms": told[0]["unix_ms"], "text": f"</script>{fake_stacks.HOSTILE}\u2028"}]
        evil.write_text(fake_series.text(told))
        page = self.page("evil.pb.gz", str(evil))
        self.assertEqual(sum(tag == "script" for tag, _ in page.tags), scripts)
        self.assertFalse([tag for tag, _ in page.tags if tag == "img"])
        names = json.dumps(json.loads(page.texts["script"][0]))
        self.assertIn(fake_stacks.HOSTILE, names)
        self.assertFalse(
            [attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)]
        )

    def test_name_that_is_not_utf_8(self) -> None:
        name = os.fsdecode(b"caf\xe9.json")
        Path("s.json").rename(name)
        self.assertIn("caf?.json", "".join(sum(self.page(name).texts.values(), [])))

    def test_errors_are_one_line(self) -> None:
        self.write("second.pb.gz")
        Path("text").write_text("hello\n")
        Path("other.json").write_text('{"schema": "other"}\n')
        os.mkfifo("pipe")
        for words, line in (
            ([], "FILE"),
            (["/no/such"], "/no/such: No such file"),
            (["text"], "text: neither a profile .* nor statistics"),
            (["other.json"], "not statistics of hakmem"),
            (["p.pb.gz", "--pid", "4711"], "--pid 4711: only with a recorded series"),
            (["s.json", "--pid", "1"], "--pid 1: no such process in the series; legal are 4711"),
            (["s.json", "--pid", "x"], "--pid: x: legal are 1 to 4194304"),
            (["p.pb.gz", "second.pb.gz"], "2 profiles; legal are one profile and one series"),
            (["p.pb.gz", "--output", "/no/such/r.html"], "no such directory"),
            (["p.pb.gz", "--output", "text"], "text: exists; --force"),
            (["p.pb.gz", "--output", 300 * "x"], "x: File name too long"),
            (["p.pb.gz", "--output", "pipe", "--force"], "pipe: no regular file"),
        ):
            with self.subTest(words):
                code, errors = self.report(*words)
                self.assertEqual(code, 2)
                self.assertRegex(errors, rf"\Ahakmem: [^\n]*{line}[^\n]*\n\Z")
        self.assertEqual(Path("text").read_text(), "hello\n")


class Parts(unittest.TestCase):
    def setUp(self) -> None:
        self.profile = fake_stacks.profile(200)
        self.series = snapshot.parse_series(fake_series.text(fake_series.series(60)), "here")

    def test_flame_graph_sums(self) -> None:
        def check(node: dict[str, object]) -> None:
            children = node.get("c", [])
            assert isinstance(children, list) and isinstance(node["v"], list)
            for at, value in enumerate(node["v"]):
                self.assertLessEqual(sum(child["v"][at] for child in children), value)
            for child in children:
                check(child)

        tree = report_flame.tree(self.profile)
        self.assertEqual(tree["v"], [self.profile.total(what).bytes for what in ("live", "allocated", "peak")])
        check(tree)

    def test_series_is_split_by_process(self) -> None:
        """A number can be given again: in a container, each time."""
        told = [(7, 1000), (8, 500), (7, 2000), (7, 10), (8, 500), (7, 20)]
        series = [snapshot.Snapshot(pid=pid, unix_ms=10_000, uptime_ms=uptime) for pid, uptime in told]
        groups = [[(one.pid, one.uptime_ms) for one in group] for group in processes.split(series)]
        self.assertEqual(groups, [[(7, 1000), (7, 2000)], [(8, 500), (8, 500)], [(7, 10), (7, 20)]])
        chosen = processes.choose(series, None)
        self.assertEqual((chosen.series, chosen.others), ([series[0], series[2]], (8, 7)))

    def test_series_of_rounded_times_is_of_one_process(self) -> None:
        told = [(10_000, 1000), (10_000, 991), (11_003, 2003), (11_000, 2000), (11_500, 40)]
        series = [snapshot.Snapshot(pid=7, unix_ms=unix, uptime_ms=uptime) for unix, uptime in told]
        self.assertEqual(list(map(len, processes.split(series))), [4, 1])

    def test_thinned_series_keeps_the_peak_and_the_end(self) -> None:
        long = snapshot.parse_series(fake_series.text(fake_series.series(4000)), "here")
        kept = report_series.thinned(long)
        self.assertLessEqual(len(kept), 1501)
        self.assertEqual(max(one.parts_bytes for one in kept), max(one.parts_bytes for one in long))
        self.assertIs(kept[-1], long[-1])
        purged = report_series.chart(long)["purged"]
        self.assertAlmostEqual(sum(purged), report_series.purged_bytes(long), delta=4 << 20)

    def test_rounding_is_estimated_from_the_profile(self) -> None:
        rows = {row.size: row for row in report_classes.rows(self.series[-1], self.profile)}
        row = rows[48]  # the profile's blocks of 40 bytes
        self.assertEqual(row.requested_bytes, int(row.live_blocks * 48 * (40 / 48)))
        self.assertTrue(row.estimated)
        self.assertIsNone(rows[16].requested_bytes)
        told = fake_series.series(2)
        told[-1]["classes"][2]["requested_bytes"] = 1000
        exact = report_classes.rows(snapshot.parse_series(fake_series.text(told), "here")[-1], self.profile)
        self.assertEqual((exact[2].requested_bytes, exact[2].estimated), (1000, False))

    def test_vendored_files_are_as_published(self) -> None:
        lines = re.findall(r"^\| (\S+\.(?:js|css)) \| .* ([0-9a-f]{64}) \|$", (VENDOR / "README.md").read_text(), re.M)
        self.assertEqual(
            {name for name, _ in lines}, {file.name for file in VENDOR.iterdir() if file.suffix in (".js", ".css")}
        )
        for name, checksum in lines:
            self.assertEqual(hashlib.sha256((VENDOR / name).read_bytes()).hexdigest(), checksum, name)
