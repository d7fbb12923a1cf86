"""The pyramids that choice questions are asked of: their corpora, ontologies and examples.

Not a measurement itself: `choice.py` builds with it, `make bench` leaves it out.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from making.facts import Fact, Thing, Words, fold_words, say_value
from making.questions import Made, make_questions
from options import report
from sets.text2kgbench import clean_name, list_facts, list_known, read_ends
from sets.text2kgbench_ontologies import convert_ontology
from text2kgbench import find_number, read_lines

from kpyramid.pipeline.build import build
from kpyramid.query import Snapshot, open_snapshot
from kpyramid.settings import check_settings
from kpyramid.storage.layout import Warehouse

PARTS = ("test", "train")
Triple = tuple[str, str, str]
TYPE_WORDS: Mapping[str, str] = {
    "PERSON": "person",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "ORG": "organisation",
    "WORK_OF_ART": "work",
    "EVENT": "event",
    "NORP": "nationality or group",
    "LANGUAGE": "language",
    "PRODUCT": "product",
    "LAW": "law",
}
"""What the recogniser's types are called; a NOUN is anything."""


@dataclass(frozen=True)
class Corpus:
    """A corpus with what its rows state: `facts` are triples with the ids of the rows.

    `known` are triples of other rows: true too, so never a wrong option. `turtle` is the ontology
    of one's own and `examples` the sentences that teach its reader; without them a build takes
    the default ontology.
    """

    name: str
    rows: tuple[Mapping[str, str], ...]
    facts: tuple[tuple[Triple, str], ...]
    known: tuple[Triple, ...] = ()
    turtle: str = ""
    examples: tuple[Mapping[str, Any], ...] = ()
    ends: Mapping[str, tuple[str, str]] | None = None

    @property
    def is_halved(self) -> bool:
        """Whether its questions, not its sentences, are parted for tuning."""
        return self.ends is None


def read_text2kgbench(data: Path, part: str, limit: int | None, seed: int) -> Iterator[Corpus]:
    """A corpus per ontology: its test sentences, taught by the train sentences.

    Of part `train` the corpus is half of the train sentences, taught by the other half; no test
    sentence is read. The halves have no subject in common; the seed draws them. Of part `whole`
    it is the test sentences with those of validation, else with such a half of the train sentences.
    """
    files = [p for p in data.rglob("*.json") if p.parent.name == "ontologies"]
    for path in sorted(files, key=lambda p: (p.parent.parent.name, int(find_number(p.name)))):
        text = path.read_text("utf-8")
        base, number = path.parent.parent, find_number(path.name)
        train = [_name_fields(row) for row in read_lines(base / "train", number)]
        if part == "test":
            asked = [_name_fields(row) for row in read_lines(base / "ground_truth", number)]
            taught = train
        else:
            asked = [row for row in train if _draw(row, seed)]
            taught = [row for row in train if not _draw(row, seed)]
        if part == "whole":
            beside = [_name_fields(row) for row in read_lines(base / "validation", number)]
            taught = train if beside else taught
            tested = [_name_fields(row) for row in read_lines(base / "ground_truth", number)]
            asked = tested + (beside or asked)
            texts = {row["text"] for row in asked}
            taught = [row for row in taught if row["text"] not in texts]
        group = base.name.rpartition("_")[2]
        name = f"{group}-{json.loads(text)['id'].removeprefix('ont_').partition('_')[2]}"
        asked = _join_sentences(asked)[:limit]
        labels = {str(relation["label"]) for relation in json.loads(text)["relations"]}
        yield Corpus(
            name=name,
            rows=tuple({"id": row["id"], "text": row["text"]} for row in asked),
            facts=tuple((_read_triple(t), row["id"]) for row in asked for t in row["triples"]),
            known=tuple(_read_triple(t) for row in taught for t in row["triples"]),
            turtle=convert_ontology(text, source=str(path)),
            ends=read_ends(json.loads(text)),
            # A train row may state a relation that the ontology does not declare.
            examples=tuple(r for r in taught if all(t["rel"] in labels for t in r["triples"])),
        )


def _name_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its triples as a list, as test and train rows of both groups write them."""
    triples = row.get("triples")
    if triples is None:
        triples = [{part: row[f"{part}_label"] for part in ("sub", "rel", "obj")}]
        return {"id": row["id"], "text": row["sent"], "triples": triples, "single": True}
    return {"id": row["id"], "text": row["sent"], "triples": triples}


def _join_sentences(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per sentence, with the triples of all its rows."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        kept = found.setdefault(row["text"], {**row, "triples": []})
        kept["triples"] += [t for t in row["triples"] if t not in kept["triples"]]
    return list(found.values())


def _read_triple(triple: Mapping[str, str]) -> Triple:
    return triple["sub"], triple["rel"], triple["obj"]


def _draw(row: Mapping[str, Any], seed: int) -> bool:
    subject = row["triples"][0]["sub"] if row["triples"] else row["text"]
    return sha256(f"{seed} {subject}".encode()).digest()[0] % 2 == 0


def read_musique(data: Path, limit: int | None) -> Corpus:
    """The passages, and the hop triples with the passage that states each."""
    (path,) = sorted(data.glob("*_corpus.json"))
    passages = json.loads(path.read_text("utf-8"))
    rows = [{"id": f"p{n:04}", **passage} for n, passage in enumerate(passages)]
    by_text = {(row["title"], row["text"]): row["id"] for row in rows}
    hops = (data / "gold_hop_triples.jsonl").read_text("utf-8").splitlines()
    gold = [json.loads(line) for line in hops][:limit]
    return Corpus(
        name="musique",
        rows=tuple(rows),
        facts=tuple(
            ((hop["sub"], hop["rel"], hop["obj"]), by_text[hop["title"], hop["passage"]])
            for hop in gold
        ),
    )


def build_pyramid(
    corpus: Corpus,
    folder: Path,
    warehouse: Path,
    further: Mapping[str, Mapping[str, object]] | None = None,
) -> Snapshot:
    """The corpus's pyramid under its name; what is computed already is not computed again.

    `further`: settings beside its own.
    """
    place = folder / corpus.name
    (place / "corpus").mkdir(parents=True, exist_ok=True)
    _write_rows(place / "corpus" / "corpus.jsonl", corpus.rows)
    values: dict[str, Any] = {**(further or {})}
    values["publish"] = {"min_document_share": 0.0, "min_triple_share": 0.0}
    if corpus.turtle:
        ontology = place / f"{corpus.name}.ttl"
        ontology.write_text(corpus.turtle, "utf-8")
        _write_rows(place / f"{corpus.name}.examples.jsonl", map(_write_example, corpus.examples))
        values["induce"] = {"ontology": str(ontology)}
    report(f"builds {corpus.name}: {len(corpus.rows)} rows, {len(corpus.examples)} examples")
    settings = check_settings(values, {"file": "this measurement"})
    build(place / "corpus", Warehouse(warehouse), settings, ref=corpus.name)
    return open_snapshot(corpus.name, warehouse)


def make_corpus_questions(corpus: Corpus, snapshot: Snapshot, count: int, seed: int) -> Made:
    """Choice questions from the corpus's facts.

    Classes are the ontology's; where a corpus has none, the types that the snapshot gives to its
    entities, and what its graph links is true as well.
    """
    texts = {row["id"]: " ".join((row.get("title", ""), row["text"])) for row in corpus.rows}
    if corpus.ends is not None:
        rows = [(key, texts[key], [triple]) for triple, key in corpus.facts]
        facts = list(list_facts(rows, corpus.ends))
        known = list_known((*corpus.known, *(triple for triple, _ in corpus.facts)))
        return make_questions(facts, count=count, seed=seed, known=known, grounded=True)
    things, linked = list_things(snapshot)
    typed = type_things(things)
    facts = [_state_hop(triple, key, texts[key], typed) for triple, key in corpus.facts]
    return make_questions(facts, count=count, seed=seed, known=linked, others=things, grounded=True)


def list_things(snapshot: Snapshot) -> tuple[list[Thing], list[tuple[str, str]]]:
    """Its entities with what the recogniser takes them for, and the names that facts link."""
    rows = snapshot.table("entities").select(["entity_id", "name", "type", "surface_forms"])
    things = [
        Thing(row["entity_id"], row["name"], (kind,), tuple(row["surface_forms"]))
        for row in rows.to_pylist()
        if (kind := TYPE_WORDS.get(row["type"])) and row["name"][:1].isupper()
    ]
    facts = snapshot.table("condensed").select(["head_id", "tail_id"]).to_pylist()
    names = snapshot.names
    linked = [(names[f["head_id"]], names[f["tail_id"]]) for f in facts if f["tail_id"]]
    return things, linked


def type_things(things: Iterable[Thing]) -> dict[Words, Thing]:
    """Things under their names; one that shares a name with another under none."""
    found: dict[Words, list[Thing]] = defaultdict(list)
    for thing in things:
        for words in {fold_words(name) for name in (thing.name, *thing.names)}:
            found[words].append(thing)
    return {words: same[0] for words, same in found.items() if len(same) == 1}


def _state_hop(triple: Triple, key: str, text: str, typed: Mapping[Any, Thing]) -> Fact:
    subject, relation, value = triple
    said, form = say_value(clean_name(value))
    ends = []
    for name, its_form in ((clean_name(subject), ""), (said, form)):
        kinds, names = _type_end(name, typed)
        ends.append(Thing(name, name, () if its_form else kinds, names, its_form))  # type: ignore[arg-type]
    return Fact(ends[0], relation, ends[1], ("", ""), (key,), (text,))


def _type_end(name: str, typed: Mapping[Any, Thing]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The classes and other names of what the snapshot calls so."""
    found = typed.get(fold_words(name))
    return (found.kinds, found.names) if found else ((), ())


def _write_example(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """An example's line; one with a single triple may state more, and says so by its form."""
    if row.get("single"):
        (t,) = row["triples"]
        return {"text": row["text"]} | {f"{part}_label": t[part] for part in ("sub", "rel", "obj")}
    return {"text": row["text"], "triples": row["triples"]}


def _write_rows(path: Path, rows: Any) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
