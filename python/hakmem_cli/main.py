"""Arguments to commands."""

import argparse

from hakmem_cli import info, run, test
from hakmem_cli.say import CANNOT, CannotError, say

MODES = ("minimal", "fast", "balanced")


class _Parser(argparse.ArgumentParser):
    """Errors in one line, with our exit code."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise CannotError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="hakmem", description="Run programs on the hakmem memory allocator.", allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    run_parser = commands.add_parser("run", help="run a program with hakmem", allow_abbrev=False,
                                     usage="hakmem run [--mode M] -- PROGRAM ARGS...")
    run_parser.add_argument("--mode", choices=MODES, help="policy to run with (default: balanced)")
    run_parser.add_argument("program", nargs=argparse.REMAINDER, help="program and its arguments")
    run_parser.set_defaults(call=lambda a: run.run(a.program, a.mode))

    test_parser = commands.add_parser("test", help="build and run the tests", allow_abbrev=False)
    test_parser.add_argument("--all", action="store_true", help="the long ones too")
    test_parser.set_defaults(call=lambda a: test.test(include_long=a.all))

    info_parser = commands.add_parser("info", help="which binary, on which machine", allow_abbrev=False)
    info_parser.set_defaults(call=lambda a: info.info())
    return parser


def main(arguments: list[str]) -> int:
    try:
        parser = _parser()
        parsed = parser.parse_args(arguments)
        if parsed.version:
            print(info.version())
            return 0
        if parsed.command is None:
            parser.print_help()
            return CANNOT
        return int(parsed.call(parsed))
    except CannotError as error:
        say(str(error))
        return CANNOT
    except KeyboardInterrupt:
        return 130
