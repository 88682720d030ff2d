"""The commands that measure: what is asked for, the run with its progress, and what is written."""

from __future__ import annotations

import datetime
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hakmem_bench import (
    attacks,
    cost_section,
    counting,
    learning_run,
    learning_section,
    learning_warm_section,
    page,
    peers,
    policies,
    programs,
    provenance,
    runner,
    schedule,
    suite,
    table,
    trees,
    watching,
)
from hakmem_bench.model import HARDENED, OURS, ROOT, CannotError, Counts, Peer, Result, Sample, Test
from hakmem_cli import apt, build, files, info

RESULTS = ROOT / "build" / "lab" / "results"

_QUICK_REPETITIONS = 5
_FULL_REPETITIONS = 7
_MEASURE = runner.program_of("measure")


@dataclass(frozen=True)
class Options:
    quick: bool = False
    peers: str | None = None
    modes: bool = False
    """The peers are the same library in its other modes."""
    tests: str | None = None
    repetitions: int | None = None
    closely: tuple[str, int] | None = None
    """A peer, and to how many repetitions hakmem and it go on alone."""
    output: Path | None = None
    counts: bool = True
    """Counts under valgrind, in the full run."""
    system_calls: bool = True
    """The same under strace."""

    @property
    def common_repetitions(self) -> int:
        return self.repetitions or (_QUICK_REPETITIONS if self.quick else _FULL_REPETITIONS)


class _Bar:
    """A bar on a terminal; otherwise a line per test."""

    def __init__(self, console: Console, steps: int) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=steps)
        self._said = ""

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def step(self, what: str) -> None:
        self._bar.update(self._task, advance=1, description=what)
        test = what.partition(",")[0]
        if not self._console.is_terminal and test != self._said:
            self._console.print(test)
            self._said = test


def page_of(output: Path) -> Path:
    """Where the page of a result file is written."""
    return output.with_suffix(".html") if output.suffix == ".json" else Path(f"{output}.html")


def check_output(output: Path | None) -> None:
    """Before anything is measured: a result that could not be written would be lost."""
    if output is None:
        return
    if output.suffix == ".html":
        raise CannotError(f"--output {output}: pages have such names; legal is another, as FILE.json")
    if output.is_dir():
        raise CannotError(f"--output {output}: is a directory; legal is the name of a file")
    for path in (output, page_of(output)):
        if path.exists():
            raise CannotError(f"--output {output}: {path} exists; legal is a new file")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise CannotError(f"--output {output}: {error.strerror}") from error


def _install(tests: Sequence[Test], console: Console) -> dict[str, str]:
    """Installs what the tests need; those that cannot be run, each with the reason."""
    wanted = sorted({package for test in tests for package in test.packages if not apt.is_installed(package)})
    if wanted and apt.may_install():
        console.print(f"installing {' '.join(wanted)}")
        if apt.install(wanted) is not None:
            for package in wanted:
                apt.install([package])
    return programs.missing_programs([test for test in tests if test.group == programs.GROUP])


def _stamp(file: Path) -> tuple[int, ...]:
    """Which file it is and when it was written; nothing while it is being built anew."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _identity(file: Path) -> str:
    """The build id, or of a file without one its stamp."""
    try:
        build_id = info.build_id(file)
    except OSError:
        return ""
    return f"{_stamp(file)}" if build_id == "none" else build_id


def _programs_of(tests: Iterable[Test]) -> Iterator[str]:
    """What runs, short and long, as far as it is a program or a script of the lab's."""
    for test in tests:
        for quick in (False, True):
            program, *words = runner.command_of(test, quick)
            yield from (program, *(word for word in words if word.startswith(f"{runner.SCRIPTS}/")))


def _programs_counted(programs: Iterable[counting.Counted]) -> Iterator[str]:
    return _programs_of(Test(one.name, "", "", one.command) for one in programs)


class _Writes(Protocol):
    def write(self, path: Path) -> None: ...


def _keeper(output: Path, measured: Iterable[Peer], programs: Iterable[str] = ()) -> Callable[[_Writes], None]:
    """Writes a result, unless another file has come into the place of one that it is of, an allocator's or a program's:
    what was measured since then is not kept."""
    libraries = (peer.library for peer in measured if peer.library and not peer.missing)
    watched = map(Path, dict.fromkeys((*libraries, *programs)))
    before = {file: (_stamp(file), _identity(file)) for file in watched}

    def keep(result: _Writes) -> None:
        for file, (stamp, identity) in before.items():
            if _stamp(file) != stamp and _identity(file) != identity:
                raise CannotError(f"{file} was replaced meanwhile; {output} has what was measured before")
        result.write(output)

    return keep


def get_peers(names: Sequence[str], console: Console, *, again: bool = False) -> list[Peer]:
    """In the order given; what is not there yet, or all again, is fetched."""
    had = {} if again else {peer.name: peer for peer in peers.known(names)}
    lacking = [name for name in names if name not in had]
    if lacking:
        for peer in peers.fetch(lacking, console.print):
            had[peer.name] = peer
    return [had[name] for name in names]


def measure(
    tests: Sequence[Test],
    measured: Sequence[Peer],
    options: Options,
    asked: str,
    console: Console,
    library: Path,
    facts: dict[str, str] | None = None,
) -> Result:
    """Runs the tests with the peers, writes the result file at every step, and says where it is. `facts`: what of the
    provenance is not this tree's."""
    missing = _install(tests, console)
    for name, reason in missing.items():
        console.print(f"[yellow]{name} left out:[/] {reason}")
    plan = schedule.Plan(
        tests=[test for test in tests if test.name not in missing],
        peers=measured,
        repetitions=options.common_repetitions,
        quick=options.quick,
        counts=counting.count_all if options.counts and not options.quick else None,
        system_calls=options.system_calls and not options.quick,
        closely=options.closely or ("", 0),
    )
    result = Result({**provenance.facts(library, asked), **(facts or {})}, list(measured))
    result.left_out = missing
    output = options.output or RESULTS / f"{datetime.datetime.now():%Y-%m-%d-%H%M%S}.json"
    programs_run = [*_programs_of(plan.tests), *(_programs_counted(counting.COUNTED) if plan.counts else ())]
    keep = _keeper(output, measured, (str(library), *programs_run, _MEASURE))
    counted = len(counting.COUNTED) * sum(not peer.missing for peer in measured) if plan.counts else 0
    with _Bar(console, plan.steps + counted) as bar:
        result.complete = schedule.run(plan, result, bar, keep)
    keep(result)
    if not result.complete:
        console.print("interrupted: what was measured is kept")
    html = page_of(output)
    files.write(html, page.render(result).encode(), force=True)
    table.print_result(result, console)
    console.print(f"result file {output}\npage        {html}")
    return result


def _code(result: Result, *others: str) -> int:
    """1 if hakmem has not run each test well, or has failed in another of its forms, which may be slow."""

    def samples(name: str) -> list[Sample]:
        return [sample for test in result.tests for sample in test.samples.get(name, [])]

    broken = any(not sample.good for sample in samples(OURS))
    broken |= any(not (one.good or one.timed_out) for name in others for one in samples(name))
    return 130 if not result.complete else int(broken)


def _check_closely(options: Options, names: Sequence[str]) -> None:
    if options.closely is None:
        return
    rival, repetitions = options.closely
    if options.modes:
        raise CannotError(f"--modes --closely {rival}:{repetitions}: legal is one of the two")
    legal = [name for name in names if name != OURS]
    if rival not in legal:
        raise CannotError(f"--closely {rival}:{repetitions}: no peer of this run; legal are {', '.join(legal)}")
    if repetitions <= options.common_repetitions:
        raise CannotError(
            f"--closely {rival}:{repetitions}: all peers have {options.common_repetitions} repetitions; legal are more"
        )


def bench(options: Options, asked: str, console: Console) -> int:
    if options.modes and options.peers:
        raise CannotError(f"--modes --peers {options.peers}: legal is one of the two")
    tests = suite.choose(options.tests, quick=options.quick)
    names = peers.choose(options.peers) if options.peers else list(peers.QUICK if options.quick else peers.NAMES)
    _check_closely(options, names)
    library = build.ensure_library()
    build.build_benchmarks()
    ours = peers.ours(library)
    if options.modes:
        others = peers.in_modes(ours)
    else:
        others = get_peers([name for name in names if name != OURS], console)
    result = measure(tests, [ours, *others], options, asked, console, library)
    return _code(result)


def ab(first: str, second: str, options: Options, asked: str, console: Console) -> int:
    """The second revision stands where hakmem does, the first is its peer."""
    for name in (first, second):
        trees.commit_of(name)  # before anything is built
    build.build_benchmarks()
    old, new = trees.revision(first), trees.revision(second)
    ours = replace(new, name=OURS)
    tests = suite.choose(options.tests, quick=options.quick)
    console.print(f"hakmem is {second} ({new.version}); its peer is {first} ({old.version})")
    facts = {"commit": new.version, "sources": f"of {new.version}"}
    result = measure(tests, [ours, old], options, asked, console, Path(ours.library), facts)
    return _code(result)


def ablate(features: Sequence[str], options: Options, asked: str, console: Console) -> int:
    """Each peer is hakmem without one feature: a ratio below 1 is what the feature earns, above 1 what it costs. Parts
    of the learner are switched off, while hakmem learns with all of them; for other features the library is built."""
    patches = trees.ablations()
    parts = {f"learning-{part}": part for part in learning_run.PARTS}
    legal = (*patches, *parts)
    for feature in features:
        if feature not in legal:
            raise CannotError(f"{feature}: no such feature; legal are {', '.join(legal)}")
    learns = bool(parts.keys() & set(features))
    if learns and not parts.keys() >= set(features):
        raise CannotError(f"{' '.join(features)}: legal are only parts of learning at once, or none of them")
    tests = suite.choose(options.tests, quick=options.quick)
    library = build.ensure_library()
    build.build_benchmarks()
    ours = peers.ours(library)
    if learns:
        without = [learning_run.learns(ours, parts[feature]) for feature in features]
        ours = replace(learning_run.learns(ours), name=OURS)
    else:
        without = [trees.ablation(name, patches[name]) for name in features or patches]
    result = measure(tests, [ours, *without], options, asked, console, library)
    return _code(result)


def checks(options: Options, asked: str, console: Console) -> int:
    """What check mode costs: its peers are the same library in check mode."""
    library = build.ensure_library()
    build.build_benchmarks()
    tests = suite.choose(options.tests, quick=options.quick)
    ours = peers.ours(library)
    result = measure(tests, [ours, *cost_section.peers_of_checks(ours)], options, asked, console, library)
    return _code(result, *cost_section.KINDS)


def _both() -> list[Peer]:
    """This tree's default library, and the hardened one."""
    return [peers.ours(build.ensure_library()), peers.ours(build.ensure_library(build.HARDENED), HARDENED)]


def hardened(options: Options, asked: str, console: Console) -> int:
    """What the hardened library costs, beside others that were built against attackers."""
    ours, hard = _both()
    build.build_benchmarks()
    tests = suite.choose(options.tests or programs.GROUP, quick=options.quick)
    others = get_peers(["scudo", *peers.SECURE], console)
    result = measure(tests, [ours, hard, *others], options, asked, console, Path(ours.library))
    return _code(result, HARDENED)


def _count(result: Result, found: Iterable[Counts], keep: Callable[[Result], None]) -> bool:
    """Each is kept at once; who interrupts has those until then. Whether all have been counted."""
    try:
        for counts in found:
            result.counts.append(counts)
            keep(result)
        return True
    except KeyboardInterrupt:
        return False


def watch(output: Path | None, asked: str, console: Console) -> int:
    """What it costs to watch the library: counts of instructions."""
    counting.need_valgrind()
    library = build.ensure_library()
    build.build_benchmarks()
    measured = watching.peers_of(peers.ours(library))
    result = Result(provenance.facts(library, asked), measured, complete=False)
    path = output or RESULTS / f"{datetime.datetime.now():%Y-%m-%d-%H%M%S}-watching.json"
    keep = _keeper(path, measured, _programs_counted((*watching.PROGRAMS, *watching.BARE)))
    with _Bar(console, len(measured) * len((*watching.PROGRAMS, *watching.BARE))) as bar:
        result.complete = _count(result, watching.count(measured, bar.step), keep)
    keep(result)
    if not result.complete:
        console.print("interrupted: what was counted is kept")
    console.print(f"result file {path}")
    return 130 if not result.complete else int(any(one.status != "ok" for one in result.counts))


def learn(options: Options, asked: str, console: Console) -> int:
    """What learning brings and costs; `options.tests` names parts of it."""
    chosen = learning_run.choose(options.tests, quick=options.quick)
    tests = [test for stage in chosen for test in stage.tests]
    missing = _install(tests, console)
    library = build.ensure_library()
    build.build_benchmarks()
    ours = peers.ours(library)
    needed = learning_run.settings_of(chosen)
    others = get_peers([name for name in learning_run.PEERS if name in needed], console)
    learned = policies.learned(ours, [test for stage in chosen for test in stage.earlier], quick=options.quick)
    known = {**learning_run.settings(ours, tests, learned), **{peer.name: peer for peer in others}}
    counts = options.counts and not options.quick and options.tests is None and shutil.which("valgrind") is not None
    result = Result(provenance.facts(library, asked), learning_run.peers_of(chosen, known))
    result.left_out = missing
    output = options.output or learning_run.default_output(RESULTS)
    counted = _programs_counted(learning_run.COUNTED) if counts else ()
    keep = _keeper(output, result.peers, (*_programs_of(tests), *counted, _MEASURE))
    with _Bar(console, learning_run.steps(chosen, known, quick=options.quick, counts=counts)) as bar:
        for stage in chosen:
            plan = stage.plan(known, quick=options.quick)
            plan = replace(plan, tests=[test for test in plan.tests if test.name not in missing])
            complete = schedule.run(plan, result, bar, keep)
            if not complete:
                break
        if counts and complete:
            complete = _count(result, learning_run.count(known, bar), keep)
    result.complete = complete
    keep(result)
    if not result.complete:
        console.print("interrupted: what was measured is kept")
    for part in (learning_section, learning_warm_section):
        if part.is_of(result):
            console.print(part.section(result), markup=False, highlight=False, soft_wrap=True)
    console.print(f"result file {output}")
    return _code(result, learning_run.LEARNING)


def attack(names: str | None, repetitions: int | None, output: Path | None, asked: str, console: Console) -> int:
    """Which bugs each allocator stops."""
    wanted = peers.choose(names, peers.LEGAL)
    ours, hard = _both()
    others = get_peers([name for name in wanted if name != OURS], console)
    facts = provenance.facts(Path(ours.library), asked)
    path = output or RESULTS / f"{datetime.datetime.now():%Y-%m-%d-%H%M%S}-attacks.json"
    result = attacks.Attacked(facts, [ours, hard, attacks.checked(ours), *others])
    keep = _keeper(path, result.peers)
    with _Bar(console, 0) as bar:
        result.complete = False
        try:
            for _ in attacks.attack_all(result, bar.step, repetitions or attacks.REPETITIONS):
                keep(result)
            result.complete = True
        except KeyboardInterrupt:
            console.print("interrupted: the attacks that all allocators have had are kept")
    keep(result)
    for peer in attacks.allocators(result):
        stopped = f"{attacks.stopped(result, peer.name)} of {len(result.outcomes)}"
        console.print(f"{peer.name:20} {stopped} stopped or without effect")
    console.print(f"result file {path}")
    return 0 if result.complete else 130
