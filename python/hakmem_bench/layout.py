"""Which functions every program runs: cmake/layout.ld has them by name, so that they lie together in the library.

They are found by running programs under callgrind; that is seldom needed: when the start has changed, or when
tests/py/test_layout.py says that a small program has more of the library in memory than it should. Programs with
threads do not run the same functions each time, so what is named already stays while there is such a function.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from hakmem_bench import runner
from hakmem_bench.model import ROOT, CannotError

SCRIPT = ROOT / "cmake" / "layout.ld"

_SECONDS = 300
# A program that runs for long has guarded samples; these are short, and have them at once.
_SOON = {"HAKMEM_GUARD": "64K"}
# What a process of one thread does with small blocks.
_FIRST = (
    ("/bin/true",),
    ("/bin/cat", "/proc/self/cmdline"),
    ("pairs", "100", "64"),
    ("random_mixed", "20000", "mixed", "42", "--slots", "8192"),
    ("nodes", "tree", "20000", "40", "42"),
    ("nodes", "list", "2000", "3", "42"),
    ("nodes", "hash", "10000", "3", "42"),
    ("growing", "string", "300", "42"),
)
# More, but none with so much in small blocks that classes are fitted to it: that runs what learns.
_SECOND = (
    ("growing", "moving", "2", "42"),
    ("zeroed", "300", "42"),
    ("aligned", "500000", "42"),
    ("lifetimes", "300000", "42", "--live", "4000000"),
    ("large", "100", "42"),
    ("short_threads", "20", "42"),
    ("larson", "1", "8", "1000", "5000", "100", "4141", "2"),
    ("handover", "ring", "2000", "42"),
    ("/usr/bin/perl", "-e", "1"),
)
# The second goes on for long enough to learn; the first ends at once, and is to be none the larger for its mode.
_LEARNS = (("/bin/true",), ("random_mixed", "30000000", "mixed", "42"), ("large", "100", "42"))
_LEARNING = {"HAKMEM_MODE": "learning"}
# Each has what those before it have not.
_BLOCKS = (("at first", _FIRST, _SOON), ("later", _SECOND, _SOON), ("in mode learning", _LEARNS, _LEARNING))
_OF_NONE = "???"
_MARKED = "    /* {name}: generated {end} here */\n"


def _ran(library: Path, own: set[str], words: tuple[str, ...], options: dict[str, str]) -> set[str]:
    """Those of the library's functions that ran; libc has some of the same names."""
    with tempfile.TemporaryDirectory(prefix="hakmem-bench-") as directory:
        file = Path(directory) / "calls"
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={file}", runner.program_of(words[0]), *words[1:]],
            env={**runner.clean_environment(), "LD_PRELOAD": str(library), **options}, cwd=directory,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode != 0 or not file.exists():
            last = runner.last_line(done.stderr)
            raise CannotError(f"{' '.join(words)} under valgrind: exit {done.returncode}: {last}")
        ran = functions_of(library.resolve(), file.read_text()) & own
        if not ran:
            raise CannotError(f"{' '.join(words)} under valgrind: it ran nothing of {library}")
        return ran


def functions_of(library: Path, calls: str) -> set[str]:
    """By callgrind's file, in which a name stands where its number is met first, of who calls or of who is called. It
    knows an object by its section .text: what lies in others, as cmake/layout.ld has it, is of none."""
    given = re.findall(r"^c?(ob|fn)=(\(\d+\)) (.+)$", calls, re.MULTILINE)
    names = {kind + number: name for kind, number, name in given}
    own = set()
    where = ""
    for kind, number in re.findall(r"^(ob|fn)=(\(\d+\))", calls, re.MULTILINE):
        if kind == "ob":
            where = names[kind + number]
        elif where in (str(library), _OF_NONE):
            own.add(names[kind + number].partition("'")[0])
    return own


def _sections(name: str, own: set[str]) -> list[str]:
    """Where the function may lie. `f.cold` is the unlikely part of f; what is unlikely as a whole has none."""
    function, _, rest = name.partition(".")
    likely, unlikely = f"text.{function}", f"text.unlikely.{function}"
    if rest == "cold":
        return [unlikely]
    return [likely] if f"{function}.cold" in own else [likely, unlikely]


def _sections_of(names: Iterable[str], own: set[str]) -> set[str]:
    return {section for name in names for section in _sections(name, own)}


def _own(library: Path) -> set[str]:
    """Those that cmake/layout.ld may name: malloc and free among others lie in sections that are nobody else's."""
    command = ["nm", "--defined-only", "--format=sysv", str(library)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^(\S+) *\|[0-9a-f]+\| +[tT] +\|.*\|\.text\S*$", listing, re.MULTILINE))


def _named(text: str, name: str, own: set[str]) -> set[str]:
    """The sections in that block, of functions that there are."""
    start, end = (_MARKED.format(name=name, end=end) for end in ("from", "to"))
    block = text.partition(start)[2].partition(end)[0]
    sections = set(re.findall(r"\*\(\.(\S+) ", block))
    return {section for section in sections if section.removeprefix("text.").removeprefix("unlikely.") in own}


def _with_block(text: str, name: str, sections: Iterable[str]) -> str:
    start, end = (_MARKED.format(name=name, end=end) for end in ("from", "to"))
    if text.count(start) != 1 or text.count(end) != 1:
        raise CannotError(f"{SCRIPT}: the marks of '{name}' are not there once each")
    before, rest = text.split(start)
    after = rest.split(end)[1]
    lines = "".join(f"    *(.{section} .{section}.*)\n" for section in sorted(sections))
    return before + start + lines + end + after


def write(library: Path) -> dict[str, int]:
    """How many sections are named in each block."""
    own = _own(library)
    text = SCRIPT.read_text()
    before: set[str] = set()
    counts = {}
    for name, programs, options in _BLOCKS:
        ran = {function for words in programs for function in _ran(library, own, words, options)}
        lying_there = _sections_of(ran, own) | _named(text, name, own)
        if options is _SOON:  # most processes have no option to read
            nothing = ("/bin/true",)
            lying_there -= _sections_of(_ran(library, own, nothing, options) - _ran(library, own, nothing, {}), own)
        sections = lying_there - before
        text = _with_block(text, name, sections)
        counts[name] = len(sections)
        before |= sections
    SCRIPT.write_text(text)
    return counts
