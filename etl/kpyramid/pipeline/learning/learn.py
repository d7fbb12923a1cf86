"""A pyramid learns from feedback: rows of answered questions become documents of its corpus (WTS).

Algorithm 1 writes triples into the graph. Here a row writes its statements into `experience.jsonl`
of the corpus, and the next build reads them like any document: so what is learnt has provenance,
passes the gates, is seen by who may see it, and goes when its row goes. No snapshot is written.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

from kpyramid.documents.corpus import name_former
from kpyramid.errors import ConflictError, InputError
from kpyramid.keys import JsonValue, content_id, hash_bytes
from kpyramid.llm.caller import hold_file
from kpyramid.pipeline.learning import HOPS, SOURCE_ROWS, SOURCE_SHARE
from kpyramid.pipeline.learning.feedback import EvolveWhen, Feedback, Unread, read_feedback
from kpyramid.pipeline.learning.redundancy import Graph
from kpyramid.pipeline.learning.statements import Made, Statement
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import Scope
from kpyramid.storage.writing import write_durably

EXPERIENCE = "experience.jsonl"
ASIDE = ".experience.rejected.jsonl"
"""Beside it, hidden and so no part of the corpus: rows that were refused or put in quarantine."""
_LOCK = ".experience.lock"

Result = Literal["learnt", "known", "not_due", "refused", "quarantined"]


class Maker(Protocol):
    """Makes statements of rows: rules, or a model."""

    def state(self, row: Feedback) -> Made:
        """The statements of a row, or why there are none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a row; `reason` is short, for counting, and empty where it was learnt."""

    line: int
    key: str
    result: Result
    reason: str = ""
    detail: str = ""
    statements: tuple[str, ...] = ()
    given: JsonValue = None


@dataclass(frozen=True, slots=True)
class Learnt:
    """What became of every row, in their order, and how many rows the file has now."""

    outcomes: tuple[Outcome, ...]
    file: Path
    aside: Path
    rows: int
    written: bool

    def count(self) -> dict[str, int]:
        """Rows by result and reason."""
        names = (f"{o.result}: {o.reason}" if o.reason else o.result for o in self.outcomes)
        return dict(sorted(Counter(names).items()))

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return {
            "file": str(self.file),
            "aside": str(self.aside),
            "rows": self.rows,
            "written": self.written,
            "counts": self.count(),
            "outcomes": [
                {name: value for name, value in asdict(o).items() if name != "given"}
                for o in self.outcomes
            ],
        }


@dataclass(frozen=True, slots=True)
class Rules:
    """How a run learns. See `Feedback.is_due`, `HOPS` and `SOURCE_SHARE`."""

    evolve_when: EvolveWhen = "always"
    hops: int = HOPS
    source_share: float = SOURCE_SHARE
    source_rows: int = SOURCE_ROWS

    def __post_init__(self) -> None:
        if not 0 < self.source_share <= 1:
            raise InputError(f"a share of {self.source_share}; give more than 0 and at most 1")


def learn(
    feedback: Path,
    corpus: Path,
    snapshot: Snapshot,
    open_maker: Callable[[Snapshot], Maker],
    rules: Rules | None = None,
    *,
    dry_run: bool = False,
) -> Learnt:
    """Learns from a file of feedback; the same file a second time changes nothing.

    `snapshot`: the published pyramid, everything of it. `open_maker`: who makes statements from a
    snapshot in the scope of a row. With `dry_run` nothing is written.

    Raises:
        InputError: no such file or corpus folder, or what was learnt before cannot be read.
        ConflictError: another run learns into this corpus.
        BudgetError, EndpointError: the model may not or cannot be asked; nothing is written.
    """
    if not corpus.is_dir():
        raise InputError(f"corpus {corpus} is no folder; what is learnt becomes a file in it")
    if dry_run:
        return _learn(feedback, corpus, snapshot, open_maker, rules or Rules(), dry_run=True)
    try:
        with hold_file(corpus / _LOCK, alone=True):
            return _learn(feedback, corpus, snapshot, open_maker, rules or Rules(), dry_run=False)
    except BlockingIOError as e:
        raise ConflictError(f"another run learns into {corpus}; call again when it is done") from e


def _learn(
    feedback: Path,
    corpus: Path,
    snapshot: Snapshot,
    open_maker: Callable[[Snapshot], Maker],
    rules: Rules,
    *,
    dry_run: bool,
) -> Learnt:
    file, aside = corpus / EXPERIENCE, corpus / ASIDE
    before, kept_aside = _read_rows(file), _read_rows(aside)
    outcomes: dict[int, Outcome] = {}
    rows: list[Feedback] = []
    for row in read_feedback(feedback):
        if isinstance(row, Unread):
            key = content_id("row", row.given)
            found = Outcome(row.line, key, "refused", row.reason, row.detail, given=row.given)
            outcomes[row.line] = found
        else:
            rows.append(row)
    run = _Run(snapshot, open_maker, rules, before)
    learnt = run.learn(rows)
    outcomes.update(run.outcomes)
    after = before | {row.key: _write_row(row, statements) for row, statements in learnt}
    thrown = kept_aside | {
        o.key: {
            "id": o.key,
            "result": o.result,
            "reason": o.reason,
            "detail": o.detail,
            "row": o.given,
        }
        for o in outcomes.values()
        if o.result in ("refused", "quarantined") and o.key not in after
    }
    if not dry_run:
        _replace(file, after)
        _replace(aside, {key: row for key, row in thrown.items() if key not in after})
    ordered = tuple(outcomes[line] for line in sorted(outcomes))
    return Learnt(ordered, file, aside, len(after), not dry_run and after != before)


class _Run:
    """The guards in their order; what each puts aside is in `outcomes`, by line."""

    def __init__(
        self,
        snapshot: Snapshot,
        open_maker: Callable[[Snapshot], Maker],
        rules: Rules,
        before: Mapping[str, Mapping[str, JsonValue]],
    ) -> None:
        self.outcomes: dict[int, Outcome] = {}
        self._snapshot = snapshot
        self._rules = rules
        self._before = before
        listed = snapshot.table("documents")["access"].to_pylist()
        self._labels = frozenset(label for access in listed for label in access or ())
        # With a label that no document has one sees what all see: each view is opened once.
        self._open_view = cache(lambda one: snapshot.scoped(Scope(access=one)))
        self._open_maker = cache(lambda one: open_maker(self._open_view(one)))
        public = Graph(self._open_view(frozenset()))
        self._graphs: dict[frozenset[str], Graph] = {frozenset(): public}

    def learn(self, rows: Sequence[Feedback]) -> list[tuple[Feedback, tuple[Statement, ...]]]:
        """The rows that are learnt, with what is new in them."""
        made = [
            (row, statements)
            for row in self._pick_agreeing(self._pick_due(rows))
            if (statements := self._state(row))
        ]
        new = [(row, left) for row, said in made if (left := self._check(row, said))]
        return self._part(self._share_out(new))

    def _put_aside(self, row: Feedback, result: Result, reason: str, detail: str) -> None:
        given: JsonValue = dict(row.given)
        self.outcomes[row.line] = Outcome(row.line, row.key, result, reason, detail, given=given)

    def _pick_due(self, rows: Sequence[Feedback]) -> list[Feedback]:
        """The rows by which the graph is to evolve, each once."""
        seen: set[str] = set()
        due = []
        for row in rows:
            if row.key in self._before or row.key in seen:
                self._put_aside(row, "known", "learnt_before", "the same question and answer")
            elif not row.is_due(self._rules.evolve_when, self._rules.hops):
                detail = f"confident at depth {row.depth}"
                self._put_aside(row, "not_due", self._rules.evolve_when, detail)
            elif hidden := self._find_hidden(row):
                self._put_aside(row, "quarantined", "hidden_basis", hidden)
            else:
                seen.add(row.key)
                due.append(row)
        return due

    def _find_hidden(self, row: Feedback) -> str:
        """A retrieved triple that not all who may read the row may see: its answer may tell it."""
        for triple in row.triples:
            for key in triple.key.split("+"):
                if self._snapshot.evidence(key) and not all(
                    self._open_view(one & self._labels).evidence(key)
                    for one in _list_scopes(row.access)
                ):
                    return f"{triple.words!r} is labelled: give the row its access labels"
        return ""

    def _pick_agreeing(self, rows: Sequence[Feedback]) -> list[Feedback]:
        """The rows whose question has no other answer, here or among what was learnt before."""
        told: dict[str, dict[frozenset[str], str]] = defaultdict(dict)
        for key, known in self._before.items():
            given = known["answer"]
            values = tuple(map(str, given)) if isinstance(given, list) else (str(given),)
            row = Feedback(0, str(known["asked"]), values, "gold", "", (), (), None, None)
            told[row.topic].setdefault(row.says, f"{key} of {EXPERIENCE}")
        for row in rows:
            told[row.topic].setdefault(row.says, f"line {row.line}")
        # Short answers first: they agree with fewest, so that another one is found at once.
        ordered = {
            topic: sorted(answers.items(), key=lambda one: len(one[0]))
            for topic, answers in told.items()
        }

        @cache
        def find_other(topic: str, own: frozenset[str]) -> str:
            others = (at for says, at in ordered[topic] if not (says <= own or own <= says))
            return next(others, "")

        agreeing = []
        for row in rows:
            if other := find_other(row.topic, row.says):
                detail = f"{'; '.join(row.values)!r}: {other} has another answer"
                self._put_aside(row, "quarantined", "rows_disagree", detail)
            else:
                agreeing.append(row)
        return agreeing

    def _state(self, row: Feedback) -> tuple[Statement, ...]:
        one = frozenset(row.access) if len(row.access) == 1 else frozenset[str]()
        made = self._open_maker(one & self._labels).state(row)
        if not made.statements:
            self._put_aside(row, "refused", "no_statement", made.reason)
        return made.statements

    def _check(self, row: Feedback, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """The statements that say something new; none, and why, where one cannot hold."""
        graphs = [self._open_graph(one) for one in _list_scopes(row.access)]
        left, known = [], ""
        for statement in statements:
            for triple in statement.triples:
                for graph in graphs:
                    if against := graph.find_against(triple):
                        self._put_aside(row, "quarantined", "contradicts", f"{triple} / {against}")
                        return ()
            found = [graph.find_known(t) for t in statement.triples for graph in graphs]
            if all(found):
                known = found[0]
            else:
                left.append(statement)
        if not left:
            self._put_aside(row, "known", "redundant", known)
        return tuple(left)

    def _share_out(
        self, rows: list[tuple[Feedback, tuple[Statement, ...]]]
    ) -> list[tuple[Feedback, tuple[Statement, ...]]]:
        """The rows that are within the share of their source, the first ones.

        What is in the file already counts. Rows without a source are vouched for by who runs this.
        """
        taken = Counter(str(known.get("source", "")) for known in self._before.values())
        counts = taken + Counter(row.source for row, _ in rows)
        share, whole = self._rules.source_share, counts.total()
        kept = []
        for row, statements in rows:
            others = whole - counts[row.source]
            most = whole if share == 1 else int(share / (1 - share) * others + 1e-9)
            taken[row.source] += 1
            if not row.source or taken[row.source] <= max(most, self._rules.source_rows):
                kept.append((row, statements))
            else:
                detail = f"source {row.source}: {counts[row.source]} of {whole} rows"
                self._put_aside(row, "quarantined", "source_share", detail)
        return kept

    def _part(
        self, rows: list[tuple[Feedback, tuple[Statement, ...]]]
    ) -> list[tuple[Feedback, tuple[Statement, ...]]]:
        """The rows that do not contradict one another, and of those that say the same the first."""
        for row, statements in rows:
            self._note(row, statements)
        holding = [row for row in rows if self._holds(*row)]
        for graph in self._graphs.values():
            graph.forget()
        learnt = []
        for row, statements in holding:
            if left := self._check(row, statements):
                learnt.append((row, left))
                self._note(row, left)
                texts = tuple(statement.text for statement in left)
                self.outcomes[row.line] = Outcome(row.line, row.key, "learnt", statements=texts)
        return learnt

    def _holds(self, row: Feedback, statements: Sequence[Statement]) -> bool:
        for statement in statements:
            for triple in statement.triples:
                for one in _list_scopes(row.access):
                    if against := self._open_graph(one).find_against(triple):
                        detail = f"{triple} / {against}"
                        self._put_aside(row, "quarantined", "rows_contradict", detail)
                        return False
        return True

    def _note(self, row: Feedback, statements: Sequence[Statement]) -> None:
        """Notes what is learnt where it will be seen."""
        for one in _list_scopes(row.access):
            for statement in statements:
                for triple in statement.triples:
                    self._open_graph(one).add(triple)

    def _open_graph(self, one: frozenset[str]) -> Graph:
        """The graph of who has a label; what is learnt for all is seen in it."""
        if one not in self._graphs:
            public = self._graphs[frozenset()]
            self._graphs[one] = Graph(self._open_view(one & self._labels), public)
        return self._graphs[one]


def _list_scopes(access: Sequence[str]) -> list[frozenset[str]]:
    """Who may read what has some labels: whoever has one of them."""
    return [frozenset({label}) for label in access] or [frozenset()]


def _write_row(row: Feedback, statements: Sequence[Statement]) -> dict[str, JsonValue]:
    """The document of a row: what has no place of its own is its metadata."""
    made: dict[str, JsonValue] = {
        "id": row.key,
        "title": statements[0].about,
        "text": " ".join(statement.text for statement in statements),
        "experience": row.phase,
        "asked": row.question,
        "answer": list(row.values),
    }
    if row.access:
        made["access"] = list(row.access)
    if row.source:
        made["source"] = row.source
    return made


def _read_rows(path: Path) -> dict[str, Mapping[str, JsonValue]]:
    if not path.exists():
        return {}
    found: dict[str, Mapping[str, JsonValue]] = {}
    try:
        # Other marks than this one may stand inside a text.
        for line in filter(None, path.read_bytes().split(b"\n")):
            row = json.loads(line)
            if not {"asked", "answer"} <= row.keys() and not {"result", "row"} <= row.keys():
                raise ValueError("a row that was not learnt")
            found[row["id"]] = row
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as e:
        raise InputError(f"{path}: {e}; `kpyramid learn` writes it: mend or remove it") from e
    return found


def _replace(path: Path, rows: Mapping[str, Mapping[str, JsonValue]]) -> None:
    """Writes rows in the order of their ids, by rename; what was there is kept for a build.

    A build that has listed the corpus reads the file that it listed.
    """
    lines = [json.dumps(rows[key], ensure_ascii=False, sort_keys=True) for key in sorted(rows)]
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
    former = path.read_bytes() if path.exists() else None
    if data == former or (not data and former is None):
        return
    if former is not None and path.name == EXPERIENCE:
        keep = name_former(path, hash_bytes(former))
        for other in path.parent.glob(f".{path.name}.*"):
            if other != keep:
                other.unlink(missing_ok=True)
        write_durably(keep, former)
    write_durably(path, data)
