"""The real programs of the lab: their inputs, names and commands, and what the driver of redis makes of its texts."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from hakmem_bench import runner  # noqa: E402
from hakmem_bench.programs import TESTS, missing_programs, programs_of  # noqa: E402


def driver_of_redis() -> ModuleType:
    spec = importlib.util.spec_from_file_location("redis_bench", ROOT / "bench" / "programs" / "redis_bench.py")
    if spec is None or spec.loader is None:
        raise AssertionError("bench/programs/redis_bench.py is not there")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REDIS = driver_of_redis()


class Suite(unittest.TestCase):
    def commands(self) -> list[tuple[str, tuple[str, ...]]]:
        pairs = [(test.name, test.command) for test in TESTS]
        return pairs + [(test.name, test.quick) for test in TESTS if test.quick is not None]

    def test_names(self) -> None:
        names = [test.name for test in TESTS]
        self.assertEqual(len(set(names)), len(names))
        for test in TESTS:
            self.assertRegex(test.name, r"^[a-z][a-z0-9-]*$")
            self.assertEqual(test.group, "programs")
            self.assertTrue(test.what and test.packages, test.name)

    def test_some_are_quick(self) -> None:
        self.assertGreaterEqual(sum(test.quick is not None for test in TESTS), 4)
        for test in TESTS:
            self.assertNotEqual(test.quick, test.command)

    def test_commands_begin_with_absolute_paths(self) -> None:
        for name, command in self.commands():
            self.assertTrue(command[0].startswith("/usr/bin/"), name)

    def test_commands_refer_to_files_that_exist(self) -> None:
        """What is named in {data} is what setup makes, and nothing else; scripts are in the repository."""
        for test in TESTS:
            words = test.command + (test.quick or ())
            named = {match for word in words for match in re.findall(r"\{data\}/(\S+)", word)}
            with tempfile.TemporaryDirectory() as directory:
                if test.setup is not None:
                    test.setup(Path(directory))
                self.assertEqual(set(os.listdir(directory)), named, test.name)
            for word in words:
                self.assertNotIn(str(ROOT), word)
                if word.startswith("{scripts}/"):
                    self.assertTrue((runner.SCRIPTS / word.partition("/")[2]).is_file(), word)

    def test_scripts_are_found_where_this_tree_lies(self) -> None:
        commands = [runner.command_of(test, quick) for test in TESTS for quick in (False, True)]
        named = {word for words in commands for word in words if word.endswith((".py", ".lua", ".pl", ".js"))}
        self.assertEqual({Path(word).parent for word in named}, {ROOT / "bench" / "programs"})

    def test_inputs_are_the_same_every_time(self) -> None:
        for test in TESTS:
            if test.setup is None:
                continue
            with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
                test.setup(Path(one))
                test.setup(Path(other))
                for name in os.listdir(one):
                    text = Path(one, name).read_bytes()
                    self.assertGreater(len(text), 1000, name)
                    self.assertEqual(text, Path(other, name).read_bytes(), name)

    def test_scripts_run_the_same_every_time(self) -> None:
        """An interpreter that draws its hashes by lot would have other tables in every run."""
        for name, command in self.commands():
            if "/usr/bin/python3" in command and name.startswith("cpython"):
                self.assertIn("PYTHONHASHSEED=0", command)
            if "/usr/bin/perl" in command:
                self.assertIn("PERL_HASH_SEED=0", command)

    def test_programs_behind_wrappers(self) -> None:
        found = {test.name: programs_of(test) for test in TESTS}
        self.assertEqual(found["cpython-objects"], ["/usr/bin/python3"])
        self.assertEqual(found["perl"], ["/usr/bin/perl"])
        self.assertIn("redis-server", found["redis"])

    def test_missing_programs(self) -> None:
        absent = replace(TESTS[0], name="absent", command=("/nonexistent/program",), preloads_itself=False)
        present = replace(TESTS[0], name="present", command=("/usr/bin/true",), preloads_itself=False)
        with mock.patch("shutil.which", lambda name: None if "nonexistent" in name else name):
            found = missing_programs([absent, present])
        self.assertEqual(list(found), ["absent"])
        self.assertIn("/nonexistent/program", found["absent"])
        self.assertIn("redis-server", found["absent"])


class Redis(unittest.TestCase):
    MAPS = (
        "55d0c0000000-55d0c0001000 r-xp 00000000 08:01 123    /usr/bin/redis-check-rdb\n"
        "7f0000000000-7f0000001000 r-xp 00000000 08:01 124    /lib/with a space.so\n"
        "7f0000002000-7f0000003000 rw-p 00000000 00:00 0 \n"
        "7ffc00000000-7ffc00001000 rw-p 00000000 00:00 0      [stack]\n"
    )

    def test_info(self) -> None:
        found = REDIS.fields_of("# Memory\r\nused_memory:123\r\nmem_allocator:jemalloc-5.2.1\r\n\r\n")
        self.assertEqual(found, {"used_memory": "123", "mem_allocator": "jemalloc-5.2.1"})

    def test_peak(self) -> None:
        self.assertEqual(REDIS.peak_kib("VmPeak:\t  9 kB\nVmHWM:\t   54516 kB\nVmRSS:\t 7 kB\n"), 54516)
        with self.assertRaises(REDIS.BenchError):
            REDIS.peak_kib("VmRSS:\t 7 kB\n")

    def test_maps(self) -> None:
        self.assertEqual(REDIS.mapped_files(self.MAPS), {"/usr/bin/redis-check-rdb", "/lib/with a space.so"})

    def test_a_library_that_is_not_mapped(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            library, link = Path(directory, "lib.so.1").resolve(), Path(directory, "lib.so")
            library.touch()
            link.symlink_to(library)
            maps = f"{self.MAPS}7f0000004000-7f0000005000 r-xp 00000000 08:01 125    {library}\n"
            REDIS.check_mapped([str(link)], maps)
            with self.assertRaisesRegex(REDIS.BenchError, "lib.so"):
                REDIS.check_mapped([str(link)], self.MAPS)

    def test_environment(self) -> None:
        """The server has something preloaded in any case, and never what the driver itself was given."""
        with mock.patch.dict(os.environ, {"LD_PRELOAD": "/other.so"}):
            self.assertEqual(REDIS.server_environment({"LD_PRELOAD": "/a.so:/b.so"})["LD_PRELOAD"], "/a.so:/b.so")
            self.assertRegex(REDIS.server_environment({"X": "1"})["LD_PRELOAD"], r"/libc[.-]")
            self.assertEqual(REDIS.server_environment({"X": "1"})["X"], "1")
        self.assertEqual(REDIS.libraries_of("/a.so:/b.so /c.so:"), ["/a.so", "/b.so", "/c.so"])

    def test_who_served(self) -> None:
        used = {"mem_allocator": "jemalloc-5.2.1", "used_memory": "1000000", "allocator_allocated": "900000"}
        with tempfile.TemporaryDirectory() as directory:
            library, jemalloc = Path(directory, "other.so"), Path(directory, "jemalloc.so")
            library.write_bytes(b"malloc\0free\0")
            jemalloc.write_bytes(b"malloc\0mallctl\0")
            with self.assertRaisesRegex(REDIS.BenchError, "linked with"):
                REDIS.check_served([str(library)], used)
            REDIS.check_served([str(library)], {**used, "allocator_allocated": "20000"})
            REDIS.check_served([str(jemalloc)], used)
            REDIS.check_served([str(library)], {"mem_allocator": "libc"})


if __name__ == "__main__":
    unittest.main()
