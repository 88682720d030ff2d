"""A small service to look at: threads that keep a known number of blocks and exchange others through a queue."""

from __future__ import annotations

import queue
import sys
import threading
import time

from service_sizes import BLOCKS, BYTES, LARGE

kept = [bytes(BYTES) for _ in range(BLOCKS)]
large = bytearray(LARGE)
handed: queue.Queue[bytes] = queue.Queue(1000)


def produce() -> None:
    while True:
        for size in (50, 700, 5000, 40000):
            handed.put(bytes(size))
        time.sleep(0.001)


def consume() -> None:
    while True:
        handed.get()


for work in (produce, produce, consume):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
