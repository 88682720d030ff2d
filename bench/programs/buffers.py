"""Buffers handed from thread to thread: filled and compressed in some, unpacked and dropped in others; long integers.

    buffers.py COUNT

What is larger than 512 bytes comes from malloc whatever PYTHONMALLOC says.
"""

from __future__ import annotations

import queue
import random
import struct
import sys
import threading
import zlib

PAIRS = 2
KEPT = 300
FACTOR = 7**500
MASK = (1 << 8000) - 1


def pattern(source: random.Random) -> bytes:
    """Between 600 bytes and 64 KiB, small ones more often."""
    size = int(600 * (110 ** source.random()))
    words = [source.getrandbits(32) for _ in range(16)]
    return (struct.pack("<16I", *words) * (size // 64 + 1))[:size]


def produce(seed: int, count: int, out: queue.Queue[tuple[int, bytes] | None]) -> None:
    source = random.Random(seed)
    for _ in range(count):
        data = bytearray(pattern(source))
        data += data[::-3]
        out.put((zlib.crc32(data), zlib.compress(data, 1)))
    out.put(None)


def consume(incoming: queue.Queue[tuple[int, bytes] | None], answers: list[int]) -> None:
    kept: list[bytes] = []
    answer = 0
    number = 0
    while (item := incoming.get()) is not None:
        expected, packed = item
        data = zlib.decompress(packed)
        if zlib.crc32(data) != expected:
            answers.append(-1)
            return
        # The oldest of several hundred dies, not the newest: sizes mix.
        kept.append(data)
        if len(kept) > KEPT:
            del kept[number * 7 % KEPT]
        answer = (answer * 31 + expected) % (1 << 61)
        number += 1
    answers.append(answer)


def long_integers(count: int) -> int:
    """Numbers of a kilobyte, multiplied and cut."""
    value = 3**4000
    for i in range(count):
        value = (value * value + i) & MASK
        value = (value * FACTOR ^ (value << 3000)) & MASK
    return value % 1000003


def main() -> None:
    count = int(sys.argv[1])
    answers: list[int] = []
    threads = []
    for pair in range(PAIRS):
        between: queue.Queue[tuple[int, bytes] | None] = queue.Queue(64)
        threads.append(threading.Thread(target=produce, args=(pair, count, between)))
        threads.append(threading.Thread(target=consume, args=(between, answers)))
    for thread in threads:
        thread.start()
    numbers = long_integers(count)
    for thread in threads:
        thread.join()
    if len(answers) != PAIRS or -1 in answers:
        sys.exit("buffers.py: a buffer was damaged")
    print("checksum", sum(answers), numbers)


main()
