"""The report's page in a real browser: the charts are drawn, and answer to a reader."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import fake_series
import fake_stacks

from hakmem_observe import report_page, snapshot
from hakmem_observe.words import count_bytes

PROBE = Path(__file__).parent / "probe.js"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@unittest.skipIf(BROWSER is None, "chromium is not installed")
class Browser(unittest.TestCase):
    def see(self, page: str, width: int = 1200) -> dict[str, Any]:
        """The page's title in the end."""
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "report.html")
            file.write_text(page.replace("</body>", f"<script>{PROBE.read_text()}</script></body>"))
            options = [
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--virtual-time-budget=5000",
                "--enable-logging=stderr",
            ]
            options += [
                f"--user-data-dir={directory}/profile",
                f"--window-size={width},900",
                "--dump-dom",
                f"file://{file}",
            ]
            command = [BROWSER or "", *options]
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True
            )
        self.assertNotIn(":CONSOLE", done.stderr)
        title = re.search(r"<title>(\{.*?)</title>", done.stdout)
        assert title, done.stdout[:2000]
        saw: dict[str, Any] = json.loads(html.unescape(title[1]))
        self.assertNotIn("error", saw, saw.get("error"))
        return saw

    def test_charts_answer(self) -> None:
        profile = fake_stacks.profile(200)
        series = snapshot.parse_series(fake_series.text(fake_series.series(60)), "here")
        page = report_page.render(report_page.Given(profile, series, ["p", "s"]))
        live, allocated = (count_bytes(profile.total(what).bytes) for what in ("live", "allocated"))
        for width in (1200, 400):
            with self.subTest(width):
                saw = self.see(page, width)
                self.assertGreater(saw["frames"], 10)
                self.assertEqual(saw["labels"][:2], ["shopd", "main"])
                self.assertEqual(saw["root"], f"shopd: {live}, 100.0 %")
                self.assertEqual(saw["allocated"], f"shopd: {allocated}, 100.0 %")
                self.assertEqual(saw["search"], f"“MAIN”: {allocated}, 100.0 %")
                self.assertIn("not found", saw["odd"])
                self.assertIn("main, /srv/shop/src/main.cc:14", saw["below"])
                self.assertGreater(saw["faded"], 0)
                self.assertEqual(saw["reset"], 0)
                self.assertRegex(saw["when"], "^5 s after the start")
                self.assertEqual(saw["small"], count_bytes(series[0].part("small_live_bytes")))
                self.assertEqual(saw["order"], sorted(saw["order"], reverse=True))
                self.assertFalse(saw["sideways"])

    def test_hostile_names_are_text(self) -> None:
        saw = self.see(report_page.render(report_page.Given(fake_stacks.profile(60, hostile=True), [], ["p"])))
        self.assertTrue([label for label in saw["labels"] if label.startswith(fake_stacks.HOSTILE)])
        self.assertEqual(saw["images"], 0)
