"""A pyramid learns from feedback: rows of answered questions become documents of its corpus (WTS).

Algorithm 1 writes triples into the graph. Here a row writes its statements into `experience.jsonl`
of the corpus, and the next build reads them like any document: so what is learnt has provenance,
passes the gates, is seen by who may see it, and goes when its row goes. No snapshot is written.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Literal, Protocol, cast

from kpyramid.condensation.graph import read_value
from kpyramid.condensation.merging import guard_comparer
from kpyramid.documents.corpus import name_former
from kpyramid.documents.words import normalise_name, normalise_relation
from kpyramid.errors import ConflictError, InputError
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.keys import JsonValue, content_id, hash_bytes
from kpyramid.llm.caller import hold_file
from kpyramid.ontology.literals import parse_literal
from kpyramid.pipeline.learning import HOPS, SOURCE_ROWS, SOURCE_SHARE
from kpyramid.pipeline.learning.feedback import EvolveWhen, Feedback, Unread, read_feedback
from kpyramid.pipeline.learning.statements import Made, Statement, Triple
from kpyramid.pipeline.stages.instances import index_phrases
from kpyramid.snapshot.evidence import name_table
from kpyramid.snapshot.individuals import list_classes
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import Scope
from kpyramid.storage.writing import write_durably

# Whether a triple is new to the graph: exactly known, nearly known, known in other words (WTS).
#
# Section 3.2.2 refuses a triple that the graph has, and one within L' of any that it has, by
# cosine. Here only triples of the same two things are compared (blocked), and their relations
# decide: by the lexicon and grammar of condensation, which finds .90 of 1,575 paraphrases of
# relation wordings and takes .02 of wordings that are near and say something else for them. The
# cosine of whole triples cannot: at .9 it takes .81 of the paraphrases that the lexicon misses, and
# .47 of the others.

WITHIN = 0.03
"""L': cosine distance of two wordings of the same two things, which the lexicon does not know, up
to which they say the same. The paper gives none; .03 takes them for other spellings only."""
MOST_COMPARED = 4_000
"""Facts about one thing that a triple is compared with."""
_OF = re.compile(r"^(?:is|are|was|were) of (?:the )?(?=\w+$)")
"""Start of a relation such as "is of the gender", which is read as "has gender"."""
_FRAME = "someone {} something"


@dataclass(frozen=True, slots=True)
class Known(Triple):
    """A triple of the graph, or learnt earlier in this run, with the types of its ends."""

    types: tuple[str, str]


class Graph:
    """The triples of a published graph in one scope, with those that are learnt besides.

    `public`: the graph of the empty scope, whose learnt triples are visible in this scope too.
    """

    def __init__(self, snapshot: Snapshot, public: "Graph | None" = None) -> None:
        self._snapshot = snapshot
        self._public = public
        self._index = snapshot.entities_by_name()
        self._comparer: Comparer = public._comparer if public else Comparer(snapshot.embedder)
        self._compare = guard_comparer(self._comparer)
        self._properties = index_phrases(snapshot.schema.properties)
        self._learnt: dict[str, list[Known]] = defaultdict(list)

    def add(self, triple: Triple) -> None:
        """Adds a learnt triple to the known ones."""
        types = self._find_type(triple.head), self._find_type(triple.tail)
        known = Known(triple.head, triple.relation, triple.tail, types)
        for name in {normalise_name(triple.head), normalise_name(triple.tail)}:
            self._learnt[name].append(known)

    def forget(self) -> None:
        """Removes all learnt triples."""
        self._learnt.clear()

    def find_known(self, triple: Triple) -> str:
        """The fact that implies a triple, and why; empty if there is none."""
        for fact in self._list_about(triple.head):
            for flipped in (False, True):
                head, tail = (fact.tail, fact.head) if flipped else (fact.head, fact.tail)
                same = self._is_same(triple.head, head) and self._agrees(triple.tail, tail)
                if same and (why := self._says(fact, triple, flipped=flipped)):
                    return f"{fact}: {why}"
        return ""

    def find_against(self, triple: Triple) -> str:
        """The fact with another value of a single-valued property, and its label; empty if none.

        A date or a number does not contradict a name.
        """
        for fact in self._list_about(triple.head):
            if (
                not self._is_same(triple.head, fact.head)
                or _is_number(triple.tail) != _is_number(fact.tail)
                or self._agrees(triple.tail, fact.tail)
                or self._agrees(fact.tail, triple.tail)
            ):
                continue
            single = self._list_single(triple) | self._list_single(fact)
            verdict = self._compare(triple.relation, fact.relation, fact.types)
            same = verdict.likeness in ("equivalent", "narrower", "broader")
            if single and same and not verdict.turned:
                return f"{fact}: {min(single)} has one value"
        return ""

    def _list_single(self, triple: Triple) -> frozenset[str]:
        """The labels of the single-valued properties that a triple states."""
        schema, kinds = self._snapshot.schema, self._find_classes(triple.head)
        properties = {
            schema.property_by_iri[iri]
            for stated in self._properties.get(normalise_relation(triple.relation).key, ())
            for iri, swapped in schema.find_entailed(stated.iri)
            if not swapped and any(schema.max_values(kind, iri) == 1 for kind in kinds)
        }
        return frozenset(
            prop.label
            for prop in properties
            if (
                parse_literal(triple.tail, prop.range) is not None
                if prop.is_datatype
                else not _is_number(triple.tail)
            )
        )

    def _says(self, fact: Known, triple: Triple, *, flipped: bool) -> str:
        """Why a fact between the same two things implies the triple; empty if it does not."""
        keys = {normalise_relation(stated.relation).key for stated in (fact, triple)}
        if not flipped and len(keys) == 1:
            return "the same triple"
        ends = fact.types[::-1] if flipped else fact.types
        verdict = self._compare(_OF.sub("has ", triple.relation), fact.relation, ends)
        if verdict.likeness in ("equivalent", "broader"):
            fits = verdict.symmetric or verdict.turned == flipped
            return verdict.reason if fits else ""
        read = [self._comparer.read(r).meaning for r in (triple.relation, fact.relation)]
        if flipped or verdict.likeness != "different" or all(read):
            return ""
        left, right = self._snapshot.embed_all(
            [_FRAME.format(relation) for relation in (triple.relation, fact.relation)]
        )
        return "within L' by cosine" if float(left @ right) >= 1.0 - WITHIN else ""

    def _list_about(self, name: str) -> Iterator[Known]:
        snapshot = self._snapshot
        ids = self._index.get(join_words(name), ())
        for key in snapshot.facts_about(ids, MOST_COMPARED) if ids else ():
            fact = snapshot.read_fact(key)
            yield Known(fact.head, fact.relation, fact.tail, (fact.head_type, fact.tail_type))
        for graph in filter(None, (self, self._public)):
            yield from graph._learnt.get(normalise_name(name), ())

    def _is_same(self, first: str, second: str) -> bool:
        """Whether two names denote the same thing."""
        if normalise_name(first) == normalise_name(second):
            return True
        ids = self._index.get(join_words(first), ())
        return bool(set(ids) & set(self._index.get(join_words(second), ())))

    def _agrees(self, value: str, known: str) -> bool:
        """Whether a known value equals a value, or implies it, as a date does its year."""
        return self._is_same(value, known) or read_value(known).says(read_value(value))

    def _find_classes(self, name: str) -> list[str]:
        """The classes of a thing by the ontology, else the class of its type."""
        ids = self._index.get(join_words(name), ())
        if classes := [iri for key in ids for iri in list_classes(key, self._snapshot)]:
            return classes
        kind = self._snapshot.schema.class_for_type(self._find_type(name))
        return [kind] if kind else []

    def _find_type(self, name: str) -> str:
        """The type of a thing; empty if the graph does not have it."""
        ids = self._index.get(join_words(name), ())
        return self._snapshot.types[ids[0]] if ids else ""


def _is_number(value: str) -> bool:
    """Whether a value is a number or a date."""
    return value[:1].isdigit() or read_value(value).stem.startswith("year")


EXPERIENCE = "experience.jsonl"
_LOCK = ".experience.lock"

Result = Literal["learnt", "known", "not_due", "refused", "quarantined"]
_Stated = tuple[Feedback, tuple[Statement, ...]]
"""A row with its statements."""


class Maker(Protocol):
    """Makes statements from rows, by rules or by a model."""

    def state(self, row: Feedback) -> Made:
        """The statements of a row, or why there are none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a row; `reason` is short, for counting, and empty if it was learnt."""

    line: int
    key: str
    result: Result
    reason: str = ""
    detail: str = ""
    statements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Learnt:
    """The outcomes of all rows, in their order, and how many rows the file has now."""

    outcomes: tuple[Outcome, ...]
    file: Path
    rows: int
    written: bool

    def count(self) -> dict[str, int]:
        """Number of rows by result and reason."""
        names = (f"{o.result}: {o.reason}" if o.reason else o.result for o in self.outcomes)
        return dict(sorted(Counter(names).items()))

    def to_dict(self) -> dict[str, object]:
        """The outcomes as plain values."""
        return {
            "file": str(self.file),
            "rows": self.rows,
            "written": self.written,
            "counts": self.count(),
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
        }


def learn(
    feedback: Path,
    corpus: Path,
    snapshot: Snapshot,
    open_maker: Callable[[Snapshot], Maker],
    evolve_when: EvolveWhen = "always",
    hops: int = HOPS,
    *,
    dry_run: bool = False,
) -> Learnt:
    """Learns from a file of feedback; the same file a second time changes nothing.

    `snapshot`: the published pyramid in the widest scope. `open_maker`: makes statements from a
    snapshot in the scope of a row. `evolve_when`, `hops`: see `Feedback.is_due`. With `dry_run`
    nothing is written.

    Raises:
        InputError: no such file or corpus folder, or what was learnt before cannot be read.
        ConflictError: another run learns into this corpus.
        BudgetError, EndpointError: the model may not or cannot be asked; nothing is written.
    """
    if not corpus.is_dir():
        raise InputError(f"corpus {corpus} is no folder; what is learnt becomes a file in it")
    file = corpus / EXPERIENCE
    with ExitStack() as opened:
        if not dry_run:
            try:
                opened.enter_context(hold_file(corpus / _LOCK, alone=True))
            except BlockingIOError as e:
                why = f"another run learns into {corpus}; call again when it is done"
                raise ConflictError(why) from e
        before = _read_rows(file)
        run = _Run(snapshot, open_maker, before)
        rows: list[Feedback] = []
        for row in read_feedback(feedback):
            if isinstance(row, Unread):
                key = content_id("row", row.line)
                run.outcomes[row.line] = Outcome(row.line, key, "refused", row.reason, row.detail)
            else:
                rows.append(row)
        learnt = run.learn(rows, evolve_when, hops)
        after = before | {row.key: _write_row(row, statements) for row, statements in learnt}
        if not dry_run:
            _replace(file, after)
    ordered = tuple(run.outcomes[line] for line in sorted(run.outcomes))
    return Learnt(ordered, file, len(after), not dry_run and after != before)


class _Run:
    """The guards in their order; rows that one sets aside are in `outcomes`, by line."""

    def __init__(
        self,
        snapshot: Snapshot,
        open_maker: Callable[[Snapshot], Maker],
        before: Mapping[str, Mapping[str, JsonValue]],
    ) -> None:
        self.outcomes: dict[int, Outcome] = {}
        self._snapshot = snapshot
        self._before = before
        listed = snapshot.table("documents")["access"].to_pylist()
        self._labels = frozenset(label for access in listed for label in access or ())
        # With a label that no document has one sees what all see: each view is opened once.
        self._open_view = cache(lambda labels: snapshot.scoped(Scope(access=labels)))
        self._open_maker = cache(lambda labels: open_maker(self._open_view(labels)))
        public = Graph(self._open_view(frozenset()))
        self._graphs: dict[frozenset[str], Graph] = {frozenset(): public}

    def learn(self, rows: Sequence[Feedback], evolve_when: EvolveWhen, hops: int) -> list[_Stated]:
        """The learnt rows with their new statements."""
        made = [
            (row, statements)
            for row in self._pick_agreeing(self._pick_due(rows, evolve_when, hops))
            if (statements := self._state(row))
        ]
        new = [(row, left) for row, statements in made if (left := self._check(row, statements))]
        return self._part(self._share_out(new))

    def _put_aside(self, row: Feedback, result: Result, reason: str, detail: str) -> None:
        self.outcomes[row.line] = Outcome(row.line, row.key, result, reason, detail)

    def _pick_due(
        self, rows: Sequence[Feedback], evolve_when: EvolveWhen, hops: int
    ) -> list[Feedback]:
        """The distinct rows by which the graph is to evolve."""
        seen: set[str] = set()
        due = []
        for row in rows:
            if row.key in self._before or row.key in seen:
                self._put_aside(row, "known", "learnt_before", "the same question and answer")
            elif not row.is_due(evolve_when, hops):
                self._put_aside(row, "not_due", evolve_when, f"confident at depth {row.depth}")
            elif hidden := self._find_hidden(row):
                self._put_aside(row, "quarantined", "hidden_basis", hidden)
            else:
                seen.add(row.key)
                due.append(row)
        return due

    def _find_hidden(self, row: Feedback) -> str:
        """A retrieved triple hidden from some readers of the row; its answer may disclose it."""
        for keys, words in row.triples.items():
            for key in keys.split("+"):
                if self._labels and name_table(key) is None:
                    return f"{key!r} is no fact, statement or passage: its labels are not known"
                if self._snapshot.evidence(key) and not all(
                    self._open_view(labels & self._labels).evidence(key)
                    for labels in _list_scopes(row.access)
                ):
                    return f"{words!r} is labelled: give the row its access labels"
        return ""

    def _pick_agreeing(self, rows: Sequence[Feedback]) -> list[Feedback]:
        """The rows whose question has no other answer, among these and earlier rows."""
        answers: dict[str, dict[frozenset[str], str]] = defaultdict(dict)
        for key, known in self._before.items():
            values = tuple(map(str, cast("list[str]", known["answer"])))
            row = Feedback(0, str(known["asked"]), values, "gold", "", (), {}, None, None)
            answers[row.topic].setdefault(row.says, f"{key} of {EXPERIENCE}")
        for row in rows:
            answers[row.topic].setdefault(row.says, f"line {row.line}")
        agreeing = []
        for row in rows:
            says = row.says
            others = (
                where
                for answer, where in answers[row.topic].items()
                if not (answer <= says or says <= answer)
            )
            if conflict := next(others, ""):
                detail = f"{'; '.join(row.values)!r}: {conflict} has another answer"
                self._put_aside(row, "quarantined", "rows_disagree", detail)
            else:
                agreeing.append(row)
        return agreeing

    def _state(self, row: Feedback) -> tuple[Statement, ...]:
        labels = frozenset(row.access) if len(row.access) == 1 else frozenset[str]()
        made = self._open_maker(labels & self._labels).state(row)
        if not made.statements:
            self._put_aside(row, "refused", "no_statement", made.reason)
        return made.statements

    def _check(self, row: Feedback, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """The new statements of a row; empty, with the outcome noted, where one cannot hold."""
        if not self._holds(row, statements, "contradicts"):
            return ()
        graphs = [self._open_graph(labels) for labels in _list_scopes(row.access)]
        left, known = [], ""
        for statement in statements:
            facts = [graph.find_known(t) for t in statement.triples for graph in graphs]
            if all(facts):
                known = facts[0]
            else:
                left.append(statement)
        if not left:
            self._put_aside(row, "known", "redundant", known)
        return tuple(left)

    def _share_out(self, rows: list[_Stated]) -> list[_Stated]:
        """The first rows of each source, within its share.

        Rows in the file count too. Rows without a source are vouched for by the caller.
        """
        taken = Counter(str(known.get("source", "")) for known in self._before.values())
        counts = taken + Counter(row.source for row, _ in rows)
        within = []
        for row, statements in rows:
            most = SOURCE_SHARE / (1 - SOURCE_SHARE) * (counts.total() - counts[row.source])
            taken[row.source] += 1
            if not row.source or taken[row.source] <= max(most, SOURCE_ROWS):
                within.append((row, statements))
            else:
                detail = f"source {row.source}: {counts[row.source]} of {counts.total()} rows"
                self._put_aside(row, "quarantined", "source_share", detail)
        return within

    def _part(self, rows: list[_Stated]) -> list[_Stated]:
        """The rows that do not contradict one another, and the first of those that say the same."""
        for row, statements in rows:
            self._note(row, statements)
        holding = [row for row in rows if self._holds(*row, "rows_contradict")]
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

    def _holds(self, row: Feedback, statements: Sequence[Statement], reason: str) -> bool:
        """Whether no visible fact contradicts a row."""
        for triple, graph in self._list_seen(row, statements):
            if against := graph.find_against(triple):
                self._put_aside(row, "quarantined", reason, f"{triple} / {against}")
                return False
        return True

    def _note(self, row: Feedback, statements: Sequence[Statement]) -> None:
        """Adds the learnt triples to every graph in which they will be visible."""
        for triple, graph in self._list_seen(row, statements):
            graph.add(triple)

    def _list_seen(
        self, row: Feedback, statements: Sequence[Statement]
    ) -> list[tuple[Triple, Graph]]:
        """Pairs of a statement's triple and a graph in which it will be visible."""
        graphs = [self._open_graph(labels) for labels in _list_scopes(row.access)]
        triples = [triple for statement in statements for triple in statement.triples]
        return list(product(triples, graphs))

    def _open_graph(self, labels: frozenset[str]) -> Graph:
        """The graph that readers with a label see; it holds what is learnt for all, too."""
        if labels not in self._graphs:
            public = self._graphs[frozenset()]
            self._graphs[labels] = Graph(self._open_view(labels & self._labels), public)
        return self._graphs[labels]


def _list_scopes(access: Sequence[str]) -> list[frozenset[str]]:
    """The scopes that see a row with these labels: one per label, or the public one."""
    return [frozenset({label}) for label in access] or [frozenset()]


def _write_row(row: Feedback, statements: Sequence[Statement]) -> dict[str, JsonValue]:
    """The document of a row; fields without a place of their own are its metadata."""
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
    rows: dict[str, Mapping[str, JsonValue]] = {}
    try:
        # Other marks than this one may stand inside a text.
        for line in filter(None, path.read_bytes().split(b"\n")):
            row = json.loads(line)
            if not {"asked", "answer"} <= row.keys():
                raise ValueError("a row that was not learnt")
            rows[row["id"]] = row
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as e:
        raise InputError(f"{path}: {e}; `kpyramid learn` writes it: mend or remove it") from e
    return rows


def _replace(path: Path, rows: Mapping[str, Mapping[str, JsonValue]]) -> None:
    """Writes rows in the order of their ids, by rename; the former file stays for running builds.

    A build that has listed the corpus reads the file that it listed.
    """
    lines = [json.dumps(rows[key], ensure_ascii=False, sort_keys=True) for key in sorted(rows)]
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
    former = path.read_bytes() if path.exists() else None
    if data == former or (not data and former is None):
        return
    if former is not None:
        keep = name_former(path, hash_bytes(former))
        for outdated in path.parent.glob(f".{path.name}.*"):
            if outdated != keep:
                outdated.unlink(missing_ok=True)
        write_durably(keep, former)
    write_durably(path, data)
