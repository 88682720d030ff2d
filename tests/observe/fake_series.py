"""Recorded series as the library and `hakmem stat --every` write them: a service that grows, from a seed."""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

MIB = 1 << 20
SIZES = [16, 32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 512, 1024, 2048, 4096, 8192, 16384, 32768]


def series(snapshots: int = 240, seed: int = 1, pid: int = 4711, more: bool = True) -> list[dict[str, Any]]:
    numbers = random.Random(seed)
    now_ms = time.time_ns() // 1_000_000
    told = []
    purged, requested, dirty, kept = 0, 0, 0, 0
    for at in range(snapshots):
        load = 0.5 + 0.5 * (at % 80 < 50)
        small = int((4 + 0.12 * at) * MIB + load * 20 * MIB * numbers.uniform(0.9, 1.1))
        large = int((8 + 24 * (at % 80 < 50)) * MIB)
        kept = 16 * MIB if at % 80 >= 50 and at % 80 < 65 else 2 * MIB
        dirty = int(dirty * 0.8 + numbers.uniform(0, 3) * MIB)
        if at % 80 in (66, 67, 68):
            purged += 12 * MIB
            dirty //= 4
        purged += int(numbers.uniform(0, 0.4) * MIB)
        requested += int(40 * MIB * load)
        told.append(
            {
                "schema": "hakmem-stats",
                "version": 1,
                "library": "0.1.0",
                "pid": pid,
                "unix_ms": now_ms - (snapshots - 1 - at) * 1000,
                "uptime_ms": 5000 + at * 1000,
                "memory": {
                    "small_live_bytes": small,
                    "large_live_bytes": large,
                    "cached_bytes": int(2.5 * MIB * load),
                    "slab_free_bytes": int((3 + 0.02 * at) * MIB + (1 - load) * 12 * MIB),
                    "stock_bytes": int(1.2 * MIB),
                    "bigcache_bytes": kept,
                    "dirty_bytes": dirty,
                    "metadata_bytes": int(1.1 * MIB),
                    "held_bytes": small + large,
                    "soft_limit_bytes": None,
                    "hard_limit_bytes": 128 * MIB,
                    "purged_bytes": purged,
                },
                "counters": {"requested_bytes": requested, "refills": at * 1000, "flushes": at * 900},
                "classes": [
                    {
                        "class": number,
                        "size": size,
                        "live_blocks": int(numbers.uniform(0.2, 1) * 1_200_000 / size**0.55),
                        "cached_blocks": int(numbers.uniform(0, 0.2) * 100_000 / size**0.6),
                        "slabs": 10,
                    }
                    for number, size in enumerate(SIZES)
                ],
                "threads": [],
                "locks": [],
                "os": {"mmap": 12, "madvise": at // 10},
                "profile": {"rate_bytes": 0, "samples": 0, "live_samples": 0, "dropped": 0},
            }
        )
    if more:
        told[-1]["superslabs"] = [{"index": index, "units": units(numbers)} for index in range(34)]
        start = told[0]["unix_ms"]
        told[-1]["decisions"] = [
            {"unix_ms": start + 66_000, "text": "purge delay 1000 ms to 400 ms: freed memory was not used again"},
            {"unix_ms": start + 150_000, "text": "class 48: magazines from 64 to 128 blocks"},
        ]
    return told


def units(numbers: random.Random) -> list[list[Any]]:
    found: list[list[Any]] = []
    while len(found) < 128:
        what = numbers.choices(["slab", "large", "kept", "stock", "dirty", "free", "hole"], [60, 14, 3, 3, 6, 12, 2])[0]
        length = min(numbers.choice([1, 1, 2, 4, 8, 16]) * (3 if what == "large" else 1), 128 - len(found))
        number = numbers.randrange(len(SIZES))
        fill = round(numbers.betavariate(2, 0.8), 2)
        found += [[number, fill] if what == "slab" else [what, 1 if what in ("large", "kept") else 0]] * length
    return found


def text(told: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in told)


if __name__ == "__main__":
    sys.stdout.write(text(series()))
