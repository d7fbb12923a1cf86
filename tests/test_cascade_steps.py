"""The steps of the cascade: each sees what the last one made, of a model or of the rules."""

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest

from kpyramid.documents.sentences import Dropped, Span
from kpyramid.extraction.types import Claim, Extraction, Fact, Mention, Titled
from kpyramid.llm.task import Request
from kpyramid.settings import CascadeSettings
from tests.cascade_script import (
    BY_RULES,
    CHUNK,
    CLAIMS,
    PAPER,
    RULED,
    STEPS,
    TEXT,
    ScriptedAsker,
    answer_paper,
    list_reasons,
    list_triples,
    open_cascade,
    read_one,
    refuse_rules,
)

# Paper mode, step by step.


def test_four_steps_follow_each_other_and_each_sees_what_the_last_one_made() -> None:
    asker = ScriptedAsker(answer_paper)
    (made,) = open_cascade(asker, PAPER).read([CHUNK], refuse_rules)
    assert isinstance(made, Extraction)
    assert asker.tasks == ["paraphrase", "entities", "relations", "disambiguation"]
    shown = [request.messages[1].content for request in asker.asked]
    assert TEXT in shown[0]
    assert TEXT not in "".join(shown[1:])
    assert "- Marie Curie shared the Nobel Prize." in shown[1]
    assert "- Nobel Prize" in shown[2]
    assert "- Marie Curie | is native of | Warsaw" in shown[3]
    assert list_triples(made) == [
        ("Marie Curie", "was born in", "Warsaw"),
        ("Marie Curie", "won", "Nobel Prize"),
    ]
    assert [fact.claim for fact in made.facts] == [0, 1]


def test_without_a_claim_that_the_text_supports_no_further_step_is_asked() -> None:
    asker = ScriptedAsker(lambda _: '{"claims": [{"evidence": "invented", "claim": "c"}]}')
    (made,) = open_cascade(asker, PAPER).read([CHUNK], refuse_rules)
    assert isinstance(made, Extraction)
    assert (asker.tasks, list_reasons(made)) == (["paraphrase"], ["no_evidence"])


# Steps of the rules between those of the model.


def read_by_rules(texts: Iterable[Titled]) -> list[tuple[Titled, Extraction]]:
    """Rules that relate the first word to the last."""
    found = []
    for titled in texts:
        text = titled.text
        tail = text.rstrip(".").rpartition(" ")[2]
        at = text.index(tail)
        extraction = Extraction(
            claims=(Claim(text, (Span(0, len(text)),)),),
            mentions=(Mention(0, tail, "GPE", Span(at, at + len(tail))),),
            facts=(Fact(0, "Marie Curie", "met", tail, Span(0, 11), None, Span(at, at + 1)),),
            dropped=(Dropped("empty_relation", text, Span(0, 3)),),
        )
        found.append((titled, extraction))
    return found


@pytest.mark.parametrize(
    "backends",
    [
        tuple("llm" if number >> at & 1 else "rules" for at in range(4))
        for number in range(16)
        if number & 0b111
    ],
    ids="-".join,
)
def test_every_mixture_of_steps_asks_the_models_and_keeps_spans_true(
    backends: tuple[str, ...],
) -> None:
    choice = CascadeSettings(mode="paper", **dict(zip(STEPS, backends, strict=True)))  # type: ignore[arg-type]
    asker = ScriptedAsker(answer_paper)
    cascade = open_cascade(asker, choice)
    (made,) = cascade.read([RULED], read_by_rules)
    assert isinstance(made, Extraction)
    expected = [step for step, maker in zip(STEPS, backends, strict=True) if maker == "llm"]
    if "disambiguation" in expected and backends[0] == backends[2] == "rules":
        expected.remove("disambiguation")  # the rules' single triple repeats nothing
    assert asker.tasks == expected
    claims = [claim.text for claim in made.claims]
    if backends[0] == "rules":
        assert made.claims == BY_RULES.claims
    else:
        assert claims == [claim["claim"] for claim in CLAIMS]
    assert made.facts
    assert {m.text for m in made.mentions} >= {"Warsaw"}
    for fact in made.facts:
        for words, span in ((fact.head, fact.head_span), (fact.tail, fact.tail_span)):
            assert span is None or TEXT[span.start : span.end] == words
    claims_by, facts_by = cascade.producers
    assert claims_by == ("m" if backends[0] == "llm" else "rules")
    assert facts_by == ("m" if "llm" in backends[2:] else "rules")


def test_a_model_may_reword_the_rules_relations_and_no_more() -> None:
    twice = replace(
        BY_RULES, facts=(*BY_RULES.facts, replace(BY_RULES.facts[0], relation="is native of"))
    )

    def answer(request: Request) -> str:
        if request.task == "entities":
            return '{"entities": ["Warsaw"]}'
        return json.dumps(
            {"triples": [{"head": "Marie Curie", "relation": "comes from", "tail": "Warsaw"}]}
        )

    choice = CascadeSettings(mode="paper", entities="llm", disambiguation="llm")
    made = read_one(answer, choice, replace(CHUNK, found=twice))
    assert made.facts == (replace(BY_RULES.facts[0], relation="comes from", relation_span=None),)
