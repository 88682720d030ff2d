"""What `hakmem prof` does: the heap profiler of a running process, and its profiles."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hakmem_cli import files
from hakmem_cli.say import CannotError, say
from hakmem_observe import heap_profile, procfs, profile_files, show
from hakmem_observe.remote import Process, Request
from hakmem_observe.stacks import Profile
from hakmem_observe.words import count_bytes

_DEFAULT_RATE = 512 << 10
_WORDS = {
    (Request.START_PROFILER, errno.EALREADY): "it runs already; hakmem prof stop ends it",
    (Request.START_PROFILER, errno.ENOTSUP): "there is no profile in check mode",
    (Request.STOP_PROFILER, errno.EALREADY): "it does not run",
    (Request.DUMP_PROFILE, errno.EBUSY): "another one is being written",
}


@dataclass(frozen=True)
class _Asked:
    """A process, and how long to wait for its answers: None, as long as a request does by itself."""

    process: Process
    seconds: float | None

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> _Asked:
        return cls(Process(procfs.parse_pid(parsed.pid)), parsed.wait)


def _ask(asked: _Asked, request: Request, what: str, argument: int = 0, path: str = "") -> int:
    """The process's number. Ends in one line if it could not do it."""
    process = asked.process
    result = process.request(request, argument, path, asked.seconds)
    if result == errno.ENODATA and request is Request.DUMP_PROFILE:
        raise CannotError(f"process {process.pid}: no profile there; start one: hakmem prof start {process.pid}")
    if result:
        raise CannotError(f"process {process.pid}: {what}: {_WORDS.get((request, result), os.strerror(result))}")
    return process.pid


def start(parsed: argparse.Namespace) -> int:
    pid = _ask(_Asked.of(parsed), Request.START_PROFILER, "the profiler cannot be started", parsed.rate)
    rate = count_bytes(parsed.rate or _DEFAULT_RATE)
    say(f"process {pid}: profiling, one sample in {rate}; blocks from before are not seen")
    return 0


def stop(parsed: argparse.Namespace) -> int:
    pid = _ask(_Asked.of(parsed), Request.STOP_PROFILER, "the profiler cannot be stopped")
    say(f"process {pid}: no more samples are taken; what was taken can still be dumped")
    return 0


@contextmanager
def _dumped(asked: _Asked) -> Iterator[bytes]:
    """The text that the process writes."""
    with asked.process.scratch() as scratch:
        _ask(asked, Request.DUMP_PROFILE, "the profile cannot be written", path=f"{scratch.inside}/profile")
        yield scratch.read("profile")


def dump(parsed: argparse.Namespace) -> int:
    pid = procfs.parse_pid(parsed.pid)
    default = f"hakmem.{pid}{profile_files.FORMATS[parsed.format]}"
    target = Path(parsed.output or default)
    files.check_target(target, force=parsed.force)
    # The process may see other files under the same names than we do.
    seen = procfs.directory(pid)
    roots = (seen / "root",)
    with _dumped(_Asked.of(parsed)) as told:
        data = heap_profile.of_process(told, pid)  # which may have another number inside its container
        if heap_profile.lacks_mappings(data):
            with suppress(CannotError):  # then there are no names
                data = heap_profile.with_mappings(data, procfs.read(pid, "maps"))
                roots = (Path("/"), *roots)  # by the names that we see them under
        profile = profile_files.decode(data, f"process {pid}", roots, seen / "exe")
        _write(parsed, target, data, profile)
    return 0


def convert(parsed: argparse.Namespace) -> int:
    source = Path(parsed.file)
    default = _stem(source.name) + profile_files.FORMATS[parsed.format]
    data = profile_files.read_bytes(source)
    target = Path(parsed.output or default)
    if files.check_target(target, force=parsed.force) is not None and target.samefile(source):
        raise CannotError(f"{target}: is the file to convert; --output FILE writes elsewhere")
    _write(parsed, target, data, profile_files.decode(data, str(source)))
    return 0


def _stem(name: str) -> str:
    ending = next((ending for ending in profile_files.FORMATS.values() if name.endswith(ending)), "")
    return name.removesuffix(ending) or name


def _write(parsed: argparse.Namespace, target: Path, data: bytes, profile: Profile) -> None:
    what = parsed.what or "live"
    files.write(target, profile_files.encode(data, profile, parsed.format, what), force=parsed.force)
    for note in profile.notes:
        say(f"note: {note}")
    sites = sum(site.amount(what).bytes > 0 for site in profile.sites)
    total = count_bytes(profile.total(what).bytes)
    say(f"written: {target} ({total} {what}, {sites} {'site' if sites == 1 else 'sites'})")


def show_file(parsed: argparse.Namespace) -> int:
    profile = profile_files.read(Path(parsed.file))
    show.show(profile, parsed.what or profile.default, parsed.top, show.console())
    return 0
