"""docs/memory.md: what it says of memory that comes back, of page faults and of huge pages."""

from __future__ import annotations

import functools
import re
import sys
import unittest
import unittest.mock
import xml.etree.ElementTree
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "python"), str(HERE)]

import fake  # noqa: E402

from hakmem_bench import curve_chart, figures, memory, memory_page, stats  # noqa: E402
from hakmem_bench.model import Peer, Result, Sample, TestResult  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
NO_NUMBER = re.compile(r"(?<![a-z])-?(nan|inf|None)(?![a-z])")
CASES = {
    "memory": fake.memory(),
    "everything": fake.everything(),
    "hakmem alone": fake.only(["hakmem"]),
    "no hakmem": fake.only(["glibc", "mimalloc"]),
    "interrupted": fake.interrupted(),
    "nothing good": fake.nothing_good(),
    "nothing": Result({}, []),
}


def setUpModule() -> None:
    """Rough intervals do for words."""
    patch = unittest.mock.patch.object(stats, "_RESAMPLES", 100)
    patch.start()
    unittest.addModuleCleanup(patch.stop)


@functools.cache
def page(case: str) -> str:
    return memory_page.memory_page(CASES[case], {"idle returned": "a | cause"})


def rows(text: str, heading: str) -> dict[str, list[str]]:
    """The first table below a heading: cells by the first."""
    part = text[text.index(f"{heading}\n") :]
    table = re.search(r"(?:^\|.*\n)+", part, re.MULTILINE)
    assert table is not None
    cells = [line.strip("| ").split(" | ") for line in table[0].splitlines()]
    return {line[0]: line[1:] for line in cells}


def sample_of(curve: list[list[float]], peak: int = 1000, freed: int = 800) -> Sample:
    return Sample("ok", peak_kib=peak, extra={"curve": curve, "freed_kib": freed})


class Idle(unittest.TestCase):
    def test_shares_are_of_the_freed_bytes_and_of_the_empty_pages(self) -> None:
        one = memory.idle(CASES["memory"].tests[0], "hakmem")
        assert one is not None
        self.assertAlmostEqual(one.bound, 765 / 900)
        self.assertAlmostEqual(one.returned, 0.99 * 765 / 900)
        self.assertAlmostEqual(one.returned_of_empty, 0.99)
        self.assertAlmostEqual(one.floor, (1000 - 765) * 1024)
        self.assertEqual((one.seconds, one.slept), (2.0, 10.0))

    def test_time_counts_from_the_peak_to_nine_tenths_of_the_fall(self) -> None:
        told = memory._seconds_to_return
        fall: list[list[float]] = [[0, 10], [2, 1000], [3, 700], [4, 540], [5, 500]]
        self.assertEqual(told(sample_of(fall)), 2)
        self.assertEqual(told(sample_of([[0, 10], [2, 1000], [2.1, 400], [12, 400]])), 2.1 - 2)
        late: list[list[float]] = [[0, 10], [1, 995], [2, 1000], [3, 1000], [4, 200]]
        self.assertEqual(told(sample_of(late)), 3, "what came a moment later was no peak of its own")
        self.assertIsNone(told(sample_of([[0, 10], [2, 1000], [9, 999]])), "next to nothing came back")
        self.assertIsNone(told(sample_of([[0, 10], [2, 1000], [9, 1200]])), "it grew")
        self.assertIsNone(told(Sample("ok", peak_kib=1000)))

    def test_runs_that_do_not_tell_have_no_figures(self) -> None:
        test = TestResult("idle", "g", "w", ["idle"], 1, True, {"hakmem": [sample_of([[0, 10], [1, 1000]])]})
        self.assertIsNone(memory.idle(test, "hakmem"))
        self.assertIsNone(memory.idle(test, "glibc"))


class Page(unittest.TestCase):
    def test_every_case_says_numbers_or_words(self) -> None:
        for case in CASES:
            with self.subTest(case):
                self.assertNotRegex(page(case), NO_NUMBER)

    def test_what_comes_back_stands_beside_its_bound(self) -> None:
        table = rows(page("memory"), "### idle")
        self.assertEqual(table["hakmem"], ["84.2 %", "85.0 %", "99.0 %", "2.00 s", "1000 MiB", "243 MiB", "50.0 MiB"])
        self.assertEqual(table["glibc"][:4], ["0.0 %", "85.0 %", "0.0 %", "–"])
        self.assertEqual(table["hoard"][0], "missing")
        self.assertIn("2 of 3 allocators return 1 % or more of what was freed: hakmem, mimalloc.", page("memory"))
        self.assertIn("Least is resident at the end with hakmem: 243 MiB.", page("memory"))
        self.assertIn("(MADV_FREE): mimalloc 2.00 MiB.", page("memory"))

    def test_why_is_told_only_where_hakmem_keeps_pages(self) -> None:
        self.assertNotIn("cause", page("memory"))
        result = fake.memory()
        result.tests[0].samples["hakmem"] = result.tests[0].samples["glibc"]
        self.assertIn(
            "Why hakmem keeps empty pages: a \\| cause.",
            memory_page.memory_page(result, {"idle returned": "a | cause"}),
        )
        self.assertIn("keeps empty pages: not yet looked into.", memory_page.memory_page(result, {}))

    def test_nobody_gives_back(self) -> None:
        result = fake.memory()
        for name in ("hakmem", "mimalloc"):
            result.tests[0].samples[name] = result.tests[0].samples["glibc"]
        self.assertIn("None of the 3 allocators returns 1 %", memory_page.memory_page(result, {}))

    def test_page_faults_are_those_of_a_round(self) -> None:
        table = rows(page("memory"), "## Memory that goes up and down")
        self.assertEqual(table["hakmem"][0], "10")
        self.assertEqual(table["glibc"][0], "1,000<br>0.010 (0.010 to 0.010)")
        self.assertEqual(table["mimalloc"][0], "0", "no ratio to nothing")
        self.assertEqual(table["glibc"][1], "2.00 µs<br>1.00 (1.00 to 1.00) tie")
        self.assertIn("Page faults a round: mimalloc 0, hakmem 10, glibc 1,000.", page("memory"))

    def test_what_did_not_end_or_is_missing_is_a_row(self) -> None:
        table = rows(page("memory"), "## The VM scenario: large blocks that come and go")
        self.assertEqual((table["mimalloc"][0], table["hoard"][0]), ("time-out", "missing"))
        self.assertIn("hoard is missing: no network", page("memory"))

    def test_tests_that_were_not_run_are_named(self) -> None:
        self.assertIn("Test idle-4-threads is missing: no \\<threads>.", page("memory"))
        for name in ("idle", "idle-4-threads", "oscillate", "vm"):
            self.assertIn(f"Test {name} is missing: not run.", page("nothing"))
        result = fake.memory()
        del result.tests[1].samples["glibc"]
        table = rows(memory_page.memory_page(result, {}), "## Memory that goes up and down")
        self.assertEqual(table["glibc"][0], "not run")

    def test_peaks_of_the_suite_are_those_of_the_benchmarks(self) -> None:
        mean = figures.Figures(CASES["everything"]).overall("glibc", "peak_kib")
        assert mean is not None
        row = rows(page("everything"), "## Peak memory over the suite")["glibc"]
        self.assertIn(figures.digits(mean.ratio.median), row[0])
        self.assertEqual(rows(page("everything"), "## Peak memory over the suite")["hoard"][0], "missing")
        behind = rows(page("everything"), "### Where hakmem needs more than 1.10 of the best peer")
        self.assertIn("not yet looked into", [cells[-1] for cells in behind.values()])


class HugePages(unittest.TestCase):
    def table(self, result: Result) -> dict[str, list[str]]:
        return rows(memory_page.memory_page(result, {}), "## Huge pages")

    def test_those_seen_count_and_page_faults_stand_in(self) -> None:
        table = self.table(CASES["memory"])
        self.assertEqual(table["mimalloc"][:2], ["yes", "4.00 MiB"])
        self.assertEqual(table["hakmem"], ["no (faults)", "–", "1000 MiB", "256,000", "4.00"])
        self.assertIn("In test idle mimalloc has them; hakmem has none.", page("memory"))
        result = fake.memory()
        for sample in result.tests[0].samples["mimalloc"]:
            sample.extra.pop("huge_kib", None)
        self.assertEqual(self.table(result)["mimalloc"][0], "yes (faults)")
        for sample in result.tests[0].samples["mimalloc"]:
            sample.extra["huge_kib"] = 0
        self.assertEqual(self.table(result)["mimalloc"][0], "no", "what was seen comes before what faults suggest")

    def test_the_mode_says_who_asked(self) -> None:
        result = fake.memory()
        for mode, words in (
            ("always [madvise] never", "madvise. The kernel gives huge pages where a program asks"),
            ("[always] madvise never", "always. The kernel gives huge pages wherever they fit"),
            ("always madvise [never]", "never. The kernel gives no huge pages"),
            ("unknown", "not in the result."),
        ):
            result.provenance["huge pages"] = mode
            self.assertIn(f"This machine's mode is {words}", memory_page.memory_page(result, {}))


class Picture(unittest.TestCase):
    def test_pictures_are_svg_of_their_own(self) -> None:
        for case in CASES:
            with self.subTest(case):
                picture = memory_page.picture(CASES[case])
                self.assertEqual(xml.etree.ElementTree.fromstring(picture).tag, f"{SVG}svg")
                self.assertNotRegex(picture, NO_NUMBER)
                self.assertNotRegex(picture.replace("http://www.w3.org", ""), r"https?:|url\(|@import|<script")

    def test_every_allocator_has_a_line_and_a_name(self) -> None:
        root = xml.etree.ElementTree.fromstring(memory_page.picture(CASES["everything"]))
        labels = [text.text or "" for text in root.iter(f"{SVG}text") if text.get("class") == "label"]
        self.assertEqual(sorted(label.split()[0] for label in labels), sorted(fake.NATURES))
        self.assertEqual(labels[-1].split()[0], "hakmem", "on top")
        self.assertEqual(len([line for line in root.iter(f"{SVG}polyline")]), 2 * len(fake.NATURES))

    def test_what_has_no_curve_says_why(self) -> None:
        words = [
            text.text
            for text in xml.etree.ElementTree.fromstring(memory_page.picture(CASES["memory"])).iter(f"{SVG}text")
        ]
        self.assertIn("no <threads>", words)
        self.assertIn("hakmem's least without moving blocks: 235 MiB", words)

    def test_more_peers_than_colours_differ(self) -> None:
        result = fake.memory()
        result.peers += [Peer(f"peer-{index}", "", "") for index in range(15)]
        for peer in result.peers[4:]:
            result.tests[0].samples[peer.name] = result.tests[0].samples["glibc"]
        styles = re.findall(r'class="line ([^"]+)"', memory_page.picture(result))
        self.assertEqual(len(styles), 18)
        self.assertEqual(len(styles), len(set(styles)))

    def test_names_keep_apart_and_in_order(self) -> None:
        self.assertEqual(curve_chart.spread([10, 50], 16, 0, 100), [10, 50])
        self.assertEqual(curve_chart.spread([50, 50, 50], 10, 0, 100), [40, 50, 60])
        self.assertEqual(curve_chart.spread([95, 99], 16, 0, 100), [84, 100])
        self.assertEqual(curve_chart.spread([1, 2], 16, 0, 100), [0, 16])
        self.assertEqual(curve_chart.spread([50, 50, 50], 80, 0, 100), [0, 50, 100])
        self.assertEqual(curve_chart.spread([], 16, 0, 100), [])

    def test_ticks_are_round_and_few(self) -> None:
        self.assertEqual(curve_chart.ticks(350), [0, 50, 100, 150, 200, 250, 300, 350])
        for highest in (0.03, 1, 9.99, 10.5, 77, 1234):
            found = curve_chart.ticks(highest)
            self.assertTrue(3 < len(found) <= 9 and found[-1] <= highest, highest)


if __name__ == "__main__":
    unittest.main()
