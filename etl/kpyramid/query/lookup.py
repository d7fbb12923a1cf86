"""Look-up: the stored values of the entities that a question names, of the kind that it asks for.

No language model is used. The words of the question beside its names are compared with the relation
of each statement about them: its wording, its standard relation, and its property's labels and
competency question, by lemmas and by vectors. A value of another kind than asked for (who, where,
when, how many, "which river") is no answer, whatever the other evidence. The probability is that of
a logistic model; `benchmarks/lookup.py` fits its weights in `lookup.json`.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise, permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpyramid.documents import words as w
from kpyramid.documents.values import NUMBER_WORDS, Date, agree, find_values, read_value
from kpyramid.query.analysis import AGENT, KIND_TYPES, NOUNS, NUMERIC, WORDS, QuestionAnalysis
from kpyramid.query.facts import (
    MOST_ENTITIES,
    Judgement,
    count_shared,
    find_end,
    fit_kind,
    gather_facts,
    list_lemmas,
    match_candidates,
    spell_out,
)
from kpyramid.snapshot.individuals import list_classes, list_instances
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import LITERAL, NearFact

if TYPE_CHECKING:
    from kpyramid.ontology.schema import OntologyProperty

MOST_STATEMENTS = 200
"""Most statements of the ontology about a question's entities that are rated."""
MOST_NEAR = 12
"""Most relations compared by vectors, those that share most words with the question."""
UNFOUNDED = 0.1
"""Largest chance of a value that cannot be the answer: a name or year of the question is not in its
fact, or it is of another form or kind. Set by hand."""
WORTH = 0.4
"""Least attainable chance of a value for its relation's wording to be embedded."""
MEANT = 0.5
"""Least cosine for a wording that covers a question to be the relation that it asks for."""
MOST_KINDS = 40
"""Most facts about a value from which its kinds are read."""
MOST_VALUES = 5
"""Most values in an answer; a question with more asks for a list."""
AS_GOOD = 0.8
"""Share of the best chance from which another value of the same relation is also in the answer."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value of a statement, with its entity and type where it has any.

    `role`: its part in the statement: `head`, `tail`, `time` or `place`. `measures`: the features
    of the logistic model; `chance`: probability that it answers; `choices`: matching options.
    """

    fact: NearFact
    value: str
    entity: str | None
    kind: str | None
    role: str
    measures: Mapping[str, float] = field(default_factory=dict)
    chance: float = 0.0
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The normal form by which values are compared."""
        return w.normalise_name(self.value)

    @property
    def place(self) -> tuple[str, str, str]:
        """The relation, the role, and for a tail the head's id."""
        return self.fact.relation, self.role, self.fact.head_id if self.role == "tail" else ""


def look_up(
    asked: QuestionAnalysis, facts: Sequence[NearFact], *, embeds: bool = True
) -> list[Candidate]:
    """The values that facts give for a question with the chance of each, best first.

    Without `embeds` the cosine of a whole fact stands for that of its relation, and only the
    question is embedded. Possible, planned, former or denied facts answer only questions worded
    likewise.
    """
    words = {word.plain for word in asked.words}
    if any(map(w.is_past, asked.beside)) and words.isdisjoint(_PRESENT):
        words |= {"was"}  # "who founded it", not "where is it based"
    named = {plain for name in asked.names for plain in w.list_plain_words(name.text)}
    denies = not asked.candidates and not _DENYING.isdisjoint(words - named)
    plain = (fact for fact in facts if fact.negated is denies and _is_asked(fact, words))
    opened = [side for fact in plain for side in _list_sides(fact, asked)]
    question = _Question(asked)
    choices = [_match_options(side, asked) for side in opened]
    rated = [
        question.rate(side, is_option=bool(options) or not asked.candidates)
        for side, options in zip(opened, choices, strict=True)
    ]
    if embeds:
        # Embedding takes most of the time, so only wordings that can make a value likely are.
        worth = [i for i, m in enumerate(rated) if _rate_chance(m | {"near": 1.0}) >= WORTH]
        for i, cosine in zip(worth, question.rate_near([opened[a] for a in worth]), strict=True):
            rated[i]["near"] = cosine
    candidates = [
        replace(side, measures=measures, chance=_rate_chance(measures), choices=options)
        for side, measures, options in zip(opened, rated, choices, strict=True)
    ]
    return sorted(candidates, key=lambda c: (-c.chance, -c.fact.confidence, c.fact.condensed_id))


_PRESENT = frozenset("is are do does".split())
_DENYING = frozenset("not never cannot don doesn didn isn aren wasn weren hasn haven".split())
"""Also before "'t"; "without" and "unlike" limit a question, and deny nothing."""


def _is_asked(fact: NearFact, words: Set[str]) -> bool:
    """Whether a fact is plain, or a question with these words asks for facts of its modality."""
    held = "former" if fact.ended and fact.modality == "fact" else fact.modality
    return held == "fact" or not words.isdisjoint(_ASKING[held])


_ASKING = {
    modality: words | (w.MODALS if modality in ("possible", "planned", "required") else frozenset())
    for modality, words in w.pick_table(WORDS, "asking").items()
}
"""Words by which a question asks for facts of each modality."""


def rank_facts(asked: QuestionAnalysis) -> list[tuple[NearFact, float]]:
    """The facts nearest to a question and about its entities with their chances, best first.

    A fact without an open side, or one that cannot answer, has at most the chance `UNFOUNDED`.
    """
    facts = gather_facts(asked)
    rated_sides = reversed(look_up(asked, facts, embeds=False))
    chances = {c.fact.condensed_id: c.chance for c in rated_sides}  # of each its best
    rated = [(f, chances.get(f.condensed_id, 0.0)) for f in facts]

    def rank(pair: tuple[NearFact, float]) -> tuple[float | str, ...]:
        """Facts of about equal chance are ranked by cosine, then by confidence."""
        fact, chance = pair
        return -round(chance, 2), -round(fact.cosine, 1), -fact.confidence, -chance, -fact.cosine

    return sorted(rated, key=lambda pair: (*rank(pair), pair[0].condensed_id))


def judge(asked: QuestionAnalysis, facts: Sequence[NearFact], sufficient: float) -> Judgement:
    """Whether the best value of some facts is probable enough, with all values as good as it."""
    rated = look_up(asked, facts)
    chances = {c.fact: c.chance for c in reversed(rated)}
    best = rated[0] if rated else None
    if best is None or (asked.candidates and not best.choices):
        what = "gives one of the options" if asked.candidates else "says anything new of it"
        why = f"no fact about what the question names {what}"
        why = why if asked.linked.entities else "the question names nothing that is known"
        return Judgement(False, 0.0, why, (), (), chances)
    chosen = choose_values(asked, rated)
    reason = (
        f"the best fact, “{chosen[0].fact.statement}”, answers with a probability of "
        f"{best.chance:.2f}; {sufficient:.2f} is asked for"
    )
    others = list_others(rated, chosen)
    reason += f"; also stated: {', '.join(others)}" if others else ""
    values = dict.fromkeys(text for c in chosen for text in c.choices or (c.value,))
    supporting = tuple(dict.fromkeys(c.fact for c in chosen))
    enough = best.chance >= sufficient
    return Judgement(enough, best.chance, reason, supporting, tuple(values), chances)


def choose_values(asked: QuestionAnalysis, rated: Sequence[Candidate]) -> list[Candidate]:
    """The best candidate and those of the same relation with about its chance, each value once.

    A date is given in its most precise form.
    """
    alike = [c for c in rated if c.chance >= AS_GOOD * rated[0].chance]
    whole = [c for c in alike if c.key == rated[0].key and c.role in ("head", "tail")]
    best = whole[0] if whole else rated[0]
    value = read_value(best.value)
    if isinstance(value, Date):
        finer = [c for c in alike if (v := read_value(c.value)) and value != v and agree(value, v)]
        years = "year" in asked.lemmas or "year" in read_kind_nouns(asked.text)
        return [finer[0] if finer and not years else best]

    alike = [c for c in alike if c.place == best.place]
    return list({c.key: c for c in reversed(alike)}.values())[::-1][:MOST_VALUES]


def list_others(rated: Sequence[Candidate], chosen: Sequence[Candidate]) -> list[str]:
    """Further values of the chosen candidates' relation, best first, as far as they are shown."""
    known = [read_value(r.value) for r in chosen]
    others = {
        r.key: r.value
        for r in rated
        if r.place == chosen[0].place
        and not r.measures["unfounded"]
        and not any(f" {a} " in f" {b} " for c in chosen for a, b in permutations((r.key, c.key)))
        and not any((v := read_value(r.value)) and k and agree(v, k) for k in known)
    }
    more = ["and others"] if len(others) > MOST_VALUES else []
    return [*[*others.values()][:MOST_VALUES], *more]


def apply_weights(measures: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The logistic model's probability, 0 to 1."""
    total = sum(weights.get(name, 0.0) * x for name, x in {"bias": 1.0, **measures}.items())
    return 1.0 / (1.0 + math.exp(-max(min(total, 30.0), -30.0)))


@cache
def load_weights(name: str) -> dict[str, Any]:
    """The weights in a file of this folder."""
    data: dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text("utf-8"))["weights"]
    return data


def _rate_chance(measures: Mapping[str, float]) -> float:
    chance = apply_weights(measures, load_weights("lookup.json"))
    return round(min(chance, UNFOUNDED) if measures["unfounded"] else chance, 4)


def _list_sides(fact: NearFact, asked: QuestionAnalysis) -> Iterable[Candidate]:
    """The candidates that a fact offers: its parts that the question does not name."""
    head, tail = (side in asked.linked.entities for side in (fact.head_id, fact.tail_id))
    is_linked = head or tail
    if not head and not tail:  # names with other spellings
        shares = [_share_name(side, asked) for side in (fact.head, fact.tail)]
        head, tail = shares[0] > shares[1], shares[1] > shares[0]
    if asked.is_definition and not asked.candidates:
        if head and (definition := _define(fact)):
            yield Candidate(fact, definition, None, fact.tail_type, "tail")
        is_kind = tail and w.is_filing(fact.relation)
        if is_kind and fit_kind(fact.head_type, fact.head, asked.types) > 0:  # who is the Y
            yield Candidate(fact, fact.head, fact.head_id, fact.head_type, "head")
        return
    if head and not tail:
        yield Candidate(fact, fact.tail, fact.tail_id, fact.tail_type, "tail")
    if tail and not head:
        yield Candidate(fact, fact.head, fact.head_id, fact.head_type, "head")
    for text in fact.qualifiers if is_linked else ():
        role, _, held = text.partition(": ")
        if role == find_preposition(asked.text) or (
            asked.types and asked.types <= _OF_ROLE.get(role, frozenset())
        ):
            yield Candidate(fact, held, None, None, role)


def _define(fact: NearFact) -> str:
    """The description of a fact's head: "dean of Koç University"; empty if it names no kind."""
    words = fact.relation.split()
    words_of_kind = [word for word in words if word not in w.BE | w.ARTICLES]
    is_kind = not words_of_kind or words_of_kind[-1] in {"of", "from"}
    is_kind = is_kind and not w.normalise_relation(fact.relation).passive
    return " ".join([*words_of_kind, fact.tail]) if words[0] in w.BE and is_kind else ""


def _share_name(side: str, asked: QuestionAnalysis) -> float:
    """The share of a side's words in the question, if one is a name's; below one half 0."""
    words = [word for word in w.list_plain_words(side) if word not in w.FUNCTION]
    if not words or not asked.name_words & set(words):
        return 0.0
    share = sum(word in asked.plain_words for word in words) / len(words)
    return share if share >= 0.5 else 0.0


_OF_ROLE = {
    "time": KIND_TYPES["when"],
    "place": KIND_TYPES["where"],
    "by": KIND_TYPES["who"],
}
"""The entity types of a fact's qualifiers by role."""


def find_preposition(text: str) -> str:
    """The preposition of the question word: "of" in "what did he die of"; empty without one."""
    words = w.list_plain_words(text)
    before = next((a for a, b in pairwise(words) if b in ("which", "what", "whom")), "")
    return next((word for word in (before, *words[-1:]) if word in w.PREPOSITIONS), "")


def _match_options(side: Candidate, asked: QuestionAnalysis) -> tuple[str, ...]:
    names = spell_out(side.entity, side.value, asked.snapshot) if asked.candidates else ()
    matches = (match_candidates(name, asked.candidates) for name in names)
    return tuple(dict.fromkeys(choice for choices in matches for choice in choices))


_FORM = re.compile(r"<[^<>]+>")


class _Question:
    """Compares a question with statements about the entities that it names."""

    def __init__(self, asked: QuestionAnalysis) -> None:
        self.asked, self.snapshot = asked, asked.snapshot
        self.nouns = read_kind_nouns(asked.text)
        lemmas = asked.lemmas
        self.wanted = lemmas - {*self.nouns} or lemmas
        self.preposition = find_preposition(asked.text)
        kinds = self._list_noun_types() or asked.types
        if self.wanted <= {*self.nouns} and kinds and kinds <= _PLACES:
            self.wanted = _LOCATED  # "where is X", "in which state is X"

    def find_property(self, fact: NearFact) -> "OntologyProperty | None":
        """The property of a fact, by the label of its standard relation or its wording."""
        known = self.asked.properties
        by_standard = known.get(w.split_label(fact.standard).casefold())
        return by_standard or known.get(w.split_label(fact.relation).casefold())

    def list_phrases(self, fact: NearFact) -> list[str]:
        """The wordings of a fact's relation."""
        phrases = [fact.relation, fact.standard]
        if stated := self.find_property(fact):
            phrases += [stated.label, *stated.alt_labels]
        return [phrase for phrase in dict.fromkeys(phrases) if phrase]

    def says_names(self, fact: NearFact) -> bool:
        """Whether a fact contains every name and number of the question, or a linked end does."""
        held = [text for text in fact.qualifiers if not text.startswith("document: ")]
        text = " ".join((fact.head, fact.relation, fact.tail, *held))
        stated = frozenset(w.list_plain_words(text))
        spelt = self.asked.spelt
        for end in (fact.head_id, fact.tail_id):
            stated |= spelt.get(end or "", frozenset())
        return self.asked.name_words <= stated

    def compare(self, fact: NearFact) -> float:
        """The largest share of a wording's lemmas that the question contains, 0 to 1."""
        shares = [
            count_shared(lemmas, self.wanted) / len(lemmas)
            for phrase in self.list_phrases(fact)
            if (lemmas := list_lemmas(phrase))
        ]
        return max(shares, default=0.0)

    def rate_preposition(self, side: Candidate) -> float:
        """1 if the relation has the question's preposition, -1 if another, 0 if unclear."""
        fact, role = side.fact, side.role
        if role == "head":
            return 0.0
        phrases = self.list_phrases(fact) if role == "tail" else [role]
        ending = {phrase.split()[-1] for phrase in phrases} & w.PREPOSITIONS
        if self.preposition:
            return 0.0 if not ending else 1.0 if self.preposition in ending else -1.0
        last = fact.relation.split()[-1]
        plain = role == "tail" and not self.asked.types and bool(_OBJECT.match(self.asked.text))
        return -1.0 if plain and last in _ADVERBIAL else 0.0

    def says_outer(self, fact: NearFact) -> bool:
        """Whether a fact states the outer relation: in "spouse of the founder of X", the spouse."""
        outer = _NESTED.search(self.asked.text)
        lemmas = frozenset().union(*map(list_lemmas, self.list_phrases(fact)))
        return not outer or count_shared(frozenset({w.lemmatise(outer[1])}), lemmas) > 0

    def has_form(self, side: Candidate) -> bool:
        """Whether a value has the form of an answer, and is at the end that is asked for.

        A single fact does not answer yes or no, or why; words of the question are no answer;
        whoever bought X is not what X bought. The end does not matter where only the value is of
        the kind asked for.
        """
        asked, fact, role = self.asked, side.fact, side.role
        means = role == "tail" and fact.relation.endswith(_MEANS) and _PASSIVE.match(asked.text)
        if asked.is_yes_no or asked.holds(side.value) or (_OPEN.match(asked.text) and not means):
            return False
        wants_head = find_end(fact.relation, asked.text, asked.linked.names)
        opposite = fact.head_type if role == "tail" else fact.tail_type
        apart = side.kind in asked.types and opposite not in asked.types
        return wants_head is None or wants_head is (role == "head") or apart or role in _OF_ROLE

    def rate_left(self, fact: NearFact, value: str) -> float:
        """The share of the question's words that neither relation nor value contains, 0 to 1."""
        if self.asked.is_definition:  # it names one thing and says no more
            return 0.0
        stated = self.find_property(fact)
        phrases = [*self.list_phrases(fact), stated.competency_question if stated else ""]
        lemmas = frozenset().union(*map(list_lemmas, phrases))
        lemmas |= {w.lemmatise(word) for word in w.list_plain_words(f"{fact.statement} {value}")}
        return 1 - count_shared(self.wanted, lemmas) / max(len(self.wanted), 1)

    def rate(self, side: Candidate, *, is_option: bool) -> dict[str, float]:
        """The features of a value; the fact's cosine stands for that of its relation."""
        fact, is_literal, of_kind = side.fact, side.kind == LITERAL, self.rate_kind(side)
        is_founded = of_kind >= 0 and self.says_names(fact) and self.has_form(side)
        is_founded = is_founded and self.says_outer(fact) and is_option
        return {
            "left": self.rate_left(fact, side.value),
            "near": max(fact.cosine, 0.0),
            "kind": of_kind,
            "proper": float(is_literal or side.value[:1].isupper()),
            "prep": self.rate_preposition(side),
            "confidence": fact.confidence,
            "literal": float(is_literal and not self.asked.types),
            "qualifier": float(side.role not in ("head", "tail")),
            "stored": float(fact.is_instance),
            "unfounded": float(not is_founded),
        }

    def rate_near(self, sides: Sequence[Candidate]) -> list[float]:
        """The cosine of the question without its names and each side's nearest wording.

        0 for all but the `MOST_NEAR` relations that share most words with the question.
        """
        order = sorted(sides, key=lambda side: (-self.compare(side.fact), -side.fact.cosine))
        keys = [(side.fact.relation, side.fact.standard, side.role) for side in sides]
        texts: dict[tuple[str, str, str], list[str]] = {}
        for side in order:
            key = side.fact.relation, side.fact.standard, side.role
            if len(texts) < MOST_NEAR:
                texts.setdefault(key, self._word(side.fact, side.role))
        every = list(dict.fromkeys(text for forms in texts.values() for text in forms))
        if not every:
            return [0.0] * len(sides)
        text = self.asked.text
        names = {*self.asked.linked.names, *(name.text for name in self.asked.names)}
        for name in sorted(names, key=lambda name: (-len(name), name)):
            text = text.replace(name, "it")
        vectors = self.snapshot.embed_all([text, *every])
        cosine = dict(zip(every, (vectors[1:] @ vectors[0]).tolist(), strict=True))
        best = {key: max(cosine[form] for form in forms) for key, forms in texts.items()}
        return [best.get(key, 0.0) for key in keys]

    def _word(self, fact: NearFact, role: str) -> list[str]:
        if role == "head":
            return [f"what {fact.relation} it"]
        texts = [f"it {fact.relation} what"]
        stated = self.find_property(fact)
        if stated and stated.competency_question:
            texts.append(_FORM.sub("it", stated.competency_question))
        return texts

    def rate_kind(self, side: Candidate) -> float:
        """The fit of a value's kind to the question: 1 certain, .5 by type, 0 unclear, -1 not."""
        types, is_literal = self.asked.types, side.kind == LITERAL
        if types & NUMERIC:
            return self._rate_number(side.value, types)
        if self.nouns and not self._asks_property(side.fact):
            return self._rate_noun(side)
        if types and not side.entity and not is_literal:
            return 0.5
        fit = fit_kind(side.kind, side.value, types)
        if fit > 0 or not types or is_literal:
            return fit
        expected = self._find_range(side)
        if expected & types and (side.kind == "NOUN" or expected <= types):
            return 0.5
        classes = list_classes(side.entity or "", self.snapshot)
        return 0.5 if types & {t for iri in classes for t in self._list_types(iri)} else fit

    def _rate_number(self, value: str, types: frozenset[str]) -> float:
        dates = [isinstance(each.value, Date) for each in find_values(value)]
        if types <= KIND_TYPES["when"]:
            return 1.0 if any(dates) else -1.0
        counted = not all(dates) or not {*value.split()}.isdisjoint(NUMBER_WORDS)
        return 1.0 if counted else -1.0

    def _asks_property(self, fact: NearFact) -> bool:
        """Whether the noun after "which" is in the relation's name: "which position"."""
        lemmas = list_lemmas(fact.relation) | list_lemmas(fact.standard)
        return bool(lemmas & {*self.nouns})

    def _find_range(self, side: Candidate) -> frozenset[str]:
        """The entity types of the class at a side's end of its property."""
        stated = self.find_property(side.fact)
        if not stated or stated.is_datatype or side.role not in ("head", "tail"):
            return frozenset()
        ahead = (side.role == "tail") is not side.fact.turned
        return self._list_types(stated.range if ahead else stated.domain)

    def _list_types(self, iri: str) -> frozenset[str]:
        schema, classes = self.snapshot.schema, self.snapshot.schema.classes
        below = {t for c in classes if schema.is_subclass(c.iri, iri) for t in c.entity_types}
        above = {t for c in classes if schema.is_subclass(iri, c.iri) for t in c.entity_types}
        return frozenset(below or above)

    def _rate_noun(self, side: Candidate) -> float:
        """The fit of a value to the noun asked for ("river"), by name, class or "is a"."""
        named = {w.lemmatise(word) for word in w.list_plain_words(side.value)}
        known = side.entity if named.isdisjoint(self.nouns) else None
        kinds = list_kinds(known, self.snapshot) if known else frozenset()
        if (named | kinds) & {*self.nouns}:
            return 1.0
        regions = load_regions()
        name = w.normalise_name(side.value).replace(" ", "_")
        for noun, region in (("country", "countries"), ("state", "states")):
            if noun in self.nouns:
                return 1.0 if name in regions[region] else -1.0
        types = self._list_noun_types()
        is_region = kinds & _PLACED or name in regions["countries"] | regions["states"]
        if is_region and types == NOUNS["city"]:
            return -1.0
        return 0.5 if side.kind in types or self._find_range(side) & types else -1.0

    def _list_noun_types(self) -> frozenset[str]:
        for noun in self.nouns:
            if noun in WORDS["loose"]:
                return NOUNS[noun]
            if noun not in NOUNS and AGENT.fullmatch(noun):
                return KIND_TYPES["who"]
        return frozenset()


_OPEN = re.compile(
    r"^\W*(?:why|how(?!\s+(?:many|much|old|tall|long|high|far|large|big|deep)))\b",
    re.IGNORECASE,
)
_NESTED = re.compile(r"\b([a-z]+) of (?:the |an? )?[a-z]+ (?:of|that|who|which)\b")
_PASSIVE = re.compile(r"^\W*how\s+(?:is|are|was|were)\b", re.IGNORECASE)
_MEANS = (" with", " by", " through", " via", " using")
"""Endings of relations whose tail answers "how": "is treated with"."""
_PLACED = frozenset(noun for noun in NOUNS if NOUNS[noun] == NOUNS["city"])
_PLACES = KIND_TYPES["where"]
_LOCATED = frozenset({"locate"})
_OBJECT = re.compile(r"\W*(?:what|which|whom?)\b", re.IGNORECASE)
_ADVERBIAL = w.PREPOSITIONS - {"by", "of"}
"""Prepositions that introduce when, where or how, not an object: "superseded in"."""


def read_kind_nouns(text: str) -> tuple[str, ...]:
    """The lemmas of the noun after which or what: "river" of "which river"; else empty."""
    match = re.search(r"\b(which|what)\s+(.*)", text, re.IGNORECASE)
    if not match:
        return ()
    run, stop = list[str](), ""
    for word in match[2].split()[:4]:
        plain = word.strip("?.,!'’").casefold()
        if word[:1].isupper() or plain in _STOPS:
            stop = plain
            break
        run.append(plain)
    if not run or run[0] in WORDS["no_kinds"]:
        return ()
    has_verb = stop in w.AUXILIARIES | w.MODALS
    if match[1].casefold() == "what" and not has_verb and (not stop or len(run) == 1):
        return ()  # "what causes it": no noun
    if len(run) == 1 or has_verb:
        return (w.lemmatise(run[-1]),)
    if stop in w.PREPOSITIONS or not stop:
        return tuple(w.lemmatise(word) for word in run[:2])
    return (w.lemmatise(run[-2]),)


_STOPS = (
    w.AUXILIARIES | w.MODALS | w.PREPOSITIONS | w.ARTICLES | {"through", "across", "into", "near"}
)


def list_kinds(entity: str, snapshot: Snapshot) -> frozenset[str]:
    """The lemmas of an entity's kinds: its classes with those above them, and "is a" facts."""
    schema = snapshot.schema
    classes = {a for iri in list_classes(entity, snapshot) for a in schema.find_ancestors(iri)}
    known = [schema.class_by_iri[iri] for iri in classes if iri in schema.class_by_iri]
    labels = [w.split_label(c.label) for c in known]
    for fact in map(snapshot.read_fact, snapshot.facts_about([entity], MOST_KINDS)):
        first, *rest = fact.relation.split()
        if fact.head_id == entity and first in w.BE:
            labels += [fact.tail.split(" of ")[0].split(" in ")[0]] if {*rest} <= w.ARTICLES else []
            labels += [" ".join(rest[:-1])] if rest and rest[-1] in w.PREPOSITIONS else []
    return frozenset(w.lemmatise(word) for text in labels for word in w.list_plain_words(text))


@cache
def load_regions() -> Mapping[str, frozenset[str]]:
    """Countries and states by name; read here, as `graph.names` imports what only builds have."""
    return w.read_words(str(Path(__file__).parents[1] / "graph" / "names.py"), "regions.toml")


def state_instances(asked: QuestionAnalysis) -> list[NearFact]:
    """The statements of the ontology about the entities of a question, as facts."""
    snapshot = asked.snapshot
    keys = list_instances(asked.linked.entities[:MOST_ENTITIES], snapshot, MOST_STATEMENTS)
    return [snapshot.read_fact(key) for key in keys]


def list_relations(
    asked: QuestionAnalysis, name: str, value: str, wordings: Sequence[str]
) -> list[str]:
    """The wordings that, with a name and a value, cover a question; the nearest first."""
    question = _Question(asked)
    facts = [NearFact("", "", name, "", wording, None, value, "", 0.0) for wording in wordings]
    left = [question.rate_left(fact, value) for fact in facts]
    opened = [
        Candidate(fact, value, None, None, "tail")
        for fact, share in zip(facts, left, strict=True)
        if not share
    ]
    near = question.rate_near(opened)
    stated = read_value(value)
    ending = "on" if isinstance(stated, Date) and stated.day else "in"
    relations = [side.fact.relation for side in opened]
    placed = bool(asked.types) and asked.types <= KIND_TYPES["when"] | KIND_TYPES["where"]

    def rank(i: int) -> tuple[object, ...]:
        """Among wordings of about equal cosine, the usual preposition comes first."""
        return -round(near[i], 1), placed and not relations[i].endswith(f" {ending}"), i

    return [relations[i] for i in sorted(range(len(relations)), key=rank) if near[i] >= MEANT]
