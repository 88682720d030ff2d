"""`hakmem bench learning`: what is run with which settings, and how often."""

from __future__ import annotations

import datetime
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hakmem_bench import counting, learning, learning_log, policies, programs, runner, schedule, suite, watching
from hakmem_bench.counting import Counted
from hakmem_bench.model import OURS, Counts, Peer, Result, Sample, Test
from hakmem_cli.arguments import named

LEARNING = "learning"
WARM = "learning, warm"
LOADED = "hakmem, warm"
_BOTH = (OURS, LEARNING)
PARTS = ("bigcache", "sites", "classes", "elo", "evolution")

# Those that take minutes for 2 MiB blocks, and second builds of the same, are left out.
PEERS = (
    "glibc",
    "tcmalloc",
    "mimalloc2",
    "tbbmalloc",
    "mimalloc",
    "snmalloc",
    "google-tcmalloc",
    "rpmalloc",
    "jemalloc",
)

# Of the programs of hardly anything but malloc and free the first
# heartbeats, in which there is more to learn, are in both numbers.
COUNTED: tuple[Counted, ...] = (
    *watching.PROGRAMS,
    Counted("pairs-128", ("pairs", "{}", "128"), 1_000_000, 3_000_000),
    Counted("random-mixed", ("random_mixed", "{}", "mixed", "42", "--slots", "8192"), 800_000, 2_400_000),
    Counted("nodes-tree", ("nodes", "tree", "3000", "{}", "42"), 20, 80),
    Counted("lifetimes", ("lifetimes", "{}", "42", "--live", "4194304"), 400_000, 1_200_000),
    Counted("handover-ring", ("handover", "ring", "{}", "42"), 200_000, 600_000),
)


def without(part: str) -> str:
    """The name of the setting in which this part of the learner is off."""
    return f"without {part}"


def learns(ours: Peer, off: str = "") -> Peer:
    """In mode learning, but for one part of the learner."""
    if not off:
        return replace(ours, name=LEARNING, environment={"HAKMEM_MODE": "learning"})
    parts = ",".join(part for part in PARTS if part != off)
    return replace(ours, name=without(off), environment={"HAKMEM_MODE": "learning", "HAKMEM_LEARN": f"on:{parts}"})


def settings(ours: Peer, tests: Sequence[Test], learned: Path) -> dict[str, Peer]:
    """The same library by name of the setting: learning, what hands have made, learning without one part, and begun
    with what was learned before, going on learning or not."""
    found = {
        OURS: ours,
        LEARNING: learns(ours),
        WARM: replace(ours, name=WARM, environment={"HAKMEM_MODE": "learning", "HAKMEM_POLICY": str(learned)}),
        LOADED: replace(ours, name=LOADED, environment={"HAKMEM_POLICY": str(learned)}),
    }
    for name in policies.names():
        path = policies.by_hand(name, tests)
        found[name] = replace(ours, name=name, environment={"HAKMEM_POLICY": str(path)})
    return found | {without(part): learns(ours, part) for part in PARTS}


def told(peer: Peer) -> Peer:
    """The same, telling of each epoch: whoever does not learn observes."""
    learn = {} if "HAKMEM_MODE" in peer.environment else {"HAKMEM_LEARN": "observe:bigcache"}
    return replace(peer, environment={**peer.environment, "HAKMEM_MODE": "research", **learn})


@contextmanager
def _anew(peer: Peer) -> Iterator[Peer]:
    """It begins with what was saved once, not with what the last run has made of it."""
    saved = Path(peer.environment.get("HAKMEM_POLICY", ""))
    if not saved.is_file() or "HAKMEM_MODE" not in peer.environment:
        yield peer
        return
    with tempfile.TemporaryDirectory(prefix="hakmem-bench-") as directory:
        copy = shutil.copy(saved, directory)
        yield replace(peer, environment={**peer.environment, "HAKMEM_POLICY": copy})


def run_anew(test: Test, peer: Peer, *, quick: bool) -> Sample:
    with _anew(peer) as begins:
        return runner.run(test, begins, quick=quick)


def run_told(test: Test, peer: Peer, *, quick: bool) -> Sample:
    """A run with its epochs."""
    with tempfile.TemporaryDirectory(prefix="hakmem-bench-") as directory, _anew(peer) as begins:
        log = Path(directory) / "report"
        writes = replace(begins, environment={**begins.environment, "HAKMEM_REPORT": str(log)})
        sample = runner.run(test, writes, quick=quick)
        text = log.read_text(errors="replace") if log.exists() else ""
    if sample.good:
        sample.extra["learner"] = learning_log.series(text)
    return sample


@dataclass(frozen=True)
class Stage:
    name: str
    tests: tuple[Test, ...]
    settings: tuple[str, ...]
    repetitions: int
    quick_repetitions: int
    told: bool = False
    short: bool = False
    """The quick form of its tests in a full run too."""
    earlier: tuple[Test, ...] = ()
    """What saves the policy that its tests begin with."""

    def plan(self, known: dict[str, Peer], *, quick: bool) -> schedule.Plan:
        chosen = [known[name] for name in self.settings]
        return schedule.Plan(
            tests=self.tests,
            peers=[told(peer) for peer in chosen] if self.told else chosen,
            repetitions=self.quick_repetitions if quick else self.repetitions,
            quick=quick or self.short,
            run=run_told if self.told else run_anew,
        )


def _suite(*, quick: bool) -> list[Stage]:
    """Each test in which time counts. A hundredth shows in many pairs only, and most tests are short."""
    if quick:
        return [Stage("suite", tuple(suite.choose("vm,large,lifetimes,nodes-tree,lua", quick=True)), _BOTH, 9, 2)]
    tests = [test for test in suite.TESTS if not test.memory_only]
    real = tuple(test for test in tests if test.group == programs.GROUP)
    own = tuple(test for test in tests if test.group != programs.GROUP)
    return [Stage("suite", own, _BOTH, 35, 2), Stage("suite", real, _BOTH, 15, 2)]


def stages(*, quick: bool) -> list[Stage]:
    fixed = (OURS, *policies.names())
    less = tuple(without(part) for part in PARTS)
    warm = (LEARNING, WARM, LOADED)
    return [
        Stage("large", learning.LARGE, (*fixed, LEARNING, WARM, *PEERS), 5, 1, earlier=learning.LARGE),
        Stage("warm", learning.WARM_CLASSES, (OURS, *warm), 9, 1, earlier=(learning.EARLIER_CLASSES,)),
        Stage("warm", (learning.WARM_RECORDS,), (*fixed, *warm), 6, 1, told=True, earlier=(learning.EARLIER_RECORDS,)),
        Stage("drawn", learning.DRAWN, (*fixed, LEARNING), 1, 1, told=True),
        Stage("phases", (learning.PHASES,), (*fixed, LEARNING, *less), 2, 1, told=True),
        Stage("adversary", (learning.ADVERSE,), _BOTH, 3, 1, told=True),
        Stage("classes", learning.CLASS_FIT, (OURS, LEARNING, without("classes")), 5, 2, short=True),
        *_suite(quick=quick),
    ]


def choose(text: str | None, *, quick: bool) -> list[Stage]:
    found = stages(quick=quick)
    if text is None:
        return found
    names = named(text, "part", list(dict.fromkeys(stage.name for stage in found)))
    return [stage for stage in found if stage.name in names]


def settings_of(chosen: Sequence[Stage]) -> set[str]:
    return {name for stage in chosen for name in stage.settings}


def peers_of(chosen: Sequence[Stage], known: dict[str, Peer]) -> list[Peer]:
    """Those that the stages need, in the order in which they are known."""
    needed = settings_of(chosen)
    return [peer for name, peer in known.items() if name in needed]


def steps(chosen: Sequence[Stage], known: dict[str, Peer], *, quick: bool, counts: bool) -> int:
    counted = 2 * len(COUNTED) if counts else 0
    return counted + sum(stage.plan(known, quick=quick).steps for stage in chosen)


def count(known: dict[str, Peer], progress: schedule.Progress) -> Iterator[Counts]:
    """Instructions with learning and without."""
    for counted in COUNTED:
        for name in (OURS, LEARNING):
            progress.step(f"{counted.name}, counted: {name}")
            peer = replace(known[name], environment={**watching.SAME, **known[name].environment})
            yield counting.count(counted, peer, simulates=False)


def default_output(directory: Path) -> Path:
    return directory / f"{datetime.datetime.now():%Y-%m-%d-%H%M%S}-learning.json"


def is_result(result: Result) -> bool:
    asked = result.provenance.get("asked for", "")
    return re.match(r"learning\b", asked) is not None and LEARNING in {peer.name for peer in result.peers}
