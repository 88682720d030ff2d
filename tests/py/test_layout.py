"""How much of the library is in the memory of a program that hardly uses it (cmake/layout.ld)."""

from __future__ import annotations

import re
import subprocess
import unittest

from support import RELEASE

# Of the file: a window of 64 KiB, as the kernel maps it, a second one for what most programs run; and variables.
MOST_OF_FILE = 152
# Variables and, of the tables, the few pages that are touched.
MOST_ANONYMOUS = 40
# Tables are found by addresses, which the kernel draws by lot: two that share a page in one run lie in two pages in
# another. Who compares two programs compares the least of so many runs.
RUNS = 10


def resident(**options: str) -> tuple[int, int]:
    """KiB of the library's file, and of its zeroed variables, in a program that shows its own mappings."""
    library = RELEASE / "libhakmem.so"
    environment = {"LD_PRELOAD": str(library), **options}
    command = ["/bin/cat", "/proc/self/smaps"]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    line = re.compile(r"^([0-9a-f]+)-([0-9a-f]+)(?: \S+){4} *(\S*)\n(?:[A-Z].*\n)*?Rss: +(\d+) kB", re.MULTILINE)
    mappings = line.findall(text)
    of_file = [(int(end, 16), int(rss)) for _, end, name, rss in mappings if name.endswith(library.resolve().name)]
    ends = {end for end, _ in of_file}
    anonymous = sum(int(rss) for start, _, name, rss in mappings if name == "" and int(start, 16) in ends)
    return sum(rss for _, rss in of_file), anonymous


class Layout(unittest.TestCase):
    def test_of_the_file_little_is_in_memory(self) -> None:
        of_file, _ = resident()
        self.assertGreater(of_file, 0)
        self.assertLessEqual(of_file, MOST_OF_FILE, "see `./hakmem bench layout`")

    def test_guarded_samples_lie_with_what_most_programs_run(self) -> None:
        without = [resident(HAKMEM_GUARD="0") for _ in range(RUNS)]
        sampled = [resident(HAKMEM_GUARD="1") for _ in range(RUNS)]
        least_without, least = (min(anonymous for _, anonymous in runs) for runs in (without, sampled))
        self.assertGreater(least, least_without, "no stack was taken")
        self.assertLessEqual(max(of_file for of_file, _ in sampled), MOST_OF_FILE, "see `./hakmem bench layout`")

    def test_tables_that_nobody_uses_are_not_touched(self) -> None:
        _, anonymous = resident()
        self.assertGreater(anonymous, 0)
        self.assertLessEqual(anonymous, MOST_ANONYMOUS, "is a table missing in cmake/layout.ld?")


if __name__ == "__main__":
    unittest.main()
