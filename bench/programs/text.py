"""Text: JSON written and read, regular expressions, splitting and joining.

text.py ROUNDS
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from typing import Any

RECORDS = 1500
LINE = re.compile(r"(?P<host>\d+\.\d+\.\d+\.\d+) - (?P<user>\w+) \[(?P<when>[^\]]+)\] \"(?P<verb>\w+) (?P<path>\S+)")
WORDS = "allocate release buffer page thread cache block arena table index query result stream packet".split()


def record(source: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"{source.choice(WORDS)} {source.choice(WORDS)}",
        "scores": [source.random() for _ in range(source.randrange(2, 12))],
        "nested": {w: {"count": source.randrange(1000), "note": w * source.randrange(1, 9)} for w in WORDS[:5]},
        "text": " ".join(source.choices(WORDS, k=source.randrange(10, 120))),
    }


def log_line(source: random.Random, number: int) -> str:
    host = ".".join(str(source.randrange(256)) for _ in range(4))
    path = "/".join(source.choices(WORDS, k=4))
    return f'{host} - user{number % 301} [21/Nov/2026:10:{number % 60:02d}] "GET /{path}?q={number} HTTP/1.1" 200'


def through_json(records: list[dict[str, Any]]) -> int:
    """Writes and reads the records; how long the text was."""
    text = json.dumps(records, indent=1)
    if json.loads(text) != records:
        sys.exit("text.py: JSON changed the records")
    return len(text)


def through_expressions(lines: list[str]) -> Counter[str]:
    """What the paths of the log consist of."""
    found: Counter[str] = Counter()
    for line in lines:
        match = LINE.match(line)
        if match is None:
            sys.exit("text.py: a line was not recognised")
        fields = match.groupdict()
        found.update(re.split(r"[/?=]", fields["path"]))
        found[re.sub(r"\d+", "#", fields["user"] + fields["when"])] += 1
    return found


def main() -> None:
    rounds = int(sys.argv[1])
    source = random.Random(11)
    size = 0
    kinds = 0
    for turn in range(rounds):
        records = [record(source, turn * RECORDS + i) for i in range(RECORDS)]
        size += through_json(records)
        lines = [log_line(source, i) for i in range(RECORDS * 4)]
        kinds += len(through_expressions("\n".join(lines).split("\n")))
        upper = re.sub(r"\b(\w)(\w*)", lambda m: m[1].upper() + m[2], " ".join(r["text"] for r in records))
        size += len(upper)
    print("checksum", size, kinds)


main()
