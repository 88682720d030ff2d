"""z3 on satisfiability problems of several theories."""

from __future__ import annotations

import unittest

from programs import ProgramTest

PIGEONS = 8
QUEENS = 24


def pigeonholes() -> str:
    """More pigeons than holes: unsatisfiable, and a long search."""
    lines = [f"(declare-const p{i}_{j} Bool)" for i in range(PIGEONS + 1) for j in range(PIGEONS)]
    lines += [f"(assert (or {' '.join(f'p{i}_{j}' for j in range(PIGEONS))}))" for i in range(PIGEONS + 1)]
    for j in range(PIGEONS):
        for a in range(PIGEONS + 1):
            lines += [f"(assert (not (and p{a}_{j} p{b}_{j})))" for b in range(a)]
    return "\n".join([*lines, "(check-sat)"])


def queens() -> str:
    """Integers that differ in rows and diagonals."""
    lines = [f"(declare-const q{i} Int)(assert (and (<= 1 q{i}) (<= q{i} {QUEENS})))" for i in range(QUEENS)]
    lines.append(f"(assert (distinct {' '.join(f'q{i}' for i in range(QUEENS))}))")
    lines.append(f"(assert (distinct {' '.join(f'(+ q{i} {i})' for i in range(QUEENS))}))")
    lines.append(f"(assert (distinct {' '.join(f'(- q{i} {i})' for i in range(QUEENS))}))")
    return "\n".join([*lines, "(check-sat)"])


def bit_vectors() -> str:
    """The factors of a number."""
    return """
(declare-const a (_ BitVec 44))(declare-const b (_ BitVec 44))
(assert (= (bvmul a b) #x0000e8d4b51))(assert (bvugt a #x00000000001))(assert (bvugt b a))
(assert (bvult b #x00000100000))(assert (bvult a #x00000100000))(check-sat)
"""


def arrays_and_strings() -> str:
    return """
(declare-const m (Array Int Int))(declare-const s String)(declare-const t String)
(assert (forall ((i Int)) (=> (and (<= 0 i) (< i 40)) (= (select m (+ i 1)) (+ (select m i) i)))))
(assert (= (select m 0) 3))(assert (= (str.++ s "ab" t) (str.++ "xxabyyab" t)))(assert (str.in_re t (re.+ (str.to_re "zab"))))
(check-sat)(push)(assert (= (select m 30) 0))(check-sat)(pop)(check-sat)
"""


class Z3(ProgramTest):
    packages = ("z3",)
    programs = ("z3",)
    version = ("z3", "--version")

    def test_problems(self) -> None:
        """pigeonholes, queens, factors in bit vectors, arrays with quantifiers and strings"""
        verdicts: list[bytes] = []
        for number, problem in enumerate((pigeonholes(), queens(), bit_vectors(), arrays_and_strings())):
            path = self.directory / f"{number}.smt2"
            path.write_text(problem)
            result = self.compare(["z3", "-T:200", str(path)], served="z3")
            self.assertNotIn(b"timeout", result.stdout)
            verdicts += result.stdout.split()
        self.assertEqual(verdicts[:1], [b"unsat"])

    def test_threads(self) -> None:
        """the same search with two threads"""
        path = self.directory / "problem.smt2"
        path.write_text(pigeonholes())
        result = self.compare(["z3", "parallel.enable=true", "parallel.threads.max=2", str(path)], served="z3")
        self.assertEqual(result.stdout.strip(), b"unsat")


if __name__ == "__main__":
    unittest.main()
