"""Evidence has to say something of what it is quoted for; nothing that is given up goes unseen."""

import json
from dataclasses import replace

import pytest

from kpyramid.documents.sentences import Dropped, Span
from kpyramid.extraction.cascade.grounding import RESOLVED_CONFIDENCE
from kpyramid.extraction.types import Chunk, Claim, Extraction, Fact, Mention, cut_extraction
from kpyramid.llm.task import Request
from tests.cascade_script import PAPER, list_reasons, read_one, read_row
from tests.rows import each_row, read_bodies

TEXT = (
    "Ole Krag was in Paris for a year. He visited London and bought a house there. The town is old."
)
CHUNK = Chunk(TEXT)
INVENTED = ("Ole Krag", "owns", "London")


@pytest.mark.parametrize("evidence", [".", "the", "in", "He", "was in", "for a", "The ... is"])
def test_evidence_without_a_word_that_says_something_is_none(evidence: str) -> None:
    assert read_row(INVENTED, evidence, "Ole Krag owns London.", CHUNK) == "no_evidence"


@each_row(
    "triple, evidence",
    "cascade_support.ends_without_evidence",
)
@pytest.mark.parametrize("title", [None, "Ole Krag"])
def test_an_end_that_the_evidence_says_nothing_of_makes_no_fact(
    triple: tuple[str, str, str], evidence: str, title: str | None
) -> None:
    chunk = replace(CHUNK, title=title)
    claim = f"{triple[0]} {triple[1]} {triple[2]}."
    assert read_row(triple, evidence, claim, chunk) == "unsupported"


@each_row("triple, evidence, claim, title")
def test_an_end_may_stand_outside_of_the_evidence_that_says_something_of_it(
    triple: tuple[str, str, str], evidence: str, claim: str, title: str | None
) -> None:
    fact = read_row(triple, evidence, claim, replace(CHUNK, title=title))
    assert isinstance(fact, Fact)
    assert (fact.head, fact.head_span, fact.confidence) == ("Ole Krag", None, RESOLVED_CONFIDENCE)


def test_an_end_may_be_what_the_rules_took_the_evidence_to_speak_of() -> None:
    at = TEXT.index("The town")
    triple, evidence = ("Skagen", "is", "old town"), TEXT[at:]
    assert read_row(triple, evidence, "Skagen is old.", CHUNK) == "unsupported"
    found = Extraction(claims=(Claim("Skagen is old.", (Span(at, len(TEXT)),)),))
    fact = read_row(triple, evidence, evidence, replace(CHUNK, extraction=found))
    assert isinstance(fact, Fact)
    assert fact.head == "Skagen"


# Disambiguation.

SOLD = "Krag founded Acme in 1901 and sold Acme in 1910. Krag led Bolt."


@pytest.mark.parametrize(
    ("replied", "facts", "gone"),
    read_bodies("cascade_support.of_triples_with_the_same_ends_each_one_that_goes_is_counted"),
    ids=str,
)
def test_of_triples_with_the_same_ends_each_one_that_goes_is_counted(
    replied: list[str], facts: list[str], gone: list[str]
) -> None:
    def write(rows: list[str]) -> list[dict[str, str]]:
        return [
            {"head": "Krag", "relation": relation, "tail": tail}
            for relation, tail in (row.split() for row in rows)
        ]

    def answer(request: Request) -> str:
        replies: dict[str, object] = {
            "paraphrase": {"claims": [{"evidence": SOLD, "claim": SOLD}]},
            "entities": {"entities": ["Krag", "Acme", "Bolt"]},
            "relations": {"triples": write(["founded Acme", "sold Acme", "led Bolt"])},
            "disambiguation": {"triples": write(replied)},
        }
        return json.dumps(replies[request.task])

    made = read_one(answer, PAPER, Chunk(SOLD))
    assert [f"{fact.relation} {fact.tail}" for fact in made.facts] == facts
    assert [dropped.text for dropped in made.dropped] == [
        f"Krag | {row.replace(' ', ' | ')}" for row in gone
    ]
    assert set(list_reasons(made)) <= {"repeated"}


# A sentence that was cut.


def test_a_clause_that_goes_on_behind_a_chunk_belongs_to_where_it_begins() -> None:
    found = Extraction(
        claims=(Claim("over the end", (Span(2, 5), Span(28, 40))),),
        mentions=(Mention(0, "a", "ORG", Span(28, 29)), Mention(0, "b", "GPE", Span(38, 40))),
        facts=(Fact(0, "a", "r", "b", Span(28, 29), None, Span(38, 40)),),
        dropped=(Dropped("x", "y", Span(28, 32)),),
    )
    whole = cut_extraction([(0, found)], 0, 50)
    assert whole == found
    parts = [cut_extraction([(0, found)], start, start + 10) for start in (10, 20, 30)]
    assert [len(part.claims) for part in parts] == [0, 1, 0]
    assert parts[1].claims[0].spans == (Span(8, 10),)
    assert parts[1].mentions == (Mention(0, "a", "ORG", Span(8, 9)),)
    assert parts[1].facts == (Fact(0, "a", "r", "b", Span(8, 9), None, None),)
    assert parts[1].dropped == (Dropped("x", "y", Span(8, 10)),)
