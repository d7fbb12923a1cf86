"""The mentions and the form of a question: what its words can mean in an ontology."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kpyramid.answering.lexicon import (
    ADJECTIVES,
    AGGREGATES,
    LIGHT,
    LOWER,
    PLACE_WORDS,
    PRONOUNS,
    UNITS,
    UPPER,
    Lexicon,
    Phrase,
    Relation,
    Word,
    fold,
    read_number,
    read_top,
    strip_phrase,
)
from kpyramid.documents.words import share_stem

PARTIAL, STEM, BESIDE = 0.2, 0.3, 0.18
"""Costs of a match by part of a label, by its stem, and of a property whose label is a class as
well; a whole label costs none."""


@dataclass(frozen=True, slots=True)
class Option:
    """One meaning: `individual`, `kind`, `value` (of property `iris[0]`), `class`, `relation`.

    `passive`: the voice of a property's wording that runs from source to target, None for a noun.
    `kind` is an individual in the place of a noun: what it stands for are the things of that kind.
    """

    sort: str
    iris: tuple[str, ...]
    literals: tuple[str, ...] = ()
    cost: float = 0.0
    passive: bool | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """Words `start` to `end` and what they can mean.

    `partial`: by part of a name that several have. `asked`: `which` or `how many` stands before.
    """

    start: int
    end: int
    options: tuple[Option, ...]
    partial: bool = False
    asked: bool = False


def join_alternatives(mentions: Sequence[Mention], words: Sequence[Word]) -> list[Mention]:
    """`french or german`: two mentions of one sort with `or` between them become one."""
    joined: list[Mention] = []
    for mention in mentions:
        before = joined[-1] if joined else None
        if before and mention.start - before.end == 1 and words[before.end].lower == "or":
            options = [
                Option(a.sort, _unite(a, b), tuple(dict.fromkeys(a.literals + b.literals)))
                for a in before.options
                for b in mention.options
                if a.sort == b.sort
                and (a.sort == "individual" or a.iris == b.iris)
                and a.sort in {"individual", "value"}
            ]
            if options:
                partial = before.partial or mention.partial
                joined[-1] = Mention(before.start, mention.end, tuple(options), partial)
                continue
        joined.append(mention)
    return joined


def _unite(one: Option, other: Option) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.iris + other.iris))


# Counts, superlatives and comparisons of a question: what is measured, and against what.

Measure = tuple[str, ...]
"""The properties from a thing to a number."""

_OVER = frozenset("over above exceed exceeding".split())
_UNDER = frozenset("under below".split())
_SIGNS = {"more": ">", "great": ">", "high": ">", "less": "<", "few": "<", "low": "<"}


@dataclass(frozen=True, slots=True)
class Degree:
    """`sort`: `order` with `sign` 1 or -1 and `top` rows, or `limit` with a `sign` and a `number`.

    `measures` are what may be measured; none: the next or the nearest mention says it. `counts`:
    how many of the next mention there are.
    """

    sort: str
    start: int
    end: int
    sign: str
    measures: tuple[Measure, ...] = ()
    number: float = 0.0
    top: int = 1
    superlative_of_noun: bool = False
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """How a question asks: `ask`, `count` or `select`; its degrees; the words that say all that.

    `wants`: `who`, `where`, `when` or nothing; `grain`: `year` where that is asked for.
    """

    act: str
    wants: str
    grain: str
    passive: bool
    degrees: tuple[Degree, ...]
    aggregate: str
    taken: frozenset[int]


def read_form(words: Sequence[Word], lexicon: Lexicon) -> Form:
    """The form of a question."""
    lowers = [word.lower for word in words]
    taken: set[int] = set()
    act, wants, grain = "select", "", ""
    if lowers and lowers[0] in {"is", "are", "was", "were", "do", "does", "did", "has", "have"}:
        act = "ask"
    for at, lower in enumerate(lowers):
        pair = tuple(lowers[at : at + 2])
        plain = pair == ("how", "many") or (
            pair in {("number", "of"), ("count", "of")} and (at == 0 or words[at - 1].is_function)
        )
        if (at <= 4 and plain) or (at == 0 and lower == "count"):
            act = "count"
            taken.update(
                range(at, at + len(pair) if lower != "count" or pair[1:] == ("of",) else at + 1)
            )
        if lower in {"which", "what"} and pair[1:] in {("year",), ("date",), ("day",)}:
            wants, grain = "when", "year" if pair[1] == "year" else ""
            taken.update((at, at + 1))
        wants = wants or {"who": "who", "whom": "who", "where": "where", "when": "when"}.get(
            lower, ""
        )
    degrees: list[Degree] = []
    at = 0
    while at < len(words):
        found = None if at in taken else _read_degree(words, at, lexicon)
        if found and found.sort == "limit" and found.end < len(words):
            unit = UNITS.get(words[found.end].lemma, words[found.end].lower)
            if unit in UNITS.values():
                found = replace(found, unit=unit, end=found.end + 1)
        if found and found.sort == "order" and at and (top := read_top(lowers[at - 1])):
            found = replace(found, top=top, start=at - 1)
        if found:
            degrees.append(found)
            taken.update(range(found.start, found.end))
            at = found.end
        else:
            at += 1
    aggregate = ""
    for at, lower in enumerate(lowers):
        if at not in taken and lower in AGGREGATES:
            aggregate = AGGREGATES[lower]
            taken.add(at)
    return Form(act, wants, grain, "by" in lowers, tuple(degrees), aggregate, frozenset(taken))


def _read_degree(words: Sequence[Word], at: int, lexicon: Lexicon) -> Degree | None:
    word = words[at]
    after = words[at + 1] if at + 1 < len(words) else None
    lowers = [w.lower for w in words]
    if after and word.lower in {"at"} and after.lower in {"least", "most"}:
        number = read_number(lowers[at + 2]) if at + 2 < len(words) else None
        if number is None:
            return Degree("limit", at, at + 2, ">=", number=1.0)
        sign = ">=" if after.lower == "least" else "<="
        return Degree("limit", at, at + 3, sign, number=number)
    if after and word.lower in _OVER | _UNDER:
        number = read_number(after.lower)
        if number is not None:
            sign = ">" if word.lower in _OVER else "<"
            return Degree("limit", at, at + 2, sign, number=number)
    if "than" in lowers[at + 1 : at + 3]:
        return _read_comparison(words, at, lowers.index("than", at))
    if word.lower == "top" and after and (rows := read_top(after.lower)):
        return Degree("order", at, at + 2, "1", top=rows, superlative_of_noun=True)
    if after and word.lower in {"most", "least"}:
        sign = "1" if word.lower == "most" else "-1"
        measures = _measure_adjective(after.lemma, lexicon)
        if measures:
            flipped = ADJECTIVES.get(after.lemma, ((), 1))[1] < 0
            return Degree("order", at, at + 2, _flip(sign) if flipped else sign, measures)
        return Degree("order", at, at + 1, sign, superlative_of_noun=True)
    if word.lower.endswith("est") or word.lower in {"fewest", "best", "worst"}:
        if word.lemma in ADJECTIVES:
            names, end = ADJECTIVES[word.lemma]
            measures = find_measures(names, lexicon)
            degree = Degree("order", at, at + 1, str(end), measures)
            if word.lemma in UPPER | LOWER:
                sign = "1" if word.lemma in UPPER else "-1"
                return replace(degree, sign=sign, superlative_of_noun=True)
            return degree
        if word.lemma in UPPER | LOWER:
            sign = "1" if word.lemma in UPPER else "-1"
            return Degree("order", at, at + 1, sign, superlative_of_noun=True)
    return None


def _read_comparison(words: Sequence[Word], at: int, than: int) -> Degree | None:
    """A bound such as "more than 30"."""
    number = read_number(words[than + 1].lower) if than + 1 < len(words) else None
    sign = _SIGNS.get(words[at].lower) or _SIGNS.get(words[at].lemma)
    if number is None or sign is None or than != at + 1:
        return None
    return Degree("limit", at, than + 2, sign, number=number)


def _measure_adjective(lemma: str, lexicon: Lexicon) -> tuple[Measure, ...]:
    """What an adjective measures: by the list of adjectives, or a label of the same stem."""
    if lemma in ADJECTIVES:
        return find_measures(ADJECTIVES[lemma][0], lexicon)
    return tuple(
        measure
        for relation in lexicon.relations.values()
        if (measure := lexicon.extend_measure(relation))
        and any(share_stem(lemma, word) for phrase in relation.phrases for word in phrase)
    )


def find_measures(names: Sequence[str], lexicon: Lexicon) -> tuple[Measure, ...]:
    """The measures that are called by one of some nouns."""
    return tuple(
        measure
        for relation in lexicon.relations.values()
        if (measure := lexicon.extend_measure(relation))
        and any(name in phrase for phrase in relation.phrases for name in names)
    )


def _flip(sign: str) -> str:
    return "-1" if sign == "1" else "1"


# What the words of a question can stand for: individuals, values, classes, properties.

_LONGEST = 7
"""Words of a name or label; longer ones are quoted by nobody."""
_MANY = 8
"""Individuals that part of a name may stand for; a part that fits more names nobody."""
_NEAR = 0.6
"""Cosine of a word and a label from which they are taken for synonyms: vendor and supplier .74,
cost and price .73, worker and employee .83; unrelated nouns of one field reach .56."""
_LEAD = 0.08
"""By how much the nearest label must lead the next."""
_MOST_PLACES = 50
"""Names beyond which the letters that begin an adjective do not tell which place it is of."""
_PEOPLES = ("an", "ish", "ese", "ch", "ss", "i", "ek")
"""How adjectives of countries end."""

_ASKING = frozenset("which what many all every".split())


class MentionFinder:
    """Finds the mentions of one question; words that others explain are `taken`."""

    def __init__(self, words: Sequence[Word], lexicon: Lexicon, taken: Iterable[int]) -> None:
        self._words = words
        self._lexicon = lexicon
        self._taken = set(taken)
        self.mentions: list[Mention] = []

    def find(self) -> list[Mention]:
        """All mentions in the order of the question."""
        self._find_codes()
        for length in range(min(_LONGEST, len(self._words)), 0, -1):
            for start in range(len(self._words) - length + 1):
                options = self._list_options(start, start + length)
                self._keep(start, start + length, options, self._are_namesakes(options))
        self._find_parts()
        for at in range(len(self._words)):
            options = self._list_peoples(at)
            self._keep(at, at + 1, options, self._are_namesakes(options))
        self.mentions = join_alternatives(self.mentions, self._words)
        return self.mentions

    def list_strange(self) -> list[str]:
        """The names that no mention explains: with one of them there is no query."""
        return [w.text for at, w in enumerate(self._words) if w.is_name and self.is_content(at)]

    def is_content(self, at: int) -> bool:
        """Whether a word says something that no mention explains yet."""
        word = self._words[at]
        if at in self._taken or word.is_function or word.lemma in LIGHT:
            return False
        before = self._words[at - 1].lower if at else ""
        return before not in PRONOUNS and not (at == 0 and word.lower == "name")

    def _keep(self, start: int, end: int, options: Sequence[Option], partial: bool = False) -> None:
        span = range(start, end)
        if options and not self._taken.intersection(span):
            self._taken.update(span)
            asked = start > 0 and self._words[start - 1].lower in _ASKING
            self.mentions.append(Mention(start, end, tuple(options), partial, asked))
            self.mentions.sort(key=lambda m: m.start)

    def _list_options(self, start: int, end: int) -> list[Option]:
        words = self._words[start:end]
        edges = (words[0], words[-1])
        if self._taken.intersection(range(start, end)):
            return []
        text = fold(" ".join(word.text for word in words))
        written = any(word.is_name for word in words) and not (
            len(words) == 1 and (words[0].is_function or start == 0)
        )
        found = self._name_individuals(text) if written else []
        if written and text in self._lexicon.values:
            found += [
                Option("value", (p,), (literal,)) for p, literal in self._lexicon.values[text]
            ]
        if any(word.is_function for word in edges):
            return found
        found += self._name_kinds(words) if not found else []
        lemmas = tuple(word.lemma for word in words)
        found += [
            Option("class", (c.iri,))
            for c in self._lexicon.categories.values()
            if lemmas in c.phrases and c.iri not in self._lexicon.holders
        ]
        if not (start == 0 and (words[0].lemma in LIGHT or words[0].lower == "name")):
            relations = self._name_relations(lemmas)
            if any(option.sort == "class" for option in found):
                # The noun is one for the things; the property may be what joins them.
                relations = [replace(o, cost=o.cost + BESIDE) for o in relations if not o.cost]
            found += relations
        return found

    def _are_namesakes(self, options: Sequence[Option]) -> bool:
        """Whether one name is that of several individuals, which are no kinds of things."""
        return any(
            o.sort == "individual" and len(o.iris) > 1 and not self._are_kinds(o.iris)
            for o in options
        )

    def _name_individuals(self, text: str) -> list[Option]:
        found = []
        iris = self._lexicon.names.get(text, ())
        kinds = tuple(iri for iri in iris if self._are_kinds((iri,)))
        for group in (kinds, tuple(iri for iri in iris if iri not in kinds)):
            found += [Option("individual", group)] if group else []
        return found + ([Option("kind", kinds)] if kinds else [])

    def _name_kinds(self, words: Sequence[Word]) -> list[Option]:
        """Individuals that are kinds of things, by a plural or in small letters."""
        head = [word.lower for word in words[:-1]]
        for last in dict.fromkeys((words[-1].lower, words[-1].lemma)):
            iris = self._lexicon.names.get(" ".join([*head, last]), ())
            iris = tuple(iri for iri in iris if self._are_kinds((iri,)))
            if iris:
                return [Option("individual", iris), Option("kind", iris)]
        return []

    def _are_kinds(self, iris: tuple[str, ...]) -> bool:
        kinds = self._lexicon.kinds
        return bool(kinds) and not kinds.isdisjoint(self._lexicon.find_classes(iris))

    def _name_relations(self, lemmas: Phrase) -> list[Option]:
        costs = {}
        for relation in self._lexicon.relations.values():
            cost = self._rate(lemmas, relation)
            if cost is not None:
                costs[relation.iri] = cost
        best = min(costs.values(), default=0.0)
        # "manage" is a stem of `manager` and of `product manager`: the path decides.
        worst = best + PARTIAL if best else 0.0
        return [
            Option(
                "relation",
                (iri,),
                cost=cost,
                passive=self._find_voice(lemmas, self._lexicon.relations[iri], cost),
            )
            for iri, cost in costs.items()
            if cost <= worst
        ]

    def _find_voice(self, lemmas: Phrase, relation: Relation, cost: float) -> bool | None:
        """The voice that runs from source to target: X is managed by the manager of X."""
        if not cost:
            return relation.voices.get(lemmas)
        doers = {p[0] for p in relation.phrases if len(p) == 1 and p[0].endswith(("er", "or"))}
        is_doing = any(share_stem(lemmas[0], d) and len(lemmas[0]) < len(d) for d in doers)
        return True if is_doing and relation.names_target else None

    def _rate(self, lemmas: Phrase, relation: Relation) -> float | None:
        if lemmas in relation.phrases:
            return 0.0
        if len(lemmas) != 1 or strip_phrase(lemmas) != lemmas:
            return None
        (lemma,) = lemmas
        costs = []
        for said in relation.contents:
            rest = 0.0 if len(said) == 1 else PARTIAL
            if lemma in said and len(lemma) > 2:
                costs.append(rest)
            elif any(share_stem(lemma, word) for word in said):
                costs.append(rest + STEM)
        return min(costs, default=None)

    def _find_codes(self) -> None:
        """Codes and beginnings of codes, with the words beside them that the same names hold."""
        for at, word in enumerate(self._words):
            if not word.is_code or at in self._taken:
                continue
            found = (
                frozenset(self._lexicon.names.get(word.lower, ()))
                or frozenset(self._lexicon.names.with_word(word.lower))
                or frozenset(self._lexicon.names.with_start(word.lower + "-"))
            )
            if found and len(found) <= _MANY:
                self._keep_around(at, found)

    def _find_parts(self) -> None:
        """Words written as names that are part of an individual's name: a surname, a first name."""
        for at, word in enumerate(self._words):
            if at > 0 and word.is_name and self.is_content(at) and len(word.text) > 2:
                iris = self._lexicon.names.with_word(word.lower)
                found = frozenset(i for i in iris if self._can_be_part(i, at))
                if found and len(found) <= _MANY:
                    self._keep_around(at, found)

    def _can_be_part(self, iri: str, at: int) -> bool:
        """Whether part of a name can stand for an individual: nothing is `in` a person."""
        known = self._lexicon.categories
        people = any(
            known[a].person
            for c in self._lexicon.find_classes((iri,))
            for a in self._lexicon.find_ancestors(c)
            if a in known
        )
        inside = self._words[at - 1].lower in {"in", "near"}
        return not (people and inside) and not self._are_kinds((iri,))

    def _keep_around(self, at: int, found: frozenset[str]) -> None:
        start, end = at, at + 1
        names = self._lexicon.names
        words = {iri: {w for n in names.list_names(iri) for w in n.split()} for iri in found}
        for step in (-1, 1):
            beside = start - 1 if step < 0 else end
            while 0 <= beside < len(self._words) and beside not in self._taken:
                word = self._words[beside]
                fitting = {iri for iri in found if {word.lower, word.lemma} & words[iri]}
                if not fitting or word.is_function:
                    break
                found = frozenset(fitting)
                start, end = min(start, beside), max(end, beside + 1)
                beside += step
        option = Option("individual", tuple(sorted(found)), cost=0.1)
        self._keep(start, end, [option], partial=len(found) > 1)

    def _list_peoples(self, at: int) -> list[Option]:
        """What an adjective of a country stands for: `french` for France."""
        word = self._words[at].lower
        named = self._name_places(word) if self.is_content(at) else {}
        best = self._pick_nearest(word, list(named))
        return named[best] if best else []

    def _name_places(self, word: str) -> dict[str, list[Option]]:
        """The places that an adjective may be of: those that begin as it does, unless many do."""
        if len(word) < 4 or not word.endswith(_PEOPLES):
            return {}
        named = {
            name: [Option("individual", iris)]
            for name, iris in self._lexicon.places.items()
            if name[:2] == word[:2]
        }
        for name, pairs in self._lexicon.values.items():
            if name[:2] == word[:2]:
                options = [
                    Option("value", (p,), (literal,))
                    for p, literal in pairs
                    if any(PLACE_WORDS & set(f) for f in self._lexicon.relations[p].phrases)
                ]
                if options:
                    named[name] = [*named.get(name, []), *options]
        for shared in (3, 4):
            if len(named) > _MOST_PLACES:
                named = {n: options for n, options in named.items() if n[:shared] == word[:shared]}
        return named if len(named) <= _MOST_PLACES else {}

    def _pick_nearest(self, text: str, known: Sequence[str]) -> str | None:
        if not known:
            return None
        cosines = self._lexicon.compare(text, known)
        ranked = sorted(zip(cosines, known, strict=True), reverse=True)
        second = ranked[1][0] if len(ranked) > 1 else 0.0
        if ranked[0][0] < _NEAR or ranked[0][0] - second < _LEAD:
            return None
        return ranked[0][1]
