"""Which of the functions that callgrind names are the library's."""

from __future__ import annotations

import unittest
from pathlib import Path

from hakmem_bench import layout

# A function of libc has the same name as one of ours; ours that is not called by name is named where it calls.
CALLS = """\
ob=(1) /usr/lib/libc.so.6
fl=(1) sigaction.c
fn=(1) sigaction
10 5
cob=(2) /of the program/libhakmem.so.0.1.0
cfn=(2) malloc
calls=1 0
10 7
ob=(2)
fl=(2) ???
fn=(2)
0 7
cfn=(3) door_malloc
calls=1 0
0 9
fn=(3)
0 9
fn=(4) take'2
0 1

ob=(1)
fn=(5) free
0 1

ob=(3) ???
fn=(6) magazine_pop
0 1
"""


class FunctionsOf(unittest.TestCase):
    def test_only_those_that_ran_in_it(self) -> None:
        library = Path("/of the program/libhakmem.so.0.1.0")
        self.assertEqual(layout.functions_of(library, CALLS), {"malloc", "door_malloc", "take", "magazine_pop"})
        self.assertEqual(layout.functions_of(Path("/other.so"), CALLS), {"magazine_pop"})


if __name__ == "__main__":
    unittest.main()
