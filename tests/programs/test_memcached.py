"""memcached with eight threads and eight clients, which check what they read."""

from __future__ import annotations

import hashlib
import random
import socket
import threading
import unittest
from pathlib import Path

from programs import ProgramTest, maps_library
from servers import accepts, server

CLIENTS = 8
OPERATIONS = 6000


class Client(threading.Thread):
    """Sets, reads and deletes keys of its own; remembers in a digest what it was told."""

    def __init__(self, path: Path, number: int) -> None:
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        self.socket.connect(str(path))
        self.stream = self.socket.makefile("rwb")
        self.number = number
        self.digest = hashlib.sha256()
        self.error: BaseException | None = None

    def ask(self, line: str, body: bytes | None = None) -> bytes:
        self.stream.write(line.encode() + b"\r\n" + (body + b"\r\n" if body is not None else b""))
        self.stream.flush()
        answer = self.stream.readline()
        if answer.startswith(b"VALUE"):
            size = int(answer.split()[3])
            answer += self.stream.read(size + 2) + self.stream.readline()
        return answer

    def work(self) -> None:
        chance = random.Random(self.number)
        for i in range(OPERATIONS):
            key = f"{self.number}:{chance.randrange(500)}"
            choice = chance.randrange(10)
            if choice < 4:
                body = str(i).encode() * chance.randrange(1, 4000)
                answer = self.ask(f"set {key} 7 0 {len(body)}", body)
            elif choice < 5:
                answer = self.ask(f"append {key} 0 0 3", b"end")
            elif choice < 6:
                answer = self.ask(f"delete {key}")
            else:
                answer = self.ask(f"get {key}")
            self.digest.update(answer)

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.error = error
        finally:
            self.socket.close()


class Memcached(ProgramTest):
    title = "memcached"
    packages = ("memcached",)
    programs = ("memcached",)
    version = ("memcached", "--version")

    def answers(self, preload: bool) -> list[str]:
        path = self.directory / ("with" if preload else "without")
        command = ["memcached", "-s", str(path), "-a", "666", "-t", "8", "-m", "512", "-u", "root"]
        log = self.directory / "log"
        with server(command, preload=preload, ready=lambda: accepts(path), log=log) as process:
            self.assertEqual(maps_library(process.pid), preload)
            clients = [Client(path, number) for number in range(CLIENTS)]
            for client in clients:
                client.start()
            for client in clients:
                client.join(300)
                self.assertIsNone(client.error)
            return [client.digest.hexdigest() for client in clients]

    def test_clients(self) -> None:
        """8 threads, 8 clients that set, append, read and delete; all answers compared"""
        self.assertEqual(self.answers(True), self.answers(False))


if __name__ == "__main__":
    unittest.main()
