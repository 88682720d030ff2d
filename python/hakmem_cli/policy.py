"""`hakmem policy`: files of what was learned."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from hakmem_cli import files, policy_merge, policy_text, policy_words
from hakmem_cli.arguments import Parser
from hakmem_cli.policy_text import Part
from hakmem_cli.say import CannotError, printable, say


def _chosen(parts: list[Part], program: str | None, where: str) -> list[Part]:
    chosen = [part for part in parts if program is None or part.is_called(program)]
    if not chosen and program is not None:
        names = ", ".join(part.name for part in parts) or "no program"
        raise CannotError(f"{where}: has nothing of {program}; it has {names}")
    return chosen


def _bytes(parts: list[Part]) -> bytes:
    return policy_text.text_of(parts).encode(errors="surrogateescape")


def _write(parts: list[Part], output: str | None, *, force: bool) -> None:
    data = _bytes(parts)
    if len(data) > policy_text.LARGEST:
        raise CannotError(
            f"{output or 'the result'}: would be larger than 1 MiB, which nothing reads; merge fewer files"
        )
    if output is None:
        sys.stdout.buffer.write(data)
        return
    files.write(Path(output), data, force=force)
    say(f"written: {output} ({len(parts)} {'program' if len(parts) == 1 else 'programs'})")


def _show(parsed: argparse.Namespace) -> int:
    for name in parsed.files:
        parts = _chosen(policy_text.read(Path(name)), parsed.program, name)
        for part in parts:
            print(f"{printable(part.name)}\n  {policy_words.evidence(part)}")
            print("".join(f"  - {printable(sentence)}\n" for sentence in policy_words.sentences(part)))
        if not parts:
            print(f"{printable(name)}: no program")
    return 0


def _alone(output: str | None) -> AbstractContextManager[None]:
    """What is written over may be what is read, and a process may be about to save there."""
    return files.alone(Path(output)) if output is not None else nullcontext()


def _export(parsed: argparse.Namespace) -> int:
    with _alone(parsed.output):
        parts = _chosen(policy_text.read(Path(parsed.file)), parsed.program, parsed.file)
        _write(parts, parsed.output, force=parsed.force)
    return 0


def _merge(parsed: argparse.Namespace) -> int:
    with _alone(parsed.output):
        merged = policy_merge.merge([policy_text.read(Path(name)) for name in parsed.files])
        _write(merged, parsed.output, force=parsed.force)
    return 0


def _clear(parsed: argparse.Namespace) -> int:
    """A file of which nothing is left goes. One that is damaged goes too, if all of it shall."""
    for name in parsed.files:
        path = Path(name)
        with files.alone(path):
            what = _forget(path, name, parsed.program)
        say(f"{path}: {what}")
    return 0


def _forget(path: Path, name: str, program: str | None) -> str:
    if program is None:
        text = policy_text.read_text(path)
        if text and not policy_text.is_policy(text):  # a failure of power may leave an empty one
            raise CannotError(f"{path}: is no file of what was learned, and stays")
        gone, left = None, []
    else:
        parts = policy_text.read(path)
        gone = _chosen(parts, program, name)
        left = [part for part in parts if part not in gone]
    files.check_target(path, force=True)  # of a link only the link would go
    if left:
        files.write(path, _bytes(left), force=True)
    else:
        path.unlink()
    return "removed" if not left else f"forgotten: {', '.join(part.name for part in gone or [])}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(call=lambda parsed: parser.error("one of show, export, merge, clear"))
    actions = parser.add_subparsers(metavar="ACTION", dest="action", parser_class=Parser)
    one_program = argparse.ArgumentParser(add_help=False)
    one_program.add_argument("--program", metavar="NAME", help="only of this one: path, last word of it, or build id")
    output = argparse.ArgumentParser(add_help=False)
    output.add_argument("--output", metavar="FILE", help="where to write (default: standard output)")
    output.add_argument("--force", action="store_true", help="write over a file that exists")

    one = actions.add_parser("show", help="what was learned, in sentences", parents=[one_program], allow_abbrev=False)
    one.add_argument("files", metavar="FILE", nargs="+")
    one.set_defaults(call=_show)

    one = actions.add_parser(
        "export", help="a file of its own, to check in", parents=[one_program, output], allow_abbrev=False
    )
    one.add_argument("file", metavar="FILE")
    one.set_defaults(call=_export)

    one = actions.add_parser("merge", help="one policy of many machines'", parents=[output], allow_abbrev=False)
    one.add_argument("files", metavar="FILE", nargs="+")
    one.set_defaults(call=_merge)

    one = actions.add_parser("clear", help="forget", parents=[one_program], allow_abbrev=False)
    one.add_argument("files", metavar="FILE", nargs="+")
    one.set_defaults(call=_clear)
