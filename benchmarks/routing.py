"""What routing spares of PolyRAG's exhaustive induction, and what it loses.

The definitions are our own: no published system states them. Data: Text2KGBench (Mihindukulasooriya
et al., ISWC 2023), ontologies with test sentences and gold triples. No model is asked: it is taken
for perfect, so the exhaustive mode, which asks for every class–property pair in every sentence
(f_ins(c, a; p), Eq. 1), finds every gold triple whose relation the ontology has, at pairs x
sentences calls. `kept` is the share of those triples that a call of mode `llm` asks for: the
relation is in a group that is routed to the sentence. `calls` is the share of the calls. Nothing
is learned: no example is read, so there is one figure, with examples and without.

`kept_by_class` and `calls_by_class` count one call for each routed class and sentence, where
classes do not share calls. `prompt_share`: characters of the prompts over the exhaustive ones'.
`asked_elsewhere`: share of the sentences that were written for another ontology, and are asked.
`macro` figures are means over the ontologies, the others are over all their triples and calls.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedding import open_embedder
from options import explain_faults, print_figures, read_options
from sets.text2kgbench_ontologies import convert_ontology

from kpyramid.embeddings.port import Embedder
from kpyramid.extraction.types import Chunk
from kpyramid.ontology.population.inducer import Router
from kpyramid.ontology.population.task import TASKS, Group, Question, group_properties, list_pairs
from kpyramid.ontology.schema import Schema, parse_schema

FOLDER = "text2kgbench_public"
_FAMILIES = ("tekgen", "webnlg")


@dataclass(frozen=True)
class Task:
    """An ontology with its test sentences and the relations that each states."""

    family: str
    name: str
    schema: Schema
    sentences: tuple[str, ...]
    relations: tuple[tuple[str, ...], ...]


def read_tasks(folder: Path, limit: int | None) -> list[Task]:
    """The ontologies below a folder that have gold triples, by their number within a family."""
    found = folder.rglob("ground_truth/*.jsonl")
    gold = {(path.parent.parent, find_number(path)): path for path in found}
    tasks = []
    for path in sorted(
        folder.rglob("ontologies/*.json"), key=lambda p: (p.parent, int(find_number(p)))
    ):
        home = path.parent.parent
        if (home, find_number(path)) not in gold:
            continue
        rows = [
            json.loads(line)
            for line in gold[home, find_number(path)].read_text("utf-8").splitlines()
            if line.strip()
        ][:limit]
        turtle = convert_ontology(path.read_text("utf-8"), source=str(path))
        tasks.append(
            Task(
                next((f for f in _FAMILIES if f in home.name), home.name),
                path.stem.removesuffix("_ontology"),
                parse_schema(turtle, source=str(path)),
                tuple(str(row["sent"]) for row in rows),
                tuple(tuple(str(t["rel"]) for t in row["triples"]) for row in rows),
            )
        )
    if not tasks:
        raise ValueError("no ontologies/*.json with ground_truth/*.jsonl of the same number")
    return tasks


def find_number(path: Path) -> str:
    """The number of an ontology in the name of a file of it."""
    found = re.search(r"(?:^|_)(\d+)_", path.name)
    if found is None:
        raise ValueError(f"{path.name} has no number")
    return found[1]


def measure_task(task: Task, others: Iterable[Task], embedder: Embedder) -> dict[str, Any]:
    """The counts of one ontology."""
    groups, pairs = group_properties(task.schema), list_pairs(task.schema)
    router = Router(task.schema, groups, embedder)
    routed = router.route(task.sentences)
    of = {prop.label: (prop.domain, at) for at, g in enumerate(groups) for prop in g.properties}
    asked = [list_asked(groups, classes) for classes in routed]
    gold = [
        (of[relation], classes, numbers)
        for relations, classes, numbers in zip(task.relations, routed, asked, strict=True)
        for relation in relations
        if relation in of
    ]
    foreign = [sentence for other in others for sentence in other.sentences]
    elsewhere = [list_asked(groups, classes) for classes in router.route(foreign)]
    return {
        "sentences": len(task.sentences),
        "pairs": len(pairs),
        "groups": len(groups),
        "instances": len(gold),
        "outside": sum(map(len, task.relations)) - len(gold),
        "kept": sum(of_group in numbers for (_, of_group), _, numbers in gold),
        "calls": sum(map(len, asked)),
        "kept_by_class": sum(domain in classes for (domain, _), classes, _ in gold),
        "calls_by_class": sum(map(len, routed)),
        "characters": count_characters(task, groups, asked),
        "all_characters": count_characters(task, pairs, [range(len(pairs))] * len(asked)),
        "elsewhere": len(foreign),
        "asked_elsewhere": sum(map(bool, elsewhere)),
    }


def list_asked(groups: Sequence[Group], classes: frozenset[str]) -> list[int]:
    """The groups, by their place, that a text with these classes is asked for."""
    return [at for at, group in enumerate(groups) if classes & {*group.domains}]


def count_characters(task: Task, groups: Sequence[Group], asked: Sequence[Sequence[int]]) -> int:
    """The length of all prompts."""
    questions = [Question(group, task.schema) for group in groups]
    static = [len(question.static) for question in questions]
    empty = questions[0].render(Chunk(""), TASKS["llm"], 1).prompt_characters - static[0]
    return sum(
        static[at] + empty + len(sentence)
        for sentence, numbers in zip(task.sentences, asked, strict=True)
        for at in numbers
    )


def add_up(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of some ontologies together."""
    total = {name: sum(row[name] for row in rows) for name in rows[0]}
    all_calls = [row["pairs"] * row["sentences"] for row in rows]

    def mean(part: str, whole: Sequence[int]) -> float:
        shares = [row[part] / n for row, n in zip(rows, whole, strict=True) if n]
        return round(sum(shares) / len(shares), 4)

    instances = [row["instances"] for row in rows]
    calls = sum(all_calls)
    return {
        "kept": round(total["kept"] / total["instances"], 4),
        "calls": round(total["calls"] / calls, 4),
        "kept_macro": mean("kept", instances),
        "calls_macro": mean("calls", all_calls),
        "kept_by_class": round(total["kept_by_class"] / total["instances"], 4),
        "calls_by_class": round(total["calls_by_class"] / calls, 4),
        "prompt_share": round(total["characters"] / total["all_characters"], 4),
        "asked_elsewhere": round(total["asked_elsewhere"] / max(1, total["elsewhere"]), 4),
        "instances": total["instances"],
        "outside": total["outside"],
        "sentences": total["sentences"],
    }


def measure(data: Path, limit: int | None) -> dict[str, Any]:
    """All figures."""
    with explain_faults(data, FOLDER):
        tasks = read_tasks(data, limit)
    embedder = open_embedder()
    rows = [measure_task(task, [t for t in tasks if t is not task], embedder) for task in tasks]
    families = sorted({task.family for task in tasks})
    of_family = {
        family: [row for task, row in zip(tasks, rows, strict=True) if task.family == family]
        for family in families
    }
    return {
        **add_up(rows),
        "families": {family: add_up(found) for family, found in of_family.items()},
        "ontologies": {
            f"{task.family} {task.name}": {
                "pairs": row["pairs"],
                "groups": row["groups"],
                **{
                    name: figure
                    for name, figure in add_up([row]).items()
                    if not name.endswith("_macro")
                },
            }
            for task, row in zip(tasks, rows, strict=True)
        },
    }


def main() -> None:
    options = read_options(__doc__, folder=FOLDER, limit="the first N sentences of each ontology")
    print_figures(measure(options.data, options.limit), options.json)


if __name__ == "__main__":
    main()
