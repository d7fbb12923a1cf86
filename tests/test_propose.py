"""Proposals: what they say, what they leave alone, and what bad input makes of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kpyramid.completion.layers import compare_layers
from kpyramid.completion.nouns import Kind, find_noun
from kpyramid.completion.proposals import (
    draw_proposals,
    find_kind,
    is_naming,
    is_wording,
    name_property,
    propose,
)
from kpyramid.completion.types import Completion, GraphLayer, Mask, OntologyLayer, Proposal
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.ontology.names import XSD
from kpyramid.ontology.population.checking import Kinds
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema
from kpyramid.settings import CompleteSettings
from tests.planted import MemoEmbedder, WordEmbedder
from tests.rows import each_row

BASE = "https://example.org/o#"
PERSON, COMPANY = BASE + "Person", BASE + "Company"
WORKS = OntologyProperty(BASE + "works", "works for", (), "", PERSON, COMPANY)
SCHEMA = Schema(
    BASE,
    (
        OntologyClass(PERSON, "person", entity_types=("PERSON",)),
        OntologyClass(COMPANY, "company", entity_types=("ORG",)),
    ),
    (WORKS,),
)
NOTHING = Schema(BASE, (), ())
Fact = tuple[str, str, str, str, str]
SUED: list[Fact] = [(f"Ann {i}", "PERSON", "sued", f"Acme {i}", "ORG") for i in range(6)]
WORKED: list[Fact] = [(f"Bo {i}", "PERSON", "works for", f"Bond {i}", "ORG") for i in range(6)]


class EqualEmbedder:
    """All texts have one vector."""

    name = "equal"

    def embed(self, texts: Sequence[str]) -> Matrix:
        return np.full((len(texts), 4), 0.5, dtype=np.float32)


def make_graph(facts: Sequence[Fact]) -> GraphLayer:
    heads, head_types, wordings, tails, tail_types = (
        (list(column) for column in zip(*facts, strict=True)) if facts else ([], [], [], [], [])
    )
    return GraphLayer(heads, head_types, wordings, tails, tail_types, heads, tails)


def make_ontology(schema: Schema = SCHEMA, stated: Sequence[Fact] = ()) -> OntologyLayer:
    pairs = [(head, tail) for head, _, _, tail, _ in stated]
    return OntologyLayer(schema, [WORKS.iri] * len(pairs), pairs, {})


def run(
    facts: Sequence[Fact],
    ontology: OntologyLayer | None = None,
    embedder: Embedder | None = None,
    **options: float | str,
) -> Completion:
    settings = CompleteSettings(**{"region_share": 1.0, **options})  # type: ignore[arg-type]
    layer = make_ontology() if ontology is None else ontology
    return propose(
        make_graph(facts), layer, settings=settings, comparer=Comparer(embedder or WordEmbedder())
    )


def list_new(found: Completion) -> list[Proposal]:
    return [proposal for proposal in found.proposals if not proposal.existing]


def test_a_missing_property_has_its_ends_and_its_facts_and_quotes_none() -> None:
    (found,) = list_new(run([*SUED, *WORKED], make_ontology(stated=WORKED)))
    assert (found.kind, found.label, found.domain, found.range) == (
        "property",
        "sued",
        PERSON,
        COMPANY,
    )
    assert found.facts == tuple(range(6)) and found.agreement == 1.0
    assert found.definition == "“sued” (person → company)."


def test_what_states_a_value_already_is_not_missing() -> None:
    assert list_new(run(SUED, make_ontology(stated=SUED))) == []


def test_a_wording_of_which_most_facts_are_values_is_less_new_than_one_of_which_none_is() -> None:
    employed = [(f"Bo {i}", "PERSON", "joined", f"Bond {i}", "ORG") for i in range(6)]
    found = run([*SUED, *employed], make_ontology(stated=employed[:4]), region_share=0.5)
    priority = found.sign * np.exp(found.log_magnitude)
    by_wording = dict(
        zip(found.measure().graph.texts.read().to_pylist(), priority.tolist(), strict=True)
    )
    sued, joined = by_wording["person sued company"], by_wording["person joined company"]
    assert joined <= 0.0 < sued
    unknown = run([*SUED, *employed], region_share=0.5)
    assert (unknown.sign > 0).all()


def test_proposals_come_by_the_novelty_of_their_facts_and_need_some_of_it_together() -> None:
    blamed = [(f"Cy {i}", "PERSON", "blamed", f"Crane {i}", "ORG") for i in range(3)]
    graph, layer, embedder = make_graph([*SUED, *blamed]), make_ontology(), WordEmbedder()
    settings = CompleteSettings(region_share=0.9)
    compared = compare_layers(graph, layer, settings=settings, embedder=embedder)

    def draw(**novelty: float) -> list[str]:
        texts = compared.measure().graph.texts.read().to_pylist()
        own = np.array([novelty[text.split()[1]] for text in texts])
        changed = replace(
            compared,
            sign=np.ones(len(own), dtype=np.int64),
            log_magnitude=np.log(own),
            region=np.ones(len(own), dtype=bool),
        )
        found = draw_proposals(
            graph, layer, changed, settings=settings, comparer=Comparer(embedder)
        )
        return [proposal.label for proposal in found.proposals]

    assert draw(sued=0.1, blamed=0.5) == ["blamed", "sued"]
    assert draw(sued=0.02, blamed=0.5) == ["blamed"]


def test_where_properties_have_string_ranges_a_string_may_be_any_thing() -> None:
    text = OntologyProperty(BASE + "works", "works for", (), "", PERSON, XSD + "string")
    classed = OntologyProperty(BASE + "owns", "owns", (), "", PERSON, COMPANY)
    near = [(f"Bo {i}", "PERSON", "works at", f"Bond {i}", "ORG") for i in range(6)]

    def rate(*properties: OntologyProperty) -> float:
        schema = Schema(BASE, SCHEMA.classes, properties)
        found = run(near, make_ontology(schema), priority="novelty")
        return float((found.sign * np.exp(found.log_magnitude))[0])

    assert rate(text) < 1.0
    assert rate(text, classed, replace(classed, iri=BASE + "sued", label="sued")) > rate(text)


def test_a_phrase_of_a_property_is_never_proposed() -> None:
    assert run(WORKED).proposals == ()


def test_a_passive_and_its_active_are_one_property_read_from_where_most_facts_begin() -> None:
    turned = [(f"Acme {i}", "ORG", "was sued by", f"Cy {i}", "PERSON") for i in range(3)]
    (found,) = list_new(run([*SUED, *turned]))
    assert (found.label, found.phrases, found.domain) == ("sued", ("sued",), PERSON)
    assert len(found.facts) == 9 and found.agreement == 1.0


def test_wordings_of_one_meaning_are_one_proposal_from_either_end() -> None:
    said: list[Fact] = [
        *((f"Ann {i}", "PERSON", "plays for", f"Acme {i}", "ORG") for i in range(3)),
        ("Bo", "PERSON", "has club", "Bond", "ORG"),
        ("Crane", "ORG", "is the club of", "Cy", "PERSON"),
    ]
    (found,) = list_new(run(said, embedder=MemoEmbedder()))
    assert (found.label, found.phrases) == ("plays for", ("has club", "plays for"))
    assert len(found.facts) == 5 and found.agreement == 1.0


def test_another_name_in_another_sense_is_left_to_a_person() -> None:
    issued = OntologyProperty(BASE + "issued", "was released on", (), "", PERSON, COMPANY)
    layer = make_ontology(Schema(BASE, SCHEMA.classes, (issued,)))
    (found,) = run(say("was published by"), layer, MemoEmbedder()).proposals
    assert not found.existing and found.doubt.endswith("in another of its senses")


@each_row("one, other")
def test_wordings_told_apart_by_one_word_never_share_a_proposal(one: str, other: str) -> None:
    said = [
        (f"Ann {i}", "PERSON", wording, f"{place} {i}", "ORG")
        for wording, place in ((one, "Acme"), (other, "Bond"))
        for i in range(6)
    ]
    found = list_new(run(said, embedder=MemoEmbedder()))
    assert not [p for p in found if {one, other} <= set(p.phrases)]
    assert {one, other} <= {phrase for p in found for phrase in p.phrases}


def say(wording: str, *, turned: bool = False) -> list[Fact]:
    """Six facts of persons and companies in other words than the ontology's."""
    ends = [((f"Ann {i}", "PERSON"), (f"Acme {i}", "ORG")) for i in range(6)]
    return [(*(b if turned else a), wording, *(a if turned else b)) for a, b in ends]


def test_another_name_a_part_and_an_inverse_of_what_exists_are_told() -> None:
    facts = [*say("has a job at"), *say("serves as CEO of")]
    found = {p.label: p for p in run(facts, embedder=MemoEmbedder()).proposals}
    assert found["has a job at"].existing == WORKS.iri
    assert found["serves as CEO of"].splits == WORKS.iri
    (turned,) = run(say("employs", turned=True), embedder=MemoEmbedder()).proposals
    assert (turned.inverse, turned.domain, turned.range) == (WORKS.iri, COMPANY, PERSON)


def test_an_inverse_has_the_ends_of_what_it_turns_round() -> None:
    agent = OntologyClass(BASE + "Agent", "agent")
    below = [replace(row, parents=(agent.iri,)) for row in SCHEMA.classes]
    works = replace(WORKS, domain=agent.iri)
    wider = Schema(BASE, (agent, *below), (works,))
    (proposal,) = run(say("employs", turned=True), make_ontology(wider), MemoEmbedder()).proposals
    assert (proposal.inverse, proposal.existing) == (None, None)

    employs = OntologyProperty(
        BASE + "employs", "has as staff", (), "", COMPANY, agent.iri, inverse_of=works.iri
    )
    told = Schema(BASE, (agent, *below), (replace(works, inverse_of=employs.iri), employs))
    (proposal,) = run(say("employs", turned=True), make_ontology(told), MemoEmbedder()).proposals
    assert (proposal.inverse, proposal.existing) == (None, None)
    assert proposal.doubt == "reads “works for” from the other end, as 'has as staff' does"


def test_past_and_current_affiliation_are_told_apart_as_in_the_paper() -> None:
    whole = OntologyProperty(BASE + "aff", "is affiliated with", (), "", PERSON, COMPANY)
    known = make_ontology(Schema(BASE, SCHEMA.classes, (whole,)))
    facts = [*say("was formerly affiliated with"), *say("is currently associated with")]
    found = {p.label: p for p in run(facts, known, MemoEmbedder()).proposals}
    assert found["was formerly affiliated with"].splits == whole.iri
    assert found["is currently associated with"].splits is None
    assert found["is currently associated with"].existing == whole.iri


def test_what_is_left_of_a_poor_cluster_keeps_the_agreement_of_the_whole() -> None:
    fits = [(f"Ann {i}", "PERSON", "sued", f"Acme {i}", "ORG") for i in range(9)]
    others = [(f"Ann {i}", "PERSON", "sued", f"{i}00", "LITERAL") for i in range(20, 31)]
    found = [p for p in list_new(run([*fits, *others])) if p.range == COMPANY]
    assert all(p.agreement == 1.0 for p in found)  # literals are another unit
    mixed = [(f"Ann {i}", "PERSON", "sued", f"Town {i}", "GPE") for i in range(20, 31)]
    (poor,) = list_new(run([*fits, *mixed]))
    assert (len(poor.facts), poor.agreement) == (9, 0.45)


def test_a_noun_that_many_things_are_said_to_be_is_a_class_under_their_own() -> None:
    said = [(f"Ann {i}", "PERSON", "is a", "glass blower in Ghent", "NOUN") for i in range(5)]
    known = [(f"Bo {i}", "PERSON", "is a", "person", "NOUN") for i in range(5)]
    (found,) = run([*said, *known]).proposals
    assert (found.kind, found.label, found.domain) == ("class", "glass blower", PERSON)
    assert found.facts == tuple(range(5))


def test_things_that_a_cluster_of_the_region_joins_give_a_class_wherever_it_is_said() -> None:
    filed = [(f"Acme {i}", "ORG", "is a", "brewery", "NOUN") for i in range(6)]
    graph, ontology = make_graph([*SUED, *filed]), make_ontology()
    settings, embedder = CompleteSettings(), WordEmbedder()
    compared = compare_layers(graph, ontology, settings=settings, embedder=embedder)
    wanted = np.array(["sued" in text for text in compared.measure().graph.texts])

    def list_classes(region: Mask) -> list[tuple[str, tuple[int, ...]]]:
        found = draw_proposals(
            graph,
            ontology,
            replace(compared, region=region),
            settings=settings,
            comparer=Comparer(embedder),
        )
        return [(p.label, p.facts) for p in found.proposals if p.kind == "class"]

    assert list_classes(wanted) == [("brewery", tuple(range(6, 12)))]
    assert list_classes(np.zeros_like(wanted)) == []


def test_nouns_for_one_kind_of_thing_are_one_class_and_none_beside_its_synonym() -> None:
    work = OntologyClass(BASE + "Work", "work", entity_types=("WORK_OF_ART",))

    def say(noun: str, first: int) -> list[Fact]:
        kinds = (f"{kind} {noun}" for kind in ("silent", "short", "French"))
        return [
            (f"Dawn {i}", "WORK_OF_ART", "is a", kind, "NOUN")
            for i, kind in enumerate(kinds, first)
        ]

    said = [*say("film", 0), *say("movie", 3), *say("movie", 6)]
    near = MemoEmbedder()
    (found,) = run(said, make_ontology(Schema(BASE, (work,), ())), embedder=near).proposals
    assert (found.label, found.phrases, len(found.facts)) == ("movie", ("movie", "film"), 9)

    film = OntologyClass(BASE + "Film", "film", parents=(work.iri,))
    (found,) = run(said, make_ontology(Schema(BASE, (work, film), ())), embedder=near).proposals
    assert (found.existing, found.phrases) == (film.iri, ("movie",))


def test_a_noun_that_a_property_holds_or_is_named_by_is_no_class() -> None:
    job = OntologyProperty(BASE + "job", "job", ("is a",), "", PERSON, XSD + "string", True)
    boss = OntologyProperty(BASE + "boss", "boss", ("is the head of",), "", PERSON, PERSON, False)
    people = [(f"Ann {i}", "PERSON", "is a", "glass blower", "NOUN") for i in range(5)]
    (found,) = run(people, make_ontology(SCHEMA.extend([job]))).proposals
    assert found.fault == "a_property_says_it"
    heads = [(f"Ann {i}", "PERSON", "is a", "head", "NOUN") for i in range(5)]
    assert run(heads, make_ontology(SCHEMA.extend([boss]))).proposals == ()


def test_a_noun_that_says_to_what_a_thing_is_one_is_no_class_unless_names_have_it() -> None:
    def file(name: str, noun: str) -> list[Fact]:
        ends = ((f"{name} {i}", f"{noun} of the River {i}") for i in range(5))
        return [(head, "LOC", "is a", tail, "NOUN") for head, tail in ends]

    assert run(file("Ister", "tributary")).proposals == ()
    (found,) = run(file("Ister Branch", "branch")).proposals
    assert (found.label, found.kind) == ("branch", "class")


@each_row("noun, kind, fault, doubted")
def test_a_noun_that_means_something_else_is_left_to_a_person_or_no_proposal(
    noun: str, kind: str, fault: str | None, doubted: bool
) -> None:
    said = [(f"Ister {i}", kind, "is a", noun, "NOUN") for i in range(5)]
    (found,) = run(said).proposals
    assert (found.fault, bool(found.doubt)) == (fault, doubted)


@each_row("wording, range_iri, name")
def test_a_property_has_the_name_that_one_would_write(
    wording: str, range_iri: str, name: str
) -> None:
    assert name_property(wording, range_iri) == name


@each_row("wording, names")
def test_a_fragment_names_no_relation(wording: str, names: bool) -> None:
    assert is_wording(wording) is names


@each_row("words, noun")
def test_the_noun_under_which_a_thing_is_filed(words: str, noun: Kind | None) -> None:
    assert find_noun(words, Kinds(NOTHING)) == noun


def test_what_is_near_a_known_wording_by_its_vector_alone_is_left_to_a_person() -> None:
    (found,) = run(say("toils at"), embedder=MemoEmbedder(), alias_similarity=0.0).proposals
    assert found.existing is None and "“works for”" in found.doubt


@pytest.mark.parametrize("count", [1, 3])
def test_what_a_person_has_to_decide_about_is_no_wording_of_a_cluster(count: int) -> None:
    main = [(head, kind, "frobs at", *tail) for head, kind, _, *tail in SUED[:4]]
    near = [(head, kind, "frobs for", *tail) for head, kind, _, *tail in SUED[:count]]
    (joined,) = list_new(run([*main, *near], alias_similarity=0.52))
    assert set(joined.phrases) == {"frobs at", "frobs for"}

    found = {p.label: p for p in list_new(run([*main, *near], alias_similarity=0.5))}
    assert found["frobs at"].phrases == ("frobs at",) and not found["frobs at"].doubt
    if count > 1:  # a wording of one fact is no proposal
        assert found["frobs for"].doubt == "cosine 0.50 to “works for” (works for)"
    assert len(found) == min(count, 2)


def test_years_are_the_range_where_most_values_are_years() -> None:
    facts = [(f"Ann {i}", "PERSON", "retired in", str(1950 + i), "LITERAL") for i in range(6)]
    (found,) = list_new(run(facts))
    assert found.range == XSD + "gYear"


def test_a_wording_with_years_and_the_same_with_things_are_two_proposals() -> None:
    years = [(f"Ann {i}", "PERSON", "retired in", str(1950 + i), "LITERAL") for i in range(6)]
    firms = [(f"Bo {i}", "PERSON", "retired in", f"Acme {i}", "ORG") for i in range(6)]
    found = list_new(run([*years, *firms]))
    assert {(p.label, p.range, p.fault) for p in found} == {
        ("retired in", XSD + "gYear", None),
        ("retired in", COMPANY, None),
    }


def test_where_few_agree_only_what_fits_is_the_support() -> None:
    odd = [(f"den {i}", t, "sued", "Acme", "ORG") for i, t in enumerate(["GPE", "LOC", "FAC"] * 3)]
    (found,) = list_new(run([*SUED, *odd]))
    assert found.domain == PERSON and found.facts == tuple(range(6))


def test_equal_vectors_leave_no_axis_and_no_order() -> None:
    found = run(SUED, embedder=EqualEmbedder())
    assert found.measure().explained.shape == (0,) and (found.sign == 0).all()
    assert [proposal.label for proposal in found.proposals] == ["sued"]


@each_row("wording, naming")
def test_wordings_that_give_another_name(wording: str, naming: bool) -> None:
    assert is_naming(wording) is naming


@each_row("wording, kind")
def test_the_kind_that_a_wording_says(wording: str, kind: tuple[str, bool] | None) -> None:
    assert find_kind(wording) == kind
