"""Headless Chromium. Its own code is served by PartitionAlloc, the libraries that it loads by malloc."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import unittest
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import LIBRARY, ProgramTest, descendants, environment, is_shut_in, maps_library, name_of
from servers import wait_until

PAGE = """<!doctype html><title>test</title><style>div {{ display: inline-block; animation: a 1s infinite }}
@keyframes a {{ from {{ transform: rotate(0) }} to {{ transform: rotate(360deg) }} }}</style>
<canvas id=c width=600 height=400></canvas><p id=answer>no answer</p><script>
const context = c.getContext('2d');
for (let i = 0; i < 3000; i++) {{
  context.fillStyle = `hsl(${{i % 360}} 80% 50%)`; context.fillRect(i * 7 % 600, i * 13 % 400, 9, 9);
  context.fillText('text ' + i, i * 11 % 600, i * 17 % 400);
}}
for (let i = 0; i < 500; i++) {{
  const box = document.createElement('div'); box.textContent = 'box {number} ' + i; document.body.append(box);
}}
const code = 'onmessage = e => {{ const m = new Map(); for (let i = 0; i < 200000; i++)'
  + ' m.set("k" + i * e.data % 5003, "v".repeat(i % 50)); postMessage([...m.values()].join("").length); }}';
const workers = [1, 2, 3, 4].map(n => new Promise(done => {{
  const worker = new Worker(URL.createObjectURL(new Blob([code]))); worker.onmessage = e => done(e.data);
  worker.postMessage(n * {number});
}}));
Promise.all(workers).then(async all => {{
  const data = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(all) + document.body.innerText.length));
  const hex = [...new Uint8Array(data)].map(b => b.toString(16).padStart(2, '0')).join('');
  answer.textContent = 'answer ' + hex + ' ' + all; document.title = 'ready';
}});
</script>"""


class Chromium(ProgramTest):
    packages = ("chromium",)
    programs = ("chromium",)
    version = ("chromium", "--version")

    def command(self, profile: Path, *arguments: str) -> list[str]:
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--virtual-time-budget=20000",
        ]
        return ["chromium", *options, f"--user-data-dir={profile}", *arguments]

    def answers(self, preload: bool) -> list[str]:
        found = []
        for number in (3, 7, 11):
            page = self.directory / f"page{number}.html"
            page.write_text(PAGE.format(number=number))
            profile = Path(tempfile.mkdtemp(dir=self.directory))
            picture = self.directory / "picture.png"
            done = subprocess.run(
                self.command(profile, "--dump-dom", page.as_uri()), env=environment(preload), capture_output=True,
                text=True, timeout=150, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr[-1000:])
            lines = [part for part in done.stdout.split("<") if "answer " in part]
            self.assertTrue(lines, done.stdout[-1000:])
            found.append(lines[0])
            shot = self.command(profile, f"--screenshot={picture}", page.as_uri())
            done = subprocess.run(
                shot, env=environment(preload), capture_output=True, text=True, timeout=150, stdin=subprocess.DEVNULL
            )
            self.assertEqual(done.returncode, 0, done.stderr[-1000:])
            self.assertGreater(picture.stat().st_size, 10000)
            picture.unlink()
        return found

    def test_pages(self) -> None:
        """three pages with canvas, 500 boxes, 4 workers and WebCrypto; the DOM compared, pictures taken"""
        self.assertEqual(self.answers(True), self.answers(False))

    @contextmanager
    def browser(self, *options: str, library: Path = LIBRARY, user: str | None = None) -> Iterator[dict[int, str]]:
        """An open one, when its page is ready: its processes and their titles."""
        page = self.directory / "page.html"
        page.write_text(PAGE.format(number=1))
        command = ["chromium", "--headless", "--disable-gpu", "--remote-debugging-port=0", *options]
        command += [f"--user-data-dir={self.directory}/profile", page.as_uri()]
        settings = environment(True) | {"LD_PRELOAD": str(library), "HOME": str(self.directory)}
        with (self.directory / "log").open("wb") as log:
            process = subprocess.Popen(
                command, env=settings, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, user=user,
                group=user and pwd.getpwnam(user).pw_gid, extra_groups=[] if user else None,
            )  # fmt: skip
            try:
                wait_until(self.is_ready, process)
                browsers = [pid for pid in descendants(process.pid) if name_of(pid) == "chromium"]
                # Chromium's children write their title over the command line, with spaces.
                yield {pid: Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for pid in browsers}
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def is_ready(self) -> bool:
        """Does the open browser say that its page has done all its work?"""
        active = self.directory / "profile" / "DevToolsActivePort"
        if not active.exists() or not active.read_text():
            return False
        port = active.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
            return "ready" in [target["title"] for target in json.load(answer)]

    def test_library_is_in_all_processes(self) -> None:
        """an open browser has the library mapped in its browser, renderer and service processes"""
        with self.browser("--no-sandbox") as titles:
            for kind in ("renderer", "utility"):
                self.assertTrue(any(f" --type={kind} " in title for title in titles.values()), titles)
            self.assertEqual([pid for pid in titles if not maps_library(pid)], [])

    def test_sandbox(self) -> None:
        """a user's without rights: its renderers are in Chromium's sandbox, and its page becomes ready"""
        self.directory.chmod(0o777)
        library = Path(shutil.copy(LIBRARY, self.directory))
        with self.browser("--disable-dev-shm-usage", library=library, user="nobody") as titles:
            renderers = [pid for pid, title in titles.items() if " --type=renderer " in title]
            self.assertTrue(renderers, titles)
            for pid in renderers:
                self.assertTrue(is_shut_in(pid))
                self.assertIn(str(library), Path(f"/proc/{pid}/maps").read_text())


if __name__ == "__main__":
    unittest.main()
