"""The first classes of an ontology that is made from the corpus: nouns that it is about.

Termhood in the sense of Frantzi et al. (2000): what heads compounds of its own (`savings account`)
and is spoken of in several places is a term; a noun that stands for a quantity, a relation or a
time (`number`, `part`, `way`), or mostly for one of something (`use of`), is none.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from kpyramid.completion.decisions import Decisions
from kpyramid.completion.nouns import Kind, find_noun, group_alike, is_quality, is_usual
from kpyramid.documents.words import lemmatise
from kpyramid.embeddings.port import Embedder
from kpyramid.extraction.syntax.kinds import find_kind_label
from kpyramid.graph.synonyms.words import MODIFIERS, load_nouns
from kpyramid.ontology.literals import DATATYPES
from kpyramid.ontology.names import THING
from kpyramid.ontology.population.checking import Kinds, is_written_as_name
from kpyramid.ontology.proposals import coin_iri, name_class
from kpyramid.ontology.schema import Schema

MOST = 30
"""Classes that a person can look through."""
_LEAST = 3
"""Chunks, or different names, that speak of what a class is made of."""
_THINGS = frozenset("pgloaABFPMSU")
"""Senses (`load_nouns`) of what is a thing by itself."""
_HEADED = {"": 2, "c": 2, "t": 2, "e": 3}
"""Compounds that a noun has to head which WordNet lacks, or which is for what is said, done or
happens; 3 for any other sense."""
_MEASURE = "x"
_OF = 0.5
"""Share of a noun's uses that say of what it is one, above which it tells a relation."""
_NAMED = frozenset("ORG FAC LOC PRODUCT EVENT WORK_OF_ART LAW".split())
"""Types of names that end in what they name."""


@dataclass(slots=True)
class _Uses:
    """How a corpus uses a noun: where, in which compounds and names, how often with `of`."""

    chunks: set[str] = field(default_factory=set)
    compounds: set[str] = field(default_factory=set)
    words: Counter[str] = field(default_factory=Counter)
    facts: int = 0
    related: int = 0
    plural: bool = False
    known: bool = False

    @property
    def weight(self) -> int:
        """How much of the corpus is about it."""
        return len(self.chunks) + len(self.compounds) + self.facts

    def is_term(self) -> bool:
        """Whether the noun names a kind of thing that the corpus is about."""
        noun = min(self.words, key=lambda word: (-self.words[word], word))
        senses = load_nouns().get(noun, "")
        if is_quality(noun) and not (self.plural or self.compounds):  # `faithful` in a cell
            return False
        if senses[:1] not in _THINGS:
            least = _HEADED.get(senses[:1], 3)
            if _MEASURE in senses[:2] or len(self.compounds) < least:
                return False
        spoken = len(self.chunks) >= _LEAST or len(self.compounds) >= _LEAST
        return spoken and self.related <= _OF * self.words.total()


def draft_classes(
    phrases: Iterable[tuple[str, str, str]],
    ends: Iterable[tuple[str, str]],
    schema: Schema,
    former: Schema | None,
    decisions: Decisions,
    embedder: Embedder,
) -> list[dict[str, object]]:
    """Rows of `proposals`, without support, of the classes that a corpus needs below `schema`'s.

    `phrases`: words, type and chunk of each mention; `ends`: words and type of each end of a fact.
    What `former`, the last ontology, has of these comes first, so that a growing corpus keeps its
    names; then the nouns of most facts, `MOST` in all. What `decisions` accepts stands, and what it
    rejects is left out.

    Raises:
        InputError: an entry of the decisions does not fit the ontology; names it.
    """
    rows = [row for row in decisions.list_accepted(schema) if row["kind"] == "class"]
    rows = [{**row, "decided_by": "file"} for row in rows]
    old = {entry.label for entry in former.classes} if former else set()
    uses = _read_uses(phrases, ends, Kinds(schema), embedder, old)
    taken = {THING, *schema.class_by_iri, *(str(row["iri"]) for row in rows)}
    order = sorted(uses, key=lambda key: (not uses[key].known, -uses[key].weight, key))
    for own in (uses[key] for key in order):
        words = sorted(own.words, key=lambda word: (word not in old, -own.words[word], word))
        decided = decisions.find("class", words[0], words)
        if decided is not None or len(rows) >= MOST or not (own.known or own.is_term()):
            continue
        parent = _find_parent(words[0], schema)
        iri = coin_iri("class", words[0], schema.base, taken)
        taken.add(iri)
        # No fact: readers see a definition who may not see the documents that state the facts.
        said = f"A kind of {name_class(parent, schema)} that the texts call “{words[0]}”."
        row = {"iri": iri, "label": words[0], "definition": said, "domain": parent}
        rows.append({**row, "kind": "class", "phrases": words, "decided_by": "rules", "note": ""})
    return [{**_BLANK, **row} for row in rows]


_BLANK = {
    **{"range": None, "inverse_of": None, "splits": None},
    **{"state": "accepted", "round": 0, "score": 0.0},
}


def keep_properties(
    former: Schema, schema: Schema, decisions: Decisions
) -> list[dict[str, object]]:
    """Rows of `proposals`, without support, of the properties that the last ontology had.

    Left out are those between classes that `schema` lacks, and those that a person decided on.
    """
    ends = {THING, *schema.class_by_iri} | DATATYPES
    rows: list[dict[str, object]] = []
    for prop in former.properties:
        words = sorted({prop.label, *prop.alt_labels})
        decided = decisions.find("property", prop.label, words)
        if decided is not None or not {prop.domain, prop.range} <= ends:
            continue
        wider = (iri for iri, turned in former.find_entailed(prop.iri) if not turned)
        row = {name: getattr(prop, name) for name in ("iri", "label", "domain", "range")}
        row |= {"definition": prop.comment, "inverse_of": prop.inverse_of, "note": ""}
        row |= {"splits": next((iri for iri in wider if iri != prop.iri), None)}
        rows.append({**_BLANK, **row, "kind": "property", "phrases": words, "decided_by": "rules"})
    return rows


def _read_uses(
    phrases: Iterable[tuple[str, str, str]],
    ends: Iterable[tuple[str, str]],
    kinds: Kinds,
    embedder: Embedder,
    old: set[str],
) -> dict[str, _Uses]:
    """The nouns of the phrases by what nouns for one kind agree in."""

    @cache
    def read(words: str, kind: str) -> Kind | None:
        if kind not in _NAMED and kind != "NOUN":
            return None
        named = is_written_as_name(words)
        noun = find_noun(words.casefold() if named else words, kinds)
        lemma = lemmatise(noun.noun) if noun else ""
        if noun is None or (named and not noun.before):
            return None
        # `mice` has a singular; `opera` and `training` are none of opus and train
        if lemma == noun.noun or noun.noun.endswith(("a", "ing")):
            return noun
        singular = find_noun(lemma, kinds)
        return singular and noun._replace(noun=singular.noun, plural=True)

    found: defaultdict[str, _Uses] = defaultdict(_Uses)
    for words, kind, chunk in phrases:
        noun = read(words, kind)
        if noun is None:
            continue
        own = found[noun.noun]
        own.words[noun.noun] += 1
        own.related += noun.completed
        own.plural |= noun.plural
        before = noun.before[-1:]
        if is_written_as_name(words):  # one firm's name in many places makes no kind of firm
            own.compounds.add(words.casefold())
            continue
        own.chunks.add(chunk)
        if before and not is_quality(before[0]) and before[0] in load_nouns().keys() - MODIFIERS:
            own.compounds.add(before[0])
    for end in ends:
        noun = read(*end)
        if noun is not None and noun.noun in found:
            found[noun.noun].facts += 1
    joined: defaultdict[str, _Uses] = defaultdict(_Uses)
    alike = group_alike(found, embedder) if found else {}
    for word, key in alike.items():
        one, all_ = found[word], joined[key]
        all_.chunks |= one.chunks
        all_.compounds |= one.compounds
        all_.words += one.words
        all_.facts += one.facts
        all_.related += one.related
        all_.plural |= one.plural
        all_.known |= word in old
    return joined


def _find_parent(noun: str, schema: Schema) -> str:
    """The upper class of what a noun names, by the type of its names; else the most general."""
    label = find_kind_label(noun)
    if label and not is_usual(noun, [label]):  # a label is a firm of musicians, but not first
        label = None
    top = next(c.iri for c in schema.classes if not {*c.parents} & schema.class_by_iri.keys())
    return schema.class_for_type(label or "") or top
