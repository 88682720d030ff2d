"""`hakmem top`, driven by its keys at three sizes: what is on the screen; nothing a process does ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import signal
import subprocess
import termios
import time
import unittest
from collections.abc import Awaitable, Callable
from unittest import mock

import fakes
from textual.pilot import Pilot

from hakmem_observe.remote import WAIT_SECONDS, Process
from hakmem_observe.snapshot import PARTS, Snapshot
from hakmem_observe.watch import chart, chooser, panes
from hakmem_observe.watch.app import Top
from hakmem_observe.watch.history import History
from hakmem_observe.watch.sheet import Sheet

SMALL, LARGE = (80, 24), (200, 60)

Body = Callable[[Top, "Pilot[int]"], Awaitable[None]]


def text_of(app: Top) -> str:
    """What is on the screen, as characters."""
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line) for line in lines)


def visible(app: Top) -> list[str]:
    return [str(pane.id) for pane in app.query_one("#panes").children if pane.display]


async def until(pilot: Pilot[int], holds: Callable[[], bool]) -> None:
    for _ in range(200):
        if holds():
            return
        await pilot.pause(0.05)
    raise AssertionError("it does not come to be:\n" + text_of(pilot.app))  # type: ignore[arg-type]


class Screens(fakes.FakeTest):
    def drive(self, size: tuple[int, int], body: Body, wrong: str = "") -> Top:
        self.process = self.start(wrong=wrong)
        app = Top(Process(self.process.pid), interval=0.05)

        async def run() -> None:
            async with app.run_test(size=size, notifications=True) as pilot:
                await until(pilot, lambda: len(app.history.parts) > 2)
                await body(app, pilot)

        asyncio.run(run())
        return app

    def test_small(self) -> None:
        async def body(app: Top, pilot: Pilot[int]) -> None:
            self.assertEqual(visible(app), ["memory"])
            await until(pilot, lambda: "q Quit" in text_of(app))
            text = text_of(app)
            for told in (
                str(self.process.pid),
                "large live     32.0 KiB  33%",
                "live 34.1 KiB of 96.9 KiB",
                "128 KiB ┤",
            ):
                self.assertIn(told, text)
            for key, name, told in (
                ("tab", "rates", "requested memory"),
                ("right", "classes", "48 B    2.1 KiB         45"),
                ("tab", "threads", "4711"),
                ("tab", "memory", "┤"),
                ("left", "threads", "none"),
                ("2", "rates", "span lock waits"),
            ):
                await pilot.press(key)
                await until(pilot, lambda name=name: visible(app) == [name])  # type: ignore[misc]
                await until(pilot, lambda told=told: told in text_of(app))  # type: ignore[misc]
            await pilot.press("q")

        self.assertEqual(self.drive(SMALL, body).return_code, 0)

    def test_large(self) -> None:
        async def body(app: Top, pilot: Pilot[int]) -> None:
            self.assertEqual(visible(app), ["memory", "rates", "classes", "threads"])
            text = text_of(app)
            for told in ("Memory", "Rates", "Classes", "Threads", "flushes", "4711", "48 B"):
                self.assertIn(told, text)
            await pilot.resize_terminal(*SMALL)
            await until(pilot, lambda: visible(app) == ["memory"])
            await pilot.resize_terminal(*LARGE)
            await until(pilot, lambda: len(visible(app)) == 4)

        self.drive(LARGE, body)

    def test_narrow(self) -> None:
        """Without room for a chart the numbers are whole."""

        async def body(app: Top, pilot: Pilot[int]) -> None:
            await until(pilot, lambda: "large live     32.0 KiB  33%" in text_of(app))
            self.assertNotIn("┤", text_of(app))

        self.drive((40, 24), body)

    def test_tiny(self) -> None:
        async def body(app: Top, pilot: Pilot[int]) -> None:
            for key in ("tab", "tab", "tab", "tab"):
                await pilot.press(key)
                await pilot.pause()

        self.drive((20, 5), body)

    def test_process_that_ends(self) -> None:
        async def body(app: Top, pilot: Pilot[int]) -> None:
            self.end(self.process)
            await until(pilot, lambda: "has ended; q quits" in text_of(app))
            await pilot.press("tab")
            await until(pilot, lambda: "requested memory" in text_of(app))
            await pilot.press("q")

        self.assertEqual(self.drive(SMALL, body).return_code, 0)

    def test_pause(self) -> None:
        async def body(app: Top, pilot: Pilot[int]) -> None:
            await pilot.press("p")
            await pilot.pause(0.2)
            self.assertIn("paused", text_of(app))
            seen = len(app.history.parts)
            await pilot.pause(0.3)
            self.assertEqual(len(app.history.parts), seen)
            await pilot.press("p")
            await until(pilot, lambda: len(app.history.parts) > seen)

        self.drive(SMALL, body)

    def test_sort(self) -> None:
        async def body(app: Top, pilot: Pilot[int]) -> None:
            await pilot.press("s")  # the chart has nothing to sort
            await pilot.press("4", "s", "s")
            await until(pilot, lambda: "sorted by thread" in text_of(app))
            text = text_of(app)
            self.assertLess(text.index("4711  "), text.index("none  "))
            await pilot.press("s", "s", "s", "s")
            await until(pilot, lambda: "sorted by cached" in text_of(app))
            text = text_of(app)
            self.assertLess(text.index("none  "), text.index("4711  "))

        self.drive(SMALL, body)

    def test_purge(self) -> None:
        async def body(app: Top, pilot: Pilot[int]) -> None:
            await pilot.press("g")
            await until(pilot, lambda: "asked to give back" in text_of(app))
            await until(pilot, lambda: app.history.totals.get("purges") == 1)

        self.drive(SMALL, body)

    def test_purge_that_nobody_serves(self) -> None:
        async def body(app: Top, pilot: Pilot[int]) -> None:
            with mock.patch("hakmem_observe.remote.WAIT_SECONDS", 0.1):
                await pilot.press("g")
                await until(pilot, lambda: "did not answer" in text_of(app))

        self.drive(SMALL, body, wrong="idle")

    def test_damaged_process(self) -> None:
        async def body(app: Top, pilot: Pilot[int]) -> None:
            for key in ("tab", "tab", "tab"):
                await pilot.press(key)
                await pilot.pause(0.1)

        self.drive(LARGE, body, wrong="wild")

    def test_learner(self) -> None:
        async def body(app: Top, pilot: Pilot[int]) -> None:
            self.assertNotIn("Learner", text_of(app))
            taken = Snapshot(pid=1, unix_ms=9, more={"learner": {"profiles": 3, "phase": "steady"}})
            with mock.patch.object(app._process, "snapshot", return_value=taken):
                await until(pilot, lambda: "Learner" in text_of(app))
                await pilot.press("5")
                await until(pilot, lambda: "phase" in text_of(app) and "steady" in text_of(app))
            await until(pilot, lambda: visible(app) == ["memory"])  # it learns no more
            await pilot.press("tab")
            await until(pilot, lambda: visible(app) == ["rates"])

        self.drive(SMALL, body)


class Parts(unittest.TestCase):
    def test_chart_stacks_in_proportion(self) -> None:
        sample = [0] * len(PARTS)
        sample[0] = sample[1] = 512
        with mock.patch.dict("os.environ", {"NO_COLOR": "1"}):
            lines = chart.draw([sample] * 5, [1.0] * 5, 20, 9).plain.splitlines()
        self.assertEqual([line[-1] for line in lines[:8]], [chart.MARKS[1]] * 4 + [chart.MARKS[0]] * 4)
        self.assertTrue(lines[0].startswith(" 1.0 KiB ┤"), lines[0])
        self.assertTrue(lines[-1].endswith("now"))
        wide = chart.draw([sample] * 20, [1.0] * 20, 40, 9).plain.splitlines()
        self.assertIn("19 s ago", wide[-1], "between 20 columns are 19 intervals")

    def test_chart_of_anything(self) -> None:
        for samples in ([], [[0] * 8], [[1 << 62] * 8], [[i] * 8 for i in range(300)]):
            for width, height in ((1, 1), (20, 5), (200, 50)):
                chart.draw(samples, [1.0] * len(samples), width, height)

    def test_sparkline(self) -> None:
        self.assertEqual(chart.sparkline([0, 0], 4), "  ▁▁")
        self.assertEqual(chart.sparkline([0, 7, 14], 3), "▁▅█")
        self.assertEqual(len(chart.sparkline(range(100), 10)), 10)

    def test_rates(self) -> None:
        history = History()
        for i in range(3):
            row = {"class": 1, "size": 8, "refills": 10 * i}
            history.add(Snapshot(pid=1, unix_ms=0, uptime_ms=i * 500, counters={"flushes": 7 * i}, classes=[row]))
        self.assertEqual(history.rate("flushes"), 14)
        self.assertEqual(history.row_rate("classes", history.newest.classes[0], "refills"), 20)  # type: ignore[union-attr]
        history.add(Snapshot(pid=1, unix_ms=0, uptime_ms=1500, counters={"flushes": 0, "new": 5}))
        self.assertEqual((history.rate("flushes"), history.rate("new")), (0, 0))

    def test_sheet_of_words_and_numbers(self) -> None:
        sheet = panes.threads_sheet()
        self.assertIsInstance(sheet, Sheet)
        self.assertEqual([sheet.sort_by_next() for _ in range(3)], ["refills/s", "thread", "name"])


class Choosing(fakes.FakeTest):
    def test_programs_that_hold_the_library_are_found(self) -> None:
        process = subprocess.Popen([str(fakes.static_program())], env={}, stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for(process)
        self.assertIn(process.pid, chooser.processes())

    def test_processes_are_found_and_chosen(self) -> None:
        pids = sorted(self.start().pid for _ in range(2))
        self.assertLessEqual(set(pids), set(chooser.processes()))
        app = chooser.Chooser()

        async def run() -> None:
            with mock.patch.object(chooser, "processes", return_value=pids):
                async with app.run_test(size=SMALL) as pilot:
                    await pilot.press("down", "enter")
                    await pilot.pause()

        asyncio.run(run())
        self.assertEqual(app.return_value, pids[1])


class Terminals(fakes.FakeTest):
    def setUp(self) -> None:
        self.open()

    def open(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.ends = contextlib.ExitStack()
        self.addCleanup(self.ends.close)
        self.ends.callback(os.close, self.ours)
        self.ends.callback(os.close, self.theirs)
        os.set_blocking(self.ours, False)
        self.shown = b""

    def read_until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not holds():
            self.assertLess(time.monotonic(), deadline, self.shown)
            time.sleep(0.01)
            with contextlib.suppress(BlockingIOError):
                self.shown += os.read(self.ours, 1 << 20)

    def start_top(self, *words: str) -> subprocess.Popen[bytes]:
        """Until it has drawn."""
        process = subprocess.Popen(
            [*fakes.HAKMEM, "top", *words],
            env={**os.environ, "PYTHONPATH": str(fakes.ROOT / "python"), "TERM": "xterm-256color"},
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            start_new_session=True,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.shown = b""
        self.read_until(lambda: b"Quit" in self.shown)
        return process

    def end_by_signal(self, *words: str) -> None:
        before = termios.tcgetattr(self.theirs)
        process = self.start_top(*words)
        process.send_signal(signal.SIGTERM)
        self.read_until(lambda: process.poll() is not None and b"\x1b[?1049l" in self.shown)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertLess(self.shown.rindex(b"\x1b[?25l"), self.shown.rindex(b"\x1b[?25h"))
        self.assertEqual(termios.tcgetattr(self.theirs), before)

    def test_one_that_cannot_be_drawn_on_is_named(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(fakes.ROOT / "python"), "TERM": "dumb"}
        done = subprocess.run(
            [*fakes.HAKMEM, "top", "1"],
            env=environment,
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            timeout=60,
            check=False,
        )
        self.read_until(lambda: b"\n" in self.shown)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"hakmem: top: TERM=dumb: ", self.shown)
        self.assertNotIn(b"\x1b", self.shown)

    def test_are_left_as_they_were(self) -> None:
        """By what is shown of a process, and by the list of several."""
        pid = self.start().pid
        self.end_by_signal(str(pid))
        self.start()
        self.end_by_signal()

    def test_what_was_asked_goes_with_it(self) -> None:
        idle = Process(self.start(wrong="idle").pid)
        for leave in (b"q", b"\x03"):
            process = self.start_top(str(idle.pid))
            os.write(self.ours, b"g")
            self.read_until(lambda: idle._head().request != 0)
            os.write(self.ours, leave)
            started = time.monotonic()
            self.read_until(lambda process=process: process.poll() is not None)  # type: ignore[misc]
            self.assertEqual((process.returncode, idle._head().request), (0, 0))
            self.assertLess(time.monotonic() - started, WAIT_SECONDS)

    def test_goes_with_its_terminal(self) -> None:
        """No signal comes: it is another session's."""
        pids = [self.start().pid for _ in range(2)]
        shown = self.start_top(str(pids[0]))
        self.ends.close()
        self.open()
        listed = self.start_top()
        self.ends.close()
        self.assertEqual([process.wait(30) for process in (shown, listed)], 2 * [128 + signal.SIGHUP])


class Refusals(fakes.FakeTest):
    def test_no_terminal(self) -> None:
        self.assert_refused(fakes.hakmem("top", str(self.start().pid)), "no terminal", "hakmem stat")

    def test_bad_words(self) -> None:
        for words, told in (
            (["frob"], "frob: no process"),
            (["0"], "0: no process"),
            (["1", "2"], "2"),
            (["--x"], "--x"),
        ):
            self.assert_refused(fakes.hakmem("top", *words), told)


if __name__ == "__main__":
    unittest.main()
