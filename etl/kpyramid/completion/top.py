"""The first classes of an ontology that is made from the corpus: the nouns that are its terms.

Termhood in the sense of Frantzi et al. (2000): a noun that heads compounds (`savings account`) and
occurs in several places is a term; a noun for a quantity, a relation or a time (`number`, `part`,
`way`), or one that mostly has a complement (`use of`), is not.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from kpyramid.completion.decisions import Decisions
from kpyramid.completion.nouns import Kind, find_noun, group_alike, is_quality
from kpyramid.documents.words import ARTICLES, FUNCTION_WORDS, lemmatise
from kpyramid.embeddings.port import Embedder
from kpyramid.extraction.syntax.kinds import PERSON_NOUNS, find_kind_label
from kpyramid.graph.synonyms.words import MODIFIERS, is_usual, load_nouns
from kpyramid.ontology.literals import DATATYPES
from kpyramid.ontology.names import THING
from kpyramid.ontology.population.checking import Kinds, is_written_as_name
from kpyramid.ontology.proposals import coin_iri, name_class
from kpyramid.ontology.schema import Schema

MOST = 30
"""Classes that a person can review."""
_LEAST = 3
"""Chunks and things, or different compounds, in which the noun of a class must occur."""
_KNOWN = 3
"""Relations of a class's things, and things said to be of it, that must be known together; one
fewer where things are said to be of it and its things are subjects twice."""
_LONE = 0.6
"""Share of a noun's uses without a word before it from which it is one thing, if never a plural."""
_THINGS = frozenset("pgloaABFPMSU")
"""Senses (`load_nouns`) of nouns for independent things."""
_HEADED = {"": 2, "c": 2, "t": 2, "e": 3}
"""Compounds that a noun must head, by its first sense: none in WordNet, communication, act, event;
3 for any other sense."""
_MEASURE = "x"
_MASSES = frozenset("UMB")
"""Senses of nouns for a substance, a possession or a part of a body: without a plural, no kind."""
_OF = 0.5
"""Share of a noun's uses with the complement `of` above which it denotes a relation."""
_NAMES = 0.75
"""Share of a noun's uses in names from which it is a part of addresses: `Birch Street`."""
_NAMED = frozenset("ORG FAC LOC PRODUCT EVENT WORK_OF_ART LAW".split())
"""Types of names whose last word is the kind of the thing."""


@dataclass(slots=True)
class _Uses:
    """The uses of a noun in a corpus: places, compounds and names, how many with `of` or alone.

    A place is a chunk with the noun, or a thing that is said to be of its kind. `told`: relations
    of which its things are subjects, and things that are of its kind; `met`: relations to them.
    `counts`: of its facts, of things `filed` under it, and of its uses in names, alone, with `of`.
    """

    places: set[str] = field(default_factory=set)
    compounds: set[str] = field(default_factory=set)
    words: Counter[str] = field(default_factory=Counter)
    told: set[str] = field(default_factory=set)
    met: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    plural: bool = False
    known: bool = False

    @property
    def weight(self) -> int:
        """Number of places, compounds and facts with it."""
        return len(self.places) + len(self.compounds) + self.counts["facts"]

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
        total = self.words.total()
        lone = not self.plural and self.counts["alone"] >= _LONE * total
        named = self.counts["named"] > _NAMES * total and find_kind_label(noun) is not None
        if (lone or named) and not self.counts["filed"]:
            return False
        least = _KNOWN - (self.counts["filed"] > 0 and len(self.told) > 1)
        if not self.told or len(self.told) + len(self.met) < least:
            return False
        if senses[:1] in _MASSES and not self.plural:
            return False
        spoken = len(self.places) >= _LEAST or len(self.compounds) >= _LEAST
        return spoken and self.counts["related"] <= _OF * total


def draft_classes(
    phrases: Iterable[tuple[str, str, str]],
    ends: Iterable[tuple[str, str, str, str]],
    schema: Schema,
    former: Schema | None,
    decisions: Decisions,
    embedder: Embedder,
) -> list[dict[str, object]]:
    """Rows of `proposals`, without support, of the classes that a corpus needs below `schema`'s.

    `phrases`: words, type and chunk of each mention, and of each kind that a thing is said to be
    with the thing in place of the chunk; `ends`: words and type of each end of a fact, what is
    said and the end's part: `subject`, `value`, or `kind` of the thing that is said to be of it.
    Classes of `former`, the last ontology, come first, so that a growing corpus retains its names;
    then the nouns of greatest weight, `MOST` in all. Classes that `decisions` accepts are included,
    those that it rejects are left out.

    Raises:
        InputError: an entry of the decisions does not fit the ontology; names it.
    """
    rows = [row for row in decisions.list_accepted(schema) if row["kind"] == "class"]
    rows = [{**row, "decided_by": "file"} for row in rows]
    old = {entry.label for entry in former.classes} if former else set()
    uses = _read_uses(phrases, ends, Kinds(schema), embedder, old)
    taken = {THING, *schema.class_by_iri, *(str(row["iri"]) for row in rows)}
    order = sorted(uses, key=lambda key: (not uses[key].known, -uses[key].weight, key))
    for use in (uses[key] for key in order):
        words = sorted(use.words, key=lambda word: (word not in old, -use.words[word], word))
        decided = decisions.find("class", words[0], words)
        if decided is not None or len(rows) >= MOST or not (use.known or use.is_term()):
            continue
        parent = _find_parent(words[0], schema)
        iri = coin_iri("class", words[0], schema.base, taken)
        taken.add(iri)
        # It quotes no facts: readers see a definition who may not see the documents.
        definition = f"A kind of {name_class(parent, schema)} that the texts call “{words[0]}”."
        row = {"iri": iri, "label": words[0], "definition": definition, "domain": parent}
        rows.append({**row, "kind": "class", "phrases": words, "decided_by": "rules", "note": ""})
    return [{**_BLANK, **row} for row in rows]


_BLANK = {
    **{"range": None, "inverse_of": None, "splits": None},
    **{"state": "accepted", "round": 0, "score": 0.0},
}


def keep_properties(
    former: Schema, schema: Schema, decisions: Decisions
) -> list[dict[str, object]]:
    """Rows of `proposals`, without support, of the properties of the last ontology.

    Properties of classes that `schema` lacks, and those that a person decided on, are left out.
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
    ends: Iterable[tuple[str, str, str, str]],
    kinds: Kinds,
    embedder: Embedder,
    old: set[str],
) -> dict[str, _Uses]:
    """The uses of the phrases' nouns, those for the same kind together, by their common name."""

    @cache
    def read(words: str, kind: str) -> Kind | None:
        if kind not in _NAMED and kind != "NOUN":
            return None
        named = is_written_as_name(words)
        noun = find_noun(words.casefold() if named else words, kinds)
        lemma = lemmatise(noun.noun) if noun else ""
        if noun is None or (named and (noun.plural or not noun.before)):  # `Lismara Ferries`
            return None
        first, *others = words.casefold().split()
        if ARTICLES.intersection(noun.before) and first not in ARTICLES:  # `Cover the tank`
            return None
        if noun.plural and any(
            word.endswith(("ed", "ing")) and lemmatise(word) == lemma for word in (first, *others)
        ):  # `shared` and `tooling` are no forms of share and tool
            return None
        # `mice` has a singular; `opera` and `training` are not forms of opus and train
        if lemma == noun.noun or noun.noun.endswith(("a", "ing")):
            return noun
        singular = find_noun(lemma, kinds)
        return singular and noun._replace(noun=singular.noun, plural=True)

    by_noun: defaultdict[str, _Uses] = defaultdict(_Uses)
    for words, kind, place in phrases:
        noun = read(words, kind)
        if noun is None:
            continue
        use = by_noun[noun.noun]
        use.words[noun.noun] += 1
        use.counts["related"] += noun.completed
        use.plural |= noun.plural
        before = noun.before[-1:]
        core = (word for word in words.casefold().split() if word not in FUNCTION_WORDS)
        use.counts["alone"] += lemmatise(next(core, "")) == noun.noun
        use.counts["named"] += is_written_as_name(words)
        if is_written_as_name(words):  # a firm's name in many places makes no kind of firm
            use.compounds.add(words.casefold())
            continue
        use.places.add(place)
        if before and not is_quality(before[0]) and before[0] in load_nouns().keys() - MODIFIERS:
            use.compounds.add(before[0])
    for words, kind, said, part in ends:
        noun = read(words, kind)
        if noun is not None and noun.noun in by_noun:
            use = by_noun[noun.noun]
            use.counts["facts"] += 1
            use.counts["filed"] += part == "kind"
            (use.met if part == "value" else use.told).add(said)
    joined: defaultdict[str, _Uses] = defaultdict(_Uses)
    alike = group_alike(by_noun, embedder) if by_noun else {}
    for word, key in alike.items():
        use_of_word, all_ = by_noun[word], joined[key]
        all_.places |= use_of_word.places
        all_.compounds |= use_of_word.compounds
        all_.words += use_of_word.words
        all_.told |= use_of_word.told
        all_.met |= use_of_word.met
        all_.counts += use_of_word.counts
        all_.plural |= use_of_word.plural
        all_.known |= word in old
    return joined


def _find_parent(noun: str, schema: Schema) -> str:
    """The upper class for a noun, by the type of things that it denotes; else the top class."""
    label = find_kind_label(noun)
    suffixed = label == "PERSON" and noun not in PERSON_NOUNS  # `logger`, `repeater`
    if suffixed or (label and not is_usual(noun, [label])):  # a usual `label` is no record firm
        label = None
    top = next(c.iri for c in schema.classes if not {*c.parents} & schema.class_by_iri.keys())
    return schema.class_for_type(label or "") or top
