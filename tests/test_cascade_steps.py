"""The steps of the cascade: each sees what the last one made, of a model or of the rules."""

import json
from dataclasses import replace

import pytest

from kpyramid.extraction.types import Extraction
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
)

# Paper mode, step by step.


def test_four_steps_follow_each_other_and_each_sees_what_the_last_one_made() -> None:
    asker = ScriptedAsker(answer_paper)
    (made,) = open_cascade(asker, PAPER).read([CHUNK])
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
    (made,) = open_cascade(asker, PAPER).read([CHUNK])
    assert isinstance(made, Extraction)
    assert (asker.tasks, list_reasons(made)) == (["paraphrase"], ["no_evidence"])


# Steps of the rules between those of the model.


@pytest.mark.parametrize(
    "backends",
    [
        tuple("llm" if number >> at & 1 else "rules" for at in range(4))
        for number in range(16)
        if number & 0b111 and number & 0b101 != 0b001  # the rules relate no paraphrase
    ],
    ids="-".join,
)
def test_every_mixture_of_steps_asks_the_models_and_keeps_spans_true(
    backends: tuple[str, ...],
) -> None:
    choice = CascadeSettings(mode="paper", **dict(zip(STEPS, backends, strict=True)))  # type: ignore[arg-type]
    asker = ScriptedAsker(answer_paper)
    cascade = open_cascade(asker, choice)
    (made,) = cascade.read([RULED])
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
    made = read_one(answer, choice, replace(CHUNK, extraction=twice))
    assert made.facts == (replace(BY_RULES.facts[0], relation="comes from", relation_span=None),)
