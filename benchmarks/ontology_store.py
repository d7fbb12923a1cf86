"""How much faster the ontology store loads and answers than rdflib, and how many values are bad.

Both libraries read the same generated graph in the same run: people with names, occupations, and
places and years of birth, over the general ontology. A lookup names a person and asks for the
place of birth and its name; the aggregate counts people by place. Every query starts as text.
`checked_ms` is the same lookup as a query from outside: parsed twice and run in the child process.

A value of a built pyramid is bad when it is none of its datatype, when its object is in no class
that the property's range allows, or when it is no code and has at most two characters. `--data` is
a corpus that is built first, or the folder of a snapshot; `examples/demo/corpus` by default.
"""

import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import rdflib
from options import make_parser, name_count, print_figures, refuse, report

from kpyramid.errors import GateError
from kpyramid.ontology import names as n
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.store import OntologyStore, entity_iri
from kpyramid.pipeline.build import build
from kpyramid.settings import Settings
from kpyramid.snapshot.snapshot import Snapshot, open_snapshot
from kpyramid.storage.declarations import locate_ontology
from kpyramid.storage.layout import Warehouse

DEMO = Path(__file__).parent.parent / "examples" / "demo" / "corpus"
KPG = "https://w3id.org/kpyramid/general#"
LOOKUPS, SLOW_LOOKUPS, AGGREGATES = 500, 50, 3
LOOKUP = f"""PREFIX rdfs: <{n.RDFS}> PREFIX kpg: <{KPG}>
SELECT ?place ?name {{ ?person rdfs:label "Person NUMBER" ; kpg:birthPlace ?place .
  ?place rdfs:label ?name }}"""
AGGREGATE = f"""PREFIX rdfs: <{n.RDFS}> PREFIX kpg: <{KPG}>
SELECT ?name (COUNT(?person) AS ?count) {{ ?person a kpg:Person ; kpg:birthPlace ?place .
  ?place rdfs:label ?name }} GROUP BY ?name ORDER BY DESC(?count) ?name LIMIT 10"""


def generate(triples: int, seed: int) -> Iterator[str]:
    """About so many lines: five of a person, and two of each of a tenth as many places."""
    chance = random.Random(seed)  # noqa: S311  a graph, no secret
    people = triples * 10 // 52
    places = max(people // 10, 1)
    for number in range(places):
        iri = entity_iri(f"place-{number}")
        yield f"<{iri}> <{n.RDF_TYPE}> <{KPG}PopulatedPlace> .\n"
        yield f'<{iri}> <{n.LABEL}> "Place {number}" .\n'
    for number in range(people):
        iri = entity_iri(f"person-{number}")
        yield f"<{iri}> <{n.RDF_TYPE}> <{KPG}Person> .\n"
        yield f'<{iri}> <{n.LABEL}> "Person {number}" .\n'
        place = entity_iri(f"place-{int(places * chance.random() ** 2)}")
        yield f"<{iri}> <{KPG}birthPlace> <{place}> .\n"
        yield f'<{iri}> <{KPG}birthYear> "{1800 + number % 200}"^^<{n.XSD}gYear> .\n'
        yield f'<{iri}> <{KPG}occupation> "occupation {number % 97}" .\n'


def take_time(act: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came out."""
    started = time.perf_counter()
    found = act()
    return time.perf_counter() - started, found


def compare_stores(triples: int, seed: int) -> dict[str, Any]:
    """Load, lookup and aggregate, ours beside rdflib's."""
    report(f"generating {triples} triples")
    files = locate_ontology("general")
    assert files is not None
    schema = files.turtle.read_text("utf-8")
    lines = list(generate(triples, seed))
    people = sum(KPG + "occupation" in line for line in lines)
    text = "".join(lines)
    chance = random.Random(seed + 1)  # noqa: S311
    lookups = [LOOKUP.replace("NUMBER", str(chance.randrange(people))) for _ in range(LOOKUPS)]
    report("loading ours")
    with OntologyStore(schema, text, seconds=60) as store:
        load, _ = take_time(lambda: store.select_trusted("ASK { ?s ?p ?o }"))
        timed = [take_time(lambda q=q: store.select_trusted(q)) for q in lookups]
        lookup = statistics.median(seconds for seconds, _ in timed)
        ours = [rows for _, rows in timed]
        counted = [take_time(lambda: store.select_trusted(AGGREGATE)) for _ in range(AGGREGATES)]
        aggregate, top = min(counted, key=lambda pair: pair[0])
        store.select(lookups[0])  # starts the child
        checked = statistics.median(
            take_time(lambda q=q: store.select(q))[0] for q in lookups[:SLOW_LOOKUPS]
        )
    report("loading rdflib")
    graph = rdflib.Graph()

    def load_both() -> None:
        graph.parse(data=schema, format="turtle")
        graph.parse(data=text, format="nt")

    slow_load, _ = take_time(load_both)
    slow = [take_time(lambda q=q: list(graph.query(q))) for q in lookups[:SLOW_LOOKUPS]]
    slow_lookup = statistics.median(seconds for seconds, _ in slow)
    slow_aggregate, theirs = take_time(lambda: list(graph.query(AGGREGATE)))
    for mine, (_, other) in zip(ours, slow, strict=False):
        if {tuple(row.values()) for row in mine} != {tuple(map(str, row)) for row in other}:
            refuse(f"the stores disagree: {mine} and {other}")
    if [tuple(row.values()) for row in top] != [tuple(map(str, row)) for row in theirs]:
        refuse(f"the stores disagree: {top} and {theirs}")
    return {
        "triples": len(lines),
        "load_over_rdflib": round(slow_load / load, 1),
        "lookup_over_rdflib": round(slow_lookup / lookup, 1),
        "aggregate_over_rdflib": round(slow_aggregate / aggregate, 1),
        "load_seconds": round(load, 2),
        "rdflib_load_seconds": round(slow_load, 2),
        "lookup_ms": round(lookup * 1000, 3),
        "rdflib_lookup_ms": round(slow_lookup * 1000, 3),
        "aggregate_ms": round(aggregate * 1000, 1),
        "rdflib_aggregate_ms": round(slow_aggregate * 1000, 1),
        "checked_ms": round(checked * 1000, 2),
    }


def count_bad_values(snapshot: Snapshot) -> dict[str, Any]:
    """Count and share of bad values, with some of them."""
    schema, names = snapshot.schema, snapshot.names
    rows = snapshot.table("instances").to_pylist()
    classes: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        classes[row["subject_id"]].add(row["class_iri"])
    values = [row for row in rows if row["property_iri"] is not None]
    bad = []
    for row in values:
        prop = schema.property_by_iri[row["property_iri"]]
        if row["object_id"] is None:
            words = row["literal"]
            fits = (
                row["datatype"] == prop.range
                and not rdflib.Literal(words, datatype=rdflib.URIRef(row["datatype"])).ill_typed
            )
            in_words = row["datatype"] in (n.XSD + "string", n.RDFS + "Literal")
        else:
            words, in_words = names[row["object_id"]], True
            fits = any(schema.is_subclass(c, prop.range) for c in classes[row["object_id"]])
            fits |= prop.range == n.THING
        if not fits or (in_words and parse_literal(words, n.XSD + "string") is None):
            bad.append(f"{names[row['subject_id']]} | {prop.label} | {words}")
    return {
        "values": len(values),
        "bad_values": round(len(bad) / len(values), 4) if values else 0.0,
        "bad_count": len(bad),
        "bad_examples": bad[:10],
    }


def open_data(data: Path, folder: Path) -> Snapshot:
    """The snapshot in a folder, or that of a corpus, built in `folder`."""
    if (data / "manifest.json").is_file():
        return Snapshot(data)
    report(f"building {data}")
    try:
        identifier = build(data, Warehouse(folder), Settings()).snapshot
    except GateError as e:  # what a gate refused is measured all the same
        report(f"a gate refused: {e}")
        identifier = str(e.report["snapshot"])
    return open_snapshot(identifier, folder)


def main() -> None:
    parser = make_parser(__doc__, "of the generated graph")
    parser.add_argument("--triples", type=name_count(100), default=1_000_000, help="of the graph")
    parser.add_argument("--data", type=Path, default=DEMO, help="a corpus, or a snapshot's folder")
    options = parser.parse_args()
    if not options.data.exists():
        refuse(f"{options.data}: no such file or folder; say --data FOLDER")
    figures = compare_stores(options.triples, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        figures |= count_bad_values(open_data(options.data, Path(folder)))
    print_figures(figures, options.json)


if __name__ == "__main__":
    main()
