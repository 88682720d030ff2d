"""CPython on its own test modules. Debian keeps them in a package of their own (libpython3-testsuite)."""

from __future__ import annotations

import re
import subprocess
import sys
import unittest
from pathlib import Path

from programs import ProgramTest, run

MODULES = ["test_json", "test_gc", "test_decimal", "test_threading", "test_subprocess"]
# The whole module takes a minute; these take ten seconds and use pools, queues, shared memory and managers.
MULTIPROCESSING = (
    "WithProcessesTestPool",
    "WithProcessesTestQueue",
    "WithProcessesTestSharedMemory",
    "WithManagerTestQueue",
    "WithThreadsTestPool",
)


def interpreter_with_tests() -> str | None:
    """An interpreter that has the test package: the system's or else the one that runs this."""
    for python in ("/usr/bin/python3", sys.executable):
        if Path(python).exists():
            found = subprocess.run([python, "-c", "import test.test_json"], capture_output=True)
            if found.returncode == 0:
                return python
    return None


def tests_ran(output: str) -> int:
    return sum(int(number) for number in re.findall(r"^Ran (\d+) tests?", output, re.MULTILINE))


class CPython(ProgramTest):
    packages = (f"lib{Path('/usr/bin/python3').resolve().name}-testsuite",)
    version = ("/usr/bin/python3", "--version")
    quick = True

    def setUp(self) -> None:
        super().setUp()
        python = interpreter_with_tests()
        if python is None:
            self.fail("no Python with its test package")
        self.python: str = python

    def run_tests(self, arguments: list[str]) -> None:
        """Those that the interpreter without the library lists."""
        tests = [self.python, "-m", "test", "-u", "cpu,subprocess"]
        listed = run([*tests, "--list-cases", *arguments], preload=False, cwd=self.directory)
        self.assertEqual(listed.status, 0, listed.stderr)
        with_library = run([*tests, "-v", *arguments], preload=True, cwd=self.directory)
        output = with_library.stdout.decode(errors="replace")
        self.assertEqual(with_library.status, 0, output[-6000:])
        self.assertGreaterEqual(tests_ran(output), len(listed.stdout.splitlines()))  # some modules make more
        self.assertIn("\nTests result: SUCCESS", output)
        self.assertTrue(any(name.startswith("python") for name in with_library.served), with_library.served)

    def test_multiprocessing(self) -> None:
        patterns = [argument for name in MULTIPROCESSING for argument in ("-m", name)]
        self.run_tests([*patterns, "test_multiprocessing_fork"])

    def test_output_of_a_program(self) -> None:
        script = (
            "import json, hashlib, re, collections, fractions\n"
            "data = {str(i): [i, i * 0.5, 'x' * (i % 300), {'nested': list(range(i % 20))}] for i in range(20000)}\n"
            "text = json.dumps(data, sort_keys=True)\n"
            "assert json.loads(text) == data\n"
            "words = collections.Counter(re.findall('[a-z]+', text))\n"
            "print(hashlib.sha256(text.encode()).hexdigest(), words.most_common(3), len(str(3 ** 9000)))\n"
            "print(sum(fractions.Fraction(1, i) for i in range(1, 400)))\n"
            "print(len(json.dumps(list(range(10**6)))))\n"
        )
        served = Path(self.python).name
        result = self.compare([self.python, "-c", script], served=served)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertTrue(result.stdout.endswith(b"\n7888890\n"))


def add_module_tests() -> None:
    """One test per module."""
    for module in MODULES:

        def test(self: CPython, module: str = module) -> None:
            self.run_tests([module])

        test.__doc__ = f"its own {module}"
        setattr(CPython, module, test)


add_module_tests()

if __name__ == "__main__":
    unittest.main()
