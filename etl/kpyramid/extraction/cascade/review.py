"""A window reviewed by the model that read it: a second look, and a check of facts drawn by hash.

The second look is at the sentences that no fact cites, though the rules detect a predicate there.
The check compares facts with their sentences; facts that these do not state are withheld.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kpyramid.documents.sentences import Dropped
from kpyramid.extraction.cascade.evidence import Text, locate_quotation
from kpyramid.extraction.cascade.grounding import cover
from kpyramid.extraction.cascade.tasks import render_prompt
from kpyramid.extraction.cascade.windows import (
    NO_VOCABULARY,
    Notes,
    Reading,
    RowList,
    Vocabulary,
    WindowExtraction,
    clean_row,
    list_sentences,
    show_lines,
    write_instructions,
)
from kpyramid.extraction.types import Chunk, Fact, find_clause
from kpyramid.keys import JsonValue, hash_value
from kpyramid.llm.task import Expected, Request, Strict, Task, parse_json
from kpyramid.settings import CascadeSettings, Settings

# The second look.

_CHARACTERS_PER_FACT = 70
"""Characters of text per fact: 8,500 characters of recorded passages gave 122 facts."""


SECOND = Task(
    name="second",
    version=1,
    stage="extract",
    reply=Notes,
    system=lambda settings: _instruct_second(settings.cascade, NO_VOCABULARY),
    is_asked=lambda settings: settings.cascade.reads_windows and settings.cascade.glean > 0,
    expected=Expected(reply=1.0, material=2.5, follows=lambda _, size: (0.5, size // 5)),
    without="cascade.glean = 0: a fact or two of a hundred",
)
"""A second extraction from the sentences that no fact cites: f_par, f_ent and f_rel again."""


def _instruct_second(settings: CascadeSettings, vocabulary: Vocabulary) -> str:
    """The instructions; they begin with those of the first look, which servers cache."""
    return write_instructions(settings, vocabulary) + render_prompt("second", settings, ())


def list_unread(made: WindowExtraction, chunk: Chunk) -> list[int]:
    """The numbers of sentences that no fact cites though the rules detect a predicate there."""
    cited = {span for fact in made.facts for span in made.claims[fact.claim].spans}
    clauses = [find_clause(claim) for claim in chunk.extraction.claims if claim.predicate]
    return [
        number
        for number, each in enumerate(list_sentences(chunk.text), 1)
        if each not in cited and any(each.start <= clause.start < each.end for clause in clauses)
    ]


def ask_second(
    chunk: Chunk,
    reading: Reading,
    numbers: Sequence[int],
    settings: CascadeSettings,
    vocabulary: Vocabulary,
    max_tokens: int,
) -> Request:
    """The request for further facts of the sentences with these numbers."""
    known = "; ".join(f"{number} = {thing.name}" for number, thing in reading.things.items())
    shown = {"Entities so far": known, "Sentences in question": ", ".join(map(str, numbers))}
    spans = list_sentences(chunk.text)
    asked = (spans[number - 1] for number in numbers)
    return SECOND.request(
        _instruct_second(settings, vocabulary),
        show_lines(chunk, shown, _list_near(numbers, 1)),
        max_tokens=max_tokens,
        subject=" ".join(chunk.text[span.start : span.end] for span in asked),
        document=chunk.document,
    )


def join_readings(first: Reading, second: Reading) -> Reading:
    """The union of two readings; new entities of the second get numbers of their own."""
    most = max(first.things, default=0)

    def place(end: int | str) -> int | str:
        return end + most if isinstance(end, int) and end in second.things else end

    rows = (replace(row, head=place(row.head), tail=place(row.tail)) for row in second.rows)
    things = {number + most: thing for number, thing in second.things.items()}
    return Reading({**first.things, **things}, (*first.rows, *rows), first.broken + second.broken)


def _list_near(numbers: Sequence[int], before: int) -> list[int]:
    """The numbers, with the `before` numbers preceding each."""
    return sorted({n for number in numbers for n in range(max(1, number - before), number + 1)})


# The check.

STATED, PARTLY, NOT_STATED = "stated", "partly", "not_stated"
"""Verdicts: sentences state the fact; they state it, but it omits or blurs what makes it true; they
do not state it, and it is withheld."""


class Verdicts(Strict):
    """The reply: rows with fact, evidence and verdict, in this order."""

    verdicts: RowList


def _expect_check(settings: Settings, characters: int) -> tuple[float, int]:
    """The probability that a fact of a window is drawn, and the expected characters of these."""
    share = settings.cascade.check_share
    chance = 1 - (1 - share) ** (characters / _CHARACTERS_PER_FACT)
    return chance, round(share * characters / chance) if chance else 0


CHECK = Task(
    name="check",
    version=1,
    stage="extract",
    reply=Verdicts,
    system=lambda settings: render_prompt("check", settings.cascade, ()),
    is_asked=lambda settings: settings.cascade.reads_windows and settings.cascade.check_share > 0,
    expected=Expected(reply=1.5, material=6.0, follows=_expect_check),
    without="cascade.check_share = 0: the measured share of facts that are right",
)
"""Whether sentences state the facts that cite them; the evidence precedes its verdict."""


def draw_facts(made: WindowExtraction, share: float, seed: int) -> list[int]:
    """The indices of the facts whose hash, with their sentences and the seed, is below a share."""

    def draw(fact: Fact) -> float:
        words = (fact.head, fact.relation, fact.tail, fact.negated, fact.modality, fact.attribution)
        qualifiers: JsonValue = [[*pair] for pair in sorted(fact.qualifiers.items())]
        digest = hash_value([seed, made.claims[fact.claim].text, *words, qualifiers])
        return int(digest[:13], 16) / 16**13

    return [index for index, fact in enumerate(made.facts) if draw(fact) < share] if share else []


def ask_check(
    chunk: Chunk,
    made: WindowExtraction,
    drawn: Sequence[int],
    settings: CascadeSettings,
    max_tokens: int,
) -> Request:
    """The request to check facts against their sentences, each with the two before it."""
    numbers = {span: number for number, span in enumerate(list_sentences(chunk.text), 1)}
    cited = {i: [numbers[s] for s in made.claims[made.facts[i].claim].spans] for i in drawn}
    facts = [
        f"F{place}| {_show_fact(made.facts[i])} | {', '.join(map(str, cited[i]))}"
        for place, i in enumerate(drawn, 1)
    ]
    near = _list_near([number for each in cited.values() for number in each], 2)
    shown = "\n".join(facts)
    return CHECK.request(
        render_prompt("check", settings, ()),
        f"{show_lines(chunk, {}, near)}\nFacts:\n{shown}",
        max_tokens=max(max_tokens, len(shown)),
        subject=shown,
        document=chunk.document,
    )


def _show_fact(fact: Fact) -> str:
    marks = [
        *(["not"] if fact.negated else []),
        *([fact.modality] if fact.modality else []),
        *([f"by: {fact.attribution}"] if fact.attribution else []),
        *(f"{name}: {words}" for name, words in sorted(fact.qualifiers.items())),
    ]
    return " | ".join([fact.head, fact.relation, fact.tail, "; ".join(marks) or "-"])


Verdict = tuple[str, str]
"""The decisive words of the text, and the verdict."""


def read_verdicts(content: str) -> Mapping[int, Verdict]:
    """The verdicts by the number of the fact; invalid rows are left out.

    Raises:
        ReplyError: the reply is no JSON of the schema.
    """
    verdicts: dict[int, Verdict] = {}
    for row in parse_json(content, Verdicts).verdicts:
        match clean_row(row):
            case [int() | str() as fact, str() as evidence, str() as answer]:
                number, verdict = re.fullmatch(r"F?(\d{1,6})", str(fact)), answer.replace(" ", "_")
                if number and verdict in (STATED, PARTLY, NOT_STATED):
                    verdicts.setdefault(int(number[1]), (evidence, verdict))
    return verdicts


def apply_verdicts(
    text: Text, made: WindowExtraction, drawn: Sequence[int], verdicts: Mapping[int, Verdict]
) -> WindowExtraction:
    """The extraction with verdicts on its facts; those not stated are dropped: `not_stated`.

    A verdict is ignored where the text does not contain its evidence.
    """
    facts = dict(enumerate(made.facts))
    dropped = list(made.dropped)
    for place, index in enumerate(drawn, 1):
        evidence, verdict = verdicts.get(place, ("", ""))
        if evidence and not locate_quotation(text.chunk.text, text.folded, evidence):
            continue
        fact = facts[index]
        if verdict != NOT_STATED:
            facts[index] = replace(fact, verdict=verdict or None)
            continue
        shown = f"{fact.head} | {fact.relation} | {fact.tail}: {evidence or '-'}"
        dropped.append(Dropped(NOT_STATED, shown, cover(made.claims[fact.claim].spans)))
        del facts[index]
    return replace(made, facts=tuple(facts.values()), dropped=tuple(dropped))
