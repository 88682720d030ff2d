"""LibreOffice converting documents without a display."""

from __future__ import annotations

import hashlib
import subprocess
import unittest
import zipfile
from pathlib import Path

from programs import ProgramTest, run


class LibreOffice(ProgramTest):
    packages = ("libreoffice-writer-nogui", "libreoffice-calc-nogui", "poppler-utils")
    programs = ("soffice", "pdftotext")
    version = ("soffice", "--version")

    def convert(self, source: Path, to: str, preload: bool) -> Path:
        """The file made, in a directory by itself."""
        out = self.directory / f"{'with' if preload else 'without'}-{to.split(':')[0]}"
        profile = self.directory / f"profile-{preload}"
        command = ["soffice", f"-env:UserInstallation={profile.as_uri()}", "--headless", "--convert-to", to]
        result = run([*command, "--outdir", str(out), str(source)], preload=preload, cwd=self.directory)
        self.assertEqual(result.status, 0, result.stderr[-1000:])
        self.assertEqual("soffice.bin" in result.served, preload)
        (made,) = out.iterdir()
        return made

    def test_text(self) -> None:
        """HTML of 300 sections with tables to ODT to PDF; the pages' text compared"""
        source = self.directory / "text.html"
        parts = [
            f"<h2>Section {i}</h2><p>{'word ' * (i % 90)}<b>bold {i}</b></p><table border=1>"
            + "".join(f"<tr><td>{j}</td><td>{i * j}</td></tr>" for j in range(i % 12))
            + "</table>"
            for i in range(300)
        ]
        source.write_text(f"<html><body>{''.join(parts)}</body></html>")
        texts = []
        for preload in (False, True):
            odt = self.convert(source, "odt:writer8", preload)
            content = zipfile.ZipFile(odt).read("content.xml")
            pdf = self.convert(odt, "pdf", preload)
            pages = subprocess.run(["pdftotext", "-layout", str(pdf), "-"], capture_output=True, check=True).stdout
            self.assertGreater(len(pages), 50000)
            texts.append((hashlib.sha256(content).hexdigest(), pages))
        self.assertEqual(texts[1], texts[0])

    def test_sheet(self) -> None:
        """CSV of 12,000 rows to ODS to XLSX and back to CSV, compared"""
        source = self.directory / "sheet.csv"
        source.write_text("".join(f"{i},name {i % 97},{i * 1.25},2020-01-{i % 28 + 1:02}\n" for i in range(12000)))
        sheets = []
        for preload in (False, True):
            ods = self.convert(source, "ods", preload)
            xlsx = self.convert(ods, "xlsx", preload)
            sheets.append(self.convert(xlsx, "csv", preload).read_bytes())
        self.assertEqual(sheets[1], sheets[0])
        self.assertEqual(len(sheets[0].splitlines()), 12000)


if __name__ == "__main__":
    unittest.main()
