"""Arguments of the commands."""

from __future__ import annotations

import argparse
from typing import NoReturn

from hakmem_cli.say import CannotError


class Parser(argparse.ArgumentParser):
    """Errors in one line that says what is legal."""

    def error(self, message: str) -> NoReturn:
        usage = " ".join(self.format_usage().split()).replace("usage:", "use:", 1)
        raise CannotError(f"{message}; {usage}")
