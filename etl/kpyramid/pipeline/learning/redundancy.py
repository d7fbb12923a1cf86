"""Whether a triple is new to the graph: exactly known, nearly known, known in other words (WTS).

Section 3.2.2 refuses a triple that the graph has, and one within L' of any that it has, by cosine.
Here only triples of the same two things are compared (blocked), and their relations decide: by the
lexicon and grammar of condensation, which finds .90 of 1,575 paraphrases of relation wordings and
takes .02 of wordings that are near and say something else for them. The cosine of whole triples
cannot: at .9 it takes .81 of the paraphrases that the lexicon misses, and .47 of the others.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kpyramid.condensation.graph import read_value
from kpyramid.condensation.merging import guard_comparer
from kpyramid.documents.words import normalise_name, normalise_relation
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.schema import OntologyProperty
from kpyramid.pipeline.learning.statements import Triple
from kpyramid.pipeline.stages.instances import index_phrases
from kpyramid.snapshot.individuals import list_classes
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.snapshot import Snapshot

WITHIN = 0.03
"""L': cosine distance of two wordings of the same two things, which the lexicon does not know, up
to which they say the same. The paper gives none; .03 takes them for other spellings only."""
SINGLE_SHARE, SINGLE_THINGS = 0.98, 30
"""Share of the things that have a relation, and how many, from which it has one value. Of the base
of PathQuestion (3,049 facts) it takes birth, death, gender and religion (.98 to 1.0) and leaves
spouse (.977), residence (.973), nationality (.96), parent (.935) and occupation (.852). Where 30
things have one value each, at most a tenth of all such things have several (95 %)."""
MOST_COMPARED = 4_000
"""Facts about one thing that a triple is compared with."""
_OF = re.compile(r"^(?:is|are|was|were) of (?:the )?(?=\w+$)")
"""What "is of the gender" says "has gender" says."""
_FRAME = "someone {} something"


@dataclass(frozen=True, slots=True)
class Known:
    """A triple of the graph, or one that was learnt before in this run."""

    head: str
    head_type: str
    relation: str
    tail: str
    tail_type: str

    def __str__(self) -> str:
        return f"{self.head} {self.relation} {self.tail}"


class Graph:
    """The triples of a published graph, in one scope, and those that are learnt besides.

    `public`: the graph that everybody sees, whose learnt triples are seen in this scope too.
    """

    def __init__(self, snapshot: Snapshot, public: "Graph | None" = None) -> None:
        self._snapshot = snapshot
        self._public = public
        self._index = snapshot.entities_by_name()
        self._comparer: Comparer = public._comparer if public else Comparer(snapshot.embedder)
        self._compare = guard_comparer(self._comparer)
        self._learnt: dict[str, list[Known]] = defaultdict(list)

    def add(self, triple: Triple) -> None:
        """Notes a triple that is learnt, so that it is known from now on."""
        known = Known(
            triple.head,
            self._find_type(triple.head),
            triple.relation,
            triple.tail,
            self._find_type(triple.tail),
        )
        for name in {normalise_name(triple.head), normalise_name(triple.tail)}:
            self._learnt[name].append(known)

    def forget(self) -> None:
        """Knows the published graph alone again."""
        self._learnt.clear()

    def find_known(self, triple: Triple) -> str:
        """The fact that says what a triple says, or more, and why; empty when there is none."""
        for fact in self._list_about(triple.head):
            flipped = self._is_same(triple.head, fact.tail) and self._agrees(triple.tail, fact.head)
            if not flipped and not (
                self._is_same(triple.head, fact.head) and self._agrees(triple.tail, fact.tail)
            ):
                continue
            if why := self._says(fact, triple, flipped=flipped):
                return f"{fact}: {why}"
        return ""

    def find_against(self, triple: Triple) -> str:
        """The fact that cannot hold with a triple, and why; empty when there is none.

        Contrary wordings of the same things, or another value of what has only one: a property of
        the ontology, or a relation that is seen to have one.
        """
        for fact in self._list_about(triple.head):
            if not self._is_same(triple.head, fact.head):
                continue
            ends = fact.head_type, fact.tail_type
            verdict = self._compare(triple.relation, fact.relation, ends)
            if self._agrees(triple.tail, fact.tail) or self._agrees(fact.tail, triple.tail):
                if verdict.likeness == "contrary" and not verdict.turned:
                    return f"{fact}: {verdict.reason}"
            elif verdict.likeness in ("equivalent", "narrower", "broader") and (
                not verdict.turned
                and (why := self._find_single(fact, triple) or self._find_counted(fact, triple))
                and not self._are_joined(triple.tail, fact.tail)
            ):
                return f"{fact}: {why}"
        return ""

    def _says(self, fact: Known, triple: Triple, *, flipped: bool) -> str:
        """Why a fact of the same two things says what the triple says; empty where it does not."""
        if not flipped and normalise_relation(fact.relation).key == (
            normalise_relation(triple.relation).key
        ):
            return "the same triple"
        ends = (fact.tail_type, fact.head_type) if flipped else (fact.head_type, fact.tail_type)
        verdict = self._compare(_OF.sub("has ", triple.relation), fact.relation, ends)
        if verdict.likeness in ("equivalent", "broader"):
            fits = verdict.symmetric or verdict.turned == flipped
            return verdict.reason if fits else ""
        read = [self._comparer.read(one).meaning for one in (triple.relation, fact.relation)]
        if flipped or verdict.likeness != "different" or all(read):
            return ""
        one, other = self._snapshot.embed_all(
            [_FRAME.format(relation) for relation in (triple.relation, fact.relation)]
        )
        return "within L' by cosine" if float(one @ other) >= 1.0 - WITHIN else ""

    def _list_about(self, name: str) -> Iterator[Known]:
        snapshot = self._snapshot
        ids = self._index.get(join_words(name), ())
        for key in snapshot.facts_about(ids, MOST_COMPARED) if ids else ():
            _, head, head_type, relation, _, tail, tail_type = snapshot.state_condensed(key)
            yield Known(head, head_type, relation, tail, tail_type)
        for graph in filter(None, (self, self._public)):
            yield from graph._learnt.get(normalise_name(name), ())

    def _is_same(self, one: str, other: str) -> bool:
        """Whether two names are one thing's."""
        if normalise_name(one) == normalise_name(other):
            return True
        ids = self._index.get(join_words(one), ())
        return bool(set(ids) & set(self._index.get(join_words(other), ())))

    def _agrees(self, value: str, known: str) -> bool:
        """Whether a known value is a value, or says it and more: a date of its year."""
        return self._is_same(value, known) or read_value(known).says(read_value(value))

    def _find_single(self, fact: Known, triple: Triple) -> str:
        """That both state a property of one value, with values of its range; empty if not so."""
        schema, kinds = self._snapshot.schema, self._find_classes(fact.head)
        for wording in (fact.relation, triple.relation):
            for stated in self._properties.get(normalise_relation(wording).key, ()):
                for iri, swapped in schema.find_entailed(stated.iri):
                    prop = schema.property_by_iri[iri]
                    if (
                        not swapped
                        and any(schema.max_values(kind, iri) == 1 for kind in kinds)
                        and all(self._fits(value, prop) for value in (fact.tail, triple.tail))
                    ):
                        return f"{prop.label} has one value"
        return ""

    def _fits(self, value: str, prop: OntologyProperty) -> bool:
        """Whether a value can be one of a property: none of a class disjoint with its range.

        A mistaken type of a name is of no harm where the ontology lets one name mean both, as an
        organisation and a place.
        """
        if prop.is_datatype:
            return parse_literal(value, prop.range) is not None
        if _is_number(value):
            return False
        kinds = self._find_classes(value)
        if not kinds:  # what the graph does not know yet may be anything
            return not self._find_type(value)
        return any(not self._snapshot.schema.are_disjoint(kind, prop.range) for kind in kinds)

    def _find_classes(self, name: str) -> list[str]:
        """The classes that the ontology says a thing is of, else that of its type."""
        ids = self._index.get(join_words(name), ())
        if found := [iri for key in ids for iri in list_classes(key, self._snapshot)]:
            return found
        kind = self._snapshot.schema.class_for_type(self._find_type(name))
        return [kind] if kind else []

    def _find_counted(self, fact: Known, triple: Triple) -> str:
        """That a relation of the graph is seen to have one value; empty where it is not."""
        if _is_number(fact.tail) != _is_number(triple.tail):
            return ""
        key = normalise_relation(fact.relation).key, _is_number(fact.tail)
        if key[0] != normalise_relation(triple.relation).key:
            return ""
        single, things = self._counted.get(key, (0, 0))
        if things < SINGLE_THINGS or single < SINGLE_SHARE * things:
            return ""
        return f"{single} of {things} things have one value"

    @cached_property
    def _properties(self) -> dict[str, list[OntologyProperty]]:
        return index_phrases(self._snapshot.schema.properties)

    @cached_property
    def _counted(self) -> dict[tuple[str, bool], tuple[int, int]]:
        """By relation and whether values are numbers: things with one value, and with any."""
        snapshot = self._snapshot
        relations = snapshot.table("relations").select(["relation_id", "name"]).to_pydict()
        named = zip(relations["relation_id"], relations["name"], strict=True)
        keys = {key: normalise_relation(name).key for key, name in named}
        columns = ["head_id", "relation_id", "tail_id", "literal"]
        facts = snapshot.table("condensed").select(columns).to_pydict()
        values: dict[tuple[str, bool], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for head, relation, tail, literal in zip(*facts.values(), strict=True):
            number = _is_number(literal or "")
            value = snapshot.names[tail] if tail else literal
            values[keys[relation], number][head].add(normalise_name(value))
        return {
            key: (sum(map(_is_one, found.values())), len(found)) for key, found in values.items()
        }

    def _are_joined(self, one: str, other: str) -> bool:
        """Whether both may hold: one is a part of the other's name, or a fact joins them."""
        words = [set(normalise_name(name).split()) for name in (one, other)]
        if words[0] <= words[1] or words[1] <= words[0]:
            return True
        return any(
            self._is_same(other, end) for f in self._list_about(one) for end in (f.head, f.tail)
        )

    def _find_type(self, name: str) -> str:
        """The type of a thing; empty for one that the graph does not know."""
        ids = self._index.get(join_words(name), ())
        return self._snapshot.types[ids[0]] if ids else ""


def _is_number(value: str) -> bool:
    """Whether it is a number or a date."""
    return value[:1].isdigit() or read_value(value).stem.startswith("year")


def _is_one(values: set[str]) -> bool:
    """Whether each of some names is a part of the longest: "Oslo" of "Oslo, Norway"."""
    longest = set(max(values, key=len).split())
    return all(set(value.split()) <= longest for value in values)
