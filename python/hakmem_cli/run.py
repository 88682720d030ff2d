"""`hakmem run`: the program with the library preloaded; in place of this process, unless reports are to be shown."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hakmem_cli import build, live, policy_text, symbolize
from hakmem_cli.modes import LEARNING_MODES, LEARNS
from hakmem_cli.say import CannotError, say

NOT_EXECUTABLE = 126
NOT_FOUND = 127

# A terminal sends these to all of its foreground's processes: the program has got one already.
_OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH)
_HANDED_ON = (*_OF_TERMINALS, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_SI_KERNEL = 0x80

USE = "hakmem run [--mode M] [--policy FILE] [--check] [--hardened] [--stats FILE] [--live] -- PROGRAM ARGS..."


def _original_environment() -> dict[str, str]:
    """What this process was started with: Python may have added LC_CTYPE to its own (PEP 538)."""
    entries = os.fsdecode(Path("/proc/self/environ").read_bytes()).split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


@dataclass(frozen=True)
class How:
    """With what the program is run."""

    mode: str | None = None
    check: bool = False
    hardened: bool = False
    stats: str | None = None
    live: bool = False
    policy: str | None = None


def _check_name(option: str, name: str) -> None:
    if not name:
        raise CannotError(f"run: {option} '' is the name of no file")


def _statistics_file(name: str) -> str:
    """Absolute: the program may change its directory, and a bare word is not taken for a file."""
    _check_name("--stats", name)
    path = Path(name).absolute()
    if path.is_dir() or not path.parent.is_dir():
        what = "a directory" if path.is_dir() else f"there is no directory {path.parent}"
        raise CannotError(f"run: --stats {name}: {what}; legal is a file that can be written")
    return str(path)


def learns(environment: Mapping[str, str]) -> bool:
    """Does the program, started with this, learn, and so make the file?"""
    learn = environment.get("HAKMEM_LEARN")
    if learn is not None and learn.partition(":")[0] in LEARNS:
        return learn.partition(":")[0] == "on"
    return environment.get("HAKMEM_MODE") in LEARNING_MODES


def _policy_file(name: str, environment: dict[str, str]) -> str:
    """Absolute, and sound: the library would say one line about it, and go on without."""
    _check_name("--policy", name)
    path = Path(name).absolute()
    is_empty = path.is_file() and path.stat().st_size == 0  # as a failure of power may leave it: none, to the library
    if path.exists() and not is_empty:
        policy_text.read(path)
    elif not path.parent.is_dir():
        raise CannotError(f"run: --policy {name}: there is no directory {path.parent}")
    elif not learns(environment):
        raise CannotError(
            f"run: --policy {name}: no such file, or an empty one, and nothing learns one; --mode learning does"
        )
    return str(path)


def live_directory() -> Path:
    """Where live pages lie, for this user only; `hakmem top` looks there. Those of processes that were killed go."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    # Who becomes root by way of su keeps the variable, and may write there; but it is another user's.
    usable = runtime.startswith("/") and os.access(runtime, os.W_OK) and os.stat(runtime).st_uid == os.geteuid()
    path = live.of_session(runtime) if usable else live.of_user(os.geteuid())
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise CannotError(f"run --live: {path}: cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise CannotError(f"run --live: {path}: legal is a directory of this user's, with mode 0700")
    for page in path.iterdir():
        if page.name.isdigit() and not Path("/proc", page.name).exists():
            page.unlink(missing_ok=True)
    return path


def why_not_preloaded(library: str) -> str | None:
    """None if it can be."""
    if ":" in library or " " in library:
        return f"the loader cannot preload a path with a colon or a space: {library}"
    return None


def _environment(how: How) -> dict[str, str]:
    """What the program is started with."""
    environment = _original_environment()
    if how.mode is not None:
        environment["HAKMEM_MODE"] = how.mode
    if how.check:
        # A choice of what is checked stays; that nothing is gives way to the option, as HAKMEM_MODE does to --mode.
        if environment.get("HAKMEM_CHECK", "0") == "0":
            environment["HAKMEM_CHECK"] = "1"
    if how.stats is not None:
        environment["HAKMEM_STATS"] = _statistics_file(how.stats)
    if how.policy is not None:
        environment["HAKMEM_POLICY"] = _policy_file(how.policy, environment)
    if how.live:
        environment["HAKMEM_LIVE"] = str(live_directory())
    disable = environment.get("HAKMEM_DISABLE", "0")
    if disable not in ("0", "1"):
        say(f"warning: HAKMEM_DISABLE={disable}: legal values are 0, 1; using 0")
    if disable == "1":
        return environment
    library = str(build.ensure_library(build.HARDENED if how.hardened else build.LIBRARY))
    reason = why_not_preloaded(library)
    if reason is not None:
        raise CannotError(reason)
    others = environment.get("LD_PRELOAD")
    environment["LD_PRELOAD"] = f"{library}:{others}" if others else library
    return environment


def _become(program: list[str], environment: dict[str, str]) -> None:
    """Like execvp(3), which gives a script without a first line of its own to the shell."""
    # Python ignores these two; an ignored signal stays ignored in the program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvpe(program[0], program, environment)
    except OSError as error:
        script = shutil.which(program[0], path=environment.get("PATH"))
        if error.errno != errno.ENOEXEC or script is None:
            raise
        os.execve("/bin/sh", ["sh", script, *program[1:]], environment)


def _end_as(status: int) -> int:
    """The program's own exit code, or an end by the signal that ended it."""
    if status >= 0:
        return status
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {-status})  # it may have been handed on
    os.kill(os.getpid(), -status)
    return 128 - status


def _start_child(program: list[str], environment: dict[str, str]) -> int:
    """Its number. The signals that are handed on, and that of its end, wait from here on until they are asked for: none
    comes too early. The program begins with them as this process did."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (*_HANDED_ON, signal.SIGCHLD))
    of_children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored nobody is told of an end
    child = os.fork()
    if child != 0:
        return child
    try:
        signal.signal(signal.SIGCHLD, of_children)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os._exit(_start(program, environment))
    finally:
        os._exit(NOT_EXECUTABLE)


def _stop_as(child: int) -> None:
    """Who waits for us is to see that it has stopped, and when it has us go on, it goes on."""
    os.kill(os.getpid(), signal.SIGSTOP)
    with suppress(PermissionError):
        os.kill(child, signal.SIGCONT)


def _hand_on_signals(child: int) -> None:
    """Until it has ended. Then it is there still, as a zombie, so that its number is no other process's."""
    while True:
        told = signal.sigwaitinfo((*_HANDED_ON, signal.SIGCHLD))
        if told.si_signo == signal.SIGCHLD:
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return
            if os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG) is not None:
                _stop_as(child)
        elif told.si_pid != child and not (told.si_code == _SI_KERNEL and told.si_signo in _OF_TERMINALS):
            with suppress(PermissionError):  # it may have become another user's
                os.kill(child, told.si_signo)


def _has_shown(shown: threading.Thread) -> bool:
    """False: the user has seen enough. The program has ended, so that an interrupt is no longer for it."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        shown.join()
    except KeyboardInterrupt:
        return False
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    return True


def _watch(program: list[str], environment: dict[str, str]) -> int:
    """Starts the program, and shows what is reported of it, with names and lines."""
    with tempfile.TemporaryDirectory(prefix="hakmem-") as directory:
        place = Path(directory, "reports")
        place.mkdir()
        report = place / "report"
        report.touch(mode=0o600)
        # The library has one place for reports and what is traced: what the user names for it counts.
        if "," not in environment.get("HAKMEM_TRACE", ""):
            environment.setdefault("HAKMEM_REPORT", str(report))
        with symbolize.opened(report) as file:
            child = _start_child(program, environment)
            ended = threading.Event()
            shown = threading.Thread(target=symbolize.follow, args=(file, ended), daemon=True)
            shown.start()
            _hand_on_signals(child)
            # Processes of it that go on write to standard error from now on: nobody would read what they write there.
            place.rename(Path(directory, "ended"))
            ended.set()
            if not _has_shown(shown):
                say("interrupted: the rest of the reports is not shown")
        _, status = os.waitpid(child, 0)
    return _end_as(os.waitstatus_to_exitcode(status))


def _why_not_found(name: str, path: str | None) -> str:
    """The system says the same of a program, and of what that is to be run by."""
    found = shutil.which(name, path=path)
    if found is None:
        return f"{name}: no such program"
    try:
        with open(found, "rb") as file:
            first = file.readline(256)
    except OSError:
        first = b""
    if not first.startswith(b"#!"):
        return f"{found}: its loader, which the file names, does not exist"
    # Of a script with lines as Windows ends them, a carriage return is part of the name: repr() shows it.
    interpreter = re.split(rb"[ \t\n]", first[2:].lstrip(b" \t"))[0]
    return f"{found}: its interpreter {os.fsdecode(interpreter)!r}, named in the first line, does not exist"


def _start(program: list[str], environment: dict[str, str]) -> int:
    """Does not return if the program starts."""
    try:
        _become(program, environment)
    except FileNotFoundError:
        say(_why_not_found(program[0], environment.get("PATH")))
        return NOT_FOUND
    except OSError as error:
        say(f"{program[0]}: cannot be executed: {error.strerror}")
    return NOT_EXECUTABLE


def run(words: list[str], how: How) -> int:
    """Without check mode it does not return if the program starts."""
    program = words[1:] if words[:1] == ["--"] else words
    if not program:
        raise CannotError(f"run: no program given; use: {USE}")
    if not program[0]:
        raise CannotError(f"run: '' is the name of no program; use: {USE}")
    environment = _environment(how)
    return _watch(program, environment) if how.check else _start(program, environment)
