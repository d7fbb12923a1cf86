"""Question analysis: names linked to entities, tokens and lemmas, the kind of answer asked for.

A `QuestionAnalysis` is made per call of `answer` or `retrieve` and passed down; its parts are
computed on first use.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from kpyramid.documents import words as w
from kpyramid.embeddings.port import Matrix
from kpyramid.errors import InputError
from kpyramid.query.types import Question
from kpyramid.snapshot.search import WORD, join_words
from kpyramid.snapshot.snapshot import Snapshot

if TYPE_CHECKING:  # a question of passages alone reads no ontology
    from kpyramid.ontology.schema import OntologyProperty

_LONGEST_NAME = 10
"""Most words of a name; longer ones are rare, and a question of n words costs 10 n look-ups."""
_WRITTEN = re.compile(r"N(?:o{0,2}N|0)*")
"""A name, of words as `_mark_word` marks them."""
_OF_ALL = re.compile(r"\b(?:which|what)\b.*\b(?:most|least|\w{2,}est|first|last)\b", re.IGNORECASE)
"""Questions about all things of a kind, which name none of them."""
_BEFORE_KIND = w.QUESTION_WORDS | {"many", "much"}
WORDS = w.read_words(__file__, "words.toml")
"""Word lists for the analysis of questions."""
_ASIDE = WORDS["plain"] | (
    (w.ARTICLES | w.AUXILIARIES | w.JOINING | w.PREPOSITIONS | w.POINTING | w.QUESTION_WORDS)
    - {"having"}
)


@dataclass(frozen=True, slots=True)
class Links:
    """The ids of the entities that names denote, in the order of the names, each once.

    `unknown`: names without an entity, where these were asked for.
    """

    entities: tuple[str, ...]
    names: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def link_question(question: str, index: Mapping[str, tuple[str, ...]]) -> Links:
    """The entities that a question names, longest name first.

    `index` gives the entity ids of a name in the form of `join_words`.
    """
    words = [match.group() for match in WORD.finditer(question)]
    matches = _find_known(words, index, _looks_like_name)
    if not matches and not _OF_ALL.search(question):
        matches = _find_known(words, index, _may_be_name)
    return Links(
        entities=tuple(entity for *_, ids in matches for entity in ids),
        names=tuple(name for _, name, _ in matches),
    )


def _find_known(
    words: Sequence[str],
    index: Mapping[str, tuple[str, ...]],
    is_name: Callable[[Sequence[str], int, int], bool],
) -> list[tuple[int, str, tuple[str, ...]]]:
    """Names in the index, the longest and none within another: index of first word, name, ids."""
    taken = [False] * len(words)
    matches = []
    for length in range(min(_LONGEST_NAME, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            end = start + length
            if any(taken[start:end]) or not is_name(words, start, end):
                continue
            name = " ".join(words[start:end])
            if ids := index.get(join_words(name), ()):
                taken[start:end] = [True] * length
                matches.append((start, name, ids))
    return sorted(matches)


def find_names(text: str) -> frozenset[str]:
    """The words of a question that are written as names, in lower case.

    The first word is always capitalised and left out; "IT" and "WHO" are names in lower-case text.
    """
    words = [match.group().strip(".") for match in WORD.finditer(text)]
    return frozenset(
        word.casefold()
        for word in words[1:]
        if word[:1].isupper()
        and (word.casefold() not in _ASIDE or (word[1:].isupper() and not text.isupper()))
    )


def _looks_like_name(words: Sequence[str], start: int, end: int) -> bool:
    first = words[start][:1]
    return (first.isupper() or first.isdigit()) and (
        start > 0 or end > 1 or words[start].lower() not in _ASIDE
    )


def _may_be_name(words: Sequence[str], start: int, end: int) -> bool:
    """Whether words may be a name in a lower-case question: "marsh fever"."""
    plain = [word.casefold() for word in words]
    is_kind = not start or plain[start - 1] in _BEFORE_KIND or w.lemmatise(plain[end - 1]) in NOUNS
    return not is_kind and _ASIDE.isdisjoint((plain[start], plain[end - 1]))


# The form of the answer: kind of value, number, other words.

AGENT = re.compile(r"\w{3,}(?:er|or|ist|ian|ress)")
"""A noun for who does something: "founder"."""


KIND_TYPES: Mapping[str, frozenset[str]] = w.pick_table(WORDS, "kinds")
"""The entity types that can answer a question of a kind."""
NUMERIC = KIND_TYPES["when"] | KIND_TYPES["number"]
"""Types whose values contain a number."""
_MEASURES = {
    word: measure for measure, words in w.pick_table(WORDS, "measures").items() for word in words
}
"""The measure that an adjective after "how" asks for."""
NOUNS: Mapping[str, frozenset[str]] = {
    word: frozenset(types.split())
    for types, nouns in w.pick_table(WORDS, "nouns").items()
    for word in nouns
}
"""The entity types that a noun denotes: "which city", "the population of"."""
_HEAD = re.compile(
    r"\b(?:what|which)\s+(?:is|are|was|were)\s+(?:the\s+|an?\s+)?(?P<of>[\w\s]+?)\s+(?:of|for|in)\b"
    r"|\b(?:what|which)\s+(?P<plain>(?!is\b|are\b|was\b|were\b|do|of\b)\w+)",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"\b(who|what|which|where|when|how(?= (?:many|much|old|tall|long|high|far|large|big)\b))"
    r"(?:m|se)?\b",
    re.IGNORECASE,
)
_ASKED = frozenset({"who", "where", "when", "how"})
_YES_NO = re.compile(
    r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might)\b",
    re.IGNORECASE,
)
_DEFINITION = re.compile(r"^\W*(?:who|what) (?:is|are|was|were) (?:the )?(.+?)\W*$", re.IGNORECASE)
_WHICH_KIND = re.compile(
    r"^\W*(?:is|are|was|were)\b(?! there\b).* an? [\w-]+ or (?:an? )?[\w-]+\W*$", re.IGNORECASE
)


_MOST_LINKED = 256
"""Texts of a snapshot whose links are in memory: a question and its parts have about twenty."""
_LINKED: WeakKeyDictionary[Snapshot, dict[str, Links]] = WeakKeyDictionary()


def link_text(text: str, snapshot: Snapshot) -> Links:
    """The entities that a text names."""
    known = _LINKED.setdefault(snapshot, {})
    if (links := known.get(text)) is None:
        if len(known) >= _MOST_LINKED:
            known.clear()
        links = known[text] = link_question(text, snapshot.entities_by_name())
    return links


def _mark_word(word: str, large: Collection[str]) -> str:
    """N for a word written as a name, 0 for a number, o for a word within names, else x."""
    if word in large:
        return "N"
    if word[0].isdigit():
        return "0"
    return "o" if word in WORDS["joining"] else "x"


class QuestionAnalysis:
    """A question over a snapshot, analysed once: each part is computed when first asked for.

    Raises:
        InputError, IntegrityError: when a part is computed that needs a damaged index.
    """

    def __init__(self, question: Question, snapshot: Snapshot) -> None:
        self.question, self.snapshot = question, snapshot
        self.text, self.candidates = question.text, question.candidates

    def __repr__(self) -> str:
        return f"QuestionAnalysis({self.text!r}, names {list(self.linked.names)})"

    def part(self, text: str) -> "QuestionAnalysis":
        """The analysis of a part of the question, without its options."""
        return QuestionAnalysis(Question(text), self.snapshot)

    @cached_property
    def vector(self) -> Matrix:
        """Its embedding."""
        return self.snapshot.embed(self.text)

    @cached_property
    def linked(self) -> Links:
        """The entities that it names."""
        return link_text(self.text, self.snapshot)

    @cached_property
    def words(self) -> tuple[w.Word, ...]:
        """Its words."""
        return w.split_words(self.text)

    @cached_property
    def names(self) -> tuple[w.Name, ...]:
        """Its names: those in the snapshot, and runs of words that are written as names.

        Numbers and small words within belong to the run: "Apollo 11", "Bank of Lund". A name within
        another is left out.
        """
        large = {word.plain for name in find_names(self.text) for word in w.split_words(name)}
        kinds = "".join(_mark_word(word.plain, large) for word in self.words)
        spans = [self.words[m.start() : m.end()] for m in _WRITTEN.finditer(kinds)]
        written = (self.text[span[0].start : span[-1].end] for span in spans)
        every = dict.fromkeys((*self.linked.names, *written))
        held = [f" {join_words(name)} " for name in every]
        return tuple(
            w.read_name(name)
            for name, name_row in zip(every, held, strict=True)
            if not any(name_row != longer and name_row in longer for longer in held)
        )

    @cached_property
    def properties(self) -> "Mapping[str, OntologyProperty]":
        """The properties of the snapshot's ontology by their labels in lower case."""
        return {w.split_label(p.label).casefold(): p for p in self.snapshot.schema.properties}

    @cached_property
    def types(self) -> frozenset[str]:
        """The entity types that can answer it; empty if any can."""
        return find_types(self.text)

    @cached_property
    def plain_words(self) -> frozenset[str]:
        """All its words in lower case."""
        return frozenset(w.list_plain_words(self.text))

    def holds(self, value: str) -> bool:
        """Whether it has all words of a value that are no function words."""
        words = (word for word in w.list_plain_words(value) if word not in w.FUNCTION)
        return self.plain_words.issuperset(words)

    @cached_property
    def _written_names(self) -> frozenset[str]:
        names = find_names(self.text)
        return frozenset(word for name in names for word in w.list_plain_words(name))

    @cached_property
    def name_words(self) -> frozenset[str]:
        """The words of its names, and its numbers, which identify things as names do."""
        return self._written_names | {word for word in self.plain_words if word[:1].isdigit()}

    @cached_property
    def beside(self) -> tuple[str, ...]:
        """The words beside names that are no function words, as written."""
        linked = {word for name in self.linked.names for word in w.list_plain_words(name)}
        aside = linked | self._written_names | w.FUNCTION
        return tuple(
            word for word in w.match_plain_words(self.text) if word.casefold() not in aside
        )

    @cached_property
    def lemmas(self) -> frozenset[str]:
        """The lemmas of the words beside its names; "length" of "how long"."""
        beside = frozenset(w.lemmatise(word.casefold()) for word in self.beside) - {"many", "much"}
        asked = re.match(r"\W*how (\w+)", self.text.casefold())
        measured = _MEASURES.get(asked[1]) if asked else None
        return beside - {asked[1]} | {measured} if asked and measured else beside

    @cached_property
    def spelt(self) -> Mapping[str, frozenset[str]]:
        """The words of each entity's name in it, by entity id."""
        return {
            entity: frozenset(w.list_plain_words(name))
            for name in self.linked.names
            for entity in link_text(name, self.snapshot).entities
        }

    @cached_property
    def named(self) -> frozenset[str]:
        """The stems of the words of its names; without names, of its content words."""
        texts = [name.text for name in self.names] or self.beside
        return frozenset(word.stem for text in texts for word in w.split_words(text)) - w.STOP

    @property
    def is_yes_no(self) -> bool:
        """Whether it begins as a yes-no question, and does not offer two kinds."""
        return bool(_YES_NO.match(self.text)) and not _WHICH_KIND.match(self.text)

    @cached_property
    def is_definition(self) -> bool:
        """Whether it asks for a definition of its only name: "Who is Ada Lovelace?"."""
        match = _DEFINITION.match(self.text)
        names = [w.list_plain_words(name) for name in self.linked.names]
        words = w.list_plain_words(match[1]) if match else []
        return len(names) == 1 and [word for word in names[0] if word != "the"] == words


def find_types(text: str) -> frozenset[str]:
    """The entity types that can answer a question; empty if any can."""
    match = _HEAD.search(text)
    if match:
        noun = (match["of"] or match["plain"]).casefold().split()[-1]
        for form in (noun, noun.removesuffix("s")):
            if form in NOUNS:
                return NOUNS[form]
        if AGENT.fullmatch(noun) and noun not in WORDS["no_agents"]:
            return KIND_TYPES["who"]
    asking = _ASKING.search(text)  # "who led it when it was built" asks for a person
    kind = asking[1].casefold() if asking else ""
    return KIND_TYPES["number" if kind == "how" else kind] if kind in _ASKED else frozenset()


MOST_WORDS, MOST_CHARACTERS, MOST_CANDIDATES = 500, 5_000, 100
"""Limits of a question: no benchmark's has more than 120 words. A longer text is a document with a
question in it, which would cost seconds without an answer."""
MOST_SHOWN = 40
"""Characters of a wrong value that a message repeats."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")


def analyse(question: str, snapshot: Snapshot, candidates: Sequence[str] = ()) -> QuestionAnalysis:
    """The analysis of a question with the options to choose from, both checked.

    Raises:
        InputError: the question or a candidate is empty, too long or no text, or the snapshot is
            none.
    """
    asked = Question(_clean(question, "the question"), _read_candidates(candidates))
    if not isinstance(snapshot, Snapshot):
        raise InputError(
            f"snapshot = {cut_value(snapshot)}: pass what open_snapshot(ref, root) returns"
        )
    return QuestionAnalysis(asked, snapshot)


def _read_candidates(candidates: object) -> tuple[str, ...]:
    """The options as given, without further spellings of the same option."""
    if isinstance(candidates, str | bytes) or not isinstance(candidates, Iterable):
        raise InputError(
            f"candidates = {cut_value(candidates)}: pass a sequence of strings, or () for an open "
            "question; one candidate is written (candidate,)"
        )
    given = tuple(candidates)
    if len(given) > MOST_CANDIDATES:
        raise InputError(f"{len(given)} candidates; at most {MOST_CANDIDATES} are told apart")
    options: dict[str, str] = {}
    for candidate in given:
        plain = _clean(candidate, f"candidate {cut_value(candidate)}")
        options.setdefault(" ".join(plain.split()).casefold(), candidate)
    return tuple(options.values())


def cut_value(value: object) -> str:
    """A value for a message, cut to `MOST_SHOWN` characters."""
    shown = repr(value)
    return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}..."


def _clean(text: object, what: str) -> str:
    """A text without control characters.

    Raises:
        InputError: it is no string, nothing is left, it is too long, or it holds half a character.
    """
    if not isinstance(text, str):
        raise InputError(f"{what} is of type {type(text).__name__}; pass a string")
    plain = _CONTROL.sub(" ", text).strip()
    if not plain:
        raise InputError(f"{what} is empty")
    words = len(plain.split())
    if words > MOST_WORDS or len(plain) > MOST_CHARACTERS:
        raise InputError(
            f"{what} has {words:,} words and {len(plain):,} characters; at most {MOST_WORDS} words "
            f"and {MOST_CHARACTERS:,} characters are read. Ask in fewer words; a text to be "
            "searched belongs into the corpus"
        )
    half = next((index for index, c in enumerate(plain) if "\ud800" <= c <= "\udfff"), None)
    if half is not None:
        raise InputError(f"{what} is no text: character {half + 1} is half of one (a surrogate)")
    return plain
