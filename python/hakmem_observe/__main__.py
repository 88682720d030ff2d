"""Arguments to the commands that look from outside. Each command's module is loaded only if it is asked for."""

from __future__ import annotations

import signal

# An interrupt while modules are loaded is no error to show. Where it is ignored it stays so.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import importlib  # noqa: E402
import sys  # noqa: E402

from hakmem_cli.arguments import Parser, ended, interrupt_at  # noqa: E402
from hakmem_cli.say import CannotError  # noqa: E402

# The module of a command has USE, add_arguments(parser) and a function of the command's name.
COMMANDS = ("stat", "top", "doctor", "prof", "report", "explain")


def run(words: list[str]) -> int:
    if not words or words[0] not in COMMANDS:
        raise CannotError(f"{words[0] if words else 'nothing'}: no such command; legal are {', '.join(COMMANDS)}")
    name = words[0]
    module = importlib.import_module(f"hakmem_observe.{name}")
    parser = Parser(prog=f"hakmem {name}", description=module.__doc__, allow_abbrev=False, usage=module.USE)
    module.add_arguments(parser)
    # Whatever ends a command, what it has asked of a process is withdrawn, and what it has made there is removed.
    interrupt_at(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return int(getattr(module, name)(parser.parse_args(words[1:])))


def main(words: list[str]) -> int:
    return ended(lambda: run(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
