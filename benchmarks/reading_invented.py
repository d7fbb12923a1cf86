"""Invented passages in which a sentence says several things of one subject, with their questions.

Not a measurement itself: `reading.py` fits and measures with it. Sentences of Text2KGBench's
Wikidata group state one fact each, so that they do not teach which of two names in a sentence
directed a film and which produced it; these do. Names, predicates and questions are ours.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from kpyramid.answering.reader import Mention, Piece
from kpyramid.documents.words import split_words
from kpyramid.query import Snapshot
from kpyramid.query.analysis import LinkedQuestion, QuestionAnalysis, link_question
from kpyramid.query.types import Question
from kpyramid.snapshot.evidence import Evidence

OPTIONS = 8

_FIRST = (
    "Ada Bruno Carla Dario Edda Franz Greta Hugo Ilse Jonas Karin Leon Mara Nils Olga Per".split()
)
_LAST = (
    "Alder Berrin Castell Dorn Ekholm Fabre Galt Hollis Ivarsen Jessop Kant Lund Moll Norgate Osk"
    " Pruett Quist Roth Sander Tarn Ulven Valcourt Wendt Yarrow"
).split()
_TOWNS = "Amsel Brindal Corvo Dunmere Elstad Farholt Grimsey Havenby Istra Jorvik Kelmouth".split()
_FIRMS = "Aster Borealis Cobalt Delphin Ember Falcon Granit Helios Indigo Juniper Kestrel".split()
_WORKS = "Glass Silent Broken Golden Hidden Winter Paper Crooked Northern Burning".split()
_THINGS = "Orchard Harbour Mirror Garden Bridge Letter Island Window Forest Crown".split()

_SAID: Mapping[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "work": (
        ("was directed by {}", "PERSON", ("Who directed {}?", "Who is the director of {}?")),
        ("was produced by {}", "PERSON", ("Who produced {}?", "Who is the producer of {}?")),
        ("was written by {}", "PERSON", ("Who wrote {}?", "Who is the author of {}?")),
        ("stars {}", "PERSON", ("Who starred in {}?", "Which actor appears in {}?")),
        ("has music by {}", "PERSON", ("Who composed the music of {}?", "Who scored {}?")),
        ("was shot in {}", "GPE", ("Where was {} filmed?", "In which town was {} shot?")),
        ("is set in {}", "GPE", ("Where does {} take place?", "Which town is {} set in?")),
        ("was released in {}", "DATE", ("When was {} released?", "In which year did {} come out?")),
        ("was restored in {}", "DATE", ("When was {} restored?",)),
        ("was distributed by {}", "ORG", ("Which company distributed {}?",)),
        ("was financed by {}", "ORG", ("Who paid for {}?", "Which company financed {}?")),
    ),
    "person": (
        ("was born in {}", "GPE", ("Where was {} born?", "What is the birthplace of {}?")),
        ("died in {}", "GPE", ("Where did {} die?", "What is the place of death of {}?")),
        ("moved to {}", "GPE", ("Where did {} move?",)),
        ("was born in {}", "DATE", ("When was {} born?", "What is the year of birth of {}?")),
        ("died in {}", "DATE", ("When did {} die?",)),
        ("studied at the University of {}", "ORG", ("Where was {} educated?",)),
        ("worked for {}", "ORG", ("Who employed {}?", "Which company did {} work for?")),
        ("married {}", "PERSON", ("Who was the spouse of {}?", "Who was {} married to?")),
        ("was taught by {}", "PERSON", ("Who was the teacher of {}?", "Who taught {}?")),
    ),
    "firm": (
        ("was founded by {}", "PERSON", ("Who founded {}?", "Who is the founder of {}?")),
        ("is led by {}", "PERSON", ("Who leads {}?", "Who is the head of {}?")),
        ("was founded in {}", "DATE", ("When was {} founded?", "In which year was {} set up?")),
        ("closed in {}", "DATE", ("When did {} close?",)),
        ("has its seat in {}", "GPE", ("Where is {} based?", "What is the headquarters of {}?")),
        ("has a factory in {}", "GPE", ("In which town does {} have a factory?",)),
        ("bought {}", "ORG", ("Which company did {} buy?", "Which firm was acquired by {}?")),
        ("is owned by {}", "ORG", ("Who owns {}?", "What is the owner of {}?")),
        ("employs {} people", "CARDINAL", ("How many people work for {}?",)),
        ("runs {} shops", "CARDINAL", ("How many shops does {} run?",)),
    ),
}


@dataclass(frozen=True)
class Invented:
    """A question, its right answer, options of the answer's kind, and the passage's sentences."""

    asked: QuestionAnalysis
    answer: str
    options: tuple[str, ...]
    pieces: tuple[Piece, ...]


def invent(count: int, seed: int, snapshot: Snapshot) -> Iterator[Invented]:
    """So many passages of two subjects each, with one question about something they say."""
    for number in range(count):
        random = Random(f"{seed} {number}")  # noqa: S311 - repeatable, not secret
        kind = random.choice(sorted(_SAID))
        subjects = [_name_subject(kind, random) for _ in range(2)]
        said: list[tuple[str, str, str, tuple[str, ...]]] = []
        pieces: list[Piece] = []
        title = frozenset(word.stem for word in split_words(subjects[0]))
        for rank, subject in enumerate(subjects):
            chosen = random.sample(_SAID[kind], random.randint(2, 4))
            facts = [(clause, _draw(its, random), its, asks) for clause, its, asks in chosen]
            if not rank:
                said = facts
            pieces.append(_state(subject, facts, rank, title, random))
        _, answer, its, asks = random.choice(said)
        near = [value for _, value, other, _ in said if other == its and value != answer]
        others = [_draw(its, random) for _ in range(2 * OPTIONS)]
        options = [answer, *dict.fromkeys(v for v in (*near, *others) if v != answer)][:OPTIONS]
        random.shuffle(options)
        text = random.choice(asks).format(subjects[0])
        linked = link_question(text, {})
        linked = LinkedQuestion((), (), linked.lemmas, linked.asks_for)
        asked = QuestionAnalysis(Question(text), snapshot, linked=linked)
        yield Invented(asked, answer, tuple(options), tuple(pieces))


def _state(
    subject: str,
    facts: list[tuple[str, str, str, tuple[str, ...]]],
    rank: int,
    title: frozenset[str],
    random: Random,
) -> Piece:
    text, mentions = subject, [Mention(0, len(subject), "WORK_OF_ART")]
    for number, (clause, value, kind, _) in enumerate(facts):
        last = number == len(facts) - 1
        text += " " if not number else " and " if last else random.choice((", ", " and "))
        start = len(text) + clause.index("{}")
        text += clause.format(value)
        mentions.append(Mention(start, start + len(value), kind))
    place = Evidence("doc", "chunk", 0, len(text) + 1, f"{text}.", "invented")
    around = title | {word.stem for word in split_words(text)}
    return Piece(f"{text}.", (place,), rank, "text", around=around, mentions=tuple(mentions))


def _name_subject(kind: str, random: Random) -> str:
    if kind == "person":
        return _draw("PERSON", random)
    if kind == "firm":
        return _draw("ORG", random)
    return f"The {random.choice(_WORKS)} {random.choice(_THINGS)}"


def _draw(kind: str, random: Random) -> str:
    if kind == "PERSON":
        return f"{random.choice(_FIRST)} {random.choice(_LAST)}"
    if kind == "GPE":
        return random.choice(("Port ", "", "New ", "")) + random.choice(_TOWNS)
    if kind == "ORG":
        return f"{random.choice(_FIRMS)} {random.choice(('Press', 'Works', 'Mills', 'Bank'))}"
    if kind == "DATE":
        return str(random.randint(1880, 2010))
    return f"{random.randint(2, 90) * 50:,}"
