"""What was learned, as the text that src/learn/policy_text.h describes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from hakmem_cli.policy_lines import KINDS, Line, learned, number_of
from hakmem_cli.say import CannotError

FIRST = "hakmem-policy 1"
_COMMENT = "# What hakmem has learned (docs/learning.md). May be edited, merged and checked in."
LARGEST = 1 << 20
_EVIDENCE = ("epochs", "seconds", "saved")
_LEGAL = "program, build-id, size, epochs, seconds, saved, knob, class, site, end and comments"


@dataclass
class Part:
    """What is known of one program."""

    path: str
    build_id: str = ""
    size: int | None = None
    epochs: int = 0
    seconds: int = 0
    saved: int = 0  # of the cost, in millionths
    lines: list[Line] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, ...]:
        """The same for the same program."""
        return (self.build_id,) if self.build_id else (self.path, str(self.size))

    @property
    def name(self) -> str:
        what = f"build id {self.build_id[:12]}" if self.build_id else f"{self.size} bytes"
        return f"{self.path} ({what})"

    def is_called(self, name: str) -> bool:
        """By its path, the last word of that, or the beginning of its build id."""
        is_id = len(name) >= 4 and self.build_id.startswith(name)
        return name in (self.path, self.path.rpartition("/")[2]) or is_id

    @property
    def text(self) -> str:
        key = f"build-id {self.build_id}" if self.build_id else f"size {self.size}"
        evidence = [f"{name} {getattr(self, name)}" for name in _EVIDENCE]
        evidence[-1] += " # millionths of the cost"
        return "\n".join([f"program {self.path}", key, *evidence, *(line.text for line in self.lines), "end", ""])


def text_of(parts: list[Part]) -> str:
    return "\n".join([f"{FIRST}\n{_COMMENT}\n", *(part.text for part in parts)])


def _read_in_part(part: Part, words: list[str], comment: str) -> None:
    kind, *rest = words
    only = rest[0] if len(rest) == 1 else ""
    if kind in ("build-id", "size"):
        if part.build_id or part.size is not None:
            raise ValueError("a program has one build-id or size")
        if kind == "size":
            part.size = number_of(kind, only, (1 << 64) - 1)
        elif re.fullmatch("[0-9a-f]+", only):
            part.build_id = only
        else:
            raise ValueError("build-id needs hexadecimal digits")
    elif not part.build_id and part.size is None:
        raise ValueError("behind program comes build-id or size")
    elif kind in _EVIDENCE:
        setattr(part, kind, number_of(kind, only, 10**6 if kind == "saved" else (1 << 32) - 1))
    elif kind in KINDS:
        part.lines.append(learned(kind, rest, comment))
    else:
        raise ValueError(f"legal are {_LEGAL}")


class _Reader:
    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._open: Part | None = None
        self._has_begun = False
        self.number = 0  # of the line being read

    def read(self, line: str) -> None:
        self.number += 1
        stripped = line.strip(" \t")
        if self._has_begun and re.match(r"program(?=[ \t]|$)", stripped):
            self._begin(line.lstrip(" \t")[len("program") :].lstrip(" \t"))
            return
        text, comment = re.fullmatch(r"(.*?)(?:(?<![^ \t])#(.*))?", stripped).groups("")  # type: ignore[union-attr]
        words = re.findall(r"[^ \t]+", text)
        if not words:
            return
        if not self._has_begun:
            if not line.startswith(FIRST) or text.rstrip(" \t") != FIRST:
                raise ValueError(f'it does not begin with "{FIRST}"')
            self._has_begun = True
        elif self._open is None:
            raise ValueError("a program comes first")
        elif words == ["end"]:
            self._end(self._open)
        else:
            _read_in_part(self._open, words, comment.strip())

    def _begin(self, path: str) -> None:
        if self._open is not None:
            raise ValueError("the program before has no end")
        if not path.startswith("/"):
            raise ValueError("program needs an absolute path")
        self._open = Part(path)

    def _end(self, part: Part) -> None:
        if not part.build_id and part.size is None:
            raise ValueError("behind program comes build-id or size")
        if any(other.key == part.key for other in self.parts):
            raise ValueError("the same program twice")
        self.parts.append(part)
        self._open = None

    def finish(self) -> None:
        if not self._has_begun:
            raise ValueError("it is empty")
        if self._open is not None:
            raise ValueError("it is cut off: the last program has no end")


def parse(text: str, where: str) -> list[Part]:
    reader = _Reader()
    lines = text.split("\n")
    try:
        for line in lines[:-1] if lines[-1] == "" else lines:
            reader.read(line)
        reader.finish()
    except ValueError as wrong:
        raise CannotError(f"{where}: line {max(reader.number, 1)}: {wrong}") from wrong
    return reader.parts


def is_policy(text: str) -> bool:
    """Does it look like one? Whether it is sound is another question."""
    lines = (line.strip() for line in text.split("\n"))
    return next((line for line in lines if line and not line.startswith("#")), "").startswith("hakmem-policy")


def read_text(path: Path) -> str:
    """Paths of programs may hold any bytes."""
    try:
        if not path.is_file():
            kind = "no such file" if not path.exists() else "no regular file"
            raise CannotError(f"{path}: {kind}; legal is a file that --policy or HAKMEM_POLICY has made")
        if path.stat().st_size > LARGEST:
            raise CannotError(f"{path}: larger than 1 MiB; legal is a file that --policy or HAKMEM_POLICY has made")
        return path.read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise CannotError(f"{path}: {error.strerror}") from error


def read(path: Path) -> list[Part]:
    return parse(read_text(path), str(path))
