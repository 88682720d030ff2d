"""Numbers as people read them."""

from __future__ import annotations

_STEPS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: float) -> str:
    """Three digits and a unit."""
    number, unit = float(count), _STEPS[0]
    for unit in _STEPS:
        if abs(number) < 999.5 or unit == _STEPS[-1]:
            break
        number /= 1024
    if unit == "B" or abs(number) >= 99.95:
        return f"{number:.0f} {unit}"
    return f"{number:.1f} {unit}" if abs(number) >= 9.995 else f"{number:.2f} {unit}"


def count(number: int) -> str:
    return f"{number:,}"


def duration(ms: float) -> str:
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    first = next(at for at, (number, _) in enumerate(parts) if number)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number)


def printable(text: str) -> str:
    """Names come from files that others wrote: nothing in them may move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
