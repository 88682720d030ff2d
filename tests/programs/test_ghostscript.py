"""Ghostscript: its own allocators lie on malloc, with large and small chunks that come and go."""

from __future__ import annotations

import hashlib
import unittest
from pathlib import Path

from programs import ProgramTest, run

# Text in all fonts, curves, clipping, patterns, shading, images, and a loop that fills the dictionaries.
PAGE = r"""%!PS
/names [/Helvetica /Times-Roman /Courier /Symbol /Times-BoldItalic /Helvetica-Bold] def
1 1 6 { /page exch def
  0 1 names length 1 sub { dup names exch get findfont page 4 mul 8 add scalefont setfont
    40 exch 60 mul 300 add moveto (Page ) show page 10 string cvs show ( The quick brown fox \(12345\)) show } for
  gsave 300 150 100 0 360 arc clip newpath
  0 2 360 { dup 360 div 1 1 sethsbcolor 300 150 moveto dup cos 100 mul 300 add exch sin 100 mul 150 add lineto
    page setlinewidth stroke } for grestore
  gsave 50 50 translate 100 100 scale 64 64 8 [64 0 0 -64 0 64]
    { 4096 string dup 0 1 4095 { dup dup mul page mul 256 mod put dup } for pop } image grestore
  << /ShadingType 2 /ColorSpace /DeviceRGB /Coords [400 50 550 200] /Extend [true true]
     /Function << /FunctionType 2 /Domain [0 1] /C0 [1 0 0] /C1 [0 page 6 div 1] /N 1 >> >>
  gsave 400 50 150 100 rectclip shfill grestore
  0 1 20000 { dup 20 string cvs cvn exch [ exch dup dup ] def } for
  showpage } for
"""


class Ghostscript(ProgramTest):
    packages = ("ghostscript", "gsfonts", "libgs9-common", "fonts-urw-base35")
    programs = ("gs",)
    version = ("gs", "--version")

    def render(self, source: Path, device: str, resolution: int) -> None:
        """Both ways, the files compared by their digests."""
        digests = []
        for name in ("without", "with"):
            out = self.directory / name
            out.mkdir(exist_ok=True)
            for old in out.iterdir():
                old.unlink()
            digests.append(out)
        command = ["gs", "-q", "-dNOPAUSE", "-dBATCH", "-dSAFER", f"-sDEVICE={device}", f"-r{resolution}"]
        command += ["-sOutputFile=page%03d", "-f", str(source)]
        # The same command twice: where it writes is its directory.
        found = []
        for preload, out in zip((False, True), digests, strict=True):
            result = run(command, preload=preload, cwd=out)
            self.assertEqual(result.status, 0, result.stdout[-500:] + result.stderr[-500:])
            self.assertEqual("gs" in result.served, preload)
            found.append([(p.name, hashlib.sha256(p.read_bytes()).hexdigest()) for p in sorted(out.iterdir())])
        self.assertGreater(len(found[0]), 0)
        self.assertEqual(found[1], found[0])

    def test_generated_pages(self) -> None:
        """6 pages of fonts, clipping, images and shading at 72 and 300 dpi on 4 devices, pixels compared"""
        source = self.directory / "page.ps"
        source.write_text(PAGE)
        for device in ("png16m", "ppmraw", "pbmraw", "jpeg"):
            for resolution in (72, 300):
                self.render(source, device, resolution)

    def test_own_examples(self) -> None:
        """its own examples, if Debian still ships them, and the font sheets made by its own library programs"""
        examples = sorted(Path("/usr/share/doc/ghostscript").rglob("examples/**/*.ps*"))
        library = sorted(Path("/usr/share/ghostscript").glob("*/lib/prfont.ps"))
        self.assertGreater(len(examples) + len(library), 0)
        for source in examples:
            self.render(source, "png16m", 150)
        sheet = self.directory / "sheet.ps"
        for font in ("Helvetica", "Times-Italic", "Courier-Bold", "ZapfDingbats"):
            sheet.write_text(f"({library[0]}) run\n/{font} DoFont\n")
            self.render_unsafe(sheet)

    def render_unsafe(self, source: Path) -> None:
        """As render, for a document that reads a file of the installation."""
        command = ["gs", "-q", "-dNOPAUSE", "-dBATCH", "-dNOSAFER", "-sDEVICE=png16m", "-r100", "-sOutputFile=-"]
        result = self.compare([*command, "-f", str(source)], served="gs")
        self.assertEqual(result.status, 0, result.stderr[-500:])
        self.assertGreater(len(result.stdout), 1000)


if __name__ == "__main__":
    unittest.main()
