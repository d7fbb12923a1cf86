"""Pyramids of an ontology without some properties, before and after completion, and what they know.

Not a measurement itself: `completion.py` asks with it, `make bench` leaves it out.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from choice_pyramids import Corpus, build_pyramid, read_text2kgbench
from making.facts import fold_words, holds_run, say_value
from making.questions import word_for_value
from sets.text2kgbench import clean_name

from kpyramid.completion.decisions import Decision, add_decision
from kpyramid.ontology.schema import Schema, parse_schema, write_schema
from kpyramid.query import Snapshot, answer

SENTENCES = 200
"""Sentences of an ontology that a pyramid is built of."""
STATING = 0.7
"""Share of them, at most, that state hidden properties, evenly over these."""
QUESTIONS = 30
"""Questions about the hidden properties of an ontology."""
STATED = 0.3
"""Share of a proposal's facts that state a hidden property at least, for it to be accepted."""
NOTHING = 1_000_000
"""Facts that a proposal needs where none is to be accepted."""


@dataclass(frozen=True)
class Hidden:
    """A question about a hidden property with its values."""

    label: str
    text: str
    values: tuple[str, ...]


def drop_properties(schema: Schema, labels: Collection[str]) -> Schema:
    """The schema without the properties of these labels."""
    gone = [prop.iri for prop in schema.properties if prop.label in labels]
    return Schema(
        schema.base,
        schema.classes,
        tuple(prop for prop in schema.properties if prop.label not in labels),
        tuple(line for line in schema.axioms if not any(f"<{iri}>" in line for iri in gone)),
    )


def hide_labels(corpus: Corpus, labels: Collection[str], most: int) -> Corpus:
    """Sentences of all parts, taught by others, with an ontology that does not know some labels."""
    schema = drop_properties(parse_schema(corpus.turtle, source=corpus.name), labels)
    known = {row["text"] for row in corpus.rows}
    taught = {row["id"]: row for row in corpus.examples if row["text"] not in known}
    facts = list(corpus.facts)
    facts += [
        ((t["sub"], t["rel"], t["obj"]), key) for key, row in taught.items() for t in row["triples"]
    ]
    rows = {str(row["id"]): str(row["text"]) for row in (*corpus.rows, *taught.values())}
    queues: dict[str, list[str]] = {label: [] for label in sorted(labels)}
    for (_, label, _), key in facts:
        if label in labels and key not in queues[label]:
            queues[label].append(key)
    chosen = dict.fromkeys(key for keys in zip_longest(*queues.values()) for key in keys if key)
    stating = list(chosen)[: round(STATING * most)]
    others = [key for key in rows if key not in chosen][: most - len(stating)]
    there = {*stating, *others}
    return replace(
        corpus,
        rows=tuple({"id": key, "text": text} for key, text in rows.items() if key in there),
        facts=tuple(fact for fact in facts if fact[1] in there),
        turtle=write_schema(schema),
        examples=tuple(
            {**row, "triples": kept}
            for key, row in taught.items()
            if key not in there and (kept := [t for t in row["triples"] if t["rel"] not in labels])
        ),
    )


def list_stated(corpus: Corpus, labels: Collection[str]) -> dict[tuple[str, str], list[str]]:
    """The values that the corpus's rows state of the labels, by label and subject."""
    values: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (subject, label, value), _ in corpus.facts:
        if label in labels:
            values[label, clean_name(subject)].append(clean_name(value))
    return {key: list(dict.fromkeys(found)) for key, found in sorted(values.items())}


@dataclass
class Known:
    """The facts of a snapshot by id, and the hidden values that each joins."""

    ends: Mapping[str, tuple[str, str]]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Known":
        names = snapshot.names
        columns = ("triple_id", "head_id", "tail_id", "literal")
        rows = snapshot.table("triples").select(columns).to_pylist()
        return cls(
            {
                row["triple_id"]: (names[row["head_id"]], row["literal"] or names[row["tail_id"]])
                for row in rows
            }
        )

    def find(self, subject: str, values: Sequence[str]) -> set[str]:
        """The facts that join a subject and one of its values, either way round."""
        return {
            key
            for key, (head, tail) in self.ends.items()
            if (is_right(head, [subject]) and is_right(tail, values))
            or (is_right(tail, [subject]) and is_right(head, values))
        }


def ask_hidden(corpus: Corpus, joined: Mapping[tuple[str, str], Sequence[str]]) -> list[Hidden]:
    """A question for the values of each label and subject, evenly over labels."""
    ranges = {label: ends[1] for label, ends in (corpus.ends or {}).items()}
    queues: dict[str, list[Hidden]] = defaultdict(list)
    for (label, subject), found in joined.items():
        form = say_value(found[0])[1]
        text = word_for_value(label, subject, ranges.get(label, ""), form)[0]
        queues[label].append(Hidden(label, text, tuple(found)))
    asked: list[Hidden] = []
    while any(queues.values()) and len(asked) < QUESTIONS:
        asked += [queue.pop(0) for _, queue in sorted(queues.items()) if queue]
    return asked[:QUESTIONS]


def decide(
    snapshot: Snapshot, stating: Mapping[str, Collection[str]], others: Collection[str]
) -> str:
    """A decisions file that accepts each proposal of which most facts state a hidden property.

    `stating`: the facts that join values of each hidden label, `others` those of visible ones. A
    fact that joins no gold value counts for neither, as the triples of a sentence are not all that
    it says; three tenths of all facts state the property at least. A person names what is accepted
    as the ontology does, and joins what says one thing.
    """
    accepted: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in snapshot.table("proposals").to_pylist():
        drawn = {label: len(facts & set(row["triple_ids"])) for label, facts in stating.items()}
        label = max(sorted(drawn), key=drawn.__getitem__, default="")
        known = {key for found in (*stating.values(), others) for key in found}
        states = drawn.get(label, 0) > max(
            len(known & set(row["triple_ids"])) / 2, STATED * row["support"]
        )
        if states and row["kind"] == "property" and row["state"] != "alias":
            accepted[label].append(row)
    text = ""
    for label, rows in sorted(accepted.items()):
        best = max(rows, key=lambda row: (row["support"], row["label"]))
        entry = Decision(
            decision="accept",
            kind="property",
            label=label,
            domain=best["domain"],
            range=best["range"],
            phrases=tuple(sorted({phrase for row in rows for phrase in row["phrases"]})),
        )
        text = add_decision(text, entry)
    return text


def count_right(snapshot: Snapshot, asked: Sequence[Hidden]) -> int:
    """How many questions the layers above the text answer rightly."""
    right = 0
    for question in asked:
        said = answer(question.text, snapshot, "polyrag", text=False)
        right += any(is_right(value, question.values) for value in said.choices)
    return right


def is_right(said: str, values: Sequence[str]) -> bool:
    """Whether an answer is a value, at most four words beside it, or half of its words or more."""
    own = fold_words(said)
    for value in values:
        gold = fold_words(value)
        if holds_run(own, gold) and len(own) <= len(gold) + 4:
            return True
        if holds_run(gold, own) and 2 * len(own) >= len(gold):
            return True
    return False


def find_corpora(data: Path) -> dict[str, Corpus]:
    """The test sentences of each ontology by its name."""
    return {corpus.name: corpus for corpus in read_text2kgbench(data, "test", None, 0)}


def measure_answers(
    corpus: Corpus, labels: Collection[str], folder: Path, limit: int | None
) -> dict[str, int]:
    """Right answers of one ontology before and after completion, questions, and what is left out.

    After: the proposals that state a hidden property are accepted through the decisions file. Left
    out are questions whose values no fact of the graph joins to their subject.
    """
    corpus = hide_labels(corpus, labels, min(SENTENCES, limit or SENTENCES))
    stated = list_stated(corpus, labels)
    nothing = {"complete": {"accept_support": NOTHING}}
    before = build_pyramid(corpus, folder, folder / "warehouse", nothing)
    known = Known.of(before)
    stating: dict[str, set[str]] = defaultdict(set)
    joined: dict[tuple[str, str], Sequence[str]] = {}
    for (label, subject), values in stated.items():
        if facts := known.find(subject, values):
            stating[label] |= facts
            joined[label, subject] = values
    asked = ask_hidden(corpus, joined)
    if not asked:
        return {"asked": 0, "left_out": len(stated), "before": 0, "after": 0, "accepted": 0}
    decisions = folder / corpus.name / "decisions.toml"
    visible = list_stated(corpus, {label for (_, label, _), _ in corpus.facts} - set(labels))
    others = {key for (_, name), found in visible.items() for key in known.find(name, found)}
    decisions.write_text(decide(before, stating, others), "utf-8")
    right = count_right(before, asked)
    decided = {"complete": {"decisions": str(decisions)}}
    after = build_pyramid(corpus, folder, folder / "warehouse", decided)
    return {
        "asked": len(asked),
        "left_out": len(stated) - len(joined),
        "before": right,
        "after": count_right(after, asked),
        "accepted": decisions.read_text("utf-8").count("[[proposal]]"),
    }
