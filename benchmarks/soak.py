"""Nights on end: edits, labels, erasure, kills, a full disk, rollbacks and gc beside readers.

No published system is reproduced. A corpus of rows is built night after night. Before each night a
few documents are written, edited, removed, labelled or opened again, as `--seed` draws; of the
nights some have a fault: the build is killed (SIGKILL after a time that is drawn), may write no
file above a size that is drawn (a full disk), runs beside a second build, or comes behind
`rollback`, `tag`, `gc` or `erase`. After a fault the night is built again. Every version of a
document has a code word of its own, which tells where its text is read.

`violations` counts, and stderr names, each of these that does not hold after a night:

- `whole`: `kpyramid verify` finds the snapshot, all refs and runs whole.
- `complete`: without a scope the newest snapshot has every document of the corpus in its version of
  today, and no other; under the public scope those without labels.
- `hidden`: under the public scope no snapshot that is left, of whatever night, has a word of a
  document with a label today.
- `erased`: no table, file or log of the warehouse has a word of an erased document.
- `log`: the entries of the ref's log are those of the night before and new ones behind them.
- `same`: the night built again makes the same snapshot, and each twentieth night a warehouse from
  nothing has the same documents, chunks, claims and raw triples, byte by byte.
- `reader`: a thread that opens `main` again and again never fails, and never sees the word of a
  document that had a label when the build before it ended and has it still after it read.

`growth` is the bytes of the warehouse at the end over those after ten nights, `seconds` the median
wall time of a night's undisturbed build, `nights` how many there were.
"""

import json
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from options import make_parser, name_count, print_figures, report
from retention import count_bytes

from kpyramid.errors import PyramidError
from kpyramid.query import open_snapshot
from kpyramid.snapshot.view import PUBLIC, Scope
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import list_entries, resolve_ref

NIGHTS = 200
DOCUMENTS = 12
FROM_NOTHING = 20
"""Nights between two comparisons with a build into a warehouse of its own."""
MOST_SECONDS = 3600
ROWWISE = ("documents", "chunks", "claims", "raw_triples")
FAULTS = ("none", "none", "none", "kill", "disk", "two", "rollback", "tag", "gc", "erase")
BUILT = ("Lund", "Ghent", "Turku", "Bergen", "Porto", "Gdansk")
EVERYTHING = Scope(access=None)
SEALED = "staff"


@dataclass(slots=True)
class Document:
    """A row of the corpus, and the code words of the versions that it has had."""

    number: int
    version: int = 0
    label: str | None = None
    words: list[str] = field(default_factory=list)

    def write(self) -> None:
        """Makes the next version."""
        self.version += 1
        self.words.append(f"Vessel Zq{self.number}v{self.version}x")

    @property
    def word(self) -> str:
        """The code word of today's text."""
        return self.words[-1]

    def state(self) -> dict[str, str]:
        """The row as it stands in its file."""
        place = BUILT[(self.number + self.version) % len(BUILT)]
        year = 1900 + (7 * self.number + self.version) % 90
        text = (
            f"{self.word} was built in {place} in {year}. {self.word} is owned by the Orme Line. "
            f"Captain Hana Volk commanded {self.word} until {year + 9}."
        )
        row = {"id": f"d{self.number}", "title": self.word, "text": text}
        return row | ({"access": self.label} if self.label else {})


class Nights:
    """A warehouse, the corpus that its nights read, and what did not hold."""

    def __init__(self, folder: Path, seed: int, documents: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311  documents, no secret
        self.corpus, self.place = folder / "corpus", folder / "warehouse"
        self.corpus.mkdir()
        self.warehouse = Warehouse(self.place)
        self.documents: list[Document] = []
        self.erased: list[str] = []
        self.hidden: frozenset[str] = frozenset()
        self.entries: list[Any] = []
        self.violations: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.seconds: list[float] = []
        self._written = 0
        for _ in range(documents):
            self.add()

    def add(self) -> None:
        """A new document."""
        self.documents.append(Document(self._written))
        self.documents[-1].write()
        self._written += 1

    def change(self) -> None:
        """What people do to a corpus between two nights."""
        for _ in range(self.chance.randint(1, 3)):
            one = self.chance.choice(self.documents)
            match self.chance.choice(("edit", "edit", "add", "remove", "label", "open")):
                case "edit":
                    one.write()
                case "add":
                    self.add()
                case "remove" if len(self.documents) > DOCUMENTS // 2:
                    self.documents.remove(one)
                case "label":
                    one.label = SEALED
                case "open":
                    one.label = None

    def write(self) -> None:
        """The corpus as files, one for each document."""
        wanted = {f"{one.number:04}.jsonl": json.dumps(one.state()) for one in self.documents}
        for path in self.corpus.iterdir():
            if path.name not in wanted:
                path.unlink()
        for name, line in wanted.items():
            (self.corpus / name).write_text(f"{line}\n", "utf-8")

    def call(self, *words: str, most_bytes: int | None = None) -> subprocess.Popen[str]:
        """A command of `kpyramid` under way; it writes no file larger than `most_bytes`."""

        def limit() -> None:
            if most_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

        return subprocess.Popen(
            [sys.executable, "-m", "kpyramid", *words, "--warehouse", str(self.place)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=limit,
        )

    def run(self, *words: str) -> tuple[int, str]:
        """The exit code of a command, and what it printed."""
        process = self.call(*words)
        said, _ = process.communicate(timeout=MOST_SECONDS)
        return process.returncode, said

    def build(self, **limits: int) -> subprocess.Popen[str]:
        """A build under way."""
        return self.call("build", str(self.corpus), "-q", "--workers", "1", **limits)

    def fault(self, kind: str) -> None:
        """What goes wrong, or is done by hand, before the night is built to its end."""
        self.faults[kind] += 1
        match kind:
            case "kill":
                process = self.build()
                time.sleep(self.chance.uniform(0.1, 1.5 * (self.seconds or [4.0])[-1]))
                process.send_signal(signal.SIGKILL)
                process.communicate()
            case "disk":
                self.build(most_bytes=self.chance.choice((0, 100, 5_000, 50_000))).communicate()
            case "two":
                both = [self.build(), self.build()]
                codes = [process.communicate() and process.returncode for process in both]
                self.hold("whole", {*codes} <= {0, 7}, f"two builds ended with {codes}")
            case "rollback" if len(self.entries) > 2:
                self.run("rollback", "main")
            case "tag":
                self.run("tag", f"night-{len(self.seconds)}", "main")
            case "gc":
                self.run("gc", "--keep", "5", "--older-than", "0h")
            case "erase" if len(self.documents) > DOCUMENTS // 2:
                self.erase(self.chance.choice(self.documents))

    def erase(self, one: Document) -> None:
        """Erases a document for good, with all its versions."""
        table = open_snapshot("main", self.place, scope=EVERYTHING).table("documents")
        keys = [
            row["document_id"]
            for row in table.select(["document_id", "source"]).to_pylist()
            if row["source"].endswith(f"#d{one.number}")
        ]
        if not keys:
            return  # it was written today, and no build has read it
        self.documents.remove(one)
        self.write()
        for key in keys:
            code, said = self.run("erase", "--document", key, "--yes", "-q")
            self.hold("erased", code == 0, f"erase ended with {code}: {said}")
            self.erased += one.words

    def hold(self, name: str, is_so: bool, detail: str) -> None:
        """Counts and says what does not hold."""
        if not is_so:
            self.violations[name] += 1
            report(f"night {len(self.seconds)}, {name}: {detail}")

    def pass_night(self, kind: str) -> None:
        """A fault, then the night's build, and everything that has to hold after it."""
        self.hidden &= self.list_hidden()  # what is opened may be seen from the next build on
        self.write()
        self.fault(kind)
        started = time.monotonic()
        code, said = self.run("build", str(self.corpus), "-q", "--workers", "1", "--json")
        self.seconds.append(time.monotonic() - started)
        self.hold("whole", code == 0, f"the build after {kind} ended with {code}: {said[-600:]}")
        if code:
            return
        made = json.loads(said)["snapshot"]
        if resolve_ref(self.warehouse, "main") != made:  # it was rolled back: a person's word only
            self.run("promote", "main", made)
        self.hidden = self.list_hidden()
        self.check_whole()
        self.check_texts()
        self.check_log()
        if len(self.seconds) % FROM_NOTHING == 0:
            self.check_same(made)

    def check_whole(self) -> None:
        code, said = self.run("verify")
        self.hold("whole", code == 0, said)

    def list_hidden(self) -> frozenset[str]:
        """The words of erased documents and of those with a label today."""
        labelled = (word for one in self.documents if one.label for word in one.words)
        return frozenset([*self.erased, *labelled])

    def check_texts(self) -> None:
        """Today's documents in the newest snapshot; no hidden or erased word anywhere."""
        try:
            for scope, given in (
                (EVERYTHING, self.documents),
                (PUBLIC, [one for one in self.documents if one.label is None]),
            ):
                seen = read_titles("main", self.place, scope)
                wanted = {one.word for one in given}
                self.hold("complete", seen == wanted, f"{scope.access}: {sorted(seen ^ wanted)}")
            for folder in sorted(self.warehouse.snapshots.iterdir()):
                seen = read_words(folder.name, self.place) & self.hidden
                self.hold("hidden", not seen, f"{folder.name} shows {sorted(seen)}")
        except PyramidError as e:
            self.hold("whole", False, str(e))
        for path, data in read_files(self.place):
            words = [word for word in self.erased if word.encode() in data]
            self.hold("erased", not words, f"{path} has {words}")

    def check_log(self) -> None:
        entries = list_entries(self.warehouse, "main")
        before = entries[: len(self.entries)]
        self.hold("log", before == self.entries, "entries of the log are gone or others")
        self.entries = entries

    def check_same(self, snapshot: str) -> None:
        """The same build again, and row by row what a warehouse from nothing has."""
        code, said = self.run("build", str(self.corpus), "-q", "--workers", "1", "--json")
        again = json.loads(said)["snapshot"] if code == 0 else said
        self.hold("same", again == snapshot, f"{snapshot}, then {again}")
        with tempfile.TemporaryDirectory() as name:
            fresh = Warehouse(Path(name) / "warehouse")
            words = ["build", str(self.corpus), "-q", "--warehouse", str(fresh.root)]
            subprocess.run(
                [sys.executable, "-m", "kpyramid", *words], check=True, stdout=subprocess.DEVNULL
            )
            both = [
                place.snapshots / resolve_ref(place, "main") for place in (self.warehouse, fresh)
            ]
            for table in ROWWISE:
                one, other = (folder / "tables" / f"{table}.parquet" for folder in both)
                self.hold("same", one.read_bytes() == other.read_bytes(), f"table {table}")


def read_titles(name: str, place: Path, scope: Scope) -> set[str]:
    """The titles of the documents of a snapshot: a code word each."""
    table = open_snapshot(name, place, scope=scope).table("documents")
    return set(table["title"].to_pylist())


def read_words(name: str, place: Path) -> set[str]:
    """Every code word that the public sees of a snapshot: texts, names and facts."""
    snapshot = open_snapshot(name, place, scope=PUBLIC)
    texts = snapshot.table("chunks")["text"].to_pylist()
    texts += [*snapshot.names.values()]
    for key in snapshot.table("condensed")["condensed_id"].to_pylist():
        fact = snapshot.read_fact(key)
        texts += [fact.head, fact.tail]
    return {f"Vessel {w.strip('.')}" for text in texts for w in text.split() if w.startswith("Zq")}


def read_files(place: Path) -> Iterator[tuple[Path, bytes]]:
    """The bytes of each file of a warehouse; of a table the values in their plain form."""
    for path in sorted(place.rglob("*")):
        try:
            if path.suffix == ".parquet":
                table = pq.read_table(path)
                yield path, b"\n".join(str(column.to_pylist()).encode() for column in table.columns)
            elif path.is_file():
                yield path, path.read_bytes()
        except FileNotFoundError:
            continue  # gone between listing and reading


class Reader(threading.Thread):
    """Opens `main` again and again while nights pass; what it saw that it may not, and failures."""

    def __init__(self, passing: Nights) -> None:
        super().__init__(daemon=True)
        self.passing, self.over = passing, threading.Event()
        self.failed: list[str] = []
        self.opened = 0

    def run(self) -> None:
        while not self.over.wait(0.2):
            try:
                hidden = self.passing.hidden
                titles = read_titles("main", self.passing.place, PUBLIC)
                self.opened += bool(titles)
                if seen := titles & hidden & self.passing.hidden:  # before it opened, and after
                    self.failed.append(f"it saw {sorted(seen)}")
            except Exception as e:  # noqa: BLE001  whatever it is, it is counted
                self.failed.append(f"{type(e).__name__}: {e}")


def measure(nights: int, seed: int) -> dict[str, Any]:
    """All figures, from nights in a folder that is removed again."""
    with tempfile.TemporaryDirectory() as name:
        passing = Nights(Path(name), seed, DOCUMENTS)
        passing.pass_night("none")
        reader = Reader(passing)
        reader.start()
        early = 0
        for night in range(1, nights):
            report(f"night {night + 1} of {nights}, {passing.violations.total()} violations")
            passing.change()
            passing.pass_night(passing.chance.choice(FAULTS))
            early = sum(count_bytes(passing.place).values()) if night <= 10 else early
        reader.over.set()
        reader.join()
        for failure in reader.failed:
            passing.hold("reader", False, failure)
        for _ in range(2):
            passing.run("gc", "--keep", "5", "--older-than", "0h")
        late = sum(count_bytes(passing.place).values())
        return {
            "nights": nights,
            "violations": passing.violations.total(),
            "by_kind": dict(sorted(passing.violations.items())),
            "faults": dict(sorted(passing.faults.items())),
            "seconds": round(statistics.median(passing.seconds), 2),
            "growth": round(late / early, 2) if early else None,
            "opened": reader.opened,
        }


def main() -> None:
    parser = make_parser(__doc__, "draws what changes and which fault a night has")
    parser.add_argument("--limit", type=name_count(2), default=NIGHTS, help="nights")
    options = parser.parse_args()
    print_figures(measure(options.limit, options.seed), options.json)


if __name__ == "__main__":
    main()
