"""Arguments to commands."""

from __future__ import annotations

import argparse
import signal

from hakmem_cli import fuzz, info, policy, programs, run, soak, symbolize, test, venv
from hakmem_cli.arguments import Parser, ended, number_between
from hakmem_cli.modes import MODES
from hakmem_cli.say import CannotError

_OBSERVERS = {
    "stat": "statistics of a running process, or of a file of them",
    "top": "watch a running process",
    "doctor": "is the library really in use?",
    "prof": "which code of a running process allocates how much",
    "report": "profiles and recorded statistics as one page",
    "explain": "what was learned, from what, and what it saved, in sentences",
}


def _test(everything: bool, names: list[str] | None, check: bool) -> int:
    if check and names is None:
        raise CannotError("test --check: only with --programs; use: hakmem test --programs [NAME ...] --check")
    return test.test(everything=everything) if names is None else programs.matrix(names, check=check)


def _run(parsed: argparse.Namespace) -> int:
    how = run.How(parsed.mode, parsed.check, parsed.hardened, parsed.stats, parsed.live, parsed.policy)
    return run.run(parsed.program, how)


def _minutes(text: str) -> float:
    minutes = number_between(text, 0.01, 100000)
    if minutes is None:
        raise argparse.ArgumentTypeError(f"{text!r} is none of 0.01 to 100000")
    return minutes


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:20]) < 1 << 32:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is none of 1 to {(1 << 32) - 1}")
    return int(text)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="hakmem", description="Run programs on the hakmem memory allocator.", allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.set_defaults(call=None)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    run_parser = commands.add_parser("run", help="run a program with hakmem", allow_abbrev=False, usage=run.USE)
    run_parser.add_argument("--mode", choices=MODES, help="how much is cached; does it learn? (default: balanced)")
    run_parser.add_argument("--policy", metavar="FILE", help="what was learned: loaded, and saved if --mode learning")
    run_parser.add_argument("--check", action="store_true", help="look for memory bugs, and report them (slower)")
    run_parser.add_argument("--hardened", action="store_true", help="with the library that stops attackers (slower)")
    run_parser.add_argument("--stats", metavar="FILE", help="add statistics there, one a second at most (JSON)")
    run_parser.add_argument("--live", action="store_true", help="for `hakmem top` where memory may not be read")
    run_parser.add_argument("program", nargs=argparse.REMAINDER, help="program and its arguments")
    run_parser.set_defaults(call=_run)

    test_parser = commands.add_parser("test", help="build and run the tests", allow_abbrev=False)
    which = test_parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="the long ones and all programs too")
    which.add_argument("--programs", nargs="*", metavar="NAME", help="only real programs: all, or those named")
    test_parser.add_argument("--check", action="store_true", help="with --programs: in check mode")
    test_parser.set_defaults(call=lambda a: _test(a.all, a.programs, a.check))

    fuzz_parser = commands.add_parser("fuzz", help="look for inputs that fail", allow_abbrev=False)
    fuzz_parser.add_argument("names", nargs="*", metavar="NAME", help="which fuzzers (default: all)")
    fuzz_parser.add_argument("--minutes", type=_minutes, default=1.0, metavar="N", help="of each (default: 1)")
    fuzz_parser.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="of what is tried (default: another each time)"
    )
    fuzz_parser.add_argument("--keep", action="store_true", help="keep what was reached in the corpora")
    fuzz_parser.set_defaults(call=lambda a: fuzz.fuzz(a.names, a.minutes, a.seed, keep=a.keep))

    info_parser = commands.add_parser("info", help="which binary, on which machine", allow_abbrev=False)
    info_parser.set_defaults(call=lambda a: info.info())

    policy_parser = commands.add_parser("policy", help="files of what was learned", allow_abbrev=False)
    policy.add_arguments(policy_parser)

    symbolize_parser = commands.add_parser("symbolize", help="name functions and lines in a report", allow_abbrev=False)
    symbolize_parser.add_argument("file", nargs="?", help="the report (default: standard input)")
    symbolize_parser.set_defaults(call=lambda a: symbolize.symbolize(a.file))

    # Their words are the lab's, the observers' and the soak's own, --help too: see main().
    commands.add_parser("bench", help="measure allocators side by side", add_help=False)
    for name, what in _OBSERVERS.items():
        commands.add_parser(name, help=what, add_help=False)
    commands.add_parser("soak", help="a long checked run: threads, sizes and phases change", add_help=False)

    parsed, unknown = parser.parse_known_args(arguments)
    if unknown:
        commands.choices.get(parsed.command, parser).error(f"unknown argument {unknown[0]}")
    if parsed.version:
        parsed.call = lambda a: info.print_version()
    elif parsed.call is None:
        parser.error("no command given")
    return parsed


def _main(arguments: list[str]) -> int:
    # The script that loads this module has set it to just end the process.
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if arguments[:1] == ["bench"]:
        venv.LAB.become(arguments[1:])
    if arguments[:1] and arguments[0] in _OBSERVERS:
        venv.OBSERVE.become(arguments)
    if arguments[:1] == ["soak"]:
        return soak.soak(arguments[1:])
    parsed = _parse(arguments)
    return int(parsed.call(parsed))


def main(arguments: list[str]) -> int:
    return ended(lambda: _main(arguments))
