"""`hakmem prof`: which code allocates how much."""

from __future__ import annotations

import argparse

from hakmem_cli.arguments import whole_number
from hakmem_cli.say import CannotError
from hakmem_observe import prof_actions, profile_files, waiting
from hakmem_observe.stacks import VALUES

USE = "hakmem prof start|stop|dump PID, hakmem prof convert|show FILE; each has --help"

_LARGEST_RATE = 1 << 40


def _rate(text: str) -> int:
    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].upper() in tuple("KMG") else (text, "")
    shift = {"": 0, "K": 10, "M": 20, "G": 30}[unit]
    rate = whole_number(number, 1, _LARGEST_RATE >> shift)
    if rate is not None:
        return rate << shift
    raise argparse.ArgumentTypeError(f"{text[:40]}: legal are 1 to {_LARGEST_RATE} bytes, also as 64K, 1M, 1G")


def _rows(text: str) -> int:
    rows = whole_number(text, 1, 100_000)
    if rows is None:
        raise argparse.ArgumentTypeError(f"{text[:40]}: legal are 1 to 100000")
    return rows


def _output_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--output", metavar="FILE", help="where to write (default: in this directory)")
    options.add_argument(
        "--format", choices=list(profile_files.FORMATS), default="pprof", help="of what is written (default: pprof)"
    )
    options.add_argument("--what", choices=VALUES, help="which bytes collapsed stacks carry (default: live)")
    options.add_argument("--force", action="store_true", help="write over a file that exists")
    return options


def _process_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("pid", metavar="PID")
    waiting.add_argument(options)
    return options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True, prog="hakmem prof")
    process, output = _process_options(), _output_options()

    one = actions.add_parser("start", help="start a process's profiler", parents=[process], allow_abbrev=False)
    one.add_argument("--rate", type=_rate, default=0, metavar="BYTES", help="between samples (default: 512K)")
    one.set_defaults(call=prof_actions.start)

    one = actions.add_parser("stop", help="stop it; what was sampled stays", parents=[process], allow_abbrev=False)
    one.set_defaults(call=prof_actions.stop)

    one = actions.add_parser("dump", help="write its profile", parents=[process, output], allow_abbrev=False)
    one.set_defaults(call=prof_actions.dump)

    one = actions.add_parser("convert", help="a profile in another form", parents=[output], allow_abbrev=False)
    one.add_argument("file", metavar="FILE")
    one.set_defaults(call=prof_actions.convert)

    one = actions.add_parser("show", help="a profile on the terminal", allow_abbrev=False)
    one.add_argument("file", metavar="FILE")
    one.add_argument("--what", choices=VALUES, help="which bytes to sort by (default: live, if there are any)")
    one.add_argument("--top", type=_rows, default=20, metavar="N", help="so many sites (default: 20)")
    one.set_defaults(call=prof_actions.show_file)


def prof(parsed: argparse.Namespace) -> int:
    if getattr(parsed, "format", "collapsed") != "collapsed" and parsed.what:
        raise CannotError(f"--what {parsed.what}: only with --format collapsed; the other formats carry all values")
    return int(parsed.call(parsed))
