"""How much of the library is in the memory of a program that hardly uses it (cmake/layout.ld)."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import time
import unittest
from collections.abc import Callable
from pathlib import Path

from support import LIBRARY, RELEASE, stat_fields

# Of the file: a window of 64 KiB, as the kernel maps it, and variables.
MOST_OF_FILE = 80
# And what threads and large blocks run, at the end of the mapping.
MOST_WITH_END = MOST_OF_FILE + 24
# And another window: of what learns; or of call frame information, for a guarded sample of realloc and its kin.
MOST_OF_ALL = MOST_WITH_END + 64
# Variables and, of the tables, the few pages that are touched.
MOST_ANONYMOUS = 16
# Tables are found by addresses, which the kernel draws by lot: two that share a page in one run lie in two pages in
# another. Who compares two programs compares the least of so many runs.
RUNS = 10
# What programs of one thread do with small blocks, for longer than they are watched. They allocate all that they will
# in much less than that.
BUSY = (
    ("random_mixed", "1000000000", "mixed", "42", "--slots", "8192"),
    ("nodes", "tree", "20000", "1000000000", "42"),
    ("nodes", "list", "20000", "1000000000", "42"),
)
# What more of them do, and what of the file they have in memory.
BUSIER = (
    (MOST_WITH_END, ("nodes", "hash", "10000", "1000000000", "42")),
    (MOST_WITH_END, ("larson", "100", "8", "1000", "5000", "100", "4141", "2")),
    (MOST_OF_ALL, ("growing", "string", "1000000000", "42")),
    (MOST_OF_ALL, ("aligned", "1000000000", "42")),
)
WATCHED_SECONDS = 0.3  # of its time on a processor
PATIENCE = 60


def sizes(smaps: str) -> tuple[int, int]:
    """KiB of the library's file, and of its zeroed variables."""
    line = re.compile(r"^([0-9a-f]+)-([0-9a-f]+)(?: \S+){4} *(\S*)\n(?:[A-Z].*\n)*?Rss: +(\d+) kB", re.MULTILINE)
    mappings = line.findall(smaps)
    of_file = [(int(end, 16), int(rss)) for _, end, name, rss in mappings if name.endswith(LIBRARY.resolve().name)]
    ends = {end for end, _ in of_file}
    anonymous = sum(int(rss) for start, _, name, rss in mappings if name == "" and int(start, 16) in ends)
    return sum(rss for _, rss in of_file), anonymous


def resident(**options: str) -> tuple[int, int]:
    """The same, in a program that shows its own mappings."""
    environment = {"LD_PRELOAD": str(LIBRARY), **options}
    command = ["/bin/cat", "/proc/self/smaps"]
    return sizes(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def let_run(pid: int) -> None:
    ticks = WATCHED_SECONDS * os.sysconf("SC_CLK_TCK")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        fields = stat_fields(pid)
        if int(fields[11]) + int(fields[12]) >= ticks:
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} gets no time")


def resident_in(words: tuple[str, ...], **options: str) -> tuple[int, int]:
    """The same, in one of the lab's programs while it runs."""
    command = [str(RELEASE / "bench" / words[0]), *words[1:]]
    environment = {"LD_PRELOAD": str(LIBRARY), **options}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            let_run(process.pid)
            smaps = Path(f"/proc/{process.pid}/smaps").read_text()
        finally:
            process.kill()
    return sizes(smaps)


class Layout(unittest.TestCase):
    def assert_of_file(self, of_file: int, most: int) -> None:
        self.assertGreater(of_file, 0, "it is not served by the library")
        self.assertLessEqual(of_file, most, "see `./hakmem bench layout`")

    def test_of_the_file_little_is_in_memory(self) -> None:
        of_file, _ = resident()
        self.assert_of_file(of_file, MOST_OF_FILE)

    def test_what_small_blocks_need_lies_together(self) -> None:
        for words in BUSY:
            with self.subTest(" ".join(words)):
                of_file, _ = resident_in(words)
                self.assert_of_file(of_file, MOST_OF_FILE)

    def test_what_most_programs_run_lies_together(self) -> None:
        for most, words in BUSIER:
            with self.subTest(" ".join(words)):
                of_file, _ = resident_in(words)
                self.assert_of_file(of_file, most)

    def test_what_learns_lies_together(self) -> None:
        learning = {"HAKMEM_MODE": "learning"}
        found = {"cat": resident(**learning), BUSY[0][0]: resident_in(BUSY[0], **learning)}
        for name, (of_file, _) in found.items():
            with self.subTest(name):
                self.assert_of_file(of_file, MOST_OF_ALL)

    def assert_samples_bring_nothing(self, resident_with: Callable[..., tuple[int, int]]) -> None:
        """Besides the option, which most processes have not."""
        without = [resident_with(HAKMEM_GUARD="0") for _ in range(RUNS)]
        sampled = [resident_with(HAKMEM_GUARD="1") for _ in range(RUNS)]
        least_without, least = (min(anonymous for _, anonymous in runs) for runs in (without, sampled))
        self.assertGreater(least, least_without, "no stack was taken")
        self.assert_of_file(max(of_file for of_file, _ in sampled), max(of_file for of_file, _ in without))

    def test_guarded_samples_lie_with_what_small_blocks_need(self) -> None:
        self.assert_samples_bring_nothing(functools.partial(resident_in, BUSY[0]))

    def test_guarded_samples_lie_with_what_each_process_runs(self) -> None:
        self.assert_samples_bring_nothing(resident)

    def test_tables_that_nobody_uses_are_not_touched(self) -> None:
        least = min(anonymous for _, anonymous in (resident() for _ in range(RUNS)))
        self.assertGreater(least, 0)
        self.assertLessEqual(least, MOST_ANONYMOUS, "is a table missing in cmake/layout.ld?")


if __name__ == "__main__":
    unittest.main()
