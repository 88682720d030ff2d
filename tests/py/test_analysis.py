"""Static analysis finds nothing in the library; what it is not to say has its reason beside it.

docs/architecture.md tells how to run it and how to suppress a finding.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import unittest
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from analysis import (
    CLANG_TIDY,
    CLANG_TIDY_CHECKS,
    CPPCHECK,
    CPPCHECK_SUPPRESSIONS,
    GCC,
    Command,
    Finding,
    Tool,
    library_commands,
)
from support import ROOT, output_of, skip_or_fail

# Each tool has defects to find here that it is known to find, in the way that the library is analysed.
_BAD_SOURCE = """\
#include <stdlib.h>
#include <string.h>

void write_after_free(void);
void write_after_free(void)
{
    int *p = malloc(sizeof *p);
    if (p == NULL)
        return;
    free(p);
    *p = 1;
}

void clear(int *numbers);
void clear(int *numbers)
{
    memset(numbers, 0, sizeof(numbers));
}

size_t bytes_of(unsigned pages);
size_t bytes_of(unsigned pages)
{
    return pages * 4096;
}

int past_the_end(void);
int past_the_end(void)
{
    int numbers[4] = {0};
    return numbers[4];
}
"""
# What stands in a source to suppress a finding; with a reason it goes on as the second expression says.
_SUPPRESSION = re.compile(r"NOLINT|cppcheck-suppress|GCC diagnostic ignored")
_WITH_REASON = re.compile(
    r"NOLINT\w*\([\w.,-]+\): \w|NOLINTEND|cppcheck-suppress \w+ ; \w|GCC diagnostic ignored \S+ /\* \w"
)


def listing(findings: Iterable[Finding]) -> str:
    return "\n" + "\n".join(map(str, sorted(findings)))


class OneTool:
    """The tests of each tool, for the classes below."""

    tool: Tool
    expected: frozenset[str]
    """What it says of the bad source, and maybe more."""

    def setUp(self: Any) -> None:
        if shutil.which(self.tool.program) is None:
            skip_or_fail(f"{self.tool.program} is not installed")

    def test_library(self: Any) -> None:
        found = self.tool.findings(library_commands())
        version = re.search(r"\d+\.[\d.]+", output_of(self.tool.program, "--version"))
        assert version is not None
        if found and not f"{version[0]}.".startswith(f"{self.tool.version}."):
            reason = f"{self.tool.program} is {version[0]}, the judge is {self.tool.version}"
            raise unittest.SkipTest(f"{reason}. It says:{listing(found)}")
        self.assertFalse(found, listing(found))

    def test_known_defects_are_found(self: Any) -> None:
        flags = next(one.arguments for one in library_commands() if one.file.suffix == ".c")
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory) / "bad.c"
            source.write_text(_BAD_SOURCE)
            found = self.tool.findings([Command(source, flags)])
        self.assertLessEqual(self.expected, {one.check for one in found}, listing(found))


class ClangTidy(OneTool, unittest.TestCase):
    tool = CLANG_TIDY
    expected = frozenset({"clang-analyzer-unix.Malloc", "bugprone-implicit-widening-of-multiplication-result"})


class Cppcheck(OneTool, unittest.TestCase):
    tool = CPPCHECK
    expected = frozenset({"deallocuse", "pointerSize", "arrayIndexOutOfBounds"})


class Gcc(OneTool, unittest.TestCase):
    tool = GCC
    expected = frozenset({"-Wanalyzer-use-after-free"})


class Suppressions(unittest.TestCase):
    def test_every_source_is_analysed(self) -> None:
        """But those that the build leaves out where libc has no use for them."""
        optional = {ROOT / "src" / "override" / "glibc" / "introspection.c"}
        sources = {path for path in (ROOT / "src").rglob("*") if path.suffix in {".c", ".cpp"}}
        self.assertEqual(sources - {command.file for command in library_commands()} - optional, set())

    def test_suppressions_in_sources_have_reasons(self) -> None:
        faults = []
        for path in sorted(path for path in (ROOT / "src").rglob("*") if path.suffix in {".c", ".h", ".cpp"}):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if _SUPPRESSION.search(line) and not _WITH_REASON.search(line):
                    faults.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
        self.assertFalse(faults, "\n" + "\n".join(faults))

    def test_suppressions_in_lists_have_reasons(self) -> None:
        text = CLANG_TIDY_CHECKS.read_text()
        for check in re.findall(r"^  -([a-zA-Z][^,\n]*)", text, re.MULTILINE):
            self.assertRegex(text, rf"(?m)^#   {re.escape(check)}  +\w")
        lines = CPPCHECK_SUPPRESSIONS.read_text().splitlines()
        for before, line in zip(lines, lines[1:]):
            if line and not line.startswith("//"):
                self.assertTrue(before.startswith("// "), line)


if __name__ == "__main__":
    unittest.main()
