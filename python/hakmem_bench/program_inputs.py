"""What the real programs work on: text made from a seed, the same every time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

SEED = 20261121


def writer(name: str, lines: Callable[[int], Iterator[str]], size: int) -> Callable[[Path], None]:
    """A function that writes the lines into a file of that name in a directory."""

    def write(directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("".join(f"{line}\n" for line in lines(size)))

    return write


def both(*writers: Callable[[Path], None]) -> Callable[[Path], None]:
    """A function that does what all of these do."""

    def write(directory: Path) -> None:
        for one in writers:
            one(directory)

    return write


def sql(rows: int) -> Iterator[str]:
    """A script for sqlite3: orders and customers in memory, indexes, groups, joins, deletions, and a check."""
    source = random.Random(SEED)
    customers = rows // 10
    yield "CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT);"
    yield "CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER, note TEXT);"
    yield "BEGIN;"
    for number in range(customers):
        yield f"INSERT INTO customer VALUES ({number}, 'name{source.randrange(10**6)}', 'city{number % 211}');"
    yield "CREATE INDEX purchase_customer ON purchase (customer, amount);"
    for number in range(rows):
        note = "n" * source.randrange(60)
        values = f"{number}, {source.randrange(customers)}, {source.randrange(5000)}, '{note}'"
        yield f"INSERT INTO purchase VALUES ({values});"
    yield "COMMIT;"
    yield "CREATE INDEX purchase_note ON purchase (note, id);"
    yield "CREATE TABLE summary AS SELECT city, count(*) AS many, sum(amount) AS total,"
    yield "  group_concat(substr(note, 1, 3)) AS notes"
    yield "  FROM purchase JOIN customer ON customer.id = purchase.customer GROUP BY city ORDER BY total DESC;"
    for number in range(rows // 50):
        yield f"UPDATE purchase SET note = note || hex({number}) WHERE customer = {source.randrange(customers)};"
        yield f"DELETE FROM purchase WHERE id = {source.randrange(rows)};"
        values = f"{source.randrange(customers)}, printf('%0100d', {number}), 'city0'"
        yield f"INSERT OR REPLACE INTO customer VALUES ({values});"
    # With -bail, a row against the constraint is a failure of the program.
    yield f"CREATE TABLE found (many INTEGER CHECK (many = {rows}));"
    yield "INSERT INTO found SELECT sum(many) FROM summary;"
    yield "SELECT count(*), sum(length(note)), sum(amount) FROM purchase;"
    yield "SELECT name, sum(amount) AS total FROM purchase JOIN customer ON customer.id = purchase.customer"
    yield "  GROUP BY name ORDER BY total DESC, name LIMIT 3;"


def c_source(functions: int) -> Iterator[str]:
    """Functions of loops, branches and structures, each calling earlier ones."""
    source = random.Random(SEED)
    yield "struct item { int kind; unsigned long value; struct item *next; double weight[4]; };"
    for number in range(functions):
        values = ", ".join(str(source.getrandbits(30)) for _ in range(16))
        yield f"static unsigned long table_{number}[16] = {{ {values} }};"
        yield f"unsigned long work_{number}(struct item *first, unsigned long limit)"
        yield "{"
        yield f"  unsigned long sum = {source.randrange(1000)}ul;"
        yield "  for (struct item *at = first; at; at = at->next) {"
        yield "    switch (at->kind) {"
        for kind in range(source.randrange(4, 9)):
            yield f"    case {kind}: sum {source.choice(('+=', '^=', '-='))} at->value * {source.randrange(2, 99)}ul;"
            yield f"      at->weight[{kind % 4}] += (double)sum / {source.randrange(2, 9)}.0; break;"
        yield f"    default: sum ^= table_{number}[sum % 16]; break;"
        yield "    }"
        yield f"    for (unsigned long i = 0; i < limit && sum % {source.randrange(3, 50)} != 1; i++)"
        yield f"      table_{number}[i % 16] = sum += at->value >> (i % {source.randrange(7, 60)});"
        yield "  }"
        for _ in range(min(number, 2)):
            yield f"  if (sum > limit) sum += work_{source.randrange(number)}(first, limit / 2);"
        yield "  return sum;"
        yield "}"


def postscript(pages: int) -> Iterator[str]:
    """Pages of text in several fonts, curves, clipped shadings and small images."""
    source = random.Random(SEED)
    fonts = ("Times-Roman", "Helvetica-Bold", "Courier", "Palatino-Italic")
    yield "%!PS-Adobe-3.0"
    for page in range(pages):
        for line in range(60):
            size = source.randrange(6, 14)
            yield f"/{fonts[(page + line) % 4]} findfont {size} scalefont setfont"
            text = "".join(chr(source.randrange(97, 123)) if source.random() < 0.85 else " " for _ in range(70))
            yield f"{source.random() / 2:.3f} setgray 40 {780 - line * 12} moveto ({text}) show"
        for _ in range(120):
            points = " ".join(str(source.randrange(600)) for _ in range(6))
            yield f"{source.random():.3f} {source.random():.3f} {source.random():.3f} setrgbcolor"
            yield f"newpath {source.randrange(600)} {source.randrange(800)} moveto {points} curveto closepath"
            yield source.choice(("fill", "eofill", "2 setlinewidth stroke", "[4 2] 0 setdash stroke [] 0 setdash"))
        for _ in range(3):
            x, y, radius = source.randrange(100, 500), source.randrange(100, 700), source.randrange(20, 90)
            yield f"gsave newpath {x} {y} {radius} 0 360 arc clip << /ShadingType 3 /ColorSpace /DeviceRGB"
            yield f"/Coords [{x} {y} 0 {x} {y} {radius}] /Function << /FunctionType 2 /Domain [0 1]"
            yield "/C0 [1 0.2 0] /C1 [0 0.3 1] /N 1 >> >> shfill grestore"
            yield f"gsave {x} {y} translate {radius} {radius} scale 32 32 8 [32 0 0 32 0 0]"
            yield f"{{<{source.randbytes(256).hex()}>}} image grestore"
        yield "showpage"


def smt(stores: int) -> Iterator[str]:
    """Bytes written at unknown places of an array in two orders: where the places differ, the order does not matter.
    There is no counterexample; to know that, the solver has to bring bit-vectors and arrays together."""
    source = random.Random(SEED)
    order = source.sample(range(stores), stores)
    yield "(set-logic QF_ABV)"
    yield "(declare-const memory (Array (_ BitVec 16) (_ BitVec 8)))"
    for number in range(stores):
        yield f"(declare-const place{number} (_ BitVec 16))"
        yield f"(declare-const byte{number} (_ BitVec 8))"
    yield f"(assert (distinct {' '.join(f'place{number}' for number in range(stores))}))"
    for name, numbers in (("forwards", range(stores)), ("mixed", order)):
        text = "memory"
        for number in numbers:
            value = f"(bvadd (bvmul byte{number} byte{(number + 1) % stores}) #x0{number % 10})"
            text = f"(store {text} place{number} {value})"
        yield f"(define-fun {name} () (Array (_ BitVec 16) (_ BitVec 8)) {text})"
    yield "(declare-const any (_ BitVec 16))"
    yield "(assert (not (= (select forwards any) (select mixed any))))"
    yield "(check-sat)"
