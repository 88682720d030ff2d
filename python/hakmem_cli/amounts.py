"""Numbers in words, as all of the commands write them."""


def grouped(value: float) -> str:
    """Whole, with blanks between thousands."""
    return f"{round(value):,}".replace(",", " ")


def plural(number: float, one: str, many: str = "") -> str:
    return f"{grouped(number)} {one if number == 1 else many or f'{one}s'}"


def long_duration(seconds: int) -> str:
    """Of a minute at least; two units."""
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    if seconds < 86400:
        return f"{seconds // 3600} h {seconds // 60 % 60:02} min"
    return f"{grouped(seconds // 86400)} d {seconds // 3600 % 24:02} h"
