"""ImageMagick and ffmpeg on pictures, films and sounds that they generate themselves."""

from __future__ import annotations

import unittest
from pathlib import Path

from programs import ProgramTest

MAGICK = """
$C -size 1600x1200 plasma:fractal -seed 7 base.ppm 2>/dev/null || $C -seed 7 -size 1600x1200 gradient:red-blue base.ppm
$C -seed 7 -size 1600x1200 plasma:tomato-steelblue base.ppm
$C base.ppm -resize 50% -blur 0x3 -unsharp 0x2 -rotate 17 -colorspace Lab a.png
$C base.ppm -crop 400x300 +repage -emboss 1 tile%02d.jpg
$C tile*.jpg +append -charcoal 2 b.tiff
$C tile*.jpg -morph 2 -layers optimize c.gif
$C base.ppm -fft +delete d.png
$C base.ppm -distort Barrel "0.2 0.0 0.0 0.8" -quantize YUV -colors 64 -dither FloydSteinberg e.png
for f in a.png b.tiff c.gif d.png e.png; do $C $f rgba:- | sha256sum; done
rm -f tile* *.png *.tiff *.gif *.ppm
"""

# Raw frames and samples go in, digests of decoded frames come out.
FILMS = {
    "x264": ["-c:v", "libx264", "-preset", "fast", "-threads", "4"],
    "vp9": ["-c:v", "libvpx-vp9", "-b:v", "500k", "-cpu-used", "8", "-row-mt", "1", "-threads", "4"],
    "mpeg4": ["-c:v", "mpeg4", "-q:v", "5", "-threads", "4"],
}


class ImageMagick(ProgramTest):
    packages = ("imagemagick", "imagemagick-6.q16")
    programs = ("/usr/bin/convert-im6.q16",)
    version = ("/usr/bin/convert-im6.q16", "-version")

    def test_operations(self) -> None:
        """resize, blur, crop, morph, FFT, distort, quantize with OpenMP threads; pixels compared"""
        script = MAGICK.replace("$C", "/usr/bin/convert-im6.q16")
        result = self.compare(["sh", "-ec", script], served="convert-im6.q16", cwd=self.directory)
        self.assertEqual(result.status, 0, result.stderr[-1000:])
        self.assertEqual(len(result.stdout.splitlines()), 5)


class FFmpeg(ProgramTest):
    title = "FFmpeg"
    packages = ("ffmpeg",)
    programs = ("ffmpeg",)
    version = ("ffmpeg", "-version")

    def film(self, codec: list[str]) -> None:
        """Encoded and decoded; the encoders are deterministic for a given number of threads."""
        command = ["ffmpeg", "-nostdin", "-v", "error", "-y"]
        source = [
            "-f",
            "lavfi",
            "-i",
            "testsrc2=size=640x360:rate=25:duration=8",
            "-f",
            "lavfi",
            "-i",
            "sine=440:duration=8",
        ]
        encode = [*command, *source, *codec, "-c:a", "aac", "-fflags", "+bitexact", "-flags", "+bitexact", "film.mkv"]
        decode = [
            *command,
            "-threads",
            "4",
            "-i",
            "film.mkv",
            "-vf",
            "scale=320:180,eq=contrast=1.2",
            "-f",
            "framemd5",
            "-",
        ]
        for stage in (encode, decode):
            result = self.compare(stage, served="ffmpeg", cwd=self.directory)
            self.assertEqual((result.status, result.stderr), (0, b""))
        self.assertGreater(len(result.stdout.splitlines()), 400)
        self.assertTrue((Path(self.directory) / "film.mkv").stat().st_size > 10000)

    def test_x264(self) -> None:
        """x264 and AAC with 4 threads, decoded, scaled; digests of all frames compared"""
        self.film(FILMS["x264"])

    def test_vp9(self) -> None:
        """the same with VP9"""
        self.film(FILMS["vp9"])

    def test_mpeg4(self) -> None:
        """the same with MPEG-4"""
        self.film(FILMS["mpeg4"])


if __name__ == "__main__":
    unittest.main()
