"""What was learned, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hakmem_cli.amounts import long_duration, plural
from hakmem_cli.policy_lines import BINS, Line
from hakmem_cli.policy_text import Part


def _class_sizes() -> Iterator[int]:
    """src/config/size_class.h: 8, then steps of 16 to 128, then four per doubling to 32 KiB; and one more."""
    size = 8
    while size <= 32768:
        yield size
        size = 16 if size < 16 else size + 16 if size < 128 else size + (1 << (size.bit_length() - 1)) // 4
    yield 4608


SIZES = tuple(sorted(_class_sizes()))


def count_bytes(value: int) -> str:
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 1 << shift:
            return f"{value / (1 << shift):.3g} {unit}"
    return f"{value} B"


def duration(ms: int) -> str:
    if ms < 1000:
        return f"{ms} ms"
    return f"{ms / 1000:g} s" if ms < 60_000 else long_duration(ms // 1000)


def share(millionths: float) -> str:
    return f"{millionths / 10000:.1f} %"


def _of_classes(first: int, last: int) -> str:
    sizes = [count_bytes(SIZES[i]) if i < len(SIZES) else f"class {i}" for i in (first, last)]
    return f"blocks of {sizes[0]}" if first == last else f"blocks of {sizes[0]} to {sizes[1]}"


def _of_bins(first: int, last: int) -> str:
    low = count_bytes(32768 << first)
    return f"blocks above {low}" if last >= BINS - 1 else f"blocks of {low} to {count_bytes(65536 << last)}"


def _eighths(value: int) -> str:
    return {1: "an eighth", 2: "a quarter", 4: "half", 6: "three quarters", 8: "all"}.get(value, f"{value} eighths")


def _magazine(value: int, of: str) -> str:
    return f"A thread's magazine for {of} holds up to {count_bytes(value)}."


def _batch(value: int, of: str) -> str:
    return f"A refill fills, and a flush gives back, {_eighths(value)} of a thread's magazine for {of}."


def _thread_cache(value: int, of: str) -> str:
    return f"All magazines of a thread together hold up to {count_bytes(value)}."


def _bigcache(value: int, of: str) -> str:
    return (
        f"Freed large blocks are kept for reuse, up to {count_bytes(value)} of them."
        if value
        else "No freed large block is kept."
    )


def _age(value: int, of: str) -> str:
    return f"Freed {of} are kept for {duration(value)}." if value else f"Freed {of} are not kept."


def _kept_most(value: int, of: str) -> str:
    return f"Freed blocks of more than {count_bytes(value)} go back to the system at once."


def _purge(value: int, of: str) -> str:
    return f"Free memory keeps its pages for {duration(value)}."


def _doublings(value: int, of: str) -> str:
    if value == 0:
        return "That time stays as it is, however soon pages are taken again."
    times = 1 << value if value < 64 else f"2^{value}"
    return f"That time grows up to {times} times as long while pages are taken again soon."


def _huge_fill(value: int, of: str) -> str:
    return f"Two MiB that are all in use become a huge page when {value} % of them are in memory."


# How each knob is told, and what its index means.
KNOBS: dict[str, tuple[Callable[[int, str], str], Callable[[int, int], str] | None]] = {
    "magazine_bytes": (_magazine, _of_classes),
    "batch_eighths": (_batch, _of_classes),
    "thread_cache_bytes": (_thread_cache, None),
    "bigcache_bytes": (_bigcache, None),
    "bigcache_ms": (_age, _of_bins),
    "kept_most_bytes": (_kept_most, None),
    "purge_ms": (_purge, None),
    "purge_doublings": (_doublings, None),
    "huge_fill": (_huge_fill, None),
}


def _values(lines: list[Line]) -> dict[str, dict[int | None, int]]:
    """Of each knob, by index; later lines count, as when they are loaded."""
    found: dict[str, dict[int | None, int]] = {}
    for line in lines:
        if line.kind == "knob":
            values = found.setdefault(line.knob, {})
            if line.index is None:
                values.clear()
            values[line.index] = int(line.rest)
    return found


def _runs(values: dict[int | None, int]) -> Iterator[tuple[int, int, int]]:
    """First and last index with the same value, which are neighbours."""
    run: tuple[int, int, int] | None = None
    for index, value in sorted((index, value) for index, value in values.items() if index is not None):
        if run is not None and run[1] + 1 == index and run[2] == value:
            run = (run[0], index, value)
            continue
        if run is not None:
            yield run
        run = (index, index, value)
    if run is not None:
        yield run


def _knob_sentences(name: str, values: dict[int | None, int]) -> Iterator[str]:
    if name not in KNOBS:
        yield from (f"{name} is {value}." for value in values.values())
        return
    say, of = KNOBS[name]
    if None in values:
        yield say(values[None], "blocks of any size" if of is _of_classes else "large blocks")
    for first, last, value in _runs(values):
        yield say(value, of(first, last) if of is not None else "")


def knob_sentences(lines: list[Line]) -> list[str]:
    return [text for name, values in _values(lines).items() for text in _knob_sentences(name, values)]


def sentences(part: Part) -> list[str]:
    """What is in force when this is loaded."""
    found = knob_sentences(part.lines)
    classes = [line.name for line in part.lines if line.kind == "class"]
    if classes:
        sizes = ", ".join(f"{size} B" for size in classes)
        own = "a size class of their own" if len(classes) == 1 else "size classes of their own"
        found.append(f"Blocks of {sizes} have {own}.")
    times: dict[str, int] = {}
    for line in part.lines:
        if line.kind == "site":
            times[line.rest.removeprefix("keep ")] = times.get(line.rest.removeprefix("keep "), 0) + 1
    for keep, sites in sorted(times.items()):
        of = f"Freed large blocks of {sites} call {'site' if sites == 1 else 'sites'}"
        found.append(f"{of} are kept {keep} times as long as others." if keep != "0" else f"{of} are not kept.")
    return found or ["Nothing was found that is better than the mode's own values."]


def evidence(part: Part) -> str:
    saved = (
        f"it saved {share(part.saved)} of what the allocator cost"
        if part.saved
        else "how much it saves was not measured"
    )
    if part.epochs == 0:
        return f"It names no epochs in which it was learned; {saved}."
    return f"Learned in {plural(part.epochs, 'epoch')} over {duration(part.seconds * 1000)}; {saved}."
