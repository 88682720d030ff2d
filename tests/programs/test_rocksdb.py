"""RocksDB's own benchmark, which checks what it reads."""

from __future__ import annotations

import re
import unittest

from programs import ProgramTest, run


class RocksDB(ProgramTest):
    packages = ("rocksdb-tools",)
    programs = ("db_bench",)
    version = ("db_bench", "--version")

    def test_db_bench(self) -> None:
        """fillrandom, overwrite, compact, readrandom, seeks with 4 threads and checksums; what was found compared"""
        kinds = "fillrandom,overwrite,compact,readrandom,seekrandom,readseq,updaterandom,verifychecksum"
        command = ["db_bench", f"--benchmarks={kinds}", "--num=150000", "--threads=4", "--value_size=300", "--seed=7"]
        command += ["--cache_size=8388608", "--write_buffer_size=4194304", "--verify_checksum=true", "--histogram=0"]
        # Rates differ; what was found where does not, except that four threads write in any order.
        shell = ["sh", "-c", f"rm -rf db && {' '.join(command)} --db=db > out 2>&1; echo status $?; cat out"]
        answers = []
        for preload in (False, True):
            result = run(shell, preload=preload, cwd=self.directory)
            text = result.stdout.decode(errors="replace")
            self.assertTrue(text.startswith("status 0\n"), text[-2000:])
            self.assertEqual("db_bench" in result.served, preload)
            answers.append(re.findall(r"^(\w+) +: .*?(?:\((\d+ of \d+ found)\))?$", text, re.MULTILINE))
        self.assertEqual([name for name, _ in answers[1]], [name for name, _ in answers[0]])
        self.assertGreaterEqual(len(answers[0]), 8)


if __name__ == "__main__":
    unittest.main()
