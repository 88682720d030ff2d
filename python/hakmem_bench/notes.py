"""Why hakmem is behind in a test, as bench/notes.json says: under the test's name, or "NAME memory"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hakmem_bench.markup import cell

_MEMORY = " memory"
_AS = re.compile(r"\bas ([a-z](?:[a-z0-9-]*[a-z0-9])?)\b(?! as)")
UNKNOWN = "not yet looked into"


def note_of(notes: dict[str, str], key: str) -> str:
    return notes.get(key, UNKNOWN)


def _named_in(notes: dict[str, str], key: str) -> list[str]:
    """What a note says is "as NAME": the note of the same value, if there is one."""
    suffix = _MEMORY if key.endswith(_MEMORY) else ""
    found = []
    for name in _AS.findall(notes.get(key, "")):
        found += [one for one in (name + suffix, name) if one in notes][:1]
    return found


def _referred(notes: dict[str, str], keys: Iterable[str]) -> list[str]:
    """All that these lead to, and that is not among them."""
    known = list(keys)
    listed = len(known)
    for key in known:  # grows meanwhile
        known += [name for name in dict.fromkeys(_named_in(notes, key)) if name not in known]
    return known[listed:]


def references(notes: dict[str, str], keys: Iterable[str]) -> str:
    """The notes that those of a table refer to and that do not stand in it themselves."""
    lines = []
    for key in _referred(notes, keys):
        name, _, memory = key.partition(_MEMORY[0])
        lines.append(f"- {cell(name)}, {'peak memory' if memory else 'time'}: {cell(notes[key])}")
    return "\n\nWhat the reasons refer to:\n\n" + "\n".join(lines) if lines else ""
