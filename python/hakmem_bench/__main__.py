"""`hakmem bench`: arguments to commands."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from rich.console import Console

from hakmem_bench import (
    counting,
    documents,
    gate,
    lab,
    layout,
    page,
    peers,
    suite,
    table,
)
from hakmem_bench.model import OURS, CannotError, read
from hakmem_cli import build, files
from hakmem_cli.arguments import Parser, ended, interrupt_at, whole_number
from hakmem_cli.say import say

_COMMANDS = (
    *("peers", "list", "compare", "ab", "ablate", "checks", "hardened", "learning", "watching", "attacks"),
    *("gate", "layout", "docs", "page"),
)


def _repetitions(text: str) -> int:
    repetitions = whole_number(text, 1, 1000)
    if repetitions is None:
        raise argparse.ArgumentTypeError(f"{text[:40]}: legal values are 1 to 1000")
    return repetitions


def _closely(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition(":")
    repetitions = whole_number(number, 1, 1000)
    if not name or repetitions is None:
        raise argparse.ArgumentTypeError(f"{text[:40]}: legal is a peer with 1 to 1000 repetitions, as glibc:15")
    return name, repetitions


def _measuring() -> Parser:
    """What all commands that measure have."""
    options = Parser(add_help=False)
    options.add_argument("--quick", action="store_true", help="fewer and shorter tests: five minutes")
    options.add_argument("--tests", metavar="NAME,...", help="only these tests or groups (see `bench list`)")
    options.add_argument("--repetitions", type=_repetitions, metavar="N", help="of each test with each allocator")
    options.add_argument("--output", type=Path, metavar="FILE", help="the result file; its page is beside it")
    options.add_argument("--no-counts", action="store_true", help="no counts under valgrind")
    options.add_argument("--no-system-calls", action="store_true", help="no counts under strace")
    return options


def _options(parsed: argparse.Namespace) -> lab.Options:
    return lab.Options(
        quick=parsed.quick,
        peers=getattr(parsed, "peers", None),
        modes=getattr(parsed, "modes", False),
        tests=parsed.tests,
        repetitions=parsed.repetitions,
        closely=getattr(parsed, "closely", None),
        output=parsed.output,
        counts=not parsed.no_counts,
        system_calls=not parsed.no_system_calls,
    )


def _peers(names: str | None, console: Console) -> int:
    wanted = [name for name in peers.choose(names, peers.LEGAL) if name != OURS]
    found = lab.get_peers(wanted, console, again=True)
    table.print_peers(found, console)
    return 0


def _list(console: Console) -> int:
    table.print_suite(suite.TESTS, console)
    return 0


def _docs(path: Path) -> int:
    for file, text in documents.showing(path, documents.DOCS).items():
        files.write(file, text.encode(), force=True)
    return 0


def _page(path: Path) -> int:
    target = lab.page_of(path)
    files.write(target, page.render(read(path)).encode(), force=True)
    say(f"written: {target}")
    return 0


def _gate(parsed: argparse.Namespace) -> int:
    library = parsed.library.resolve() if parsed.library else build.ensure_library()
    if not library.exists():
        raise CannotError(f"--library {parsed.library}: no such file; legal is a libhakmem.so")
    build.build_benchmarks()
    counting.need_valgrind()
    if parsed.lower:
        for name, number in gate.lower(library).instructions.items():
            print(f"{name}: golden {number}")
        return 0
    verdict = gate.check(library, with_race=not parsed.no_race)
    print("\n".join(verdict.told))
    for failure in verdict.failures:
        print(f"FAILED {failure}")
    return int(bool(verdict.failures))


def _layout() -> int:
    library = build.ensure_library()
    build.build_benchmarks()
    counting.need_valgrind()
    counts = ", ".join(f"{count} {name}" for name, count in layout.write(library).items())
    say(f"written: {layout.SCRIPT}, sections of what runs: {counts}")
    return 0


def _compare(first: Path, second: Path, console: Console) -> int:
    table.compare_results(read(first), read(second), console)
    return 0


def _parse(words: list[str], console: Console) -> argparse.Namespace:
    measuring = _measuring()
    if words[:1] and words[0] in _COMMANDS:
        parser = Parser(prog="hakmem bench", allow_abbrev=False)
        commands = parser.add_subparsers(parser_class=Parser, metavar="COMMAND")
        one = commands.add_parser("peers", help="fetch the allocators to compare with")
        one.add_argument("names", nargs="?", metavar="NAME,...")
        one.set_defaults(call=lambda a: _peers(a.names, console))
        one = commands.add_parser("list", help="the tests")
        one.set_defaults(call=lambda a: _list(console))
        one = commands.add_parser("compare", help="two result files")
        one.add_argument("first", type=Path)
        one.add_argument("second", type=Path)
        one.set_defaults(call=lambda a: _compare(a.first, a.second, console))
        one = commands.add_parser("ab", parents=[measuring], help="two revisions, built and measured side by side")
        one.add_argument("first", metavar="REV1")
        one.add_argument("second", metavar="REV2")
        one.set_defaults(call=lambda a: lab.ab(a.first, a.second, _options(a), " ".join(words), console))
        one = commands.add_parser("ablate", parents=[measuring], help="each feature taken out by itself")
        one.add_argument("features", nargs="*", metavar="FEATURE")
        one.set_defaults(call=lambda a: lab.ablate(a.features, _options(a), " ".join(words), console))
        one = commands.add_parser("checks", parents=[measuring], help="what check mode costs")
        one.set_defaults(call=lambda a: lab.checks(_options(a), " ".join(words), console))
        one = commands.add_parser("hardened", parents=[measuring], help="what the hardened library costs")
        one.set_defaults(call=lambda a: lab.hardened(_options(a), " ".join(words), console))
        one = commands.add_parser("learning", help="what learning brings and costs")
        one.add_argument("--quick", action="store_true", help="all of it once, for four minutes: to see that it works")
        one.add_argument("--parts", dest="tests", metavar="NAME,...", help="only these parts of it")
        one.add_argument("--output", type=Path, metavar="FILE", help="the result file")
        one.set_defaults(repetitions=None, no_counts=False, no_system_calls=True)
        one.set_defaults(call=lambda a: lab.learn(_options(a), " ".join(words), console))
        one = commands.add_parser("watching", help="what the heap profiler and the live page cost, in instructions")
        one.add_argument("--output", type=Path, metavar="FILE", help="the result file")
        one.set_defaults(call=lambda a: lab.watch(a.output, " ".join(words), console))
        one = commands.add_parser("attacks", help="which memory bugs each allocator stops")
        one.add_argument("--peers", metavar="NAME,...", help=f"only these: {', '.join(peers.LEGAL)}")
        one.add_argument("--repetitions", type=_repetitions, metavar="N", help="of each attack with each allocator")
        one.add_argument("--output", type=Path, metavar="FILE", help="the result file")
        one.set_defaults(call=lambda a: lab.attack(a.peers, a.repetitions, a.output, " ".join(words), console))
        one = commands.add_parser("gate", help="what CI checks: instructions, the hot path's mix, the gain over glibc")
        one.add_argument("--lower", action="store_true", help="lower golden numbers to what is counted now")
        one.add_argument("--library", type=Path, metavar="FILE", help="another than this tree's")
        one.add_argument("--no-race", action="store_true", help="without the pairs of runs against the C library")
        one.set_defaults(call=_gate)
        one = commands.add_parser("layout", help="which functions lie first in the library: rewrites cmake/layout.ld")
        one.set_defaults(call=lambda a: _layout())
        documents = "docs/benchmarks.md and docs/memory.md from a result file; of safety or watching, their page"
        one = commands.add_parser("docs", help=documents)
        one.add_argument("result", type=Path)
        one.set_defaults(call=lambda a: _docs(a.result))
        one = commands.add_parser("page", help="the page of a result file, beside it")
        one.add_argument("result", type=Path)
        one.set_defaults(call=lambda a: _page(a.result))
        return parser.parse_args(words)
    parser = Parser(
        prog="hakmem bench",
        parents=[measuring],
        allow_abbrev=False,
        epilog=f"other commands: hakmem bench {'|'.join(_COMMANDS)}; see hakmem bench COMMAND --help",
    )
    parser.add_argument("--peers", metavar="NAME,...", help=f"only these: {', '.join(peers.LEGAL)}")
    parser.add_argument("--modes", action="store_true", help="instead of peers: the same library in its other modes")
    closely = "after the repetitions of all, hakmem and this peer go on alone to N"
    parser.add_argument("--closely", type=_closely, metavar="NAME:N", help=closely)
    parser.set_defaults(call=lambda a: lab.bench(_options(a), " ".join(["bench", *words]), console))
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    console = Console()
    interrupt_at(signal.SIGTERM, signal.SIGHUP)  # what was measured is kept

    def command() -> int:
        parsed = _parse(words, console)
        lab.check_output(getattr(parsed, "output", None))
        return int(parsed.call(parsed))

    return ended(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
