"""Members of a kind: what "which waterfalls are there", "how many ... in Devon" ask for.

Both layers say what is of a kind: the ontology by its classes, the graph by facts that something
"is a" waterfall, or "is waterfall in" Devon. Each member is cited by the sentence that says so.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kpyramid.documents.words import FUNCTION, PREPOSITIONS, lemmatise, list_plain_words
from kpyramid.ontology import names as n
from kpyramid.query.analysis import QuestionAnalysis, link_text
from kpyramid.query.facts import NearFact, state_facts, state_item
from kpyramid.query.ontology_layer import MOST_VALUES, shorten, state_instance
from kpyramid.query.types import Answer, Item, Outcome, Step
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import LITERAL

MOST_FACTS = 1_000
"""Facts that say the noun of a kind which are looked through."""

_KIND = r"(?P<kind>[a-z][\w-]*(?: [a-z][\w-]*){0,2}?)"
_WHERE = r"(?: (?:that (?:is|are) |located |situated )?(?P<prep>in|of) (?P<place>.+?))?"
_LIST = "(?:List|Name|Give me|Show me|Tell me)(?: all| every)?(?: the)?"
_FORMS = [
    (act, re.compile(rf"^\W*{form}\W*$", re.IGNORECASE))
    for act, form in (
        ("count", rf"How many {_KIND} (?:are|is|were|exist)(?: there)?{_WHERE}"),
        ("count", rf"How many {_KIND} (?:does|do|did) (?P<place>.+?) have"),
        ("list", rf"(?:Which|What) {_KIND} (?:are|is|exist)(?: there)?{_WHERE}"),
        ("list", rf"What are (?:all )?the {_KIND}{_WHERE}"),
        ("list", rf"{_LIST} {_KIND}{_WHERE}"),
        ("ask", rf"(?:Is|Was|Are) (?P<thing>.+?) an? {_KIND}{_WHERE}"),
    )
]


@dataclass(frozen=True, slots=True)
class KindQuestion:
    """What is asked of a kind: `list`, `count`, or whether `thing` is of it (`ask`).

    `kind` are the lemmas of its noun; `place` what it is to be in, or (`prep`) of.
    """

    act: str
    kind: tuple[str, ...]
    prep: str = ""
    place: str = ""
    thing: str = ""


def read_kind(asked: QuestionAnalysis) -> KindQuestion | None:
    """What a question asks of a kind; None where it asks for anything else, or for more."""
    for act, form in _FORMS:
        match = form.match(" ".join(asked.text.split()))
        if match is None:
            continue
        said = match.groupdict()
        words = said["kind"].casefold().split()
        if set(words) & FUNCTION:
            continue
        named = [said[name] for name in ("place", "thing") if said.get(name)]
        if any(not _link(text, asked.snapshot) for text in named):
            continue
        prep = said.get("prep") or ("of" if said.get("place") else "")
        kind = (*words[:-1], lemmatise(words[-1]))
        return KindQuestion(act, kind, prep, said.get("place") or "", said.get("thing") or "")
    return None


def _link(text: str, snapshot: Snapshot) -> frozenset[str]:
    """The entities that a text names as a whole."""
    plain = re.sub(r"^(?:the|an?) ", "", text.strip(), flags=re.IGNORECASE)
    linked = link_text(plain, snapshot)
    whole = len(linked.names) == 1 and len(linked.names[0]) == len(plain)
    return frozenset(linked.entities) if whole else frozenset()


def ask_members(asked: QuestionAnalysis) -> Answer | None:
    """The members of a kind, or their number, that either layer knows; None where it has none.

    The text may hold more: a number is said to be the least. The confidence is that of the least
    sure member.
    """
    question = None if asked.candidates else read_kind(asked)
    if question is None:
        return None
    snapshot = asked.snapshot
    found = find_members(question, snapshot)
    if question.thing:
        found = {one: item for one, item in found.items() if one in _link(question.thing, snapshot)}
    found = {one: item for one, item in found.items() if item.evidence}
    names = tuple(dict.fromkeys(snapshot.names[one] for one in found))
    if not names or (len(names) > MOST_VALUES and question.act == "list"):
        return None
    items = tuple(found.values())
    sure = round(min(item.confidence or 0.0 for item in items), 4)
    layer = "ontology" if any(item.layer == "ontology" for item in items) else "graph"
    text = "; ".join(names) if question.act == "list" else f"at least {len(names)}"
    places = tuple(dict.fromkeys(place for item in items for place in item.evidence))
    kind = " ".join(question.kind)
    reason = f"{len(names)} are said to be of the kind “{kind}”; the text may name more"
    step = Step(layer, Outcome.ANSWERED, reason, tuple(item.text for item in items), sure)
    return Answer(
        "yes" if question.thing else text,
        names if question.act == "list" else (),
        items,
        layer,
        places,
        (step,),
        confidence=sure,
    )


def find_members(question: KindQuestion, snapshot: Snapshot) -> dict[str, Item]:
    """Entities of a kind by their ids, each with the statement that says so, by name."""
    found = {} if question.prep == "of" else dict(_find_instances(question.kind, snapshot))
    where = _link(question.place, snapshot) if question.place else frozenset()
    noun = question.kind[-1]
    keys = [key for key, _ in snapshot.words(f"{noun} {noun}s", MOST_FACTS, "condensed")]
    denied = {
        key
        for key, row in zip(keys, snapshot.weigh_condensed(keys), strict=True)
        if row[2] or row[3]
    }
    for fact in state_facts({key: 0.0 for key in keys if key not in denied}, snapshot):
        member = _read_member(fact, question, where)
        if member and snapshot.types[member] != LITERAL:
            item = state_item(fact, snapshot, fact.confidence)
            if member not in found or (fact.tail_id in where):
                found[member] = item
    if question.prep == "in":
        inside = {one: _say_inside(one, where, snapshot) for one in found}
        found = {one: _join(found[one], item) for one, item in inside.items() if item}
    return dict(sorted(found.items(), key=lambda pair: (snapshot.names[pair[0]], pair[0])))


def _read_member(fact: NearFact, question: KindQuestion, where: frozenset[str]) -> str | None:
    """The end of a fact that it says is of the kind; None where it says so of none."""
    words = fact.relation.casefold().split()
    if question.prep == "of":
        if words[:1] == ["has"] and _is_kind(words[1:], question.kind) and fact.head_id in where:
            return fact.tail_id if fact.tail[:1].isupper() else None  # not "twenty-one arches"
        is_of = words[-1:] == ["of"] and _is_kind(words[1:-1], question.kind)
        return fact.head_id if is_of and fact.tail_id in where else None
    if fact.relation == "is a":
        return fact.head_id if _is_kind(list_plain_words(fact.tail), question.kind) else None
    is_noun = words[:1] in (["is"], ["was"]) and words[-1] in PREPOSITIONS
    return fact.head_id if is_noun and _is_kind(words[1:-1], question.kind) else None


def _is_kind(words: Iterable[str], kind: tuple[str, ...]) -> bool:
    """Whether a noun is that of a kind or of a narrower one: a railway company is a company."""
    said = tuple(word.casefold() for word in words)
    said = (*said[:-1], lemmatise(said[-1])) if said else ()
    return said[-len(kind) :] == kind


def _find_instances(kind: tuple[str, ...], snapshot: Snapshot) -> Iterable[tuple[str, Item]]:
    """The individuals of the classes that have a kind's name.

    Other labels of a class may be narrower: "town" of *populated place*.
    """
    for each in snapshot.schema.classes:
        label = each.label.split()
        if len(kind) != len(label) or not _is_kind(label, kind):
            continue
        query = f"SELECT DISTINCT ?x WHERE {{ ?x <{n.RDF_TYPE}>/<{n.SUBCLASS}>* <{each.iri}> }}"
        for row in snapshot.ontology.select_trusted(query, limit=MOST_FACTS):
            member = shorten(row["x"])
            for stated in snapshot.find_instances([(member, None, None)]):
                if snapshot.schema.is_subclass(stated["class_iri"], each.iri):
                    yield member, state_instance(stated, snapshot)


def _say_inside(member: str, where: frozenset[str], snapshot: Snapshot) -> Item | None:
    """The statement that something is in a place."""
    facts = state_facts(dict.fromkeys(snapshot.facts_about([member]), 0.0), snapshot)
    for fact in facts:
        if fact.head_id == member and fact.tail_id in where and fact.relation.endswith(" in"):
            return state_item(fact, snapshot, fact.confidence)
    return None


def _join(one: Item, other: Item) -> Item:
    """Two statements as one piece of context."""
    if one.key == other.key:
        return one
    places = tuple(dict.fromkeys((*one.evidence, *other.evidence)))
    sure = min(one.confidence or 0.0, other.confidence or 0.0)
    return replace(one, text=f"{one.text}; {other.text}", evidence=places, confidence=sure)
