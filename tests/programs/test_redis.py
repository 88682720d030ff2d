"""redis-server under redis-benchmark with saves in between, and the data it keeps.

Debian's redis is linked with jemalloc, whose malloc a preloaded library replaces. Which one serves is read from
redis itself: it asks jemalloc how many bytes it has allocated (allocator_allocated), and that stays next to
nothing when malloc is someone else's.
"""

from __future__ import annotations

import subprocess
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import ProgramTest, environment, maps_library

KEYS = 40000


def commands() -> str:
    """Commands that build, change and delete values of all types, the same every time."""
    lines: list[str] = []
    for i in range(KEYS):
        lines.append(f"SET string:{i} {'v' * (i % 700)}{i}")
        if i % 2 == 0:
            lines.append(f"APPEND string:{i // 2} {'w' * (i % 90)}")
        if i % 3 == 0:
            lines.append(f"HSET hash:{i % 500} field{i} {'x' * (i % 150)}")
            lines.append(f"ZADD zset:{i % 50} {i * 7 % 1000} member{i}")
        if i % 4 == 0:
            lines.append(f"RPUSH list:{i % 100} {'y' * (i % 300)}{i}")
            lines.append(f"SADD set:{i % 77} {i}")
        if i % 5 == 0:
            lines.append(f"DEL string:{i // 3}")
        if i % 1000 == 999:
            lines.append(f"LTRIM list:{i % 100} 0 20")
            lines.append(f"DEL hash:{i % 500}")
    return "\n".join(lines) + "\n"


class Server:
    """A running redis-server, reached through a socket in its directory."""

    def __init__(self, directory: Path, preload: bool, *more: str) -> None:
        self.socket = directory / "redis.sock"
        options = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(directory), "--save", ""]
        options += ["--daemonize", "no", "--enable-debug-command", "yes", "--loglevel", "warning", *more]
        self.process = subprocess.Popen(["redis-server", *options], env=environment(preload), stdout=subprocess.DEVNULL)

    def cli(self, *arguments: str, text: str | None = None) -> str:
        """What redis-cli prints; it runs without the library."""
        command = ["redis-cli", "-s", str(self.socket), *arguments]
        done = subprocess.run(command, env=environment(False), input=text, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                if self.cli("PING") == "PONG":
                    return
            except subprocess.CalledProcessError:
                pass
            time.sleep(0.05)
        raise AssertionError("redis-server does not answer")

    def info(self, field: str) -> str:
        for line in self.cli("INFO").splitlines():
            name, _, value = line.strip().partition(":")
            if name == field:
                return value
        raise AssertionError(f"redis has no {field}")

    def save_in_background(self) -> None:
        """A BGSAVE from start to success."""
        self.cli("BGSAVE")
        deadline = time.monotonic() + 120
        while self.info("rdb_bgsave_in_progress") != "0":
            if time.monotonic() > deadline:
                raise AssertionError("BGSAVE does not end")
            time.sleep(0.05)
        if self.info("rdb_last_bgsave_status") != "ok":
            raise AssertionError("BGSAVE failed")


@contextmanager
def redis(directory: Path, preload: bool, *more: str) -> Iterator[Server]:
    """A server that is shut down in order at the end, if nothing went wrong before."""
    server = Server(directory, preload, *more)
    try:
        server.wait_until_ready()
        yield server
        server.cli("SHUTDOWN", "NOSAVE")
        if server.process.wait(60) != 0:
            raise AssertionError(f"redis-server ended with status {server.process.returncode}")
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


class Redis(ProgramTest):
    title = "redis"
    packages = ("redis-server", "redis-tools")
    programs = ("redis-server", "redis-cli", "redis-benchmark")
    version = ("redis-server", "--version")
    quick = True

    def benchmark_and_save(self, server: Server) -> None:
        """redis-benchmark with saves while it runs."""
        command = ["redis-benchmark", "-s", str(server.socket), "-q", "-n", "40000", "-r", "100000", "-d", "120"]
        command += ["-P", "8", "-t", "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset"]
        with subprocess.Popen(command, env=environment(False), stdout=subprocess.DEVNULL) as benchmark:
            saves = 0
            while benchmark.poll() is None:
                server.save_in_background()
                saves += 1
        self.assertEqual(benchmark.returncode, 0)
        self.assertGreater(saves, 0)

    def check_who_serves(self, server: Server, preload: bool) -> None:
        self.assertEqual(maps_library(server.process.pid), preload)
        if "jemalloc" not in server.info("mem_allocator"):
            return
        used = int(server.info("used_memory"))
        from_jemalloc = int(server.info("allocator_allocated"))
        self.assertGreater(used, 10 << 20)
        if preload:
            self.assertLess(from_jemalloc, used // 10)
        else:
            self.assertGreater(from_jemalloc, used // 2)

    def digest_after_work(self, preload: bool) -> str:
        """Has a server work hard; the digest of all it knows at the end, which must survive in its file."""
        directory = self.directory / ("with" if preload else "without")
        directory.mkdir()
        with redis(directory, preload) as server:
            self.benchmark_and_save(server)
            server.cli("FLUSHALL")
            server.cli(text=commands())
            self.check_who_serves(server, preload)
            server.save_in_background()
            digest = server.cli("DEBUG", "DIGEST")
        with redis(directory, False) as server:
            self.assertEqual(server.cli("DEBUG", "DIGEST"), digest)
        return digest

    def test_benchmark_saves_and_data(self) -> None:
        """redis-benchmark -P 8 during BGSAVE, then 130,000 commands; the data's digest, and again after a reload"""
        self.assertEqual(self.digest_after_work(True), self.digest_after_work(False))


class RedisAppendOnly(ProgramTest):
    title = "redis"
    packages = ("redis-server", "redis-tools")
    programs = ("redis-server", "redis-cli", "redis-benchmark")
    version = ("redis-server", "--version")

    options = ("--appendonly", "yes", "--appendfsync", "no", "--io-threads", "2", "--activedefrag", "no")

    def rewrite(self, server: Server) -> None:
        """A rewrite of the append-only file from start to success."""
        server.cli("BGREWRITEAOF")
        deadline = time.monotonic() + 120
        while server.info("aof_rewrite_in_progress") != "0" or server.info("aof_rewrite_scheduled") != "0":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual(server.info("aof_last_bgrewrite_status"), "ok")

    def digest(self, preload: bool) -> str:
        directory = self.directory / ("with" if preload else "without")
        directory.mkdir()
        with redis(directory, preload, *self.options) as server:
            self.assertEqual(maps_library(server.process.pid), preload)
            command = [
                "redis-benchmark",
                "-s",
                str(server.socket),
                "-q",
                "-n",
                "200000",
                "-r",
                "50000",
                "-P",
                "16",
                "-c",
                "50",
            ]
            with subprocess.Popen([*command, "-d", "200"], env=environment(False), stdout=subprocess.DEVNULL) as load:
                while load.poll() is None:
                    self.rewrite(server)
            self.assertEqual(load.returncode, 0)
            server.cli("FLUSHALL")
            server.cli(text=commands())
            self.rewrite(server)
            server.cli(text=commands())
            digest = server.cli("DEBUG", "DIGEST")
        with redis(directory, preload, *self.options) as server:
            self.assertEqual(server.cli("DEBUG", "DIGEST"), digest)
        return digest

    def test_append_only_file(self) -> None:
        """redis-benchmark -P 16 -c 50, all tests, during rewrites of the append-only file; the data after a restart"""
        self.assertEqual(self.digest(True), self.digest(False))


if __name__ == "__main__":
    unittest.main()
