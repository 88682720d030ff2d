"""Why a process cannot be looked at. Each is a line that the user sees."""

from __future__ import annotations

from hakmem_cli.say import CannotError


class EndedError(CannotError):
    """The process is no more."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"process {pid} has ended")


class DeniedError(CannotError):
    """Its memory may not be read."""


class AbsentError(CannotError):
    """It does not use hakmem."""


class TornError(CannotError):
    """What was read makes no sense."""

    def __init__(self, pid: int, what: str) -> None:
        super().__init__(f"process {pid}: its memory changed while it was read, or is damaged: {what}")
