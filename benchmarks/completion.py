"""Hidden properties recovered by completion, on Text2KGBench (Mihindukulasooriya et al., 2023).

The measure is our own. Of an ontology's properties that are declared and have at least five gold
triples, 30 % are hidden, with their values; the ontology layer is what stays. The graph has a fact
for every gold triple: its ends, joined by the words that our extractor puts between their mentions
in the sentence, never by the property's name. A triple that the extractor does not join is left out
and counted.
What the ontology has stays in the graph, and no pair of a value is known, so that only phrases tell
what is missing. A hidden property is recovered when one of the first N = max(10, hidden) proposals
draws more than half of its support from it; a proposal recovers one property at most, and what has
a fault, a reject that nobody is shown, is none. A proposal
is really missing when more than half of its support states hidden properties; `missing_at_n` is the
share of such among the first n, or of all where there are fewer, `missing_at_all` that of all
facts; `in_region` the share of the facts that state hidden properties which lie in the priority
region. All are means over ontologies of the mean over seeds: by the default settings (novelty), by
each priority, by the nearest neighbour among
all phrases whatever their ends (`nearest`), by support alone, for a random order of the same
graph's phrases, and for a region that holds the hidden facts and no others (`oracle`), which is
what finding the region costs. `reachable` is the share of hidden properties with a usable fact,
`supported` that with as many as a proposal needs: what the best clusters could reach.

`university` is an invented one whose properties have string ranges (making/university.py), as the
graph that the paper's authors released: each property hidden in turn, with NER labels on its
classes (`typed`) or none, by phrases alone or with six tenths of the other properties' values known
(`values`). Really missing is
there what states the hidden property or one that the ontology never had; `in_region` is of the
hidden property's facts.

`answered_before` and `answered_after` are shares of questions about hidden properties (seed 0) that
the layers above the text answer, of a pyramid of 200 sentences of each ontology: without the
property, and when what was proposed for it is accepted in the decisions file under its name. Only
values that some fact of the graph joins to their subject are asked for; `unasked` are the others.
"""

import json
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any, get_args

import numpy as np
from completion_pyramids import find_corpora, measure_answers
from embedding import open_embedder
from making.university import list_facts, load_world, write_turtle
from options import explain_faults, print_figures, read_options, report
from sets.musique import list_words
from sets.text2kgbench_ontologies import convert_ontology
from text2kgbench import find_number, read_lines

from kpyramid.completion.layers import choose_region, compare_layers
from kpyramid.completion.proposals import draw_proposals
from kpyramid.completion.types import Completion, GraphLayer, Mask, OntologyLayer, Proposal
from kpyramid.embeddings.port import Embedder
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.types import Extraction
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.numerics.gaussian import Priority, Signed, measure_novelty
from kpyramid.numerics.moments import Array
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import XSD
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.settings import Settings

FOLDER = "text2kgbench_public"
SEEDS = (0, 1, 2)
HIDDEN = 0.3
LEAST = 5
"""Gold triples that a property needs to be hidden."""
SHOWN = 10
FIRST = (10, 20, 40)
UNKNOWN = "value of "
"""Before the name of an end of a value: no fact of the graph joins such ends."""
PARTS = ("train", "validation", "ground_truth")
LITERALS = frozenset({"DATE", "TIME", "MONEY", "PERCENT", "QUANTITY", "CARDINAL", "ORDINAL"})
COMPLEMENT = re.compile(
    r"\s(?:of|in|for|from|at|on|by|with|to|who|which|that|and|or|near)\s|[(:;/]|,(?!\d)", re.I
)
"""Where a noun phrase's core ends: what follows is another name, not its own."""

Triple = tuple[str, str, str]


@dataclass(frozen=True)
class Ontology:
    """An ontology with its gold values and the facts of its sentences.

    `gold`: how many gold triples of its sentences each property has; `values`: the distinct ones.
    `facts`: head, wording, tail; `stated`: the property of each; `types`: of each end's name.
    """

    name: str
    schema: Schema
    gold: Mapping[str, int]
    values: Sequence[Triple]
    facts: Sequence[Triple]
    stated: Sequence[str]
    types: Mapping[str, str]
    left_out: int

    @property
    def eligible(self) -> list[str]:
        """The properties that may be hidden."""
        return sorted(iri for iri, count in self.gold.items() if count >= LEAST)


def read_ontologies(data: Path, limit: int | None) -> list[Ontology]:
    """The ontologies below a folder, with the facts of their first `limit` sentences."""
    extractor = DependencyExtractor(Settings().extract.parser)
    found = []
    with explain_faults(data, FOLDER):
        paths = [p for p in data.rglob("*.json") if p.parent.name == "ontologies"]
        paths.sort(key=lambda p: (p.parent.parent.name, int(find_number(p.name))))
        if not paths:
            raise ValueError("no ontologies/*.json")
        for path in paths:
            report(f"sentences of {path.stem}")
            found.append(read_ontology(path, limit, extractor))
    return found


def read_ontology(path: Path, limit: int | None, extractor: DependencyExtractor) -> Ontology:
    """An ontology and the sentences in the folders beside its own."""
    text = path.read_text("utf-8")
    schema = parse_schema(convert_ontology(text, source=str(path)), source=str(path))
    iri_of = {prop.label: prop.iri for prop in schema.properties}
    sentences: dict[str, dict[Triple, None]] = {}
    base = path.parent.parent
    for part in PARTS:
        for row in read_lines(base / part, find_number(path.name)):
            for subject, relation, value in list_triples(row):
                if relation in iri_of:
                    triple = clean(subject), iri_of[relation], clean(value)
                    sentences.setdefault(row["sent"], {})[triple] = None
    if not sentences:
        raise ValueError(f"{base}: no sentences of {path.name} in {', '.join(PARTS)}")
    chosen = list(sentences.items())[:limit]
    facts, stated, left_out = [], [], 0
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    extractions = extractor.extract_all([sentence for sentence, _ in chosen])
    for (_, triples), extraction in zip(chosen, extractions, strict=True):
        types = {mention.text: mention.type for mention in extraction.mentions}
        for subject, iri, value in triples:
            joined = join(extraction, subject, value)
            if joined is None:
                left_out += 1
                continue
            fact, ends = joined
            facts.append(fact)
            stated.append(iri)
            for name, said in ((fact[0], ends[0]), (fact[2], ends[1])):
                votes[name][types.get(said, "NOUN")] += 1
    return Ontology(
        name=f"{base.name.rpartition('_')[2]} {json.loads(text)['id'].removeprefix('ont_')}",
        schema=schema,
        gold=Counter(iri for _, triples in chosen for _, iri, _ in triples),
        values=sorted({triple for _, triples in chosen for triple in triples}),
        facts=facts,
        stated=stated,
        types={name: max(sorted(kinds), key=kinds.__getitem__) for name, kinds in votes.items()},
        left_out=left_out,
    )


def list_triples(row: Mapping[str, Any]) -> Iterator[Triple]:
    """The gold triples of a sentence, as test and train rows write them."""
    for t in row.get("triples", ()):
        yield t["sub"], t["rel"], t["obj"]
    if "rel_label" in row:
        yield row["sub_label"], row["rel_label"], row["obj_label"]


def clean(name: str) -> str:
    """A gold name as a text would write it."""
    return name.replace("_", " ").strip().strip('"').strip()


def join(extraction: Extraction, one: str, other: str) -> tuple[Triple, tuple[str, str]] | None:
    """The fact between two names, in the extractor's direction, and its arguments as worded.

    The best match of both ends, the first of equal ones.
    """
    best: tuple[int, Triple, tuple[str, str]] | None = None
    for fact in extraction.facts:
        for first, second in ((one, other), (other, one)):
            match = min(match_name(fact.head, first), match_name(fact.tail, second))
            if match > (best[0] if best else 0):
                best = match, (first, fact.relation, second), (fact.head, fact.tail)
    return best[1:] if best else None


def match_name(argument: str, name: str) -> int:
    """How well an argument names something: 3 equal, 2 a part of the name, 1 with words around it.

    Equal are also two dates, years or numbers of one value.
    """
    said, wanted = list_words(argument), list_words(name)
    if not said or not wanted:
        return 0
    if said == wanted or any(
        (value := parse_literal(name, XSD + kind)) is not None
        and value == parse_literal(argument, XSD + kind)
        for kind in ("date", "gYear", "decimal")
    ):
        return 3
    if holds(wanted, said):
        return 2
    return int(holds(list_words(COMPLEMENT.split(argument, maxsplit=1)[0]), wanted))


def holds(words: Sequence[str], run: Sequence[str]) -> bool:
    """Whether words contain a run of words."""
    size = len(run)
    return size > 0 and any(words[at : at + size] == run for at in range(len(words) - size + 1))


def hide(ontology: Ontology, seed: int) -> set[str]:
    """The properties that are hidden."""
    eligible = ontology.eligible
    count = max(1, round(HIDDEN * len(eligible)))
    return set(random.Random(seed).sample(eligible, count)) if eligible else set()  # noqa: S311


def build_layers(ontology: Ontology, hidden: set[str]) -> tuple[GraphLayer, OntologyLayer]:
    """Both layers; the classes of individuals are what the visible values say of them."""
    facts, types = ontology.facts, ontology.types
    heads, wordings, tails = (list(column) for column in zip(*facts, strict=True))
    graph = GraphLayer(
        heads=heads,
        head_types=[types[name] for name in heads],
        wordings=wordings,
        tails=tails,
        tail_types=["LITERAL" if types[n] in LITERALS else types[n] for n in tails],
        head_keys=heads,
        tail_keys=tails,
    )
    schema = ontology.schema
    visible = tuple(prop for prop in schema.properties if prop.iri not in hidden)
    values = [value for value in ontology.values if value[1] not in hidden]
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for subject, iri, value in values:
        prop = schema.property_by_iri[iri]
        for name, end in ((subject, prop.domain), (value, prop.range)):
            if end in schema.class_by_iri:
                votes[name][end] += 1
    classes = {name: max(sorted(ends), key=ends.__getitem__) for name, ends in votes.items()}
    return graph, OntologyLayer(
        schema=Schema(
            schema.base,
            schema.classes,
            visible,
            tuple(line for line in schema.axioms if not any(f"<{iri}>" in line for iri in hidden)),
        ),
        properties=[iri for _, iri, _ in values],
        pairs=[(UNKNOWN + subject, UNKNOWN + value) for subject, _, value in values],
        classes=classes | {UNKNOWN + name: iri for name, iri in classes.items()},
    )


def recover(ontology: Ontology, hidden: set[str], found: Completion) -> set[str]:
    """The hidden properties from which one of the first proposals draws most of its support."""
    recovered = set()
    for proposal in list_offered(found)[: max(SHOWN, len(hidden))]:
        drawn = Counter(ontology.stated[at] for at in proposal.facts)
        iri, count = drawn.most_common(1)[0]
        if iri in hidden and 2 * count > len(proposal.facts):
            recovered.add(iri)
    return recovered


def find_missing(ontology: Ontology, hidden: set[str], found: Completion) -> list[bool]:
    """Of each proposal, the best first, whether most of its support states hidden properties."""
    return [
        2 * sum(ontology.stated[at] in hidden for at in proposal.facts) > len(proposal.facts)
        for proposal in list_offered(found)
    ]


def list_offered(found: Completion) -> list[Proposal]:
    """What is new, the best first; what has a fault becomes a reject and is shown to nobody."""
    return [p for p in found.proposals if not p.existing and p.fault is None]


def choose_again(compared: Completion, values: Array, share: float) -> Completion:
    """The layers with other priorities of the phrases, in their order."""
    signed = Signed.of(values)
    region = choose_region(signed, compared.measure().graph.facts, share)
    sign = signed.sign.astype(np.int64)
    return replace(compared, sign=sign, log_magnitude=signed.log_magnitude, region=region)


def rank_otherwise(
    way: str, compared: Completion, missing: Mask, share: float, seed: int, embedder: Embedder
) -> Completion:
    """The layers with the priorities of a way that is no setting; `missing`: of each fact."""
    if way == "random":
        drawn = np.random.default_rng(seed).random(len(compared.sign))
        return choose_again(compared, drawn + 1e-9, share)
    if way == "nearest":
        both = compared.measure().graph.texts, compared.measure().ontology.texts
        return choose_again(compared, measure_novelty(*map(embedder.embed, both)), share)
    if way == "oracle":
        places, same = np.arange(len(missing)), np.zeros(len(missing))  # each fact a phrase, exp(0)
        sign = np.ones(len(missing), dtype=np.int64)
        return replace(compared, phrase_of=places, region=missing, sign=sign, log_magnitude=same)
    return compared


def measure_ontology(ontology: Ontology, seed: int, embedder: Embedder) -> dict[str, float]:
    """Shares of an ontology's hidden properties that were recovered, and could have been."""
    settings = Settings().complete
    hidden = hide(ontology, seed)
    missing = np.array([iri in hidden for iri in ontology.stated], dtype=bool)
    usable = Counter(ontology.stated)
    graph, known = build_layers(ontology, hidden)
    ways = {"default": settings}
    ways |= {way: replace(settings, priority=way) for way in ("novelty", *get_args(Priority))}
    ways |= {
        "support": replace(settings, region_share=1.0),
        **dict.fromkeys(("nearest", "random", "oracle"), settings),
    }
    shares: dict[str, float] = {}
    for way, chosen in ways.items():
        if way != "novelty" or settings.priority != "novelty":
            compared = compare_layers(graph, known, settings=chosen, embedder=embedder)
            share = chosen.region_share
            compared = rank_otherwise(way, compared, missing, share, seed, embedder)
            found = draw_proposals(
                graph, known, compared, settings=chosen, comparer=Comparer(embedder)
            )
        shares[f"recovered_at_n {way}"] = len(recover(ontology, hidden, found)) / len(hidden)
        stating = find_missing(ontology, hidden, found)
        for first in FIRST:
            shares[f"missing_at_{first} {way}"] = mean(stating[:first] or [0])
        inside = found.region[found.phrase_of][missing]
        shares[f"in_region {way}"] = float(inside.sum()) / max(1, len(inside))
    return shares | {
        "missing_at_all": float(missing.mean()),
        "reachable": mean(usable[iri] > 0 for iri in hidden),
        "supported": mean(usable[iri] >= settings.min_support for iri in hidden),
        "hidden": len(hidden),
    }


KNOWN = 0.6
"""Share of the visible values of the university that its ontology has, where it has any."""
OUTSIDE = "outside"


def measure_university(embedder: Embedder) -> dict[str, dict[str, float]]:
    """Means over all properties, each hidden in turn, by what is known and by way."""
    settings = Settings().complete
    figures: dict[str, dict[str, float]] = {}
    for typed in (True, False):
        ontology = read_university(typed)
        for share in (0.0, KNOWN):
            rows: dict[str, list[list[float]]] = defaultdict(list)
            for prop in ontology.schema.properties:
                report(f"the university without {prop.label!r}")
                missing = {prop.iri, OUTSIDE}
                hidden = np.array([iri == prop.iri for iri in ontology.stated], dtype=bool)
                graph, known = build_layers(ontology, missing)
                known = know_values(ontology, missing, known, share) if share else known
                measured = compare_layers(graph, known, settings=settings, embedder=embedder)
                for way in ("default", "random"):
                    part = settings.region_share
                    compared = rank_otherwise(way, measured, hidden, part, SEEDS[0], embedder)
                    found = draw_proposals(
                        graph, known, compared, settings=settings, comparer=Comparer(embedder)
                    )
                    stating = find_missing(ontology, missing, found)
                    inside = compared.region[compared.phrase_of][hidden]
                    shares = [mean(stating[:first] or [0]) for first in FIRST]
                    rows[way].append([*shares, float(inside.mean())])
            name = f"{'typed' if typed else 'untyped'}_{'values' if share else 'phrases'}"
            for way, all_shares in rows.items():
                columns = (*(f"missing_at_{first}" for first in FIRST), "in_region")
                means = [round(mean(column), 3) for column in zip(*all_shares, strict=True)]
                figures[f"{name}_{way}"] = dict(zip(columns, means, strict=True))
    return figures


def read_university(typed: bool) -> Ontology:
    """The invented university; what its ontology never had states `OUTSIDE`."""
    world = load_world()
    facts = list(list_facts(SEEDS[0], world))
    schema = parse_schema(write_turtle(typed, world), source="making/university.py")
    iri_of = {prop.label: prop.iri for prop in schema.properties}
    stated = [iri_of.get(fact.stated.label, OUTSIDE) for fact in facts]
    types = {fact.head: fact.head_type for fact in facts}
    types = {fact.tail: fact.tail_type for fact in reversed(facts)} | types
    both = zip(facts, stated, strict=True)
    return Ontology(
        name="university",
        schema=schema,
        gold=Counter(stated),
        values=sorted({(f.head, iri, f.tail) for f, iri in both if iri != OUTSIDE}),
        facts=[(fact.head, fact.wording, fact.tail) for fact in facts],
        stated=stated,
        types=types,
        left_out=0,
    )


def know_values(
    ontology: Ontology, hidden: set[str], known: OntologyLayer, share: float
) -> OntologyLayer:
    """The layer with a share of the visible values, which facts of the graph join."""
    chance = random.Random(SEEDS[0])  # noqa: S311
    values = [v for v in ontology.values if v[1] not in hidden and chance.random() < share]
    domain = {prop.iri: prop.domain for prop in ontology.schema.properties}
    return replace(
        known,
        properties=[iri for _, iri, _ in values],
        pairs=[(subject, value) for subject, _, value in values],
        classes={subject: domain[iri] for subject, iri, _ in values},
    )


def ask_all(ontologies: Sequence[Ontology], data: Path, limit: int | None) -> dict[str, Any]:
    """The questions about hidden properties, and how many are answered, all in one."""
    counts: Counter[str] = Counter()
    corpora = find_corpora(data)
    with tempfile.TemporaryDirectory() as folder:
        for ontology in ontologies:
            corpus = corpora[re.sub(r" \d+_", "-", ontology.name)]
            labels = {
                ontology.schema.property_by_iri[iri].label for iri in hide(ontology, SEEDS[0])
            }
            counts.update(measure_answers(corpus, labels, Path(folder), limit))
    asked = max(1, counts["asked"])
    return {
        "answered_before": round(counts["before"] / asked, 3),
        "answered_after": round(counts["after"] / asked, 3),
        "asked": counts["asked"],
        "unasked": counts["left_out"],
        "accepted": counts["accepted"],
    }


def measure(data: Path, limit: int | None) -> dict[str, Any]:
    """All figures: means over ontologies of means over seeds, then a row for each ontology."""
    ontologies = read_ontologies(data, limit)
    embedder = open_embedder()
    rows: dict[str, dict[str, Any]] = {}
    for ontology in ontologies:
        if not ontology.eligible or not ontology.facts:
            continue
        report(f"hidden properties of {ontology.name}")
        runs = [measure_ontology(ontology, seed, embedder) for seed in SEEDS]
        row = {name: round(mean(r[name] for r in runs), 3) for name in runs[0]}
        sizes = {"facts": len(ontology.facts), "left_out": ontology.left_out}
        rows[ontology.name] = row | {"hidden": int(row["hidden"])} | sizes
    if not rows:
        raise SystemExit("completion.py: no property has five gold triples; give more sentences")
    figures: dict[str, Any] = defaultdict(dict)
    for name in next(iter(rows.values())):
        figure, _, way = name.partition(" ")
        average = round(float(mean(row[name] for row in rows.values())), 3)
        if way:
            figures[figure][way] = average
        elif figure in ("missing_at_all", "reachable", "supported"):
            figures[figure] = average
    measured = [ontology for ontology in ontologies if ontology.name in rows]
    return {
        **figures,
        **ask_all(measured, data, limit),
        "university": measure_university(embedder) if limit is None else {},
        "ontologies": len(rows),
        "hidden": sum(row["hidden"] for row in rows.values()) * len(SEEDS),
        "left_out": sum(row["left_out"] for row in rows.values()),
        "facts": sum(row["facts"] for row in rows.values()),
        "seeds": list(SEEDS),
        "rows": rows,
    }


def main() -> None:
    limit = "the first N sentences of each ontology only"
    options = read_options(__doc__, folder=FOLDER, limit=limit, seed="unused: three seeds are run")
    print_figures(measure(options.data, options.limit), options.json)


if __name__ == "__main__":
    main()
