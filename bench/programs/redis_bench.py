"""redis-server under redis-benchmark, in the current directory.

    redis_bench.py REQUESTS

The server, and only the server, gets the variables of the JSON object HAK_BENCH_ENVIRONMENT. What counts is the time
of redis-benchmark and the server's largest resident set.

Debian's redis is linked with jemalloc. Whatever is preloaded comes before it, so for the C library's own malloc the C
library is preloaded. Two things prove who serves: the maps of the server, and what jemalloc says of itself in INFO.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

KEYS = 100_000
KINDS = "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset"
READY_SECONDS = 20
SOCKET = "redis.sock"
# A relative path: a socket's may have 107 characters only.
SERVER = ["redis-server", "--port", "0", "--unixsocket", SOCKET, "--save", "", "--appendonly", "no"]
SERVER += ["--daemonize", "no", "--loglevel", "warning", "--logfile", "redis.log"]


class BenchError(Exception):
    """Why there is no measurement."""


def fields_of(info: str) -> dict[str, str]:
    """The lines NAME:VALUE of redis's answer to INFO."""
    pairs = (line.strip().partition(":") for line in info.splitlines() if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}


def peak_kib(status: str) -> int:
    """The largest resident set that the text of /proc/PID/status knows."""
    match = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    if match is None:
        raise BenchError("no VmHWM in the status of redis-server")
    return int(match.group(1))


def libraries_of(preload: str) -> list[str]:
    """The files that LD_PRELOAD names."""
    return [word for word in re.split(r"[ :]+", preload) if word]


def mapped_files(maps: str) -> set[str]:
    """The files in the text of /proc/PID/maps."""
    lines = (line.split(maxsplit=5) for line in maps.splitlines())
    return {words[5] for words in lines if len(words) == 6 and words[5].startswith("/")}


def c_library() -> str:
    """The file of the C library of this process, which is the server's too."""
    for path in mapped_files(Path("/proc/self/maps").read_text()):
        if Path(path).name.startswith(("libc.so", "libc-")):
            return path
    raise BenchError("this Python has no C library of its own mapped")


def server_environment(added: dict[str, str]) -> dict[str, str]:
    """This process's environment and what is added, with something to preload in any case."""
    own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    result = {**own, **added, "LC_ALL": "C"}
    if not libraries_of(result.get("LD_PRELOAD", "")):
        result["LD_PRELOAD"] = c_library()
    return result


def check_mapped(libraries: list[str], maps: str) -> None:
    """What was to be preloaded is there, all of it."""
    mapped = mapped_files(maps)
    for library in libraries:
        if os.path.realpath(library) not in mapped:
            raise BenchError(f"redis-server does not have {library} mapped")


def check_served(libraries: list[str], info: dict[str, str]) -> None:
    """The jemalloc that redis is linked with did not serve, unless it is what was preloaded."""
    if "jemalloc" not in info.get("mem_allocator", ""):
        return
    if any(b"mallctl" in Path(library).read_bytes() for library in libraries):
        return  # redis asks that library then: its answer says nothing of the other
    served, used = int(info["allocator_allocated"]), int(info["used_memory"])
    if served > used // 10:
        raise BenchError(f"redis-server took {served} of {used} bytes from the jemalloc that it is linked with")


def ask(*words: str) -> str:
    """What redis-cli prints; nothing if it fails."""
    done = subprocess.run(["redis-cli", "-s", SOCKET, *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def wait_until_ready(server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while ask("PING") != "PONG":
        if server.poll() is not None:
            raise BenchError(f"redis-server ended with status {server.returncode}")
        if time.monotonic() > deadline:
            raise BenchError("redis-server does not answer")
        time.sleep(0.02)


def load(requests: int) -> float:
    """Runs redis-benchmark; seconds."""
    command = ["redis-benchmark", "-s", SOCKET, "-q", "-n", str(requests), "-r", str(KEYS), "-P", "16", "-d", "120"]
    start = time.monotonic()
    done = subprocess.run([*command, "-t", KINDS], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        raise BenchError(f"redis-benchmark ended with status {done.returncode}")
    return seconds


def measure(requests: int) -> dict[str, float]:
    environment = server_environment(json.loads(os.environ.get("HAK_BENCH_ENVIRONMENT", "{}")))
    libraries = libraries_of(environment["LD_PRELOAD"])
    server = subprocess.Popen(SERVER, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_until_ready(server)
        process = Path("/proc", str(server.pid))
        check_mapped(libraries, (process / "maps").read_text())
        seconds = load(requests)
        peak = peak_kib((process / "status").read_text())
        check_served(libraries, fields_of(ask("INFO")))
        ask("SHUTDOWN", "NOSAVE")
        if server.wait(30) != 0:
            raise BenchError(f"redis-server ended with status {server.returncode}")
    except (OSError, KeyError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"redis-server: {error}") from error
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    return {"seconds": round(seconds, 6), "peak_kib": peak}


def main() -> int:
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        print("usage: redis_bench.py REQUESTS", file=sys.stderr)
        return 2
    try:
        print("Sample =", json.dumps(measure(int(sys.argv[1]))))
    except (BenchError, OSError, ValueError) as error:
        print(f"redis_bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
