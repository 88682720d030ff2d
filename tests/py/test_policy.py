"""What was learned, as files: how the library uses them, and `hakmem policy` and `run --policy`."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from support import LAUNCHER, RELEASE, ROOT

sys.path.insert(0, str(ROOT / "python"))

from hakmem_bench import learning_log  # noqa: E402
from hakmem_cli import modes, policy_lines, policy_merge, policy_text, policy_words  # noqa: E402
from hakmem_cli.policy_lines import Line  # noqa: E402
from hakmem_cli.policy_text import Part  # noqa: E402
from hakmem_cli.say import CannotError  # noqa: E402

LIBRARY = RELEASE / "libhakmem.so"
PYTHON = os.path.realpath(sys.executable)
FIRST = "hakmem-policy 1\n"

# Takes and frees large blocks, one after another.
PROGRAM = "for i in range(30): bytearray(1 << 20)"

# Long enough for an epoch.
LEARNS = """
import time
end = time.monotonic() + 4
while time.monotonic() < end:
    for i in range(100):
        bytearray(1 << 20)
"""

# Lines of mode research: an epoch of a policy that is not the champion, and what such a policy is.
CHALLENGES = r"hakmem: epoch: .*, arm (\d+) of champion (?!\1,)\d+, "
SAYS = r"hakmem: arm (\d+), unlike champion \d+: [a-z_]+.* is (\d+) .+ instead of (?!\2$)\d+$"


def build_id() -> str:
    """Of the interpreter, as the statistics' reader finds it; "" if it has none."""
    told = subprocess.run(["readelf", "-n", PYTHON], capture_output=True, text=True, check=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", told)
    return found[1] if found else ""


def own(*lines: str, key: str = "", evidence: tuple[int, int, int] = (5, 6, 7)) -> str:
    key = key or (f"build-id {build_id()}" if build_id() else f"size {Path(PYTHON).stat().st_size}")
    epochs, seconds, saved = evidence
    head = f"program {PYTHON}\n{key}\nepochs {epochs}\nseconds {seconds}\nsaved {saved}\n"
    return head + "".join(f"{line}\n" for line in lines) + "end\n"


class Files(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.directory = Path(held.name)
        self.path = self.directory / "policy"

    def run_with(self, program: str = PROGRAM, **more: str) -> tuple[dict[str, Any], str]:
        """The statistics at its end, and what it said."""
        report = self.directory / "report"
        report.unlink(missing_ok=True)
        base = {name: value for name, value in os.environ.items() if not name.startswith("HAKMEM_")}
        done = subprocess.run(
            [PYTHON, "-c", program],
            env={**base, "LD_PRELOAD": str(LIBRARY), "HAKMEM_STATS": "exit", "HAKMEM_REPORT": str(report), **more},
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=True,
        )
        return json.loads(report.read_text()), done.stderr


class Library(Files):
    def with_policy(self, text: str, **more: str) -> tuple[dict[str, Any], str]:
        self.path.write_text(text)
        return self.run_with(HAKMEM_POLICY=str(self.path), **more)

    def test_starts_warm(self) -> None:
        stats, said = self.run_with()
        self.assertGreater(stats["counters"]["large_from_bigcache"], 20)
        self.assertEqual((stats["knobs"], said), ([], ""))
        stats, said = self.with_policy(FIRST + own("knob bigcache_bytes 0", "knob bigcache_ms[3] 7"))
        self.assertEqual((stats["counters"]["large_from_bigcache"], said), (0, ""))
        self.assertEqual(stats["remembered"], {"epochs": 5, "seconds": 6, "saved_ppm": 7})
        self.assertEqual(
            stats["knobs"],
            [
                {"name": "bigcache_bytes", "value": 0, "of_mode": 64 << 20, "pinned": False},
                {"name": "bigcache_ms", "index": 3, "value": 7, "of_mode": 1000, "pinned": False},
            ],
        )

    def test_the_environment_comes_before_it(self) -> None:
        stats, _ = self.with_policy(FIRST + own("knob purge_ms 7"), HAKMEM_PURGE="delay=20", HAKMEM_MODE="fast")
        self.assertEqual(
            [row for row in stats["knobs"] if row["name"] == "purge_ms"],
            [{"name": "purge_ms", "value": 20, "of_mode": 10000, "pinned": True}],
        )
        self.assertEqual(stats["mode"], "fast")

    def test_that_of_others_is_none(self) -> None:
        others = "program /usr/bin/other\nbuild-id 0123\nknob bigcache_bytes 0\nend\n"
        stats, said = self.with_policy(FIRST + others)
        self.assertEqual((stats["knobs"], said), ([], ""))
        self.assertNotIn("remembered", stats)
        stats, said = self.with_policy(FIRST + own("knob bigcache_bytes 0", key="build-id 0123"))
        self.assertEqual(stats["knobs"], [])
        self.assertEqual(
            said, f"hakmem: warning: {self.path}: learned by another build of {PYTHON}; nothing is loaded\n"
        )

    def test_what_cannot_be_read_gets_one_line(self) -> None:
        stats, said = self.run_with(HAKMEM_POLICY=str(self.directory))
        self.assertEqual(stats["knobs"], [])
        self.assertEqual(
            said, f"hakmem: warning: {self.directory}: cannot be read, error {errno.EISDIR}; nothing is loaded\n"
        )

    def test_damaged_ones_get_one_line(self) -> None:
        stats, said = self.with_policy(FIRST + own("knob bigcache_bytes 0", "knob purge_ms 60001"))
        self.assertEqual(stats["knobs"], [])
        self.assertEqual(said, f"hakmem: warning: {self.path}: line 8: purge_ms is 0 to 60000; nothing is loaded\n")

    def test_the_tools_refuse_what_the_library_refuses(self) -> None:
        for line in WRONG:
            with self.subTest(line):
                text = FIRST + own(line)
                _, said = self.with_policy(text)
                with self.assertRaises(CannotError) as refused:
                    policy_text.parse(text, str(self.path))
                self.assertEqual(said, f"hakmem: warning: {refused.exception}; nothing is loaded\n")

    def test_the_tools_take_what_the_library_takes(self) -> None:
        text = FIRST + own(*(line for limits in LIMITS for line in limits))
        _, said = self.with_policy(text)
        self.assertEqual(said, "")
        self.assertEqual(len(policy_text.parse(text, "x")[0].lines), sum(map(len, LIMITS)))

    def test_none_is_told_only_if_nothing_learns(self) -> None:
        _, said = self.run_with(HAKMEM_POLICY=str(self.path))
        self.assertEqual(
            said,
            f"hakmem: warning: {self.path}: no such file, or an empty one, and nothing learns; nothing is loaded\n",
        )
        _, said = self.run_with(HAKMEM_POLICY=str(self.path), HAKMEM_MODE="learning")
        self.assertEqual(said, "")

    def test_what_is_learned_is_there_the_next_time(self) -> None:
        """It begins with what it had, and the evidence adds up; what others have learned stays."""
        others = "program /usr/bin/other\nbuild-id 0123\nepochs 1\nend\n"
        self.path.write_text(FIRST + others + own(evidence=(1000, 50, 0)))
        more = {"HAKMEM_POLICY": str(self.path), "HAKMEM_MODE": "learning"}
        stats, said = self.run_with(LEARNS, **more)
        self.assertEqual((stats["remembered"]["epochs"], said), (1000, ""))
        learned = stats["learner"]["epochs"]
        self.assertGreater(learned, 0)
        saved = policy_text.read(self.path)
        self.assertEqual({part.path: part.epochs for part in saved}, {"/usr/bin/other": 1, PYTHON: 1000 + learned})
        stats, _ = self.run_with(LEARNS, **{**more, "HAKMEM_LEARN": "observe"})
        self.assertEqual(stats["remembered"]["epochs"], 1000 + learned)
        self.assertEqual(policy_text.read(self.path), saved)  # who only observes saves nothing

    def test_research_writes_decisions(self) -> None:
        report = self.directory / "report"
        base = {name: value for name, value in os.environ.items() if not name.startswith("HAKMEM_")}
        environment = {**base, "LD_PRELOAD": str(LIBRARY), "HAKMEM_MODE": "research", "HAKMEM_REPORT": str(report)}
        self.path.write_text(FIRST + own("knob bigcache_bytes 0"))
        environment["HAKMEM_POLICY"] = str(self.path)
        subprocess.run([PYTHON, "-c", LEARNS], env=environment, timeout=60, check=True)
        lines = report.read_text().splitlines()
        self.assertEqual(sum(line.startswith("hakmem: route ") for line in lines), 1000)
        self.assertTrue([line for line in lines if re.match(r"hakmem: learner: \d+ ms: [a-z]", line)])
        challengers = {found[1] for line in lines if (found := re.match(CHALLENGES, line))}
        self.assertEqual({found[1] for line in lines if (found := re.match(SAYS, line))}, challengers)
        self.assertTrue(challengers)
        series = learning_log.series(report.read_text())  # as the lab reads it
        self.assertGreater(series["epochs"], 0)
        self.assertGreater(sum(ns for _, ns, _ in series["costs"]), 0)

    def test_a_file_is_made(self) -> None:
        stats, said = self.run_with(LEARNS, HAKMEM_POLICY=str(self.path), HAKMEM_LEARN="on")
        (part,) = policy_text.read(self.path)
        self.assertEqual((part.path, part.build_id, said), (PYTHON, build_id(), ""))
        self.assertEqual(part.epochs, stats["learner"]["epochs"])
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)


# Each knob's limits, with and without an index; what a class and a site may be.
LIMITS = (
    *(
        (f"knob {name} {knob.least}", f"knob {name}{'[0]' if knob.count > 1 else ''} {knob.most}")
        for name, knob in policy_lines.KNOBS.items()
    ),
    *((f"knob {name}[{knob.count - 1}] {knob.most}",) for name, knob in policy_lines.KNOBS.items() if knob.count > 1),
    ("class 16 evidence 0", f"class 32768 evidence {2**64 - 1}"),
    ("site 0x1 keep 0", "site 0xffffffffffffffff keep 8", "site 0x2 keep 1", "site 0x3 keep 2", "site 0x4 keep 4"),
)
WRONG = (
    *(f"knob {name} {knob.most + 1}" for name, knob in policy_lines.KNOBS.items()),
    *(f"knob {name} {knob.least - 1}" for name, knob in policy_lines.KNOBS.items() if knob.least > 0),
    *(f"knob {name}[{knob.count}] {knob.most}" for name, knob in policy_lines.KNOBS.items()),
    "knob",
    "knob purge 1",
    "knob purge_ms",
    "knob purge_ms 1\r",
    "knob purge_ms 1 2",
    "knob bigcache_ms[1 5",
    "knob bigcache_ms[] 5",
    "knob bigcache_ms[x] 5",
    "class",
    "class 32784 evidence 1",
    "class 1000 evidence 1",
    "class 0 evidence 1",
    "class 1040",
    "class 1040 seen 1",
    "class 1040 evidence many",
    "class 1040 evidence 1 2",
    "site",
    "site 12 keep 1",
    "site 0x0 keep 1",
    "site 0x12345678901234567 keep 1",
    "site 0xAB keep 1",
    "site 0x1 kept 1",
    "site 0x1 keep 3",
    "site 0x1 keep 16",
    "site 0x1 keep",
    "site 0x1 keep 1 2",
)
DAMAGED = (
    "",
    "# only this\n",
    "hakmem-policy 2\n",
    " " + FIRST,
    "\x7fELF",
    FIRST + "knob purge_ms 1\n",
    FIRST + "program bin/a\n",
    FIRST + "program\n",
    FIRST + "program /a\nknob purge_ms 1\n",
    FIRST + "program /a\nbuild-id\n",
    FIRST + "program /a\nbuild-id 0xAB\n",
    FIRST + "program /a\nsize -1\n",
    FIRST + "program /a\nsize 1\nbuild-id a\n",
    FIRST + "program /a\nsize 1\nprogram /b\n",
    FIRST + "program /a\nsize 1\n",
    FIRST + "program /a\nsize 1\nepochs x\nend\n",
    FIRST + "program /a\nsize 1\nsaved 1000001\nend\n",
    FIRST + "program /a\nsize 1\nend of it\n",
    FIRST + "program /a\nsize 1\nknob purge_ms 1 2\nend\n",
    FIRST + "program /a\nsize 1\nknobs purge_ms 1\nend\n",
)


class Text(unittest.TestCase):
    def test_damaged_here_as_in_the_library(self) -> None:
        for text in DAMAGED:
            with self.subTest(text), self.assertRaisesRegex(CannotError, r"^x: line \d+: "):
                policy_text.parse(text, "x")

    def test_read_and_written(self) -> None:
        text = FIRST + "#c\n\n program /a b#c\n size 7\nepochs 3\nknob purge_ms 20 # why\n\tknob bigcache_ms[2] 3\nend"
        (part,) = policy_text.parse(text, "x")
        self.assertEqual((part.path, part.size, part.epochs, part.key), ("/a b#c", 7, 3, ("/a b#c", "7")))
        self.assertEqual(part.lines, [Line("knob", "purge_ms", "20", "why"), Line("knob", "bigcache_ms[2]", "3")])
        again = policy_text.parse(policy_text.text_of([part]), "x")
        self.assertEqual(again, [part])

    def test_every_knob_has_words(self) -> None:
        source = (ROOT / "src" / "config" / "knobs.c").read_text()
        names = re.findall(r'\[KNOB_\w+\] = \{"(\w+)"', source)
        self.assertEqual(sorted(policy_words.KNOBS), sorted(names))
        for name in names:
            index = "[0]" if policy_words.KNOBS[name][1] else ""
            (sentence,) = policy_words.knob_sentences([Line("knob", f"{name}{index}", "64")])
            self.assertRegex(sentence, r"^[A-Z].*\.$")

    def test_modes_are_the_library_s(self) -> None:
        header = (ROOT / "src" / "config" / "policy.h").read_text()
        names = re.search(r"enum mode \{ (.*), MODES \};", header)
        assert names is not None
        self.assertEqual([f"MODE_{name.upper()}" for name in modes.MODES], names[1].split(", "))

    def test_sentences(self) -> None:
        def say(*lines: str) -> list[str]:
            return policy_words.sentences(Part("/a", lines=[Line(*line.split(maxsplit=2)) for line in lines]))

        self.assertEqual(say(), ["Nothing was found that is better than the mode's own values."])
        self.assertEqual(
            say(
                "knob bigcache_ms[5] 4000",
                "knob bigcache_ms[6] 4000",
                "knob bigcache_ms[8] 0",
                "knob bigcache_ms[15] 9",
            ),
            [
                "Freed blocks of 1 MiB to 4 MiB are kept for 4 s.",
                "Freed blocks of 8 MiB to 16 MiB are not kept.",
                "Freed blocks above 1 GiB are kept for 9 ms.",
            ],
        )
        self.assertEqual(
            say("knob magazine_bytes[4] 4096"), ["A thread's magazine for blocks of 64 B holds up to 4 KiB."]
        )
        self.assertEqual(say("class 80 evidence 3"), ["Blocks of 80 B have a size class of their own."])
        self.assertEqual(
            say("site 0xa keep 0", "site 0xb keep 4", "site 0xc keep 4"),
            [
                "Freed large blocks of 1 call site are not kept.",
                "Freed large blocks of 2 call sites are kept 4 times as long as others.",
            ],
        )
        self.assertEqual(policy_words.SIZES[-1], 32768)
        self.assertEqual(len(policy_words.SIZES), 42)


class Merge(unittest.TestCase):
    def merged(self, *parts: Part) -> Part:
        (one,) = policy_merge.merge([[part] for part in parts])
        return one

    def part(self, epochs: int, *lines: str, saved: int = 0) -> Part:
        return Part("/a", "ab", None, epochs, epochs, saved, [Line(*line.split(maxsplit=2)) for line in lines])

    def test_evidence_adds_up(self) -> None:
        one = self.merged(self.part(10, saved=1000), self.part(30, saved=5000))
        self.assertEqual((one.epochs, one.seconds, one.saved), (40, 40, 4000))

    def test_values_are_medians_by_evidence(self) -> None:
        one = self.merged(*(self.part(epochs, f"knob purge_ms {ms}") for epochs, ms in ((10, 1), (30, 3), (15, 9))))
        self.assertEqual(one.lines, [Line("knob", "purge_ms", "3")])

    def test_a_knob_without_an_index_counts_for_each(self) -> None:
        one = self.merged(
            self.part(10, "knob bigcache_ms 7", "knob bigcache_ms[2] 9"), self.part(11, "knob bigcache_ms[2] 5")
        )
        self.assertEqual([line.text for line in one.lines], ["knob bigcache_ms[2] 5"])
        one = self.merged(self.part(10, "knob bigcache_ms 7"), self.part(9, "knob bigcache_ms[2] 5"))
        self.assertEqual([line.text for line in one.lines], ["knob bigcache_ms 7"])
        one = self.merged(
            self.part(10, "knob bigcache_ms 7"), self.part(10, "knob bigcache_ms 7", "knob bigcache_ms[2] 5")
        )
        self.assertEqual(len(one.lines), 16)
        one = self.merged(
            self.part(9, "knob bigcache_ms 7", "knob bigcache_ms[0] 8"), self.part(3, "knob bigcache_ms 8")
        )
        self.assertEqual([line.text for line in one.lines][:2], ["knob bigcache_ms[0] 8", "knob bigcache_ms[1] 7"])

    def test_a_comment_of_one_index_is_not_of_all(self) -> None:
        each = [Line("knob", f"bigcache_ms[{index}]", "7", "why") for index in range(16)]
        for last, said in (("why", "knob bigcache_ms 7 # why"), ("other", "knob bigcache_ms 7")):
            lines = [*each[:-1], Line("knob", "bigcache_ms[15]", "7", last)]
            one = self.merged(Part("/a", "ab", None, 9, 9, 0, lines), self.part(1))
            self.assertEqual([line.text for line in one.lines], [said])

    def test_silence_is_a_vote_for_the_mode(self) -> None:
        self.assertEqual(self.merged(self.part(10, "knob purge_ms 1"), self.part(10)).lines, [])
        self.assertEqual(
            self.merged(self.part(11, "knob purge_ms 1"), self.part(10)).lines, [Line("knob", "purge_ms", "1")]
        )

    def test_classes_and_sites(self) -> None:
        one = self.merged(
            self.part(10, "class 80 evidence 5", "site 0xff keep 1", "site 0xee keep 2"),
            self.part(20, "class 80 evidence 6", "class 144 evidence 1", "site 0xff keep 4"),
        )
        self.assertEqual(
            [line.text for line in one.lines],
            ["class 80 evidence 11", "class 144 evidence 1", "site 0xee keep 2", "site 0xff keep 4"],
        )

    def test_programs_stay_apart(self) -> None:
        other = Part("/a", "cd", None, 1)
        self.assertEqual(len(policy_merge.merge([[self.part(1)], [other, self.part(2)]])), 2)


class Command(Files):
    def hakmem(self, *words: object, limit: str = "") -> subprocess.CompletedProcess[str]:
        """`limit`: what the shell does before, to itself and so to the command."""
        command = [sys.executable, str(LAUNCHER), *map(str, words)]
        if limit:
            command = ["sh", "-c", f'{limit}; exec "$@"', "sh", *command]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def test_one_epoch_is_one(self) -> None:
        self.path.write_text(FIRST + own(evidence=(1, 2, 0)))
        self.assertIn("Learned in 1 epoch over 2 s;", self.hakmem("policy", "show", self.path).stdout)

    def test_many_epochs_are_whole(self) -> None:
        self.path.write_text(FIRST + own(evidence=(1234567, 1234567, 0)))
        self.assertIn("Learned in 1 234 567 epochs over 14 d 06 h;", self.hakmem("policy", "show", self.path).stdout)

    def test_one_that_nobody_learned(self) -> None:
        self.path.write_text(FIRST + own("knob purge_ms 20", evidence=(0, 0, 0)))
        said = "It names no epochs in which it was learned; how much it saves was not measured."
        self.assertIn(said, self.hakmem("policy", "show", self.path).stdout)

    def test_show(self) -> None:
        self.path.write_text(FIRST + own("knob purge_ms 20"))
        done = self.hakmem("policy", "show", self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Learned in 5 epochs over 6 s; it saved 0.0 % of what the allocator cost.", done.stdout)
        self.assertIn("  - Free memory keeps its pages for 20 ms.", done.stdout)

    def test_what_is_written_is_loaded(self) -> None:
        one, other, merged = (self.directory / name for name in ("one", "other", "merged"))
        one.write_text(FIRST + own("knob purge_ms 20"))
        other.write_text(FIRST + own("knob purge_ms 20") + "program /b\nsize 3\nend\n")
        self.assertEqual(self.hakmem("policy", "merge", one, other, "--output", merged).returncode, 0)
        stats, said = self.run_with(HAKMEM_POLICY=str(merged))
        self.assertEqual((stats["remembered"]["epochs"], stats["knobs"][0]["value"], said), (10, 20, ""))
        again = self.hakmem("policy", "merge", one, other, "--output", merged)
        self.assertEqual(
            (again.returncode, again.stderr),
            (2, f"hakmem: {merged}: exists; --force writes over it, --output FILE writes elsewhere\n"),
        )
        done = self.hakmem("policy", "export", merged, "--program", "b")
        self.assertEqual([part.path for part in policy_text.parse(done.stdout, "x")], ["/b"])

    def test_clear(self) -> None:
        self.path.write_text(FIRST + own() + "program /b\nsize 3\nend\n")
        self.assertEqual(self.hakmem("policy", "clear", self.path, "--program", "b").returncode, 0)
        self.assertEqual([part.path for part in policy_text.read(self.path)], [PYTHON])
        done = self.hakmem("policy", "clear", self.path, "--program", "b")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.hakmem("policy", "clear", self.path).returncode, 0)
        self.assertFalse(self.path.exists())
        self.path.write_text("my notes\n")
        self.assertEqual(self.hakmem("policy", "clear", self.path).returncode, 2)
        self.assertTrue(self.path.exists())
        self.path.write_text("")
        self.assertEqual(self.hakmem("policy", "clear", self.path).returncode, 0)
        self.assertFalse(self.path.exists())

    def test_clear_of_a_link_says_that_it_is_none(self) -> None:
        """Else only the link would go, and what was learned stay."""
        self.path.write_text(FIRST + own())
        link = self.path.with_name("link")
        link.symlink_to(self.path)
        for program in ([], ["--program", PYTHON]):
            done = self.hakmem("policy", "clear", link, *program)
            self.assertEqual((done.returncode, link.is_symlink(), self.path.exists()), (2, True, True), done.stderr)
            self.assertIn(f"{link}: no regular file", done.stderr)

    def test_merge_writes_nothing_that_cannot_be_read(self) -> None:
        comment = "x" * 60000
        names = []
        for i in range(20):
            names.append(self.directory / str(i))
            lines = [f"site 0x{i * 10000 + line + 1:x} keep 2 # {comment[:1000]}" for line in range(60)]
            names[-1].write_text(FIRST + own(*lines, key=f"size {i + 1}").replace(PYTHON, f"/{i}", 1))
        done = self.hakmem("policy", "merge", *names, "--output", self.path)
        told = f"hakmem: {self.path}: would be larger than 1 MiB, which nothing reads; merge fewer files\n"
        self.assertEqual((done.returncode, done.stderr), (2, told))
        self.assertFalse(self.path.exists())

    def two_programs(self) -> str:
        text = FIRST + own() + "program /b\nsize 3\nend\n"
        self.path.write_text(text)
        return text

    def test_clear_waits_for_who_writes(self) -> None:
        """What a process saves while it has the lock is not lost."""
        self.two_programs()
        directory = os.open(self.path.parent, os.O_RDONLY)
        fcntl.flock(directory, fcntl.LOCK_EX)
        try:
            command = [sys.executable, str(LAUNCHER), "policy", "clear", str(self.path), "--program", "b"]
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(1)
            self.path.write_text(self.path.read_text() + "program /c\nsize 4\nend\n")
        finally:
            os.close(directory)
        self.assertEqual(process.wait(60), 0)
        self.assertEqual([part.path for part in policy_text.read(self.path)], [PYTHON, "/c"])

    def test_owner_and_mode_stay(self) -> None:
        self.two_programs()
        self.path.chmod(0o640)
        if os.geteuid() == 0:
            os.chown(self.path, 12345, 54321)
        before = self.path.stat()
        self.assertEqual(self.hakmem("policy", "clear", self.path, "--program", "b").returncode, 0)
        after = self.path.stat()
        self.assertNotEqual(after.st_ino, before.st_ino)
        self.assertEqual((after.st_mode, after.st_uid, after.st_gid), (before.st_mode, before.st_uid, before.st_gid))

    def test_what_cannot_be_written_leaves_the_old(self) -> None:
        text = self.two_programs()
        done = self.hakmem("policy", "clear", self.path, "--program", "b", limit="ulimit -f 0")
        told = f"hakmem: {self.path}: cannot be written: File too large\n"
        self.assertEqual((done.returncode, done.stderr), (2, told))
        self.assertEqual(self.path.read_text(), text)
        self.assertEqual(list(self.directory.iterdir()), [self.path])

    def test_what_is_no_file_is_not_replaced(self) -> None:
        self.two_programs()
        pipe, link = self.directory / "pipe", self.directory / "link"
        os.mkfifo(pipe)
        link.symlink_to(self.path)
        for place in (pipe, link):
            done = self.hakmem("policy", "export", self.path, "--output", place, "--force")
            told = f"hakmem: {place}: no regular file; legal is one, or a name that is free\n"
            self.assertEqual((done.returncode, done.stderr), (2, told))
        self.assertTrue(pipe.is_fifo() and link.is_symlink())

    def test_nothing_in_a_file_steers_the_terminal(self) -> None:
        self.path.write_text(FIRST + "program /\x1b[2Jb\nsize 3\nclass 80 evidence 1\nend\n")
        done = self.hakmem("policy", "show", self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("/?[2Jb (3 bytes)", done.stdout)
        refused = self.hakmem("policy", "show", self.path, "--program", "other")
        self.assertNotIn("\x1b", done.stdout + refused.stderr)

    def test_values_beyond_their_limits_are_refused(self) -> None:
        self.path.write_text(FIRST + own("knob purge_doublings 99999"))
        for command in (("show",), ("export",), ("merge", self.path)):
            done = self.hakmem("policy", *command, self.path)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, f"hakmem: {self.path}: line 7: purge_doublings is 0 to 6\n")

    def test_run(self) -> None:
        missing = self.hakmem("run", "--policy", self.path, "--", "true")
        why = "no such file, or an empty one, and nothing learns one; --mode learning does"
        self.assertEqual((missing.returncode, missing.stderr), (2, f"hakmem: run: --policy {self.path}: {why}\n"))
        self.path.write_text("")
        empty = self.hakmem("run", "--policy", self.path, "--", "true")
        self.assertEqual((empty.returncode, empty.stderr), (missing.returncode, missing.stderr))
        self.assertEqual(self.hakmem("run", "--mode", "learning", "--policy", self.path, "--", "true").returncode, 0)
        self.path.write_text("x\n")
        damaged = self.hakmem("run", "--policy", self.path, "--", "true")
        self.assertEqual(damaged.returncode, 2)
        self.assertEqual(damaged.stderr, f'hakmem: {self.path}: line 1: it does not begin with "hakmem-policy 1"\n')
        self.path.write_text(FIRST)
        done = self.hakmem("run", "--policy", self.path, "--", "sh", "-c", "echo $HAKMEM_POLICY")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"{self.path}\n", ""))
