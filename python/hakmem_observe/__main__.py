"""Arguments to the commands that look from outside. Each command's module is loaded only if it is asked for."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import NoReturn

from hakmem_cli.say import CANNOT, CannotError, say

# The module of a command has USE, add_arguments(parser) and a function of the command's name.
COMMANDS = ("stat", "top", "doctor", "prof", "report")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        usage = " ".join(self.format_usage().split()).replace("usage:", "use:", 1)
        raise CannotError(f"{message}; {usage}")


def main(words: list[str]) -> int:
    try:
        if not words or words[0] not in COMMANDS:
            raise CannotError(f"{words[0] if words else 'nothing'}: no such command; legal are {', '.join(COMMANDS)}")
        name = words[0]
        module = importlib.import_module(f"hakmem_observe.{name}")
        parser = _Parser(prog=f"hakmem {name}", description=module.__doc__, allow_abbrev=False, usage=module.USE)
        module.add_arguments(parser)
        return int(getattr(module, name)(parser.parse_args(words[1:])))
    except CannotError as error:
        say(str(error))
        return CANNOT
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
