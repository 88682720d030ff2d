"""Call sites as programs name them: the macro, the two functions, and what the statistics say of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import LIBRARY, RELEASE, ROOT, output_of, skip_or_fail

WORDS = """
#include <hakmem.h>
#include <stdio.h>

static void show(uintptr_t word) { printf("%lx\\n", (unsigned long)word); }

int main(void)
{
    show(HAK_SITE);
    show(HAK_SITE);
    show(HAK_SITE); show(HAK_SITE);
    void *block = hak_alloc_at(100000, HAK_SITE);
    hak_free_at(block, 100000, HAK_SITE);
    return block == NULL;
}
"""

CONSTANT = """
#include <hakmem.h>
uintptr_t place(void) { return HAK_SITE; }
"""

USES_SITES = """
import ctypes, sys
library = ctypes.CDLL(None)
library.hak_alloc_at.restype = ctypes.c_void_p
library.hak_alloc_at.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
library.hak_free_at.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
library.hak_stats_write.argtypes = [ctypes.c_char_p]
for size in (100000, 300000, 200000):
    block = library.hak_alloc_at(size, 0xabc)
    library.hak_free_at(block, size, 0)
assert library.hak_stats_write(sys.argv[1].encode()) == 0
"""

# All of a page written, again and again, from two places.
TAKES_LARGE_BLOCKS = """
import sys
for _ in range(2000):
    bytearray(300000)
    bytearray(2000000)
"""

PYTHON = os.path.realpath(sys.executable)

C = ["-std=c99", "-pedantic"]
CXX = ["-std=c++17", "-pedantic", "-x", "c++"]
CXX98 = ["-std=c++98", "-x", "c++"]  # without -pedantic: macros with "..." are C++11's
STRICT = ["-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]


class Macro(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def compiler(self, name: str) -> str:
        found = shutil.which(name)
        if found is None:
            skip_or_fail(f"{name} is not installed")
        return str(found)

    def words(self, compiler: str, *flags: str, name: str = "places.c", folder: str = ".") -> list[str]:
        source = self.scratch / folder / name
        source.parent.mkdir(exist_ok=True)
        source.write_text(WORDS)
        program = self.scratch / "places"
        command = [compiler, *flags, *STRICT, str(source), "-o", str(program)]
        subprocess.run([*command, f"-L{RELEASE}", "-lhakmem", f"-Wl,-rpath,{RELEASE}"], check=True)
        return output_of(str(program)).split()

    def test_each_line_is_a_place(self) -> None:
        one, other, twice, again = self.words(self.compiler("gcc"), *C, "-O2")
        self.assertEqual(twice, again)
        self.assertEqual(len({one, other, twice}), 3)
        self.assertNotIn("0", [one, other, twice])

    def test_a_place_is_the_same_however_it_is_built(self) -> None:
        compiler = self.compiler("gcc")
        expected = self.words(compiler, *C, "-O2")
        self.assertEqual(self.words(compiler, *C, "-O0"), expected)
        self.assertEqual(self.words(compiler, *C, "-O2", folder="elsewhere"), expected)
        self.assertEqual(self.words(self.compiler("g++"), *CXX, "-O2"), expected)
        self.assertEqual(self.words(self.compiler("g++"), *CXX98, "-O2"), expected)
        self.assertEqual(self.words(self.compiler("clang"), *C, "-O1"), expected)

    def test_files_are_told_apart(self) -> None:
        compiler = self.compiler("gcc")
        self.assertNotEqual(self.words(compiler, *C), self.words(compiler, *C, name="place2.c"))

    def test_it_is_a_constant(self) -> None:
        source = self.scratch / "constant.c"
        source.write_text(CONSTANT)
        text = output_of(self.compiler("gcc"), *C, "-O1", *STRICT, "-S", "-o", "-", str(source))
        self.assertNotIn(".string", text)  # the name of the file
        self.assertNotIn("mul", text)


class Counts(unittest.TestCase):
    def statistics(self, program: str, **more: str) -> dict[str, object]:
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "statistics.json"
            subprocess.run(
                [PYTHON, "-c", program, str(path)],
                env={**os.environ, "LD_PRELOAD": str(LIBRARY), **more},
                check=True,
                timeout=120,
            )
            return dict(json.loads(path.read_text()))

    def test_named_sites(self) -> None:
        (site,) = self.statistics(USES_SITES)["sites"]  # type: ignore[misc]
        expected = {"site": "0xabc", "requests": 3, "bytes": 600000, "least": 100000, "most": 300000, "frees": 3}
        self.assertEqual({key: site[key] for key in expected}, expected)
        self.assertEqual((site["remote_frees"], site["keep"], sum(site["lifetimes"])), (0, 1, 3))

    def test_nothing_is_said_of_programs_without(self) -> None:
        program = TAKES_LARGE_BLOCKS + "\nimport ctypes\nctypes.CDLL(None).hak_stats_write(sys.argv[1].encode())"
        self.assertNotIn("sites", self.statistics(program))

    def test_places_of_a_program_that_knows_nothing_of_them(self) -> None:
        program = TAKES_LARGE_BLOCKS + "\nimport ctypes\nctypes.CDLL(None).hak_stats_write(sys.argv[1].encode())"
        first = self.statistics(program, HAKMEM_LEARN="observe")["sites"]
        again = self.statistics(program, HAKMEM_LEARN="observe")["sites"]
        large = [site for site in first if site["requests"] > 20]  # type: ignore[attr-defined]
        self.assertTrue(large)
        words = {site["site"] for site in again}  # type: ignore[attr-defined]
        for site in large:  # wherever the loader has put the program
            self.assertIn(site["site"], words)

    def test_a_saved_policy_says_how_a_site_is_kept(self) -> None:
        if shutil.which("readelf") is None:
            skip_or_fail("readelf is not installed")
        build = re.search(r"Build ID: ([0-9a-f]+)", output_of("readelf", "-n", PYTHON))
        key = f"build-id {build[1]}" if build else f"size {os.stat(PYTHON).st_size}"
        with tempfile.TemporaryDirectory() as scratch:
            policy = Path(scratch) / "policy"
            policy.write_text(f"hakmem-policy 1\nprogram {PYTHON}\n{key}\nsite 0xabc keep 4\nend\n")
            more = {"HAKMEM_LEARN": "on", "HAKMEM_POLICY": str(policy)}
            sites = self.statistics(USES_SITES, **more)["sites"]
        kept = {site["site"]: site["keep"] for site in sites}  # type: ignore[attr-defined]
        self.assertEqual(kept["0xabc"], 4)


if __name__ == "__main__":
    unittest.main()
