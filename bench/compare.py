#!/usr/bin/env python3
"""Interleaved comparison of allocators on random_mixed, larson and start-up.

    bench/compare.py [--runs N] [--json FILE]

In each repetition every allocator runs every test once, in an order that rotates; what counts is the ratio
of hakmem to a peer within a repetition, as a median with a bootstrap 95 % interval. Absolute figures depend
on the machine and the hour.
"""

import argparse
import datetime
import glob
import json
import os
import platform
import random
import re
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "build" / "release" / "libhakmem.so"
PROGRAMS = ROOT / "build" / "release" / "bench"
OURS = "hakmem"

# Peer: file to preload, Debian package that says its version.
PEERS = {
    "glibc": ("", "libc6"),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0"),
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
}

TESTS = {
    "random_mixed, 8192 slots": ["random_mixed", "60000000", "mixed", "42", "--slots", "8192"],
    "random_mixed, 1000000 slots": ["random_mixed", "20000000", "mixed", "42", "--slots", "1000000"],
    "larson, 1 thread": ["larson", "2", "8", "1000", "5000", "100", "4141", "1"],
    "larson, 2 threads": ["larson", "2", "8", "1000", "5000", "100", "4141", "2"],
    "larson, 8 threads": ["larson", "2", "8", "1000", "5000", "100", "4141", "8"],
}


def fail(text: str) -> None:
    print(f"compare: {text}", file=sys.stderr)
    sys.exit(2)


def find_library(name: str) -> str:
    found = glob.glob(f"/usr/lib/*/{name}")
    return found[0] if found else ""


def check_library() -> None:
    if not LIBRARY.exists():
        fail(f"{LIBRARY} is missing; build it: cmake --preset release && cmake --build build/release")
    sources = [p for d in ("src", "include") for p in (ROOT / d).rglob("*") if p.is_file()]
    newer = [p for p in sources if p.stat().st_mtime > LIBRARY.stat().st_mtime]
    if newer:
        fail(f"{LIBRARY.name} is older than {newer[0].relative_to(ROOT)}; build it again")


def run_test(words: list[str], library: str) -> float:
    environment = {**os.environ, "LD_PRELOAD": library} if library else dict(os.environ)
    done = subprocess.run([str(PROGRAMS / words[0]), *words[1:]], env=environment, capture_output=True, text=True)
    match = re.search(r"Throughput = (\d+)", done.stdout)
    if done.returncode != 0 or match is None:
        what = f"{' '.join(words)} with {library or 'glibc'}"
        raise RuntimeError(f"{what}: exit {done.returncode}: {done.stderr.strip()}")
    return float(match.group(1))


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Median and bootstrap 95 % interval of the median."""
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(ratios, k=len(ratios))) for _ in range(4000))
    return statistics.median(ratios), medians[100], medians[3899]


def version(package: str) -> str:
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    return done.stdout or "unknown"


def provenance() -> dict[str, Any]:
    ask = (
        "import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).hak_build_info\n"
        "f.restype = ctypes.c_char_p; print(f().decode())"
    )
    told = subprocess.run([sys.executable, "-c", ask, str(LIBRARY)], capture_output=True, text=True)
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "library": told.stdout.strip(),
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "huge_pages": Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text().strip(),
        "versions": {peer: version(package) for peer, (_, package) in PEERS.items()},
    }


def startup() -> dict[str, Any]:
    done = subprocess.run([str(PROGRAMS / "startup"), "50", str(LIBRARY), "/bin/true"], capture_output=True, text=True)
    return json.loads(done.stdout)


def measure(runs: int) -> dict[str, dict[str, list[float]]]:
    libraries = {OURS: str(LIBRARY)}
    for peer, (name, package) in PEERS.items():
        libraries[peer] = find_library(name) if name else ""
        if name and not libraries[peer]:
            print(f"compare: {peer} left out: install {package}", file=sys.stderr)
            del libraries[peer]
    results: dict[str, dict[str, list[float]]] = {test: {peer: [] for peer in libraries} for test in TESTS}
    peers = list(libraries)
    try:
        for run in range(runs):
            for test, words in TESTS.items():
                for peer in peers[run % len(peers):] + peers[:run % len(peers)]:
                    print(f"\r\033[K{run + 1}/{runs} {test}: {peer}", end="", file=sys.stderr, flush=True)
                    results[test][peer].append(run_test(words, libraries[peer]))
    except KeyboardInterrupt:
        print("\ninterrupted: what was measured is kept", file=sys.stderr)
    print("\r\033[K", end="", file=sys.stderr)
    return results


def summarise(results: dict[str, dict[str, list[float]]]) -> list[dict[str, Any]]:
    rows = []
    for test, peers in results.items():
        complete = min(len(values) for values in peers.values())
        if complete == 0:
            continue
        row: dict[str, Any] = {"test": test, "runs": complete, "median": {}, "ratio": {}}
        for peer, values in peers.items():
            row["median"][peer] = statistics.median(values[:complete])
            if peer != OURS:
                row["ratio"][peer] = interval([a / b for a, b in zip(peers[OURS][:complete], values[:complete])])
        rows.append(row)
    return rows


def render(report: dict[str, Any]) -> str:
    """The result as Markdown; docs/benchmarks.md is this."""
    facts = report["provenance"]
    peers = [peer for peer in PEERS if peer in report["rows"][0]["ratio"]]
    lines = [
        "# Benchmarks",
        "",
        "Generated by `bench/compare.py` from a result file; do not edit.",
        "",
        f"{facts['date']}. {facts['cpu']}, {facts['cpus']} CPUs (a shared virtual machine), Linux {facts['kernel']}, "
        f"transparent huge pages {facts['huge_pages']}.",
        f"Library: {facts['library']}.",
        "Peers: " + ", ".join(f"{peer} {facts['versions'][peer]} (Debian)" for peer in peers) + ".",
        "",
        "Millions of operations per second (median), and throughput of hakmem over the peer's in the same repetition "
        "(median, 95 % interval):",
        "",
        "| test | hakmem | " + " | ".join(f"{peer} | hakmem / {peer}" for peer in peers) + " |",
        "|---|---|" + "---|---|" * len(peers),
    ]
    for row in report["rows"]:
        cells = [f"{row['test']} ({row['runs']} runs)", f"{row['median'][OURS] / 1e6:.1f}"]
        for peer in peers:
            median, low, high = row["ratio"][peer]
            tie = ", a tie" if low <= 1 <= high else ""
            cells += [f"{row['median'][peer] / 1e6:.1f}", f"{median:.2f} ({low:.2f} to {high:.2f}{tie})"]
        lines.append("| " + " | ".join(cells) + " |")
    start = report["startup"]
    lines += ["", f"Start-up of `/bin/true` (median of {start['runs']}): {start['extra_kib']} KiB more peak memory and "
              f"{start['extra_faults']} more page faults than without the library "
              f"({start['kib']} KiB, {start['faults']} faults)."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="repetitions (default 10)")
    parser.add_argument("--json", type=Path, help="write the result file here")
    parser.add_argument("--render", type=Path, metavar="RESULT", help="print a result file as Markdown, run nothing")
    arguments = parser.parse_args()
    if arguments.render:
        print(render(json.loads(arguments.render.read_text())), end="")
        return
    check_library()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    report = {"schema": "hakmem.compare.1", "provenance": provenance(), "startup": startup(),
              "rows": summarise(measure(arguments.runs))}
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    print(render(report), end="")


if __name__ == "__main__":
    main()
