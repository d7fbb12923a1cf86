"""What condensation calls the relations of invented worlds, with the ontology's anchors or without.

`making/university.py` states facts in many wordings and knows which property each states. Facts:
`wordings` before and `names` after condensation; `precision`: of the facts that a property names,
those that state it; `recall`: of the facts that state one, those that it names; `b3_f1`: how well
names bring together what states the same, over facts (Bagga and Baldwin, 1998); `right_of_40`: of
the 40 most frequent names those whose facts state one thing by nine tenths; `other_domain`: facts
that a property names whose subjects are of another class than its domain; `merged`: facts that
another stands for. `without`: the same with no property in the ontology.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from embedding import open_embedder
from making.university import InventedFact, World, list_facts, list_labels, load_world, write_turtle
from options import make_parser, print_figures, report

from kpyramid.condensation.graph import unfold_nouns
from kpyramid.condensation.merging import (
    condense_graph,
    guard_comparer,
    link_facts,
    list_compared,
)
from kpyramid.condensation.standard import name_relations
from kpyramid.embeddings.port import Embedder
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.keys import JsonValue, content_id
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.pipeline.stages.condense import find_stated, read_graph
from kpyramid.pipeline.stages.tables import build_table
from kpyramid.settings import Settings

WORLDS = ("university", "hospitals")
RIGHT = 0.9
"""Share of a name's facts that must state one thing for it to be right."""


def name_facts(
    facts: Sequence[InventedFact], schema: Schema, embedder: Embedder
) -> tuple[list[tuple[str, bool]], int]:
    """The name of each fact's relation and whether it is turned; and how many were merged."""
    types: dict[str, str] = {}
    support = Counter(fact.wording for fact in facts)
    triples = {}
    for fact in facts:
        types.setdefault(fact.head, fact.head_type)
        types.setdefault(fact.tail, fact.tail_type)
        is_value = fact.tail_type == "LITERAL"
        triples[identify(fact)] = {
            "triple_id": identify(fact),
            "head_id": content_id("entity", fact.head),
            "relation_id": content_id("relation", fact.wording),
            "tail_id": None if is_value else content_id("entity", fact.tail),
            "literal": fact.tail if is_value else None,
            "qualifiers": [],
            "confidence": 0.9,
            "raw_triple_ids": [],
        }
    entities = [
        {
            "entity_id": content_id("entity", name),
            "name": name,
            "type": kind.replace("LITERAL", "NOUN"),
            "surface_forms": [name],
            "mentions": [],
        }
        for name, kind in types.items()
    ]
    relations = [
        {
            "relation_id": content_id("relation", wording),
            "name": wording,
            "inverse_of": None,
            "surface_forms": [wording],
            "support": count,
        }
        for wording, count in support.items()
    ]
    tables = (
        build_table("entities", entities),
        build_table("relations", relations),
        build_table("triples", triples.values()),
    )
    graph = unfold_nouns(read_graph(*tables))
    comparer = Comparer(embedder)
    linked = link_facts(graph, schema, Settings().condense, embedder)
    stated = find_stated(graph, schema)
    comparer.prepare(list_compared(graph))
    merged = condense_graph(graph, linked, stated, schema, guard_comparer(comparer), ())
    standards = name_relations(graph, linked, schema, comparer)
    called = dict(zip(tables[2]["triple_id"].to_pylist(), standards, strict=True))
    names = [(called[identify(f)].name, called[identify(f)].turned) for f in facts]
    return names, int((merged.how != "kept").sum())


def identify(fact: InventedFact) -> str:
    """The key of a fact's triple."""
    return content_id("triple", fact.head, fact.wording, fact.tail)


def score_names(
    facts: Sequence[InventedFact],
    names: Sequence[tuple[str, bool]],
    merged: int,
    world: World,
) -> dict[str, JsonValue]:
    """The figures of some names."""
    domains = {row.label: row.domain for row in world.stated if row.label}
    rights = [list_labels(fact, world) for fact in facts]
    is_named = [name in domains for name, _ in names]
    right = [name in labels for (name, _), labels in zip(names, rights, strict=True)]
    stating = ["" not in labels for labels in rights]
    other = sum(
        (fact.stated.value if turned else fact.stated.domain) != domains[name]
        for fact, (name, turned) in zip(facts, names, strict=True)
        if name in domains and name != fact.plain
    )
    gold = [fact.stated.label or str(world.stated.index(fact.stated)) for fact in facts]
    stated: dict[str, Counter[str]] = defaultdict(Counter)
    for (name, _), thing in zip(names, gold, strict=True):
        stated[name][thing] += 1
    most = sorted(stated, key=lambda name: (-stated[name].total(), name))[:40]
    pure = sum(max(stated[name].values()) >= RIGHT * stated[name].total() for name in most)
    return {
        "names": len(stated),
        "named": round(sum(is_named) / len(facts), 3),
        "precision": round(sum(right) / max(1, sum(is_named)), 3),
        "recall": round(
            sum(r for r, s in zip(right, stating, strict=True) if s) / max(1, sum(stating)), 3
        ),
        "b3_f1": round(score_b3(stated), 3),
        "right_of_40": pure,
        "other_domain": other,
        "merged": merged,
    }


def score_b3(stated: Mapping[str, Counter[str]]) -> float:
    """B³ F1 of names over what their facts state."""
    total = sum(counts.total() for counts in stated.values())
    whole: Counter[str] = Counter()
    for counts in stated.values():
        whole.update(counts)
    precision = sum(n * n / c.total() for c in stated.values() for n in c.values()) / total
    recall = sum(n * n / whole[g] for c in stated.values() for g, n in c.items()) / total
    return 2 * precision * recall / (precision + recall)


def measure(seed: int, every: int, embedder: Embedder) -> dict[str, JsonValue]:
    """The figures of each world."""
    figures: dict[str, JsonValue] = {}
    for name in WORLDS:
        report(f"condensing {name}")
        world = load_world(name)
        invented = {(f.head, f.wording, f.tail): f for f in list_facts(seed, world)}
        facts = list(invented.values())[::every]
        schema = parse_schema(write_turtle(True, world), source=name)
        bare = replace(schema, properties=(), axioms=())
        figures[name] = {
            "facts": len(facts),
            "wordings": len({fact.wording for fact in facts}),
            "with": score_names(facts, *name_facts(facts, schema, embedder), world),
            "without": score_names(facts, *name_facts(facts, bare, embedder), world),
        }
    return figures


def main() -> None:
    parser = make_parser(__doc__, "draws the facts")
    parser.add_argument("--every", type=int, default=1, help="every so manyth fact only")
    options = parser.parse_args()
    print_figures(measure(options.seed, options.every, open_embedder()), options.json)


if __name__ == "__main__":
    main()
