"""One run of one test with one allocator."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hakmem_bench.model import ROOT, CannotError, Peer, Sample, Test
from hakmem_cli import session

PROGRAMS = ROOT / "build" / "release" / "bench"
DATA = ROOT / "build" / "lab" / "data"
SCRIPTS = ROOT / "bench" / "programs"

_MILLION = 1e6
# How often strace's table says a call was made: "% time, seconds, usecs/call, calls, errors, syscall".
_STRACE_LINE = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", re.MULTILINE)
# ld.so's complaint, at the start of a program that it then runs nevertheless.
_IGNORED = re.compile(r"^ERROR: ld\.so: object '.*' from LD_PRELOAD cannot be preloaded", re.MULTILINE)


def environment_of(peer: Peer) -> dict[str, str]:
    """What a program's environment needs in addition to be served by the peer."""
    added = dict(peer.environment)
    if peer.library:
        added["LD_PRELOAD"] = peer.library
    return added


def clean_environment() -> dict[str, str]:
    """Ours, without what would decide about an allocator."""
    doubtful = ("LD_PRELOAD", "GLIBC_TUNABLES", "HAKMEM_", "MALLOC_", "MIMALLOC_", "TCMALLOC_", "SCUDO_")
    return {name: value for name, value in os.environ.items() if not name.startswith(doubtful)}


def program_of(name: str) -> str:
    """One of ours by its name, another by its path."""
    return name if os.path.isabs(name) else str(PROGRAMS / name)


def command_of(test: Test, quick: bool) -> list[str]:
    words = test.quick if quick and test.quick is not None else test.command
    places = {"{data}": DATA / test.name, "{scripts}": SCRIPTS}
    for name, place in places.items():
        words = tuple(word.replace(name, str(place)) for word in words)
    return [program_of(words[0]), *words[1:]]


def prepare(test: Test) -> None:
    """Makes the test's data, always anew."""
    if test.setup is None:
        return
    directory = DATA / test.name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    test.setup(directory)


def _json_line(name: str, output: str) -> dict[str, Any]:
    found = re.search(rf"^{name} = (\{{.*\}})$", output, re.MULTILINE)
    return dict(json.loads(found[1])) if found else {}


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing on stderr"


def not_served(peer: Peer, stderr: str) -> str:
    """What to say of a run whose program the loader started without the peer's library; empty if it was loaded."""
    return f"not served: {Path(peer.library).name} was not loaded" if peer.library and _IGNORED.search(stderr) else ""


def _status(told: dict[str, Any], test: Test, peer: Peer, stderr: str) -> str:
    lacking = not_served(peer, stderr)
    if lacking:
        return lacking
    if told["how"] == "timeout":
        return f"no end after {test.seconds:.0f} s"
    if told["how"] == "signal":
        return f"signal {told['number']}"
    return "ok" if told["number"] == 0 else f"exit {told['number']}: {last_line(stderr)}"


def _busy_seconds() -> float:
    """What all processors have worked so far, what the host took from them included."""
    user, nice, system, _idle, _wait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _measured(command: list[str], test: Test, peer: Peer, directory: Path) -> tuple[dict[str, Any], str, str]:
    """What the measuring program told, and the program's output and errors."""
    added = environment_of(peer)
    settings = {"HAK_BENCH_ENVIRONMENT": json.dumps(added)} if test.preloads_itself else added
    report, place = directory / "report", directory / "place"
    place.mkdir()
    words = [str(PROGRAMS / "measure"), "--report", str(report), "--timeout", str(int(test.seconds))]
    for name, value in settings.items():
        words += ["--set", f"{name}={value}"]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*words, *command], cwd=place, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=output,
            stderr=errors,
        )  # fmt: skip
        try:
            process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        finally:
            told = report.read_text() if report.exists() else ""
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    if not told:
        raise CannotError(f"{' '.join(words)}: {last_line(texts[1])}")
    return json.loads(told), texts[0], texts[1]


def run(test: Test, peer: Peer, *, quick: bool) -> Sample:
    with tempfile.TemporaryDirectory(prefix="hakmem-bench-") as directory:
        before = _busy_seconds()
        told, output, errors = _measured(command_of(test, quick), test, peer, Path(directory))
        busy = _busy_seconds() - before
    status = _status(told, test, peer, errors)
    seconds = told["wall"]
    rate = re.search(r"^Throughput = (\d+) operations per second", output, re.MULTILINE)
    if rate:
        seconds = _MILLION / max(int(rate[1]), 1)
    sample = Sample(
        status=status,
        seconds=seconds,
        wall=told["wall"],
        user=told["user"],
        system=told["system"],
        peak_kib=told["peak_kib"],
        minor_faults=told["minor_faults"],
        major_faults=told["major_faults"],
        foreign=round(max(0.0, busy - told["user"] - told["system"]) / max(told["wall"], 0.001), 3),
    )
    if sample.good:
        for name, value in _json_line("Sample", output).items():
            setattr(sample, name, value)
        sample.extra = _json_line("Extra", output)
        sample.peak_kib = sample.extra.pop("peak_kib", sample.peak_kib)
    return sample


def system_calls(test: Test, peer: Peer) -> dict[str, int]:
    """How often the quick form of the test makes each system call; nothing where strace is missing or fails, or where
    the peer's library was not loaded."""
    if test.preloads_itself or shutil.which("strace") is None:
        return {}
    settings = [word for name, value in environment_of(peer).items() for word in ("-E", f"{name}={value}")]
    with tempfile.TemporaryDirectory(prefix="hakmem-bench-") as directory, tempfile.TemporaryFile() as errors:
        table = Path(directory) / "strace"
        command = ["strace", "-f", "-qq", "-c", "-o", str(table), *settings, *command_of(test, True)]
        process = subprocess.Popen(
            command, cwd=directory, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=errors, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(10 * test.seconds)
        except subprocess.TimeoutExpired:
            return {}
        finally:
            session.end(process)  # of a tracer that is killed alone the program would go on
        errors.seek(0)
        served = not not_served(peer, errors.read().decode(errors="replace"))
        text = table.read_text() if code == 0 and served and table.exists() else ""
    return {name: int(calls) for calls, name in _STRACE_LINE.findall(text) if name != "total"}
