"""Relation names and facts said more than once: Text2KGBench's WebNLG part, or BC5CDR's abstracts.

Its gold facts (Gardent et al., ACL 2017; Mihindukulasooriya et al., ISWC 2023) are said in several
sentences, and a gold relation in many wordings. The sentences are built into a pyramid with the
general ontology, by rules. Labelled are the triples of a sentence whose ends match those of its
gold facts (by the rule of `musique.py`), where these have one relation. BC5CDR (Li et al., 2016)
has one relation, of chemicals and the diseases that they induce, and an abstract is a document;
its names of a chemical and of a disease are those of the mentions. Each row labels them:

`none`: in the words of the sentence. `rules`: by relation and ends of the condensed fact.
`standard`: the same by its standard relation.
`model`: a model's recorded replies, in its words, to some sentences of WebNLG; it was given the
gold relations' names. `standard_there`: the same as `standard`, of those sentences only.

`b3_*` (Bagga and Baldwin, 1998) and `pairwise_f1` compare the relations with the gold relations,
`merge_*` the facts with the gold facts, pair by pair. `distinct_facts_at_10`: the gold facts among
the ten facts nearest to a gold fact's subject and relation, by the vectors of their words.
`words_of_context`: words of the nearest facts until the first that states what was asked, the
median: what an answer of equal quality costs.
Halves: the ontologies, or abstracts, by the first byte of the name's SHA-256; 0 may be read.
"""

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from condensation import READS, Tables, build_pyramid, read_matrix, run_condense
from embedding import open_embedder
from options import explain_faults, print_figures, read_options, report
from sets.bc5cdr import ENDINGS, read_abstracts
from sets.canon import score_b3, score_clusters
from sets.musique import list_words, matches
from sets.text2kgbench import clean_name
from text2kgbench import find_number, find_vicuna, read_lines, read_ontologies

from kpyramid.embeddings.port import Embedder
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.storage.contracts import map_column

FOLDER = "text2kgbench_public"
GROUP = "dbpedia_webnlg"
ROWS = ("none", "rules", "standard")
RANK = 10
CONTEXT = 200
"""Facts that `words_of_context` looks through."""
Gold = tuple[str, str, str]
Names = tuple[frozenset[str], frozenset[str]]
"""The names that a text has for the subject and the object of a gold fact."""
Golds = dict[Gold, Names]


@dataclass(frozen=True, slots=True)
class Label:
    """A fact as one row has it; `turned`: it reads from the gold fact's object to its subject."""

    head: Hashable
    relation: str
    tail: Hashable
    turned: bool
    words: str

    @property
    def name(self) -> Hashable:
        """Its relation, as it reads."""
        return self.relation.casefold(), self.turned

    @property
    def fact(self) -> Hashable:
        """Its relation with its ends."""
        return self.head, self.relation.casefold(), self.tail


@dataclass(frozen=True, slots=True)
class Stated:
    """A text's triple: the gold fact that it states, its subject's name, its label in each row."""

    text: str
    gold: Gold
    subject: str
    labels: Mapping[str, Label]


def read_golds(data: Path, half: int, limit: int | None) -> dict[str, Golds]:
    """The gold facts of each document of a half."""
    if any(path.name.endswith(ENDINGS) for path in data.iterdir()):
        return read_pairs(data, half, limit)
    return read_sentences(data, half, limit)


def read_sentences(data: Path, half: int, limit: int | None) -> dict[str, Golds]:
    """The gold facts of each sentence of the ontologies of a half."""
    found: dict[str, Golds] = defaultdict(dict)
    for path in sorted(data.rglob(f"{GROUP}/ontologies/*.json")):
        base, number = path.parent.parent, find_number(path.name)
        name = str(json.loads(path.read_text("utf-8"))["id"]).rpartition("_")[2]
        if sha256(name.encode()).digest()[0] % 2 != half:
            continue
        for part in ("ground_truth", "train"):
            for row in list(read_lines(base / part, number))[:limit]:
                for triple in row["triples"]:
                    one, other = clean_name(triple["sub"]), clean_name(triple["obj"])
                    names = frozenset((one,)), frozenset((other,))
                    found[row["sent"]][one, triple["rel"], other] = names
    return found


def read_pairs(data: Path, half: int, limit: int | None) -> dict[str, Golds]:
    """The pairs of each abstract of a half, with the names that it has for both."""
    found: dict[str, Golds] = {}
    for abstract in read_abstracts(data)[:limit]:
        if sha256(abstract.key.encode()).digest()[0] % 2 != half:
            continue
        named: dict[str, set[str]] = defaultdict(set)
        for mention in (*abstract.chemicals, *abstract.diseases):
            for key in mention.entities:
                named[key].add(abstract.text[mention.words.start : mention.words.end])
        found[abstract.text] = {
            (one, "induces", other): (frozenset(named[one]), frozenset(named[other]))
            for one, other in abstract.pairs
        }
    return found


def list_stated(
    snapshot: Snapshot, made: Tables, documents: Mapping[str, Golds]
) -> Iterator[Stated]:
    """The triples whose ends are those of one gold relation of their sentence."""
    document = map_column(snapshot.table("chunks"), "chunk_id", "document_id")
    text = map_column(snapshot.table("documents"), "document_id", "text")
    names = map_column(snapshot.table("entities"), "entity_id", "name")
    wording = map_column(snapshot.table("relations"), "relation_id", "name")
    raws = {row["raw_triple_id"]: row for row in snapshot.table("raw_triples").to_pylist()}
    triples = {row["triple_id"]: row for row in snapshot.table("triples").to_pylist()}
    for fact in made["condensed"].to_pylist():
        head, tail = fact["head_id"], fact["tail_id"] or fact["literal"]
        for triple in map(triples.__getitem__, fact["derived_from"]):
            for raw in map(raws.__getitem__, triple["raw_triple_ids"]):
                said_in = text[document[raw["chunk_id"]]]
                golds = documents[said_in]
                found = find_gold(raw, golds)
                if found is None:
                    continue
                gold, turned = found
                own = raw["head"].casefold(), raw["relation"], raw["tail"].casefold()
                back = turned != (triple["head_id"] != head)
                rules = head, wording[fact["relation_id"]], tail
                ends = fact["standard_head_id"], fact["standard_tail_id"] or fact["literal"]
                standard = ends[0], fact["standard_relation"], ends[1]
                ways = (
                    (own, turned),
                    (rules, back),
                    (standard, back ^ fact["standard_turned"]),
                )
                labels = {
                    row: Label(*said, way, " ".join(names.get(word, word) for word in said))
                    for row, (said, way) in zip(ROWS, ways, strict=True)
                }
                subject = max(golds[gold][0], key=lambda name: (len(name), name))
                yield Stated(said_in, gold, subject, labels)


def read_replies(data: Path) -> dict[str, list[Gold]]:
    """What a model stated of each sentence that it was asked about."""
    ontologies = read_ontologies(data, None) if any(data.rglob("ontologies")) else []
    found: dict[str, list[Gold]] = {}
    for ontology in ontologies:
        for key, triples in (find_vicuna(ontology) or {}).items():
            if ontology.group == GROUP and key in ontology.gold:
                found[ontology.gold[key].text] = triples
    return found


def list_replied(
    replies: Mapping[str, Sequence[Gold]], documents: Mapping[str, Golds]
) -> Iterator[Stated]:
    """The triples of a model's replies that have the ends of one gold relation."""
    for text in sorted(replies.keys() & documents.keys()):
        for head, relation, tail in replies[text]:
            found = find_gold({"head": head, "tail": tail}, documents[text])
            if found is not None:
                gold, turned = found
                words = f"{head} {split_camel(relation)} {tail}"
                label = Label(head.casefold(), relation, tail.casefold(), turned, words)
                yield Stated(text, gold, gold[0], {"model": label})


def find_gold(raw: Mapping[str, str], golds: Golds) -> tuple[Gold, bool] | None:
    """The gold fact that has a triple's ends, and whether turned; None where several relations."""
    head, tail = list_words(raw["head"]), list_words(raw["tail"])
    found = []
    for gold in sorted(golds):
        ones, others = (tuple(map(list_words, sorted(names))) for names in golds[gold])
        for turned, (first, second) in enumerate(((ones, others), (others, ones))):
            if any(matches(head, w) for w in first) and any(matches(tail, w) for w in second):
                found.append((gold, bool(turned)))
                break
    return found[0] if len({gold[1] for gold, _ in found}) == 1 else None


def score_row(row: str, stated: Sequence[Stated], embedder: Embedder) -> dict[str, float]:
    """The figures of one row."""
    labels = [one.labels[row] for one in stated]
    names, facts = [label.name for label in labels], [label.fact for label in labels]
    b3 = score_b3(names, [one.gold[1] for one in stated])
    relations = score_clusters(names, [one.gold[1] for one in stated])
    merged = score_clusters(facts, [one.gold for one in stated]).pairwise
    return {
        "b3_precision": round(b3.precision, 4),
        "b3_recall": round(b3.recall, 4),
        "b3_f1": round(b3.f1, 4),
        "pairwise_f1": round(relations.pairwise.f1, 4),
        "merge_precision": round(merged.precision, 4),
        "merge_recall": round(merged.recall, 4),
        **measure_context(row, stated, embedder),
    }


def measure_context(row: str, stated: Sequence[Stated], embedder: Embedder) -> dict[str, float]:
    """Gold facts among the facts nearest to a gold fact's subject and relation, and their words."""
    words: dict[Hashable, str] = {}
    golds: dict[Hashable, set[Gold]] = defaultdict(set)
    for one in stated:
        label = one.labels[row]
        words.setdefault(label.fact, label.words)
        golds[label.fact].add(one.gold)
    asked: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for one in stated:
        asked[f"{one.subject} {split_camel(one.gold[1])}"].add(one.gold[:2])
    cosines = embedder.embed(sorted(asked)) @ embedder.embed(list(words.values())).T
    facts = list(words)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :CONTEXT].tolist()
    distinct, lengths = [], []
    for question, nearest in zip(sorted(asked), order, strict=True):
        distinct.append(len(set().union(*(golds[facts[at]] for at in nearest[:RANK]))))
        length = 0
        for at in nearest:
            length += len(words[facts[at]].split())
            if any(gold[:2] in asked[question] for gold in golds[facts[at]]):
                break
        lengths.append(length)
    return {
        f"distinct_facts_at_{RANK}": round(sum(distinct) / len(distinct), 2),
        "words_of_context": float(np.median(lengths)),
        "words_of_context_mean": round(sum(lengths) / len(lengths), 1),
    }


def split_camel(label: str) -> str:
    """A relation's label in words: "academicStaffSize" is "academic staff size"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label).replace("_", " ").lower()


def measure_half(data: Path, half: int, limit: int | None, folder: Path) -> dict[str, Any]:
    """The rows of one half; a next run finds its pyramid in the folder."""
    with explain_faults(data, FOLDER):
        documents = read_golds(data, half, limit)
        if not documents:
            raise ValueError(f"no {GROUP}/ontologies/*.json and no abstract of half {half}")
    report(f"Building a pyramid of {len(documents)} documents")
    folder.mkdir(parents=True, exist_ok=True)
    snapshot = build_pyramid([{"title": "", "text": text} for text in documents], folder)
    vectors = snapshot.table("vectors")
    known = dict(zip(vectors["text"].to_pylist(), read_matrix(vectors), strict=True))
    embedder = open_embedder(known)
    made = run_condense({name: snapshot.table(name) for name in READS}, embedder)
    stated = list(list_stated(snapshot, made, documents))
    report(f"Scoring {len(stated)} triples that state a gold fact")
    rows = {row: score_row(row, stated, embedder) for row in ROWS}
    replies = read_replies(data)
    if replied := list(list_replied(replies, documents)):
        there = [one for one in stated if one.text in replies]
        rows |= {
            "model": {"triples": len(replied), **score_row("model", replied, embedder)},
            "standard_there": {"triples": len(there), **score_row("standard", there, embedder)},
        }
    return {**rows, "stated": {"triples": len(stated), "facts": len({one.gold for one in stated})}}


def measure(data: Path, limit: int | None, kept: Path) -> dict[str, Any]:
    """The figures of both halves."""
    halves = {str(half): measure_half(data, half, limit, kept / str(half)) for half in (0, 1)}
    rows = dict.fromkeys(row for figures in halves.values() for row in figures)
    return {row: {half: own[row] for half, own in halves.items() if row in own} for row in rows}


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N sentences of each file only",
        values={"--kept": "a folder for the pyramids, which a next run finds built"},
    )
    place = nullcontext(options.kept) if options.kept else tempfile.TemporaryDirectory()
    with place as folder:
        print_figures(measure(options.data, options.limit, Path(folder)), options.json)


if __name__ == "__main__":
    main()
