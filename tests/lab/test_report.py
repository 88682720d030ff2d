"""What the table, the page and docs/benchmarks.md say, of results that hold every case."""

from __future__ import annotations

import functools
import io
import re
import sys
import unittest
import unittest.mock
import xml.etree.ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "python"), str(HERE)]

import fake  # noqa: E402
from rich.console import Console  # noqa: E402

from hakmem_bench import charts, figures, markdown, page, stats, table  # noqa: E402
from hakmem_bench.model import Peer, Result, Sample, TestResult  # noqa: E402
from hakmem_bench.notes import references  # noqa: E402

VOID = {"meta", "br", "input", "link", "img", "hr", "wbr"}
NO_NUMBER = re.compile(r"(?<![a-z])-?(nan|inf|None)(?![a-z])")


def setUpModule() -> None:
    """Rough intervals do for words."""
    patch = unittest.mock.patch.object(stats, "_RESAMPLES", 100)
    patch.start()
    unittest.addModuleCleanup(patch.stop)


def printed(result: Result, width: int) -> str:
    out = io.StringIO()
    table.print_result(result, Console(file=out, width=width))
    return out.getvalue()


def compared(a: Result, b: Result) -> str:
    out = io.StringIO()
    table.compare_results(a, b, Console(file=out, width=120))
    return out.getvalue()


def page_text(result: Result) -> str:
    return markdown.benchmarks_page(result, {})


def ratio_of(*ratios: float) -> TestResult:
    """A test in which hakmem's time is that many times glibc's, in each repetition."""
    samples = {
        "hakmem": [Sample("ok", seconds=ratio, peak_kib=100) for ratio in ratios],
        "glibc": [Sample("ok", seconds=1, peak_kib=100) for _ in ratios],
    }
    return TestResult("one", "group", "what", ["one"], 1, False, samples)


class Balance(HTMLParser):
    """Every element is closed, in order; ids are there once; what is linked to exists."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.errors: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href", "action", "srcset"):
                self.links.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.errors.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text.append(data)


def parsed(html: str) -> Balance:
    balance = Balance()
    balance.feed(html)
    balance.close()
    return balance


CASES = {
    "everything": fake.everything(),
    "one peer": fake.only(["hakmem", "glibc"]),
    "hakmem alone": fake.only(["hakmem"]),
    "no hakmem": fake.only(["glibc", "mimalloc"]),
    "interrupted": fake.interrupted(),
    "nothing good": fake.nothing_good(),
    "nothing": Result({}, []),
}
MAKERS: dict[str, Callable[[Result], str]] = {
    "page": page.render,
    "text": lambda result: "".join(parsed(page.render(result)).text),
    "markdown": page_text,
    "picture": markdown.picture,
    "comparison": lambda result: compared(result, result),
}


@functools.cache
def written(case: str, output: str) -> str:
    """One of MAKERS, or a width for the terminal; each is made once."""
    make = MAKERS.get(output) or (lambda result: printed(result, int(output)))
    return make(CASES[case])


class Cases(unittest.TestCase):
    def test_every_output_of_every_case_says_numbers_or_words(self) -> None:
        for case in CASES:
            for output in ("100", "text", "markdown", "comparison"):
                with self.subTest(case=case, output=output):
                    self.assertNotRegex(written(case, output), NO_NUMBER)

    def test_pages_are_balanced_and_need_no_network(self) -> None:
        for case in CASES:
            with self.subTest(case=case):
                html = written(case, "page")
                balance = parsed(html)
                self.assertEqual(balance.errors, [])
                self.assertEqual(balance.open, [])
                self.assertEqual(len(balance.ids), len(set(balance.ids)))
                self.assertEqual([link for link in balance.links if not link.startswith("#")], [])
                self.assertLessEqual({link[1:] for link in balance.links}, set(balance.ids))
                self.assertNotRegex(html, r"https?:|url\(|@import|<script|<link|nan%|inf%")

    def test_pictures_are_svg_of_their_own(self) -> None:
        for case in CASES:
            with self.subTest(case=case):
                picture = written(case, "picture")
                root = xml.etree.ElementTree.fromstring(picture)
                self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
                self.assertNotRegex(picture, NO_NUMBER)

    def test_the_picture_has_every_peer_once(self) -> None:
        root = xml.etree.ElementTree.fromstring(written("everything", "picture"))
        labels = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text") if text.get("class") == "label"]
        self.assertEqual(sorted(label or "" for label in labels), sorted(fake.NATURES))

    def test_each_output_names_every_test_and_peer(self) -> None:
        result = CASES["everything"]
        names = [test.name for test in result.tests] + [peer.name for peer in result.peers]
        for output in ("100", "160", "page", "markdown"):
            for name in names:
                # The terminal breaks the names of columns at dashes, but names peers whole in the summary.
                self.assertIn(name, written("everything", output))

    def test_failures_are_listed(self) -> None:
        for output in (written("everything", kind) for kind in ("160", "text", "markdown")):
            self.assertIn("hoard: missing: no network", output)
            self.assertIn("larson-8: rpmalloc: signal 11 (2 of 7 runs)", output)
            self.assertIn("vectors-in-place: scudo: no end after 60 s (7 of 7 runs)", output)
            self.assertIn("node: every allocator: exit 127: node: not found (7 of 7 runs)", output)
            self.assertIn("random-mixed-256, counted: scudo: signal 4", output)

    def test_a_status_is_text_and_not_markup(self) -> None:
        self.assertIn("cannot &lt;allocate&gt; &amp; die", written("everything", "page"))
        self.assertNotIn("<allocate>", written("everything", "page"))
        self.assertIn("cannot \\<allocate> & die", written("everything", "markdown"))

    def test_an_interrupted_run_says_so(self) -> None:
        for output in ("100", "page", "markdown"):
            self.assertIn("interrupted", written("interrupted", output))
            self.assertNotIn("interrupted", written("everything", output))

    def test_no_good_pair_says_so(self) -> None:
        for case in ("nothing good", "hakmem alone", "no hakmem"):
            for output in ("100", "page", "markdown"):
                self.assertIn("there are no ratios", written(case, output))

    def test_tables_keep_to_the_width_of_the_terminal(self) -> None:
        for width in (80, 100, 160, 250):
            lines = written("everything", str(width)).splitlines()
            self.assertLessEqual(max(map(len, lines)), width)
            self.assertNotIn("…", "".join(lines))

    def test_without_ratios_the_page_draws_none(self) -> None:
        for case in CASES:
            html = written(case, "page")
            drawn = case in ("everything", "one peer", "interrupted")
            for part in ('class="lanes"', 'class="card"', 'class="scatter"', 'href="#ratios"'):
                self.assertEqual(part in html, drawn, f"{case}: {part}")

    def test_curves_are_drawn_of_those_that_tell_one(self) -> None:
        drawn = charts.curves(figures.Figures(CASES["everything"]))
        self.assertEqual([one.test for one in drawn], ["idle"])
        self.assertEqual([curve.name for curve in drawn[0].curves], list(fake.NATURES))
        self.assertEqual(drawn[0].curves[0].given_back, "85 %")
        self.assertEqual(written("everything", "page").count('<figure class="curve'), len(fake.NATURES))

    def test_time_of_a_test_of_memory_is_not_told(self) -> None:
        text = written("everything", "markdown")
        self.assertIn("## memory: peak memory", text)
        self.assertNotIn("## memory: time", text)


class Words(unittest.TestCase):
    def test_figures_of_googles_without_its_caches_are_doubtful(self) -> None:
        """The lab said its version without the word "crate" while it did not ask whether they are on."""
        for version, doubtful in (("0.1.14", True), ("crate 0.1.14", False)):
            result = fake.everything()
            result.peers.append(Peer("google-tcmalloc", version, "crates.io libtcmalloc-sys"))
            cautions = figures.cautions(figures.Figures(result))
            self.assertEqual(any(line.startswith("google-tcmalloc was built without") for line in cautions), doubtful)

    def test_a_tie_is_marked_and_only_a_tie(self) -> None:
        for ratios, tie in (((0.9, 1.1, 0.95, 1.05, 1.0, 0.97, 1.02), True), ((0.5,) * 7, False), ((2.0,) * 7, False)):
            result = fake.only(["hakmem", "glibc"])
            test = ratio_of(*ratios)
            test.memory_only = False
            for sample in test.samples["hakmem"]:
                sample.peak_kib = 50
            result.tests, result.counts = [test], []
            row = next(line for line in printed(result, 160).splitlines() if line.startswith("one "))
            self.assertEqual("tie" in row, tie, row)
            row = next(line for line in page_text(result).splitlines() if line.startswith("| one |"))
            self.assertEqual("tie" in row, tie, row)
            lane = page._ratios(figures.Figures(result), "seconds").groups["group"][0]
            self.assertEqual(lane.marks[0].kind == "tie", tie)

    def test_colour_follows_the_interval(self) -> None:
        self.assertEqual(figures.kind(stats.Ratio(0.9, 0.8, 0.99, 7)), "better")
        self.assertEqual(figures.kind(stats.Ratio(1.1, 1.01, 1.2, 7)), "worse")
        self.assertEqual(figures.kind(stats.Ratio(1.1, 0.99, 1.2, 7)), "tie")

    def test_the_best_peer_is_the_one_hakmem_does_worst_against(self) -> None:
        result = fake.only(["hakmem", "glibc", "mimalloc"])
        test = ratio_of(*[0.8] * 7)
        test.samples["mimalloc"] = [Sample("ok", seconds=0.5, peak_kib=300) for _ in range(7)]
        result.tests = [test]
        best = figures.Figures(result).best(test, "seconds")
        assert best is not None
        self.assertEqual((best[0], round(best[1].median, 3)), ("mimalloc", 1.6))
        memory = figures.Figures(result).best(test, "peak_kib")
        assert memory is not None
        self.assertEqual(memory[0], "glibc")

    def test_behind_is_above_the_limit_and_not_start_up(self) -> None:
        result = fake.only(["hakmem", "glibc"])
        tests = []
        for name, ratio in (("a", 1.09), ("b", 1.12), ("c", 1.5), ("start-up", 3.0)):
            test = ratio_of(*[ratio] * 7)
            test.name = name
            tests.append(test)
        result.tests = tests
        found = [name for name, _, _, _ in markdown.behind(figures.Figures(result), "seconds")]
        self.assertEqual(found, ["c", "b"])
        text = markdown.benchmarks_page(result, {"c": "A cause | and a cure"})
        self.assertIn("| c | time | glibc | **1.50 (1.50 to 1.50)** | A cause \\| and a cure |", text)
        self.assertIn("| b | time | glibc | **1.12 (1.12 to 1.12)** | not yet looked into |", text)

    def test_what_a_reason_refers_to_is_there(self) -> None:
        notes = {
            "c": "as d, and more",
            "d": "as many as b: a cause",
            "b": "its own",
            "c memory": "as d",
            "d memory": "as large as it is; as c",
        }
        told = "- d, time: as many as b: a cause\n- b, time: its own"
        self.assertEqual(references(notes, ["c"]), f"\n\nWhat the reasons refer to:\n\n{told}")
        self.assertIn("- d, peak memory: as large as it is; as c", references(notes, ["c memory"]))
        self.assertEqual(references(notes, ["b"]), "")
        self.assertEqual(references(notes, ["c", "d", "b"]), "")

    def test_groups_have_means_of_their_own(self) -> None:
        result = fake.only(["hakmem", "glibc"])
        tests = []
        for name, group, ratio in (("a", "small", 0.5), ("b", "small", 0.5), ("c", "programs", 1.0)):
            test = ratio_of(*[ratio] * 7)
            test.name, test.group = name, group
            tests.append(test)
        result.tests = tests
        section = page_text(result).partition("## By group")[2].partition("\n## ")[0]
        time = section.partition("### Time")[2].partition("### Peak memory")[0]
        self.assertIn("| small | 2 | 0.50 (0.50 to 0.50) |", time)
        self.assertIn("| programs | 1 | 1.00 (1.00 to 1.00) tie |", time)

    def test_criteria_of_the_original_are_in_its_units(self) -> None:
        result = fake.only(["hakmem", "glibc"])
        rate, vm, larson = ratio_of(*[0.02] * 7), ratio_of(*[15.5] * 7), ratio_of(*[0.004] * 7)
        rate.name, vm.name, larson.name = "random-mixed-256", "vm", "larson-minute"
        for sample in larson.samples["hakmem"]:
            sample.wall = 60
        larson.samples["hakmem"][3] = Sample("signal 11")
        result.tests = [rate, vm, larson]
        lines = page_text(result).splitlines()
        rows = {line.split(" | ")[0][2:]: line.split(" | ")[1:] for line in lines if line.startswith("| ")}
        self.assertEqual(rows["random_mixed, 256 bytes"][1:3], ["50.0 M operations/s", "1.00 M operations/s"])
        self.assertEqual(rows["random_mixed, 128 bytes"][1], "not run")
        self.assertEqual(rows["VM scenario, 2 MiB"][1], "15.5 µs")
        self.assertEqual(rows["larson, 8 threads"][1], "6 of 7 runs of 60.0 s good, 250 M operations/s")

    def test_few_pairs_are_owned_up_to(self) -> None:
        result = fake.only(["hakmem", "glibc"])
        result.tests = [ratio_of(*[0.5] * 5)]
        self.assertIn("come from 5 pairs only", printed(result, 100))
        result.tests = [ratio_of(*[0.5] * 6)]
        self.assertNotIn("come from", printed(result, 100))

    def test_tests_of_one_run_are_not_what_few_pairs_means(self) -> None:
        result = fake.only(["hakmem", "glibc"])
        once = ratio_of(0.5)
        once.name, once.memory_only = "idle", True
        result.tests = [ratio_of(*[0.5] * 7), once]
        self.assertEqual(figures.Figures(result).pairs(), (7, 7))

    def test_numbers_have_three_digits_and_a_unit(self) -> None:
        self.assertEqual(figures.duration(0.0123), "12.3 ms")
        self.assertEqual(figures.duration(0), "0 ns")
        self.assertEqual(figures.duration(0.0000155), "15.5 µs")
        self.assertEqual(figures.size(1536), "1.50 MiB")
        self.assertEqual(figures.size(900), "900 KiB")
        written = [figures.digits(number) for number in (0.044, 0.5, 12.34, 123.4)]
        self.assertEqual(written, ["0.044", "0.50", "12.3", "123"])


class Compare(unittest.TestCase):
    def result(self, *ratios: float) -> Result:
        result = fake.only(["hakmem", "glibc"])
        result.tests, result.counts = [ratio_of(*ratios)], []
        return result

    def line(self, a: Result, b: Result) -> str:
        return next(line for line in compared(a, b).splitlines() if line.startswith("one "))

    def test_a_change_beyond_the_intervals_is_marked(self) -> None:
        slow, fast = self.result(*[0.8] * 7), self.result(*[0.6] * 7)
        self.assertRegex(self.line(slow, fast), r"0\.75 +better")
        self.assertRegex(self.line(fast, slow), r"1\.33 +worse")

    def test_a_change_within_the_intervals_is_not(self) -> None:
        a, b = self.result(*[0.5, 0.6, 0.7, 0.8, 0.9] * 2), self.result(*[0.55, 0.65, 0.75, 0.85, 0.95] * 2)
        self.assertNotRegex(self.line(a, b), "better|worse")

    def test_of_few_pairs_nothing_is_said(self) -> None:
        self.assertRegex(self.line(self.result(*[0.8] * 5), self.result(*[0.6] * 7)), r"0\.75 *$")

    def test_drift_of_the_machine_cancels(self) -> None:
        before, after = self.result(*[0.8] * 7), self.result(*[0.8] * 7)
        for samples in after.tests[0].samples.values():
            for sample in samples:
                sample.seconds *= 3
        self.assertRegex(self.line(before, after), r" 1\.00 *$")

    def test_what_cannot_be_compared_is_named(self) -> None:
        a, b = self.result(*[0.8] * 7), self.result(*[0.8] * 7)
        b.tests[0].command = ["one", "--more"]
        self.assertIn("one: other parameters", compared(a, b))
        b.tests[0].name = "two"
        self.assertIn("one: only in the first", compared(a, b))
        self.assertIn("two: only in the second", compared(a, b))

    def test_a_result_of_another_checkout_is_compared(self) -> None:
        """Of today, and of when the path of a script stood in results."""
        commands = [[f"{where}/x.py", "12"] for where in ("/a/bench/programs", "/b c/bench/programs", "{scripts}")]
        for first in commands:
            for second in commands:
                a, b = self.result(*[0.8] * 7), self.result(*[0.8] * 7)
                a.tests[0].command, b.tests[0].command = ["python3", *first], ["python3", *second]
                self.assertNotIn("other parameters", compared(a, b))

    def test_what_was_measured_otherwise_is_not_judged(self) -> None:
        for name in ("workloads", "peaks"):
            for told in ("another", None):
                slow, fast = self.result(*[0.8] * 7), self.result(*[0.6] * 7)
                fast.provenance[name] = told or ""
                if told is None:
                    del slow.provenance[name], fast.provenance[name]
                text = compared(slow, fast)
                self.assertRegex(text, rf"workloads or measuring differ \({name}: .*\): no change is judged")
                self.assertRegex(self.line(slow, fast), r" 0\.75 *$")
                self.assertNotIn("better", text)

    def test_without_the_reference_it_says_so(self) -> None:
        a, b = self.result(*[0.8] * 7), self.result(*[0.8] * 7)
        b.tests[0].samples["glibc"] = [Sample("signal 6") for _ in range(7)]
        self.assertIn("no pair with glibc", self.line(a, b))


class Axes(unittest.TestCase):
    def test_one_is_a_tick_and_ticks_are_few(self) -> None:
        for low, high in ((0.9, 1.2), (0.3, 3), (0.001, 1.5), (1, 1), (1e-9, 1e9), (0.99, 1.01)):
            axis = charts.Axis.around([low, high], 0.05)
            self.assertIn(1, axis.ticks)
            self.assertLessEqual(len(axis.ticks), 7)
            self.assertTrue(all(0 <= axis.at(tick) <= 1 for tick in axis.ticks))

    def test_beyond_the_end_is_the_end(self) -> None:
        axis = charts.Axis.around([0.5, 2], 0.05)
        self.assertEqual((axis.at(0), axis.at(100)), (0, 1))

    def test_labels_stay_within_the_frame(self) -> None:
        for width, height in ((620, 470), (360, 380)):
            chart = charts.scatter(figures.Figures(fake.everything()), width, height)
            assert chart is not None
            for point in chart.points:
                self.assertTrue(chart.frame.left <= point.label_x <= chart.frame.right, point.name)
                self.assertTrue(chart.frame.top <= point.label_y <= chart.frame.bottom, point.name)


if __name__ == "__main__":
    unittest.main()
