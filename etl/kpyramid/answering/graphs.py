"""The lexicon of any RDF graph, read from the graph itself by SPARQL."""

from collections import defaultdict
from collections.abc import Iterable

from kpyramid.answering.lexicon import (
    PLACE_WORDS,
    Category,
    Compare,
    Lexicon,
    Relation,
    Run,
    fold,
    is_naming,
    looks_like_person,
    merge_names,
    read_gloss,
    split_lemmas,
    split_local_name,
    vary_name,
)
from kpyramid.ontology import names as n

_META = (n.OWL, n.RDFS, n.RDF, n.SKOS, "http://rdfs.org/ns/void#", "http://purl.org/dc/",
         "http://purl.org/vocab/vann/", "http://creativecommons.org/", n.PROV, n.XSD)  # fmt: skip
"""Vocabularies that speak of data, not of what the data are about."""
_LONGEST_NAME = 80
"""Characters; longer literals are texts, which no question quotes."""
_WORDED = f"<{n.LABEL}>|<{n.ALT_LABEL}>|<{n.SKOS}prefLabel>"


def read_lexicon(run: Run, compare: Compare) -> Lexicon:
    """The lexicon of the graph that `run` asks; ends of properties are those the data show.

    What has no label is called by the last part of its IRI. An end that the data do not show is
    the declared one.
    """
    labels = _read_words(run, _WORDED)
    comments = _read_words(run, f"<{n.COMMENT}>")
    categories = _read_categories(run, labels)
    relations = _read_relations(run, labels, comments, categories)
    naming = frozenset(
        iri for iri, r in relations.items() if r.is_literal and is_naming(iri, r.names)
    ) | {n.LABEL}
    names, values = _read_individuals(run, naming, relations, categories)
    return Lexicon(categories, relations, names, values, run, compare, naming)


def _read_words(run: Run, path: str) -> dict[str, list[str]]:
    """English or unmarked texts of what is declared or used as a class or property."""
    rows = run(
        f"SELECT DISTINCT ?s ?t WHERE {{ {{ ?s a ?k FILTER(STRSTARTS(STR(?k), '{n.OWL}') || "
        f"STRSTARTS(STR(?k), '{n.RDFS}') || ?k = <{n.RDF}Property>) }} UNION {{ ?x a ?s }} "
        f"?s {path} ?t FILTER(LANG(?t) = '' || LANGMATCHES(LANG(?t), 'en')) }} ORDER BY ?s ?t"
    )
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        found[row["s"]].append(row["t"])
    return found


def _read_categories(run: Run, labels: dict[str, list[str]]) -> dict[str, Category]:
    used = {row["c"] for row in run(f"SELECT DISTINCT ?c WHERE {{ ?s <{n.RDF_TYPE}> ?c }}")}
    declared = {
        row["c"]
        for row in run(
            f"SELECT DISTINCT ?c WHERE {{ ?c a ?k VALUES ?k {{ <{n.CLASS}> <{n.RDFS}Class> }} "
            "FILTER isIRI(?c) }"
        )
    }
    parents: defaultdict[str, set[str]] = defaultdict(set)
    for row in run(f"SELECT ?c ?p WHERE {{ ?c <{n.SUBCLASS}> ?p FILTER(isIRI(?c) && isIRI(?p)) }}"):
        parents[row["c"]].add(row["p"])
    iris = sorted(iri for iri in used | declared if not iri.startswith(_META))
    found = {}
    for iri in iris:
        names = merge_names(labels.get(iri, ()), [split_local_name(iri)])
        phrases = [split_lemmas(v) for name in names for v in vary_name(name)]
        found[iri] = Category(
            iri,
            names,
            frozenset(parents[iri]),
            person=looks_like_person(phrases),
            place=any(PLACE_WORDS & set(phrase) for phrase in phrases),
            members=iri in used,
        )
    return found


def _read_relations(
    run: Run,
    labels: dict[str, list[str]],
    comments: dict[str, list[str]],
    categories: dict[str, Category],
) -> dict[str, Relation]:
    kinds = f"<{n.OBJECT_PROPERTY}> <{n.DATATYPE_PROPERTY}> <{n.RDF}Property>"
    declared = run(
        f"SELECT DISTINCT ?p ?d ?r WHERE {{ ?p a ?k VALUES ?k {{ {kinds} }} "
        f"OPTIONAL {{ ?p <{n.DOMAIN}> ?d }} OPTIONAL {{ ?p <{n.RANGE}> ?r }} }}"
    )
    shown = run(
        "SELECT DISTINCT ?p ?c ?d ?t ?l WHERE { ?s ?p ?o . ?s a ?c . OPTIONAL { ?o a ?d } "
        "BIND(isLiteral(?o) AS ?l) BIND(DATATYPE(?o) AS ?t) }"
    )
    sources: defaultdict[str, set[str]] = defaultdict(set)
    targets: defaultdict[str, set[str]] = defaultdict(set)
    types: defaultdict[str, set[str]] = defaultdict(set)
    untyped: set[str] = set()
    for row in shown:
        iri = row["p"]
        if iri.startswith(_META) or row["c"] not in categories:
            continue
        sources[iri].add(row["c"])
        if row["l"] == "true":
            types[iri].add(row["t"])
        elif row.get("d") in categories:
            targets[iri].add(row["d"])
        else:
            untyped.add(iri)
    for row in declared:
        iri, domain, reach = row["p"], row.get("d", ""), row.get("r", "")
        if iri.startswith(_META):
            continue
        if iri not in sources or not sources[iri]:
            sources[iri].update({domain} & categories.keys())
            if reach.startswith(n.XSD):
                types[iri].add(reach)
        if not types[iri] and (not targets[iri] or iri in untyped):
            targets[iri].update({reach} & categories.keys())
    found = {}
    for iri in sorted(sources):
        names = merge_names(labels.get(iri, ()), [split_local_name(iri)])
        gloss = read_gloss(next(iter(comments.get(iri, ())), ""))
        ends = frozenset(sources[iri]), frozenset(targets[iri]), frozenset(types[iri])
        found[iri] = Relation(iri, names, *ends, gloss=gloss)
    return found


def _read_individuals(
    run: Run,
    naming: Iterable[str],
    relations: dict[str, Relation],
    categories: dict[str, Category],
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[tuple[str, str], ...]]]:
    names: defaultdict[str, set[str]] = defaultdict(set)
    values: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    wanted = " ".join(f"<{iri}>" for iri in sorted(naming))
    for row in run(
        f"SELECT DISTINCT ?s ?o WHERE {{ VALUES ?p {{ {wanted} }} ?s ?p ?o FILTER(isIRI(?s) && "
        f"STRLEN(STR(?o)) <= {_LONGEST_NAME}) }}"
    ):
        if row["s"] not in relations and row["s"] not in categories:
            names[fold(row["o"])].add(row["s"])
    known = {iri for iris in names.values() for iri in iris}
    for row in run("SELECT DISTINCT ?o WHERE { ?s ?p ?o . ?s a ?c FILTER isIRI(?o) }"):
        iri = row["o"]
        if iri not in known and iri not in categories and not iri.startswith(_META):
            names[fold(split_local_name(iri))].add(iri)
    strings = " ".join(
        f"<{iri}>"
        for iri, r in relations.items()
        if r.is_literal and not r.is_numeric and iri not in set(naming)
    )
    for row in run(
        f"SELECT DISTINCT ?p ?o WHERE {{ VALUES ?p {{ {strings} }} ?s ?p ?o FILTER("
        f"STRLEN(STR(?o)) <= {_LONGEST_NAME}) }}"
    ):
        values[fold(row["o"])].add((row["p"], row["o"]))
    return (
        {name: tuple(sorted(iris)) for name, iris in names.items() if name},
        {value: tuple(sorted(pairs)) for value, pairs in values.items() if value},
    )
