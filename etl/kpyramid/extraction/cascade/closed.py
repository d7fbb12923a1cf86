"""The tasks in the form that small local models keep to (setting `closed`).

A small model asked for a list repeats its first items until it is cut off, and cites the whole
text as evidence. So the sentences are numbered and the reply has one short list per number: it
cannot go round in circles, leaves no sentence out, and the number leads to the evidence. Likewise
relations: one short list per claim, heads and tails chosen from the entities that it names.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from pydantic import RootModel

from kpyramid.extraction.cascade.chunks import Chunk
from kpyramid.extraction.cascade.entities import split_commas
from kpyramid.extraction.cascade.evidence import assign_triples, find_evidence, list_words
from kpyramid.extraction.cascade.paraphrase import Statement
from kpyramid.extraction.cascade.prompts import (
    Form,
    Shown,
    Strict,
    make_request,
    show_parts,
    write_json,
    write_system,
)
from kpyramid.extraction.cascade.relations import Related, Triple, read_triple, show_triple
from kpyramid.extraction.text.sentences import split_sentences
from kpyramid.keys import JsonValue
from kpyramid.llm.responses import parse_json
from kpyramid.llm.types import FailureKind, ReplyError, Request
from kpyramid.model_settings import Example

MERGED, PARAPHRASE = "merged_closed", "paraphrase_closed"
ENTITIES, RELATIONS = "entities_closed", "relations_closed"
VERSION = 1

MOST_CLAIMS, MOST_ENTITIES, MOST_TRIPLES = 3, 6, 2
"""Per sentence, per sentence or claim, and per claim."""
MOST_WORDS = 6
"""Of an entity, as the prompt says; longer ones are clauses."""
_STARTS = frozenset("it its he his she her they their we our there this that which who".split())
"""Words that no entity begins with."""

EXAMPLE = Example(
    text="Hedda Lund, a Danish chemist, was born in Ribe in 1899. She taught at Aarhus University, "
    "which Ole Krag had founded.",
    claims=(
        "Hedda Lund was a Danish chemist.",
        "Hedda Lund was born in Ribe in 1899.",
        "Hedda Lund taught at Aarhus University.",
        "Ole Krag founded Aarhus University.",
    ),
    entities=("Hedda Lund", "Danish chemist", "Ribe", "1899", "Aarhus University", "Ole Krag"),
    triples=(
        ("Hedda Lund", "was a", "Danish chemist"),
        ("Hedda Lund", "was born in", "Ribe"),
        ("Hedda Lund", "was born in", "1899"),
        ("Hedda Lund", "taught at", "Aarhus University"),
        ("Ole Krag", "founded", "Aarhus University"),
    ),
)
"""The example of a project that gives none: small models learn from it how to take apart."""

_EXAMPLES = """
{% for example in examples %}

Example
{{ example.given }}
Reply: {{ example.reply }}
{% endfor %}"""

SYSTEMS: Mapping[str, str] = {
    PARAPHRASE: """\
You rewrite each numbered sentence of {{ domain }} texts in {{ language }} as short claims.
{{ guard }}
- One fact per claim: subject, verb, object. Replace every pronoun by the name it stands for.
- State only what that sentence says.
Reply with JSON only: for each number a list of one to three claims."""
    + _EXAMPLES,
    ENTITIES: """\
You list the entities that each numbered claim from {{ domain }} texts in {{ language }} names.
{{ guard }}
- Names, things, dates and quantities, worded as in the claim, one to six words each; no pronouns.
Reply with JSON only: for each number a list of entities."""
    + _EXAMPLES,
    MERGED: """\
You read each numbered sentence of {{ domain }} texts in {{ language }}.
{{ guard }}
- "entities": its names, things, dates and quantities, one to six words each; no pronouns.
- "claims": each of its facts as subject, verb, object. Replace every pronoun by the name it \
stands for. State only what that sentence says.
Reply with JSON only: for each number its entities and one to three claims."""
    + _EXAMPLES,
    RELATIONS: """\
You turn each numbered claim from {{ domain }} texts in {{ language }} into triples.
{{ guard }}
- Head and tail are entities of its list: head is what the claim is about, tail another one.
- The relation is the verb of the claim with its preposition, without head and tail.
Reply with JSON only: for each number a list of one or two triples."""
    + _EXAMPLES,
}


class Read(Strict):
    """What a sentence states, and of what."""

    entities: list[str]
    claims: list[str]


class Lists(RootModel[dict[str, list[str]]]):
    """A list of texts per number."""


class Readings(RootModel[dict[str, Read]]):
    """A reading per number."""


class Rows(RootModel[dict[str, list[Related]]]):
    """A list of triples per number."""


def list_sentences(text: str) -> list[str]:
    """The sentences of a text, as they stand there."""
    return [text[span.start : span.end] for span in split_sentences(text)]


def render_paraphrase(chunk: Chunk, form: Form) -> Request:
    """The question what each sentence of a chunk states."""
    sentences = list_sentences(chunk.text)
    schema = _number_schema(len(sentences), _list_schema(_TEXT, MOST_CLAIMS))
    return _make(PARAPHRASE, _show_sentences(sentences, chunk.title), schema, chunk, form)


def render_merged(chunk: Chunk, form: Form) -> Request:
    """The question what each sentence of a chunk states, and of what."""
    sentences = list_sentences(chunk.text)
    reading = _object_schema(
        {"entities": _list_schema(_TEXT, MOST_ENTITIES), "claims": _list_schema(_TEXT, MOST_CLAIMS)}
    )
    schema = _number_schema(len(sentences), reading)
    return _make(MERGED, _show_sentences(sentences, chunk.title), schema, chunk, form)


def render_entities(claims: Sequence[str], chunk: Chunk, form: Form) -> Request:
    """The question which entities each claim names."""
    schema = _number_schema(len(claims), _list_schema(_TEXT, MOST_ENTITIES))
    return _make(ENTITIES, _number(claims), schema, chunk, form)


def render_relations(
    claims: Sequence[str], entities: Sequence[str], chunk: Chunk, form: Form
) -> Request | None:
    """The question how each claim relates the entities it names; None when no claim names two.

    No other head or tail can be said. A claim that names fewer than two is not asked about.
    """
    asked = _list_asked(claims, entities)
    if not asked:
        return None
    rows = {
        number: _list_schema(_triple_schema(ends), MOST_TRIPLES) for number, ends in asked.items()
    }
    material = _show_claims({n: claims[int(n) - 1] for n in asked}, asked)
    return _make(RELATIONS, material, _object_schema(rows), chunk, form)


def parse_paraphrase(content: str, text: str) -> tuple[Statement, ...]:
    """The claims with the sentences that they rest on, each once.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    lists = parse_json(content, Lists).root
    _check_numbers(lists, _count_up(len(list_sentences(text))))
    return _pair(lists, text)


def parse_merged(content: str, text: str) -> tuple[tuple[str, ...], tuple[Statement, ...]]:
    """The entities, and the claims with the sentences that they rest on, each once.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    read = parse_json(content, Readings).root
    _check_numbers(read, _count_up(len(list_sentences(text))))
    entities = [entity for reading in read.values() for entity in reading.entities]
    return _clean_entities(entities), _pair({n: r.claims for n, r in read.items()}, text)


def parse_entities(content: str, claims: int) -> tuple[str, ...]:
    """The entities, each once.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    lists = parse_json(content, Lists).root
    _check_numbers(lists, _count_up(claims))
    return _clean_entities(entity for each in lists.values() for entity in each)


def parse_relations(
    content: str, claims: Sequence[str], entities: Sequence[str]
) -> tuple[tuple[Triple, ...], ...]:
    """A row of triples per claim, in the order of the reply; empty for one that was not asked.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    rows = parse_json(content, Rows).root
    _check_numbers(rows, _list_asked(claims, entities))
    return tuple(
        tuple(read_triple(row) for row in rows.get(str(number), ()))
        for number in range(1, len(claims) + 1)
    )


@lru_cache(maxsize=16)
def write_static(name: str, form: Form) -> str:
    """The part of a task's prompt that all chunks share."""
    return write_system(
        SYSTEMS[name],
        form,
        [_show_example(name, each) for each in form.settings.examples or (EXAMPLE,)],
    )


def describe_form(name: str, form: Form) -> dict[str, JsonValue]:
    """The form of a task's schemas, which differ from chunk to chunk: that of a fixed example."""
    chunk, claims, ends = Chunk(EXAMPLE.text), EXAMPLE.claims, EXAMPLE.entities
    requests: Mapping[str, Callable[[], Request | None]] = {
        PARAPHRASE: lambda: render_paraphrase(chunk, form),
        MERGED: lambda: render_merged(chunk, form),
        ENTITIES: lambda: render_entities(claims, chunk, form),
        RELATIONS: lambda: render_relations(claims, ends, chunk, form),
    }
    request = requests[name]()
    assert request is not None  # the claims of the example name two
    return dict(request.schema)


_TEXT: JsonValue = {"type": "string"}


def _object_schema(properties: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _triple_schema(ends: Sequence[str]) -> JsonValue:
    name: JsonValue = {"type": "string", "enum": list(ends)}
    return _object_schema({"head": name, "relation": _TEXT, "tail": name})


def _list_schema(items: JsonValue, most: int) -> JsonValue:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}


def _number_schema(count: int, each: JsonValue) -> dict[str, JsonValue]:
    return _object_schema(dict.fromkeys(_count_up(count), each))


def _make(
    name: str, material: str, schema: Mapping[str, JsonValue], chunk: Chunk, form: Form
) -> Request:
    return make_request(name, VERSION, write_static(name, form), material, schema, chunk, form)


def _count_up(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


def _list_asked(claims: Sequence[str], entities: Sequence[str]) -> dict[str, list[str]]:
    """The claims that name two entities or more, by number, with these."""
    named = zip(_count_up(len(claims)), claims, strict=True)
    found = {number: _list_named(claim, entities) for number, claim in named}
    return {number: ends for number, ends in found.items() if len(ends) > 1}


def _check_numbers(found: Collection[str], asked: Collection[str]) -> None:
    """What the schema demanded: a server may have ignored it."""
    if set(found) != set(asked):
        raise ReplyError(FailureKind.INVALID, f"not one list for each of {', '.join(asked)}")


def _number(lines: Iterable[str]) -> str:
    return "\n".join(f"{n}: {' '.join(line.split())}" for n, line in enumerate(lines, 1))


def _show_sentences(sentences: Sequence[str], title: str | None) -> str:
    title = " ".join((title or "").split())
    return "\n".join(([show_parts({"Title": title})] if title else []) + [_number(sentences)])


def _show_claims(claims: Mapping[str, str], entities: Mapping[str, Sequence[str]]) -> str:
    return "\n".join(f"{n}: {claim} [{'; '.join(entities[n])}]" for n, claim in claims.items())


def _pair(claims: Mapping[str, Sequence[str]], text: str) -> tuple[Statement, ...]:
    """The claims, each once, with their sentences.

    A model that runs ahead says under one number what the next sentence states: the evidence is
    the sentence with most of the claim's words, at a tie the one of the number.
    """
    sentences = [(sentence, set(list_words(sentence))) for sentence in list_sentences(text)]
    pairs: dict[str, Statement] = {}
    for number, numbered in enumerate(sentences, 1):
        for claim in claims.get(str(number), ()):
            words = set(list_words(claim))
            shared = [len(words & known) for _, known in (numbered, *sentences)]
            best = (numbered, *sentences)[shared.index(max(shared))]
            stated = " ".join(claim.split())
            pairs.setdefault(stated.casefold(), Statement(stated, best[0]))
    return tuple(pairs.values())


def _clean_entities(entities: Iterable[str]) -> tuple[str, ...]:
    """The entities, each once, without clauses: a small model lists those too."""
    kept = []
    for entity in entities:
        words = list_words(entity)
        if 0 < len(words) <= MOST_WORDS and words[0] not in _STARTS:
            kept.append(entity.strip().rstrip("."))
    return split_commas(kept)


def _show_example(name: str, example: Example) -> Shown:
    sentences = list_sentences(example.text)
    stated: list[list[str]] = [[] for _ in sentences]
    for claim in example.claims:
        stated[sentences.index(find_evidence(example.text, claim))].append(claim)
    entities = split_commas(example.entities)
    reply: list[JsonValue]
    if name == PARAPHRASE:
        given, reply = _show_sentences(sentences, None), list(stated)
    elif name == MERGED:
        given = _show_sentences(sentences, None)
        reply = [
            {"entities": _list_named(sentence, entities), "claims": claims}
            for sentence, claims in zip(sentences, stated, strict=True)
        ]
    elif name == ENTITIES:
        given = _number(example.claims)
        reply = [_list_named(claim, entities) for claim in example.claims]
    else:
        claims = {str(n): claim for n, claim in enumerate(example.claims, 1)}
        given = _show_claims(claims, {n: _list_named(c, entities) for n, c in claims.items()})
        rows = assign_triples(example.claims, example.triples)
        reply = [[show_triple(*row) for row in each] for each in rows]
    return Shown(given, write_json({str(n): each for n, each in enumerate(reply, 1)}))


def _list_named(text: str, entities: Sequence[str]) -> list[str]:
    """The entities that a text names, in its order."""
    words = " ".join(list_words(text))
    found = [(f" {words} ".find(f" {' '.join(list_words(e))} "), e) for e in entities]
    return [entity for at, entity in sorted(found, key=lambda pair: pair[0]) if at >= 0]
