"""Is a running process served?"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from hakmem_cli.say import CannotError
from hakmem_observe import locate, processes, procfs, words
from hakmem_observe.checks import allocators, elf, environment, machine, program
from hakmem_observe.checks.finding import Finding, Level, ok, problem, warning
from hakmem_observe.errors import AbsentError, DeniedError, EndedError
from hakmem_observe.procfs import Mapping
from hakmem_observe.remote import Process
from hakmem_observe.snapshot import read_series

_RUN_SECONDS = 5.0
_SERVED = "it is served"


def _variables(pid: int) -> dict[str, str]:
    entries = os.fsdecode(procfs.read(pid, "environ")).split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def _is_served(pid: int) -> Iterator[Finding]:
    """By what the library itself has counted."""
    try:
        taken = Process(pid).snapshot()
    except EndedError:
        raise
    except DeniedError as error:
        yield warning(str(error), "without that nobody can say whether it is served")
        return
    except (AbsentError, CannotError) as error:
        yield warning(str(error), "restart the process with this version")
        return
    requested = int(taken.counters.get("requested_bytes") or 0)
    if requested > 0 or taken.live_bytes > 0:
        yield ok(
            f"{_SERVED}: {words.count_bytes(requested)} requested so far, {words.count_bytes(taken.live_bytes)} live"
        )
    else:
        yield problem("the library is there, but nothing was requested from it", "see which malloc comes first, below")


def _others(mappings: list[Mapping]) -> Iterator[Finding]:
    for name in sorted({mapping.name for mapping in mappings}):
        allocator = allocators.of_library(name)
        if allocator is not None:
            advice = "blocks that are asked for by its own names stay there"
            yield ok(f"{name} is mapped too", advice)


def _program(pid: int, library: Path) -> list[Finding]:
    exe = procfs.directory(pid) / "exe"
    try:
        name = Path(os.readlink(exe))
        return program.check_elf(name, elf.read(exe), elf.read(library))
    except PermissionError as error:
        raise CannotError(
            f"process {pid}: its program may not be looked at; legal for its own user and root"
        ) from error
    except FileNotFoundError as error:
        if procfs.is_process(pid):
            raise CannotError(f"process {pid}: a thread of the kernel") from error
        raise EndedError(pid) from error


def _limits(pid: int) -> Iterator[Finding]:
    for line in procfs.read(pid, "limits").decode().splitlines():
        for label, name in (("Max address space", "RLIMIT_AS"), ("Max data size", "RLIMIT_DATA")):
            soft = line.removeprefix(label).split()[0] if line.startswith(label) else ""
            if soft.isdigit():
                yield machine.limit(name, int(soft))


def check(pid: int, library: Path) -> list[Finding]:
    procfs.start_time(pid)  # of one that has ended, and is only not reaped yet, there is nothing to see
    mappings = procfs.mappings(pid)
    mapped = next((mapping for mapping in mappings if locate.is_library(mapping)), None)
    told = _program(pid, library)
    inside = any("hakmem inside" in finding.what for finding in told)
    findings: list[Finding] = []
    if mapped is not None:
        findings.append(ok(f"{mapped.path} is mapped"))
        if mapped.deleted:
            advice = "restart the process to use the new one"
            findings.append(warning("the library's file has been replaced or removed since", advice))
    if mapped is not None or inside:
        findings += _is_served(pid)
        # Why it might not be is interesting only if it is not.
        served = findings[-1].level is Level.OK
        findings += [finding for finding in told if not served or finding.level is Level.OK]
    else:
        preload = _variables(pid).get("LD_PRELOAD", "")
        why = (
            "although its LD_PRELOAD names it: see below"
            if "libhakmem" in preload
            else "nor does its LD_PRELOAD name it"
        )
        findings.append(problem(f"libhakmem is not mapped, {why}", "start it with `hakmem run -- PROGRAM`"))
        findings += told
    findings += _others(mappings)
    seen = procfs.directory(pid)
    place = environment.Place(f"{seen}/root", f"{seen}/cwd")
    findings += environment.check(_variables(pid), library, place)
    findings += _limits(pid)
    if procfs.status(pid).get("Seccomp") == "2":
        findings.append(ok("its system calls are filtered (seccomp)"))
    return findings


def run(command: list[str], library: Path) -> list[Finding]:
    """Starts it with the library, without input and output, looks, and ends it."""
    others = os.environ.get("LD_PRELOAD")
    with tempfile.TemporaryDirectory(prefix="hakmem-") as directory:
        statistics = Path(directory) / "statistics"
        variables = {**os.environ, "LD_PRELOAD": f"{library}:{others}" if others else str(library)}
        variables["HAKMEM_STATS"] = str(statistics)
        silent = subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                command, env=variables, stdin=silent, stdout=silent, stderr=silent, start_new_session=True
            )
        except OSError as error:
            raise CannotError(f"{command[0]}: cannot be started: {error.strerror}") from error
        try:
            findings = _watch(process, library, statistics)
        except BaseException:
            _end(process)
            raise
        return findings if _end(process) else [*findings, _goes_on(process)]


def _end(process: subprocess.Popen[bytes]) -> bool:
    """False: it is another user's by now, and goes on."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(2)
        except PermissionError:
            return process.poll() is not None
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
    return True


def _goes_on(process: subprocess.Popen[bytes]) -> Finding:
    return warning(f"process {process.pid} has become another user's and goes on", "end it as that user or root")


def _watch(process: subprocess.Popen[bytes], library: Path, statistics: Path) -> list[Finding]:
    """Until it is seen to be served, or has ended."""
    deadline = time.monotonic() + _RUN_SECONDS
    findings: list[Finding] = []
    reason = ""
    while time.monotonic() < deadline and process.poll() is None:
        try:
            findings = check(process.pid, library)
        except CannotError as error:
            reason = str(error)  # it is just starting, or ends; or it will not be looked at
        if any(_SERVED in finding.what for finding in findings):
            return findings
        time.sleep(0.02)
    if process.poll() is None and not findings:
        return [warning(reason, "without that nobody can say whether it is served")]
    return _by_statistics(statistics) or findings or [_too_short(process)]


def _by_statistics(path: Path) -> list[Finding]:
    """What it wrote at its end, of whatever processes it had."""
    try:
        series = read_series(path)
    except CannotError:
        return []
    requested = sum(int(of_one[-1].counters.get("requested_bytes") or 0) for of_one in processes.split(series))
    return [ok(f"{_SERVED}: {words.count_bytes(requested)} requested until its end")] if requested > 0 else []


def _too_short(process: subprocess.Popen[bytes]) -> Finding:
    how = f"exit {process.returncode}" if process.returncode >= 0 else f"signal {-process.returncode}"
    return warning(f"it ended ({how}) before it could be looked at", "look at a run that takes longer")
