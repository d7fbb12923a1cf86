"""Proposals: classes and properties that the ontology lacks, drafted and compared with it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from kpyramid.completion.clusters import (
    cluster_units,
    list_units,
    name_meaning,
    place_units,
)
from kpyramid.completion.layers import compare_layers
from kpyramid.completion.nouns import (
    Kind,
    find_common_name,
    find_filing,
    find_noun,
    group_alike,
    holds_kinds,
    is_quality,
    list_roles,
    name_kind,
    names_its_kind,
)
from kpyramid.completion.types import (
    LITERAL,
    Completion,
    GraphLayer,
    OntologyLayer,
    Proposal,
    find_stated,
)
from kpyramid.documents.words import FUNCTION_WORDS, JOINING, QUESTION_WORDS, lemmatise
from kpyramid.embeddings.port import Embedder, embed_finite
from kpyramid.graph.synonyms.comparison import Comparer, Reading
from kpyramid.graph.synonyms.lexicon import load_lexicon
from kpyramid.graph.synonyms.meaning import read_frame
from kpyramid.graph.synonyms.words import find_verb, is_past, is_usual, load_wordnet, names_person
from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.population.checking import Kinds, Named, fit_class
from kpyramid.ontology.proposals import name_class, name_range
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.settings import CompleteSettings
from kpyramid.storage.columns import encode, pick_rows

# Properties: from the facts of a cluster to a proposal.

LEAST = 0.5
"""Share of a proposal's facts that must fit its domain and range; below it the unfit facts go."""
_MAIN = 0.6
_COVERED = 0.8
"""Of the ends that have a class: the share of the most frequent class from which it is the domain
or range (`_MAIN`), and the share that a class above it must cover otherwise (`_COVERED`)."""
_SAMPLE = 1000
"""Facts of a proposal, evenly spread, from which its domain and range are inferred."""
_NUMBERS = tuple(XSD + name for name in ("date", "gYearMonth", "gYear", "integer", "decimal"))
"""Datatypes of the literals of a cluster, the narrow ones first: a date has a month and a year."""
_MOST = 0.8
"""Share of a cluster's literals that must parse as a datatype."""


def draft_property(
    graph: GraphLayer,
    classes: Mapping[str, str],
    turned: Mask,
    places: Integers,
    schema: Schema,
    least: int,
    *,
    is_open: bool = False,
) -> Proposal | None:
    """The property that facts state, named by their most frequent wording.

    `classes`: class of each individual in the ontology; it precedes the types. `turned`: whether
    each fact of the graph reads from value to subject. Such a fact belongs to the property only if
    it fits domain and range; where fewer than half of all facts fit, this holds for the others too.
    None where fewer than `least` facts remain. The score is their number. `agreement` counts all
    facts; an end without class and type disagrees, unless it may be an end (`is_open`).
    """

    def name(key: str, text: str, entity_type: str) -> Named:
        kinds = {classes[key]} if entity_type != LITERAL and key in classes else ()
        return Named(key, text, entity_type, frozenset(kinds))

    def read_ends(rows: Integers) -> list[tuple[Named, Named]]:
        sides = (
            (graph.head_keys, graph.heads, graph.head_types),
            (graph.tail_keys, graph.tails, graph.tail_types),
        )
        heads, tails = (map(name, *(pick_rows(c, rows) for c in columns)) for columns in sides)
        both = zip(turned[rows].tolist(), heads, tails, strict=True)
        return [(tail, head) if back else (head, tail) for back, head, tail in both]

    ends = read_ends(places[:: max(1, len(places) // _SAMPLE)])
    domain = find_class([head for head, _ in ends], schema, is_open=is_open)
    range_iri = _find_range([tail for _, tail in ends], schema, is_open)

    def fit(both: tuple[Named, Named], guess: bool) -> bool:
        wanted = zip(both, (domain, range_iri), strict=True)
        return all(_fits(end, iri, schema, guess, is_open) for end, iri in wanted)

    fitting = sum(fit(both, True) for both in ends) / len(ends)
    agreement = sum(fit(both, False) for both in ends) / len(ends)
    unsure = places if fitting < LEAST else places[turned[places]]
    fits = [fit(both, True) for both in read_ends(unsure)]
    places = np.setdiff1d(places, unsure[~np.array(fits, dtype=bool)])
    straight = [row for row in places.tolist() if not turned[row]]
    if len(places) < least or not straight:
        return None
    words = Counter(graph.wordings[row] for row in straight)
    label = min(words, key=lambda word: (-words[word], word))
    stated = name_property(label)
    noun = stated.partition(" ")[0]
    silent = is_open and lemmatise(stated.casefold()) in _SILENT
    fault, doubt = None if is_wording(label) and not silent else "no_name_of_a_relation", ""
    if names_its_kind(noun, [graph.heads[row] for row in straight]):
        fault = "says_a_kind"
    elif names_person(noun) and holds_kinds(domain, schema):  # `is king of`, `is sailor from`
        doubt = f"{noun!r} may be what another property says"
        fault = fault if label.endswith(" of") else "a_property_says_it"
    return Proposal(
        kind="property",
        label=label,
        # A definition quotes no facts: it becomes part of the schema, which readers see who may not
        # see the documents.
        definition=f"“{label}” ({name_class(domain, schema)} → {name_range(range_iri, schema)}).",
        domain=domain,
        range=range_iri,
        phrases=tuple(sorted(words)),
        facts=tuple(places.tolist()),
        score=float(len(places)),
        agreement=agreement,
        doubt=doubt,
        fault=fault,
    )


def find_class(
    things: Sequence[Named], schema: Schema, *, wider: bool = True, is_open: bool = False
) -> str:
    """The most frequent class of some things, by their known classes and their types.

    Where it covers too few of them, `wider` takes the narrowest class above it that covers enough,
    if there is one; otherwise the most frequent class stays, or with `is_open` owl:Thing. Where NER
    labels give no classes, it must cover at least half of the things; else owl:Thing.
    """
    classes_of = [{*thing.kinds, schema.class_for_type(thing.type)} - {None} for thing in things]
    if is_open:
        classes_of = [classes or {THING} for classes in classes_of]
    counts = Counter(iri for classes in classes_of for iri in classes if iri is not None)
    best = min(counts, key=lambda iri: (-counts[iri], iri), default=THING)

    def cover(wanted: str) -> int:
        return sum(any(schema.is_subclass(iri, wanted) for iri in c if iri) for c in classes_of)

    if not schema.knows_types:
        return best if cover(best) >= LEAST * len(things) else THING
    classed = sum(bool(classes) for classes in classes_of)
    if not wider or cover(best) >= _MAIN * classed:
        return best
    above = sorted(schema.find_ancestors(best) - {THING, best}, key=lambda iri: (cover(iri), iri))
    wider_classes = (iri for iri in above if cover(iri) >= _COVERED * classed)
    return next(wider_classes, THING if is_open else best)


def _find_range(ends: Sequence[Named], schema: Schema, is_open: bool) -> str:
    literals = [end.name for end in ends if end.type == LITERAL]
    if len(literals) * 2 <= len(ends):
        found = find_class(ends, schema, is_open=is_open)
        if is_open and found == THING and sum(_is_text(e.name) for e in ends) * 2 >= len(ends):
            return XSD + "string"
        return found
    fitting = {
        datatype: sum(parse_literal(text, datatype) is not None for text in literals)
        for datatype in _NUMBERS
    }
    *_, integer, decimal = _NUMBERS
    if fitting[integer] < fitting[decimal]:  # some prices are whole
        del fitting[integer]
    least = _MOST * len(literals)
    month, year = _NUMBERS[1:3]
    if fitting[month] * 2 > len(literals) and fitting[month] < least:
        del fitting[year]  # of a month the year says too little
    return next((datatype for datatype, n in fitting.items() if n >= least), XSD + "string")


_SILENT = frozenset("after before comment difference note number open remark share total".split())
"""Headers of columns that do not say of what, or are above anything that is noted."""
_ADDRESS = re.compile(r"\w@\w|://|^www\.")
_LONGEST_NOUN = 3
"""Words; longer ones in small letters are remarks and the like."""


def _is_text(value: str) -> bool:
    """Whether a value is an address, or words that are no name: `The sale was moved to May`."""
    words = value.split()
    small = any(word.islower() and word not in FUNCTION_WORDS for word in words)
    return _ADDRESS.search(value) is not None or (small and len(words) > _LONGEST_NOUN)


def _fits(end: Named, wanted: str, schema: Schema, guess: bool, is_open: bool) -> bool:
    if wanted.startswith(XSD):
        return parse_literal(end.name, wanted) is not None
    is_anything = wanted == THING and is_open
    return end.type != LITERAL and (
        is_anything or fit_class(end, wanted, schema, guess=guess) is not None
    )


# Classes: nouns under which facts file many things, and which name no class of the ontology.


_RELATED = 0.5
"""Share of a noun's uses with a complement (`tributary of the Nile`) from which it is a relation,
unless the things' names contain it: `diocese of the Church`."""


def propose_classes(
    graph: GraphLayer,
    ontology: OntologyLayer,
    compared: Completion,
    clusters: Iterable[Proposal],
    least: int,
    embedder: Embedder,
) -> list[Proposal]:
    """The kinds under which `X is a …` files at least `least` things, some of the priority region.

    A thing is of the region where the phrase that files it lies there, or where it is an end of a
    fact of one of the region's `clusters`.

    Nouns for the same kind make one class (`film`, `movie`), `existing` where the ontology has it.
    Where all things are of narrower kinds with a noun before it, those are the classes: `publishing
    house` instead of `house`. A fact that states a value already (`is a tenor`: voice type) files
    nothing. A noun that names a property (`founder`), or mostly has a complement (`tributary of the
    Nile`), is no kind. `fault`: a property has such nouns as its values, or the noun does not
    denote things of these types.
    """
    schema = ontology.schema
    places = np.flatnonzero(find_filing(graph) & ~find_stated(graph, ontology))
    tails = encode(pick_rows(graph.tails, places))
    kinds = Kinds(schema)
    nouns = [find_noun(tail, kinds) for tail in tails.words]
    roles = list_roles(schema)
    filed = [
        (row, kind)
        for row, code in zip(places.tolist(), tails.codes.tolist(), strict=True)
        if (kind := nouns[code]) and graph.heads[row][:1].isupper() and kind.noun not in roles
    ]
    bare = {kind.noun for _, kind in filed if name_kind(kind) == kind.noun}
    written = [kind.noun if kind.noun in bare else name_kind(kind) for _, kind in filed]
    labels = {label for c in schema.classes for label in (c.label, *c.alt_labels)}
    alike = group_alike({*written, *(c.label for c in schema.classes)}, embedder)
    known = {alike[c.label]: c.iri for c in schema.classes}
    groups: dict[str, list[tuple[int, Kind]]] = defaultdict(list)
    for name, row_kind in zip(written, filed, strict=True):
        groups[alike[name]].append(row_kind)
    joined = {end for cluster in clusters for row in cluster.facts for end in graph.pair(row)}
    clustered = np.fromiter((head in joined for head in graph.head_keys), bool, count=len(graph))
    inside = compared.region[compared.phrase_of] | clustered
    proposals = []
    for key in sorted(groups):
        shared = find_common_name([kind for _, kind in groups[key]])
        size = len(shared)
        group = [(row, k) for row, k in groups[key] if not size or k.before[-size:] == shared]
        rows = [row for row, _ in group]
        wordings = Counter(
            " ".join((*shared, k.noun)) if shared or k.noun in bare else name_kind(k)
            for _, k in group
        )
        new = wordings.keys() - labels
        names = [graph.heads[row] for row in rows]
        related = sum(kind.related for _, kind in group) >= _RELATED * len(rows)
        if (
            not new
            or len(set(names)) < least
            or not inside[rows].any()
            or (related and not names_its_kind(group[0][1].noun, names))
        ):
            continue
        phrases = sorted(new, key=lambda name: (-wordings[name], name))
        parent, agreement = _find_parent(graph, rows, schema)
        usual = is_usual(group[0][1].noun, (graph.head_types[row] for row in rows))
        fault = None if usual is not False else "no_name_for_these"
        if holds_kinds(parent, schema):
            fault = "a_property_says_it"
        proposals.append(
            Proposal(
                kind="class",
                label=phrases[0],
                definition=f"A kind of {name_class(parent, schema)}.",
                domain=parent,
                range=None,
                phrases=tuple(phrases),
                facts=tuple(rows),
                score=float(inside[rows].sum()),
                agreement=agreement,
                existing=known.get(key) if not shared else None,
                doubt="" if usual else f"{phrases[0]!r} mostly means something else",
                fault=fault,
            )
        )
    return proposals


def _find_parent(graph: GraphLayer, places: Sequence[int], schema: Schema) -> tuple[str, float]:
    """The class of most of the facts' heads, and its share of the heads with a class."""
    heads = [Named("", graph.heads[row], graph.head_types[row]) for row in places]
    parent = find_class(heads, schema, wider=False)
    classed = [head for head in heads if schema.class_for_type(head.type)] or heads
    fitting = sum(fit_class(head, parent, schema) is not None for head in classed)
    return parent, fitting / len(classed)


# Comparison with the ontology: other names, parts and inverses of its properties.

_NEAREST = 5
"""Phrases of the ontology with which a proposal is compared, by cosine."""
_COMPARED = 60
"""Proposals, the best first, that are compared with each other."""


def place_beside(
    proposals: Sequence[Proposal], schema: Schema, *, similarity: float, comparer: Comparer
) -> list[Proposal]:
    """The properties, with `existing`, `splits` or `inverse` where the ontology has a similar one.

    `existing`: a wording has the same meaning and the ends fit. `splits`: its meaning is narrower,
    for the same kind of subject. `doubt`: a wording is as near as `similarity` and the meaning of
    either is unknown, or it is the other name of an inverse; a person decides. A wording with the
    same meaning but other ends calls for wider ends, not for another property: a fault.
    """
    pairs = [(p, phrase) for p in schema.properties for phrase in (p.label, *p.alt_labels)]
    if not pairs or not proposals:
        return list(proposals)
    known = embed_finite(comparer.embedder, [phrase for _, phrase in pairs])
    vectors = embed_finite(comparer.embedder, [proposal.label for proposal in proposals])
    placed = []
    for proposal, vector in zip(proposals, vectors, strict=True):
        cosines = np.round(known @ vector, 6)
        nearest = np.argsort(-cosines, kind="stable")[:_NEAREST].tolist()
        near = [(*pairs[index], float(cosines[index])) for index in nearest]
        placed.append(_place(proposal, near, schema, similarity, comparer))
    return placed


def _place(
    proposal: Proposal,
    near: Sequence[tuple[OntologyProperty, str, float]],
    schema: Schema,
    similarity: float,
    comparer: Comparer,
) -> Proposal:
    reading, fault = comparer.read(proposal.label), proposal.fault
    for prop, phrase, cosine in near:
        verdict = comparer.compare(proposal.label, phrase)
        same = verdict.likeness == "equivalent"
        known = comparer.read(phrase)
        meanings = {reading.meaning, known.meaning}
        if same and verdict.turned:
            if turned := _turn(proposal, prop, phrase, schema):
                return turned
            continue
        if _fits_ends(proposal, prop, schema):
            if same and reading.key != known.key and None not in meanings and len(meanings) > 1:
                return replace(proposal, doubt=f"“{phrase}” says it in another of its senses")
            if same:
                return replace(proposal, existing=prop.iri, notes=(f"says “{phrase}”",))
            unknown = None in (name_meaning(reading), name_meaning(known))
            if verdict.likeness == "different" and cosine >= similarity and unknown:
                why = f"cosine {cosine:.2f} to “{phrase}” ({prop.label})"
                return replace(proposal, doubt=why)
        elif same:
            fault = "another_says_it"
        narrower = verdict.likeness == "narrower" and not verdict.turned
        part = narrower or _is_past_of(reading, known)
        if part and schema.is_subclass(proposal.domain, prop.domain):
            why = f"is a case of “{phrase}” ({prop.label})"
            return replace(proposal, splits=prop.iri, notes=(why,))
    return replace(proposal, fault=fault)


def _turn(
    proposal: Proposal, prop: OntologyProperty, phrase: str, schema: Schema
) -> Proposal | None:
    """The proposal as the inverse of a property; None where the ends forbid it.

    Where the property has an inverse, the proposal may be another name for that. A new inverse
    needs the same ends: narrower ones would put all ends of the property into the narrower class.
    """
    why = f"reads “{phrase}” from the other end"
    opposite = schema.property_by_iri.get(prop.inverse_of or "")
    if opposite is not None and _fits_ends(proposal, opposite, schema):
        return replace(proposal, doubt=f"{why}, as {opposite.label!r} does")
    if opposite is None and (proposal.domain, proposal.range or THING) == (prop.range, prop.domain):
        return replace(proposal, inverse=prop.iri, notes=(why,))
    return None


def _is_past_of(new: Reading, known: Reading) -> bool:
    """Whether a wording states of the past what the known one states: `is a former member of`."""
    same = new.key == known.key or (new.meaning is not None and new.meaning == known.meaning)
    alike = (new.turned, new.negated) == (known.turned, known.negated)
    return same and alike and new.qualities - known.qualities == {"former"}


def _fits_ends(proposal: Proposal, prop: OntologyProperty, schema: Schema) -> bool:
    """Whether the class of each end equals the property's, or lies above or below it."""
    ends = (proposal.domain, prop.domain), (proposal.range or THING, prop.range)
    return all(proposed == THING or schema.may_share(proposed, known) for proposed, known in ends)


def mark_doubles(proposals: Sequence[Proposal], comparer: Comparer) -> list[Proposal]:
    """The proposals; the later of two equivalent properties, in either direction, has a fault.

    One of things and one of dates or numbers are two: `was born in` a town, `was born in` a year.
    """
    marked, earlier = list(proposals), defaultdict[bool, list[str]](list)
    for index, proposal in enumerate(marked[:_COMPARED]):
        if proposal.kind == "class":
            continue
        labels = earlier[proposal.range in _NUMBERS]
        likeness = (comparer.compare(proposal.label, label).likeness for label in labels)
        if "equivalent" in likeness and not proposal.inverse:
            marked[index] = replace(proposal, fault=proposal.fault or "another_says_it")
        labels.append(proposal.label)
    return marked


# All proposals of a graph (PolyRAG §III-B).

_NEW = 0.25
"""Novelty that the facts of a proposal need together: a wording close to one of the ontology is
proposed only where many facts have it."""


def propose(
    graph: GraphLayer, ontology: OntologyLayer, *, settings: CompleteSettings, comparer: Comparer
) -> Completion:
    """Both layers compared, and proposals, the best first.

    Raises:
        InputError: the embedding of a phrase is not finite; names the phrase.
    """
    compared = compare_layers(graph, ontology, settings=settings, embedder=comparer.embedder)
    return draw_proposals(graph, ontology, compared, settings=settings, comparer=comparer)


def draw_proposals(
    graph: GraphLayer,
    ontology: OntologyLayer,
    compared: Completion,
    *,
    settings: CompleteSettings,
    comparer: Comparer,
) -> Completion:
    """The compared layers, with the proposals that follow from priority and region."""
    placed = _propose_properties(graph, ontology, compared, settings, comparer)
    clusters = [drafted for drafted in placed if not drafted.existing]
    inputs = graph, ontology, compared, clusters, settings.min_support
    placed += propose_classes(*inputs, comparer.embedder)
    if settings.priority == "novelty" and settings.region_share < 1.0:
        placed = [p if p.existing else replace(p, score=compared.weigh(p.facts)) for p in placed]
        placed = [p for p in placed if p.existing or p.score >= _NEW]
    placed.sort(key=lambda p: (p.fault is not None, bool(p.doubt), -p.score))
    new = [proposal for proposal in placed if not proposal.existing]
    known = [proposal for proposal in placed if proposal.existing]
    return replace(compared, proposals=(*mark_doubles(new, comparer), *known))


def _propose_properties(
    graph: GraphLayer,
    ontology: OntologyLayer,
    compared: Completion,
    settings: CompleteSettings,
    comparer: Comparer,
) -> list[Proposal]:
    """The wordings that are other names of properties, then a property for each cluster.

    Each wording is compared with the ontology by itself. Another name leaves the clusters, and so
    does a wording that a person has to decide about (`doubt`): it becomes a separate proposal. A
    wording with too few facts for a proposal is compared only where it would share a cluster.
    """
    schema = ontology.schema
    units = list_units(graph, ontology, compared, comparer)
    facts = np.flatnonzero(units.new)
    facts = facts[np.argsort(units.unit_of[facts], kind="stable")]
    starts = np.searchsorted(units.unit_of[facts], np.arange(len(units) + 1))

    def draft(group: Sequence[int], least: int, counted: Mask) -> Proposal | None:
        """The property of a group of units, from their `counted` facts."""
        places = np.sort(np.concatenate([facts[starts[u] : starts[u + 1]] for u in group]))
        places = places[counted[places]]
        if len(places) < least:
            return None
        is_open = ontology.is_open
        inputs = graph, ontology.classes, units.turned, places, schema, least
        return draft_property(*inputs, is_open=is_open)

    def place(drafts: Iterable[Proposal]) -> list[Proposal]:
        similarity = settings.alias_similarity
        return place_beside(list(drafts), schema, similarity=similarity, comparer=comparer)

    def place_alone(some: Iterable[int], least: int) -> dict[int, Proposal]:
        """The units, with their proposals, that by themselves are or may be another name."""
        drafts = {unit: proposal for unit in some if (proposal := draft([unit], least, units.new))}
        placed = zip(drafts, place(drafts.values()), strict=True)
        return {unit: proposal for unit, proposal in placed if proposal.existing or proposal.doubt}

    known = place_alone(range(len(units)), settings.min_support)
    chosen = np.array([u for u in np.flatnonzero(units.missing) if u not in known], dtype=np.int64)
    alone = [
        proposal if proposal.existing else replace(proposal, score=float(units.missing[unit]))
        for unit, proposal in known.items()
        if proposal.existing or units.missing[unit]
    ]
    if not len(chosen):
        return alone
    if ontology.is_open:  # few facts place a wording badly: each meaning is a separate property
        groups = [[unit] for unit in chosen.tolist()]
    else:
        points = place_units(graph, units, chosen, settings=settings, embedder=comparer.embedder)
        meanings = [name_meaning(comparer.read(units.texts[unit])) for unit in chosen.tolist()]
        clusters = cluster_units(points, meanings, units.missing[chosen], settings=settings)
        groups = [chosen[cluster].tolist() for cluster in clusters]
    least = settings.min_support
    shared = (g for g in groups if len(g) > 1 and units.missing[g].sum() >= least)
    apart = place_alone((u for group in shared for u in group if units.support[u] < least), 1)
    groups = [retained for group in groups if (retained := [u for u in group if u not in apart])]
    drafts = (draft(group, least, units.inside) for group in groups)
    return alone + [p for p in place(filter(None, drafts)) if not p.existing]


# Wordings that make no property: they give a name, or state a class.

_NAMING = frozenset(
    "also_called abbreviated_as birth_name familiar_name formerly_named given_new_name goes_by "
    "got_name named_at_birth nicknamed renamed same_as stage_name".split()
)
"""Meanings of our lexicon that give a thing another name."""
_BEINGS = frozenset("identified_as known_as_role member_of_class occupation same_as".split())
"""Meanings that say what a thing is."""
_KIND = re.compile(r"(?:is|are|was|were)\s+(?:an?\s+|the\s+)?(?P<kind>.+)\s+(?P<link>in|of|by)")


_DATES = {XSD + "gYear": "year", XSD + "gYearMonth": "date", XSD + "date": "date"}
_SENSES = 6
"""Senses of a verb from which it is too vague without another word."""
_LONGEST = 5
"""Words of a wording that may name a property."""
_BEING = re.compile(
    r"(?:(?:is|are|was|were|has|have|had|been|be|being|will|also)\s+)+(?:an?\s+|the\s+)?"
)


def is_wording(words: str) -> bool:
    """Whether words may name a relation: few, no name, number or second clause among them."""
    parts, first = words.split(), name_property(words).partition(" ")[0]
    joins = first in QUESTION_WORDS | JOINING  # a column's header: `what it does`
    plain = words.islower() and words.replace(" ", "").isalpha()
    return len(parts) <= _LONGEST and plain and not joins


def is_vague(wording: str) -> bool:
    """Whether a wording is one verb of many meanings: `left`, `represented`."""
    verb = find_verb(wording) if wording.isalpha() else None
    return len(load_wordnet().senses["v"].get(verb or "", ())) >= _SENSES


def name_property(wording: str, range_iri: str | None = None) -> str:
    """The name of a wording as a property: `licensed to` of `was licensed to`.

    `editor` of `has editor`, and of dates `year built` of `was built in`. A wording that would
    leave no name is returned unchanged.
    """
    name = _BEING.sub("", wording, count=1) if _BEING.match(wording) else wording
    verb, _, link = name.partition(" ")
    if link in ("in", "on") and is_past(verb) and range_iri in _DATES:
        return f"{_DATES[range_iri]} {verb}"
    return name if any(len(word) > 3 for word in name.split()) else wording


def is_naming(wording: str) -> bool:
    """Whether a wording gives the name of a thing, or equates both ends (`is known as`)."""
    senses = [sense for sense, _ in load_lexicon().find_senses(read_frame(wording))]
    plain = [sense for sense in senses if not sense.weak] or senses
    return bool(plain) and sum(s.meaning.name in _NAMING for s in plain) * 2 > len(plain)


def says_being(reading: Reading) -> bool:
    """Whether a wording states what a thing is, or only a possibility."""
    return reading.meaning in _BEINGS or bool(reading.qualities)


def find_kind(wording: str) -> tuple[str, bool] | None:
    """The kind in `is <kind> in`, `of` or `by`, and whether only a place follows it.

    `is school in` states a class and a place, `is mayor of` a relation, `is active in` no kind.
    """
    match = _KIND.fullmatch(wording.strip().lower())
    words = match["kind"].split() if match else []
    if not match or "to" in words or (match["link"] == "in" and is_quality(words[-1])):
        return None
    return match["kind"], match["link"] == "in"
