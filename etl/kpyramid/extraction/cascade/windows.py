"""Windows: whole blocks of a document that are read in one call, with their requests and replies.

Sentences are numbered, and a reply cites their numbers: no word of the text is repeated, and
every span is exact. Entities are listed once, with their class; facts name them by number.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, islice
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from kpyramid.documents.blocks import Block, read_blocks
from kpyramid.documents.qualifiers import CONDITION
from kpyramid.documents.sentences import Dropped, Piece, Span, split_sentences, split_text
from kpyramid.documents.words import BE, HAVE, LETTERS, MODALS, hold
from kpyramid.extraction.cascade.evidence import (
    UNKNOWN,
    Text,
    find_naming,
    guess_literal,
    is_pronoun,
    is_supported,
    is_telling,
    list_forms,
    list_strange,
    list_words,
    locate_name,
    quote,
)
from kpyramid.extraction.cascade.grounding import (
    CONFIDENCE,
    RESOLVED_CONFIDENCE,
    Grounded,
    complete_relation,
    count_allowed,
    cover,
    find_mentions,
    find_relation_fault,
    show_row,
    take_facts,
    take_words,
)
from kpyramid.extraction.cascade.tasks import Triple, make_task, render_prompt, split_commas
from kpyramid.extraction.syntax.kinds import AUTHORS, find_kind_label
from kpyramid.extraction.types import Chunk, Claim, Extraction, Fact, Mention
from kpyramid.keys import JsonValue, hash_bytes
from kpyramid.llm.task import Expected, Failure, Request, Strict, flatten, parse_json, write_json
from kpyramid.settings import CascadeSettings, ChunkSettings, Example

# Windows of a document.

_LEAST = 3
"""No window is shorter than this share of the longest, where a document has more than one."""
_OPENING = 40
"""The first characters of a block, whose hash decides whether a window begins there."""
_BLANK = re.compile(r"\n[^\S\n]*\n\s*")
_FULL_NAME = re.compile(
    r"[^\W\d_a-z][\w'’-]*+(?: (?:(?:of|de|van|von) )?[^\W\d_a-z][\w'’-]*+){1,4}"
)
_MOST_NAMES, _MOST_ALIKE, _SENTENCES_BEFORE, _LONGEST_BEFORE = 20, 3, 2, 400


WINDOWED = ("document_id", "title", "text", "blocks")
"""The columns of `documents` that windows need."""


def list_windows(rows: Iterable[Mapping[str, Any]], most: int) -> Iterator[tuple[str, int, Chunk]]:
    """Each window of the documents: the document's id, the window's offset, and its chunk."""
    for row in rows:
        document, text, title = row["document_id"], row["text"], row["title"]
        for start, window in cut_windows(text, read_blocks(row["blocks"]), title, document, most):
            yield document, start, window


def cut_windows(
    text: str, blocks: Sequence[Block], title: str | None, document: str, most: int
) -> Iterator[tuple[int, Chunk]]:
    """The windows of a document, each with its offset.

    A window is made of whole blocks of at most `most` tokens together; a longer block is cut
    between sentences, and a longer sentence between words.
    """
    headings = [block for block in blocks if block.kind == "heading"]
    above = iter(headings)
    path: list[Block] = []
    following = next(above, None)
    known: dict[str, dict[str, None]] = {}
    for piece in _join_pieces(text, headings, most):
        while following is not None and following.start < piece.start:
            path = [*(each for each in path if each.level < following.level), following]
            following = next(above, None)
        part = text[piece.start : piece.end]
        context = {
            "Section": " > ".join(flatten(text[each.start : each.end], 100) for each in path),
            "Names so far": "; ".join(_list_names(known, part)),
            "Before": _take_before(text, piece.start),
        }
        shown = tuple((name, words) for name, words in context.items() if words)
        yield piece.start, Chunk(part, title, document, context=shown)
        for name in _FULL_NAME.findall(part):
            alike = known.setdefault(name.split()[-1], {})
            if len(alike) < _MOST_ALIKE:
                alike.setdefault(name)


def _join_pieces(text: str, headings: Sequence[Block], most: int) -> Iterator[Piece]:
    """The windows: a text that is too long is split before a heading or a block, recursively.

    The hashes of the blocks' beginnings choose the place: so an edited paragraph changes its own
    window, not the beginnings of later ones. Between equal beginnings the hashes of whole blocks
    decide, and between equal blocks the distance from the middle, so that windows are not minimal.
    """
    starts = {heading.start for heading in headings}
    settings = ChunkSettings(max_tokens=most, overlap_tokens=0)
    pieces = [
        Piece(piece.start + first, piece.end + first, piece.tokens)
        for first, last in _list_blocks(text)
        for piece in split_text(text[first:last], settings)
    ]
    sums = [0, *accumulate(piece.tokens for piece in pieces)]
    shown = [text[piece.start : piece.end] for piece in pieces]
    ranks = [
        (
            before.start in starts,
            piece.start not in starts,
            *(hash_bytes(part.encode("utf-8", "surrogatepass")) for part in (raw[:_OPENING], raw)),
        )
        for before, piece, raw in zip(pieces[:1] + pieces, pieces, shown, strict=False)
    ]
    waiting = [(0, len(pieces))] if pieces else []
    while waiting:
        first, last = waiting.pop()
        if last - first == 1 or sums[last] - sums[first] <= most:
            yield Piece(pieces[first].start, pieces[last - 1].end, sums[last] - sums[first])
            continue
        low = bisect_left(sums, sums[first] + most / _LEAST, first + 1, last)
        high = bisect_right(sums, sums[last] - most / _LEAST, low, last)
        middle = (sums[first] + sums[last]) / 2
        places = range(low, high) or range(first + 1, last)
        *_, cut = min((ranks[i], abs(sums[i] - middle), i) for i in places)
        waiting += [(cut, last), (first, cut)]


def _list_blocks(text: str) -> Iterator[tuple[int, int]]:
    """The offsets of the blocks between blank lines: paragraphs, whole tables, whole lists."""
    start = 0
    for blank in _BLANK.finditer(text):
        yield start, blank.start()
        start = blank.end()
    yield start, len(text)


def _list_names(known: Mapping[str, Iterable[str]], text: str) -> list[str]:
    """The full names in `known`, by their last words, whose last word alone a text contains."""
    words = dict.fromkeys(LETTERS.findall(text))
    names = (name for word in words for name in known.get(word, ()) if name not in text)
    return [*islice(names, _MOST_NAMES)]


def _take_before(text: str, start: int) -> str:
    """The last sentences before a character."""
    near = text[max(0, start - 2 * _LONGEST_BEFORE) : start]
    spans = [*split_sentences(near)][-_SENTENCES_BEFORE:]
    words = " ".join(" ".join(near[span.start : span.end].split()) for span in spans)
    return words[-_LONGEST_BEFORE:]


def list_sentences(text: str) -> list[Span]:
    """The sentences, to be numbered from 1; cells and headings count as sentences."""
    return list(split_sentences(text))


def show_window(chunk: Chunk) -> str:
    """The material of a request: title, context before the window, numbered sentences."""
    return show_lines(chunk, {}, range(1, len(list_sentences(chunk.text)) + 1))


def show_lines(chunk: Chunk, more: Mapping[str, str], numbers: Iterable[int]) -> str:
    """The title, the context, the parts in `more`, and the sentences with the given numbers."""
    title = flatten(chunk.title or "", 300)
    lines = [f"Title: {title}"] if title else []
    lines += [f"{name}: {words}" for name, words in (*chunk.context, *more.items()) if words]
    spans = list_sentences(chunk.text)
    shown = ((n, chunk.text[spans[n - 1].start : spans[n - 1].end]) for n in numbers)
    return "\n".join([*lines, "Text:", *(f"{n}| {' '.join(words.split())}" for n, words in shown)])


# Replies: rows of numbers and words, validated by schema and parser only.

_ROW: dict[str, JsonValue] = {
    "type": "array",
    "items": {
        "anyOf": [
            {"type": "integer"},
            {"type": "string"},
            {"type": "array", "items": {"type": "integer"}},
        ]
    },
}
RowList = Annotated[list[Any], WithJsonSchema({"type": "array", "items": _ROW})]
"""Rows of a reply, of any form."""


class Notes(Strict):
    """The reply; its rows are parsed one by one, so that an invalid row affects no other."""

    entities: RowList = Field(default_factory=list)
    facts: RowList


@dataclass(frozen=True, slots=True)
class Thing:
    """An entity of a reply: its name, its class or a noun, and other names of it."""

    name: str
    kind: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A fact of a reply; an end is an entity's number or words. Nothing is checked."""

    head: int | str
    relation: str
    tail: int | str
    sentences: tuple[int, ...]
    marks: tuple[str, ...] = ()


_DIGITS = re.compile(r"(?:(?<=\d)-|(?<![-\d]))(\d{1,5})")
"""A number that is not negative, or a range."""
_MOST_CITED = 12
_LONGEST_ROW = 600
"""Characters of a row that a reject shows."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The parsed reply about a window; `broken`: the invalid rows, as text."""

    things: Mapping[int, Thing]
    rows: tuple[Row, ...]
    broken: tuple[str, ...]


def read_window(content: str) -> Reading:
    """Entities by number and facts in the order of the reply.

    Raises:
        ReplyError: the reply is no JSON of the schema.
    """
    notes = parse_json(content, Notes)
    things: dict[int, Thing] = {}
    rows: list[Row] = []
    broken: list[str] = []
    for row in notes.entities:
        match clean_row(row):
            case [int() as number, str() as name, *others] if name and number not in things:
                kind, *more = [each for each in others if isinstance(each, str)] or [""]
                things[number] = Thing(name, kind, tuple(each for each in more if each))
            case _:
                broken.append(_show(row))
    for row in notes.facts:
        match clean_row(row):
            case [head, str() as relation, (int() | str()) as tail, cited, *marks] if relation:
                sentences = _read_numbers(cited)
                words = tuple(mark for mark in marks if isinstance(mark, str) and mark)
                head = head if isinstance(head, int) else str(head or "")
                rows.append(Row(head, relation, tail, sentences, words))
            case _:
                broken.append(_show(row))
    return Reading(things, tuple(rows), tuple(broken))


def clean_row(row: object) -> list[Any]:
    """The parts of a row, with single spaces between words; a subject in digits is a number."""
    if not isinstance(row, list):
        return []
    parts = [" ".join(part.split()) if isinstance(part, str) else part for part in row]
    parts = [None if isinstance(part, bool) else part for part in parts]
    if parts and isinstance(parts[0], str) and parts[0].isascii() and parts[0].isdigit():
        parts[0] = int(parts[0][:6])
    return parts


def _read_numbers(cited: object) -> tuple[int, ...]:
    """The numbers of sentences in any notation, distinct and in order."""
    numbers = {int(digits) for digits in _DIGITS.findall(str(cited))}
    return tuple(sorted(numbers))[: _MOST_CITED + 1]


def _show(row: object) -> str:
    return flatten(str(row), _LONGEST_ROW) or "an empty row"


# Requests: the ontology in words, then the window.


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """An ontology in words: the kinds and relations that a reply may name.

    `classes`: label, comment and entity type of each, "" without one. `properties`: label of the
    domain, label, and the kind of value.
    """

    classes: tuple[tuple[str, str, str], ...] = ()
    properties: tuple[tuple[str, str, str], ...] = ()

    @property
    def types(self) -> dict[str, str]:
        """Entity types by lower-case class."""
        return {label.casefold(): kind for label, _, kind in self.classes}

    @property
    def relations(self) -> frozenset[str]:
        """The labels of the properties in lower case."""
        return frozenset(label.casefold() for _, label, _ in self.properties)

    def name_class(self, kind: str, noun: str) -> str:
        """The class of an entity type; without one the noun, in the format of a reply."""
        named = (label for label, _, entity_type in self.classes if entity_type == kind)
        return next(named, f"other: {noun}")


NO_VOCABULARY = Vocabulary()


@lru_cache(maxsize=8)
def write_instructions(settings: CascadeSettings, vocabulary: Vocabulary) -> str:
    """The message that is the same for every window of a build, so that servers can cache it."""
    return render_prompt(
        "merged",
        settings,
        [_show_example(example) for example in settings.examples],
        vocabulary=vocabulary,
        person=vocabulary.name_class("PERSON", "person"),
        firm=vocabulary.name_class("ORG", "company"),
        town=vocabulary.name_class("GPE", "city"),
        born="birth year" if "birth year" in vocabulary.relations else "was born in",
        died="death year" if "death year" in vocabulary.relations else "died in",
    )


MERGED = make_task(
    "merged",
    Notes,
    Expected(reply=1.4),
    lambda settings: write_instructions(settings.cascade, NO_VOCABULARY),
    without='[cascade] with "rules": the kinds of names, and the facts that no rule reads',
)
"""f_par, f_ent, f_rel and f_ins in one call: entities with their class, facts that cite."""


def ask_window(
    chunk: Chunk, settings: CascadeSettings, vocabulary: Vocabulary, max_tokens: int
) -> Request:
    """The request for the facts of a window; a reply may have a token per character of it."""
    return MERGED.request(
        write_instructions(settings, vocabulary),
        show_window(chunk),
        max_tokens=max(max_tokens, len(chunk.text)),
        subject=chunk.text,
        document=chunk.document,
    )


def _show_example(example: Example) -> dict[str, str]:
    """A text and its reply in the format of a window; entities of an example have no class."""
    names = split_commas(example.entities)
    reply = note_triples(example.text, names, example.triples, uncited=1)
    return {"given": show_window(Chunk(example.text)), "reply": write_json(reply)}


def note_triples(
    text: str, names: Sequence[str], rows: Iterable[Sequence[str]], *, uncited: int
) -> dict[str, JsonValue]:
    """A reply about a window, from names and triples; a row that is no triple is unchanged.

    A triple cites the smallest run of sentences that names head and tail, without one `uncited`.
    """
    number = {name.casefold(): place for place, name in reversed([*enumerate(names, 1)])}
    facts: list[JsonValue] = []
    for row in rows:
        if len(row) != 3:
            facts.append([*row])
            continue
        head, relation, tail = row
        first, last = (number.get(end.casefold(), end) for end in (head, tail))
        facts.append([first, relation, last, cite(text, (head, tail)) or uncited])
    things: list[JsonValue] = [[place, name, "other"] for place, name in enumerate(names, 1)]
    return {"entities": things, "facts": facts}


def cite(text: str, ends: Iterable[str]) -> JsonValue:
    """The numbers of the smallest run of sentences that names all ends; None without one."""
    span = find_naming(text, [*ends])
    if span is None:
        return None
    cited: list[JsonValue] = [
        number
        for number, each in enumerate(list_sentences(text), 1)
        if span.start <= each.start and each.end <= span.end
    ]
    return cited[0] if len(cited) == 1 else cited


# A reply checked against its window.

_HELD = {"possible", "planned", "former"}
_FLAGS = _HELD | {"reported"}
_FIRST = frozenset("i me my we us our".split())
_LEAD = {"time": re.compile(r"\A(?i:in|on|at|during) "), "place": re.compile(r"\A(?i:in|at) ")}
"""Prepositions that add nothing to a time or a place; the rules leave them out."""
_KEYS = {"time": "time", "place": "place", "if": CONDITION, "amount": "quantity", "by": "by"}


@dataclass(frozen=True, slots=True)
class WindowExtraction(Extraction):
    """The extraction of a window; `kinds`: mentions of its entities with the replied class.

    `unanswered`: why its second look or its check had no usable reply; details name these.
    """

    kinds: tuple[tuple[Mention, str], ...] = ()
    unanswered: tuple[Failure, ...] = ()


@dataclass(slots=True)
class _Window:
    """A window with its reply, and the results so far."""

    text: Text
    reading: Reading
    vocabulary: Vocabulary
    sentences: list[Span]
    known: frozenset[str]
    claims: dict[tuple[int, ...], int] = field(default_factory=dict)
    dropped: list[Dropped] = field(default_factory=list)

    def drop(self, reason: str, words: str, span: Span | None = None) -> None:
        self.dropped.append(Dropped(reason, words, span or self.text.whole))

    def name(self, end: int | str, cited: frozenset[str]) -> Thing | str | None:
        """The entity of a number, or the words of a value; None for a number that has none.

        Digits in quotation marks are a number where the sentences do not contain them.
        """
        if isinstance(end, str) and end.isascii() and end.isdigit() and end not in cited:
            end = int(end[:6])
        return self.reading.things.get(end) if isinstance(end, int) else end or None


def ground_window(text: Text, reading: Reading, vocabulary: Vocabulary) -> WindowExtraction:
    """The extraction of a window: claims are the sentences that its facts cite.

    Rejects, besides those of `ground_triples`: `no_evidence` (no such sentence, or too many),
    `unknown_qualifier`.
    """
    context = " ".join(words for _, words in text.chunk.context)
    known = text.words | text.title | list_forms(context)
    known |= AUTHORS if known & _FIRST else frozenset()
    window = _Window(text, reading, vocabulary, list_sentences(text.chunk.text), known)
    for shown in reading.broken:
        window.drop("not_a_triple", shown)

    def ground() -> Iterator[Grounded]:
        for row in reading.rows:
            head, tail = (_show_end(end, reading) for end in (row.head, row.tail))
            shown, spans = show_row(Triple(head, row.relation, tail)), _cite(window, row)
            made = _ground_row(window, row, spans) if spans else "no_evidence"
            yield made, shown[:_LONGEST_ROW], cover(spans) if spans else text.whole

    facts, dropped = take_facts(ground(), count_allowed(text.chunk.text))
    window.dropped += dropped
    return _finish(window, facts, vocabulary.types)


def _cite(window: _Window, row: Row) -> list[Span]:
    count = len(window.sentences)
    right = row.sentences and len(row.sentences) <= _MOST_CITED
    if not right or any(not 1 <= number <= count for number in row.sentences):
        return []
    return [window.sentences[number - 1] for number in row.sentences]


def _show_end(end: int | str, reading: Reading) -> str:
    thing = reading.things.get(end) if isinstance(end, int) else None
    return thing.name if thing else str(end)


def _ground_row(window: _Window, row: Row, spans: Sequence[Span]) -> Fact | str:
    """The fact of a row, or the reason of its rejection."""
    text = window.text
    quoted = quote(text, spans)
    cited = list_forms(quoted)
    ends = [window.name(end, cited) for end in (row.head, row.tail)]
    if ends[0] is None or ends[1] is None:
        return "not_a_triple"
    names = [end.name if isinstance(end, Thing) else end for end in ends if end]
    if any(map(is_pronoun, names)):
        return "pronoun"
    if guess_literal(names[0]) is not None:
        return "head_is_literal"
    relation, tail, denied = complete_relation(
        Triple(names[0], row.relation, names[1]), quoted, text
    )
    if names[0].casefold() == tail.casefold():
        return "self_reference"
    if relation.casefold() not in window.vocabulary.relations:
        fault = find_relation_fault(relation, quoted, text)
        # A copula or "has" is the text's relation between two ends, and their classes are known.
        joins = fault == "empty_relation" and relation.split()[0].casefold() in BE | HAVE
        if fault is not None and not joins:
            return fault
    if not all(is_supported(name, window.known) for name in names):
        return "unsupported"
    if not any(_is_named(end, cited) for end in ends if end) and not _refers(quoted):
        return "unsupported"
    claim = window.claims.setdefault(row.sentences, len(window.claims))
    head, head_span = take_words(text, names[0], spans)
    tail, tail_span = take_words(text, tail, spans)
    stance = _read_marks(window, row, cited)
    place = locate_name(text, relation, spans, exact=True)
    modality = next((flag for flag in stance if flag in _FLAGS), None)
    if modality in _HELD:  # in the relation's words, as the rules leave it
        is_property = relation.casefold() in window.vocabulary.relations
        relation = hold(relation, modality, names=is_property)
        modality = None
    modal = relation.split()[0].casefold()
    return Fact(
        claim,
        head,
        relation,
        tail,
        head_span=head_span,
        relation_span=place,
        tail_span=tail_span,
        negated=denied or "not" in stance,
        modality=modality or (modal if modal in MODALS else None),
        attribution=stance.get("by"),
        qualifiers={
            name: stance[name] for name in _KEYS.values() if name in stance and name != "by"
        },
        confidence=CONFIDENCE if head_span and tail_span else RESOLVED_CONFIDENCE,
    )


def _is_named(end: Thing | str, cited: frozenset[str]) -> bool:
    """Whether sentences contain an end: a name or number of it, or most of its words."""
    names = (end.name, *end.others) if isinstance(end, Thing) else (end,)
    telling = [
        word.casefold() for name in names for word in LETTERS.findall(name) if is_telling(word)
    ]
    return any(word in cited for word in telling) or any(
        is_supported(name, cited) and not cited.isdisjoint(list_words(name)) for name in names
    )


def _refers(quoted: str) -> bool:
    """Whether sentences refer to something by a pronoun or an article: "it", "the company"."""
    words = LETTERS.findall(quoted)
    return any(is_pronoun(word) or word.casefold() == "the" for word in words)


def _read_marks(window: _Window, row: Row, cited: frozenset[str]) -> dict[str, str]:
    """Qualifiers and flags by name; an unknown or unsupported one is rejected by itself."""
    qualifiers: dict[str, str] = {}
    for mark in row.marks:
        name, _, words = (part.strip() for part in mark.partition(":"))
        name = name.casefold()
        if not words and (name == "not" or name in _FLAGS):
            qualifiers.setdefault(name, name)
        elif not words and name == "fact":
            continue
        elif name not in _KEYS or not words:
            window.drop("unknown_qualifier", flatten(f"{row.relation}: {mark}", _LONGEST_ROW))
        elif any(map(is_telling, list_strange(words, cited | window.known))):
            window.drop("unsupported", flatten(f"{row.relation}: {mark}", _LONGEST_ROW))
        else:
            bare = _LEAD[name].sub("", words, count=1) if name in _LEAD else words
            qualifiers.setdefault(_KEYS[name], bare)
    return qualifiers


def _finish(window: _Window, facts: tuple[Fact, ...], types: Mapping[str, str]) -> WindowExtraction:
    text, things = window.text, window.reading.things.values()
    claims = []
    for numbers in window.claims:
        spans = tuple(window.sentences[number - 1] for number in numbers)
        claims.append(Claim(" ".join(quote(text, spans).split()), spans))
    supported = [thing for thing in things if is_supported(thing.name, window.known)]
    type_of: dict[str, str] = {}
    for thing in supported:
        kind = _find_type(thing, types)
        for name in (thing.name, *thing.others):
            if kind is not None and not is_pronoun(name):
                type_of.setdefault(name.casefold(), kind)
    for thing in things:
        if thing not in supported:
            window.drop("unsupported", flatten(f"{thing.name} ({thing.kind})", _LONGEST_ROW))
    names = [n for thing in supported for n in (thing.name, *thing.others) if not is_pronoun(n)]
    mentions = find_mentions(text, claims, names, facts, type_of)
    first: dict[str, Mention] = {}
    for mention in mentions:
        first.setdefault(mention.text.casefold(), mention)
    kinds = tuple(
        (mention, thing.kind)
        for thing in supported
        for mention in [first.get(thing.name.casefold())]
        if mention and thing.kind.casefold() in types
    )
    return WindowExtraction(tuple(claims), mentions, facts, tuple(window.dropped), kinds)


def _find_type(thing: Thing, types: Mapping[str, str]) -> str | None:
    """The entity type of a thing's class, else of its noun; None where they have none."""
    kind = thing.kind.casefold()
    noun = kind.removeprefix("other").strip(" :-").rpartition(" ")[2]
    of_noun = (find_kind_label(noun) or UNKNOWN) if noun else None
    return guess_literal(thing.name) or types.get(kind) or of_noun
