"""Questions and their answers as statements: by rules, the twin of LLM_Gen (WTS, 3.2.2).

"Where was X born?" and "Oslo" become "X was born in Oslo.": the look-up reads a question as one
thing and one relation of it, and what it does not read so is counted and not learnt. A statement
counts only when the extractor, which reads it in the next build, finds in it the fact that joins
the thing and the answer, and no other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kpyramid.documents.words import HAVE, list_plain_words, normalise_name, split_label
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.llm.prompts import read_prompts
from kpyramid.llm.task import GUARD, Asker, Failure, Strict, Task, flatten, parse_json
from kpyramid.pipeline.learning.feedback import Feedback
from kpyramid.query.analysis import QuestionAnalysis, analyse
from kpyramid.query.facts import find_end
from kpyramid.query.lookup import list_relations
from kpyramid.query.model.reading import ask_model
from kpyramid.snapshot.snapshot import Snapshot

MOST_WORDINGS = 5
"""Wordings of the relation in question that are tried."""
MOST_RELATIONS = 500
"""Relations of the graph that a question may ask for, by number of facts."""
_POSSESSIVE = re.compile(r"['’]s?$")


@dataclass(frozen=True, slots=True)
class Triple:
    """A fact in the words that the extractor finds."""

    head: str
    relation: str
    tail: str

    def __str__(self) -> str:
        return f"{self.head} {self.relation} {self.tail}"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence with the facts that it will be read as."""

    text: str
    triples: tuple[Triple, ...]
    about: str
    """The name of the sentence's subject."""


@dataclass(frozen=True, slots=True)
class Made:
    """The statements of one row, or the reason why there are none."""

    statements: tuple[Statement, ...] = ()
    reason: str = ""


def find_sound(
    extractor: DependencyExtractor, sentences: Sequence[str], about: str, value: str
) -> Statement | None:
    """The first sentence all of whose facts join a thing and a value; None without any.

    Sentences are read as the next build will.
    """
    wanted = {normalise_name(about), normalise_name(value)}
    for text, extraction in zip(sentences, extractor.extract_all(sentences), strict=True):
        triples = [Triple(fact.head, fact.relation, fact.tail) for fact in extraction.facts]
        is_sound = all(
            {normalise_name(fact.head), normalise_name(fact.tail)} == wanted
            and not (fact.negated or fact.modality or fact.attribution)
            for fact in extraction.facts
        )
        if triples and is_sound and len(wanted) == 2:
            return Statement(text, tuple(dict.fromkeys(triples)), about)
    return None


class Stater:
    """Makes statements from questions and their answers, by look-up."""

    def __init__(self, snapshot: Snapshot, extractor: DependencyExtractor) -> None:
        self._snapshot = snapshot
        self._extractor = extractor

    @cached_property
    def _wordings(self) -> tuple[str, ...]:
        """The wordings of the graph's relations and of the ontology's properties."""
        rows = self._snapshot.table("relations").select(["name", "support"]).to_pylist()
        ranked = sorted(rows, key=lambda row: (-row["support"], row["name"]))
        known = [row["name"] for row in ranked[:MOST_RELATIONS]]
        for stated in self._snapshot.schema.properties:
            known += [f"has {split_label(stated.label)}", *stated.alt_labels]
        return tuple(dict.fromkeys(known))

    def state(self, row: Feedback) -> Made:
        """The statements of a row, one for each value that can be stated."""
        if row.is_no:
            return Made(reason="it says that something does not hold, not what does")
        if row.is_yes:
            return Made(reason="only a model states what yes affirms")
        asked = analyse(row.question.rstrip("?.! "), self._snapshot)
        names = dict.fromkeys(_POSSESSIVE.sub("", name.text) for name in asked.names)
        if len(names) != 1:
            return Made(reason=f"it names {len(names)} things: a statement is about one")
        (name,) = names
        made = [self._state_value(asked, name, value) for value in row.values]
        stated = tuple(statement for statement in made if statement is not None)
        return Made(stated, "" if stated else "it is not read as one thing and one relation of it")

    def _state_value(self, asked: QuestionAnalysis, name: str, value: str) -> Statement | None:
        for wording in list_relations(asked, name, value, self._wordings)[:MOST_WORDINGS]:
            wants_head = find_end(wording, asked.text, [name])
            ends = (value, name) if wants_head else (name, value)
            sentences = [_finish(f"{ends[0]} {wording} {ends[1]}")]
            verb, _, role = wording.partition(" ")
            if verb in HAVE:
                sentences.insert(
                    0, _finish(f"the {role.removeprefix('the ')} of {name} is {value}")
                )
            statement = find_sound(self._extractor, sentences, name, value)
            if statement is not None:
                return statement
        return None


def _finish(sentence: str) -> str:
    plain = " ".join(sentence.split())
    return f"{plain[:1].upper()}{plain[1:]}."


MOST_TRIPLES = 10
"""Most triples of one row; a question and its answer state one to three."""
MOST_WORDS = 8
"""Most words of a relation, which is a verb phrase."""
MOST_ENTITIES = 30
"""Retrieved triples shown to the model."""
MAX_TOKENS = 2048
"""The paper's value (4.1.2)."""
_SYSTEM: str = read_prompts(__file__)["learning"]


class Row(Strict):
    """One triple of the reply."""

    head: str
    relation: str
    tail: str


class Triples(Strict):
    """The reply."""

    triples: tuple[Row, ...]


def write_system(domain: str = "") -> str:
    """The system message."""
    within = f" in {flatten(domain, 100)}" if domain.strip() else ""
    return _SYSTEM.format(guard=GUARD, domain=within)


def show_row(row: Feedback) -> str:
    """The message with question, answer and retrieved triples."""
    lines = [f"Question: {row.question}", f"Answer: {'; '.join(row.values)}"]
    shown = [flatten(words, 300) for words in [*row.triples.values()][:MOST_ENTITIES]]
    return "\n".join([*lines, "Entity:", *(f"- {words}" for words in shown)])


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes statements from rows by a model; each is read as a sentence of the corpus will be."""

    asker: Asker
    extractor: DependencyExtractor
    domain: str = ""

    def state(self, row: Feedback) -> Made:
        """The statements of a row.

        Raises:
            BudgetError, EndpointError: the model may not or cannot be asked; nothing is learnt.
        """
        if row.is_no:
            return Made(reason="it says that something does not hold, not what does")
        request = TASK.request(write_system(self.domain), show_row(row), max_tokens=MAX_TOKENS)
        reply = ask_model(self.asker, request, lambda r: parse_json(r, Triples).triples)
        if isinstance(reply, Failure):
            return Made(reason=f"the model made no triples: {reply.kind}: {reply.detail}")
        statements: list[Statement] = []
        faults: list[str] = []
        for triple in reply[:MOST_TRIPLES]:
            fault = find_fault(triple, row)
            text = f"{triple.head} {triple.relation} {triple.tail}"
            if not fault:
                sound = find_sound(self.extractor, [_finish(text)], triple.head, triple.tail)
                if sound is not None:
                    statements.append(sound)
                    continue
                fault = "it is not read as one fact"
            faults.append(f"{flatten(text, 100)!r}: {fault}")
        why = "; ".join(faults) or "it made no triple"
        return Made(tuple(dict.fromkeys(statements)), "" if statements else why)


def find_fault(triple: Row, row: Feedback) -> str:
    """Why a triple of the model is not supported by its material; empty if it is."""
    if not all(part.strip() for part in (triple.head, triple.relation, triple.tail)):
        return "a part of it is empty"
    if len(triple.relation.split()) > MOST_WORDS or not triple.relation.replace(" ", "").isalpha():
        return f"its relation is no phrase of at most {MOST_WORDS} words"
    answer = [list_plain_words(value) for value in row.values]
    entities = [list_plain_words(words) for words in [*row.triples.values()][:MOST_ENTITIES]]
    material = [list_plain_words(row.question), *answer, *entities]
    ends = [list_plain_words(end) for end in (triple.head, triple.tail)]
    for end, name in zip(ends, (triple.head, triple.tail), strict=True):
        if not end or not any(_holds(part, end) for part in material):
            return f"{flatten(name, 60)!r} is not in the question, the answer or the entities"
    if not row.is_yes and not any(_holds(part, end) for part in answer for end in ends):
        return "neither of its ends is in the answer"
    return ""


def _holds(words: Sequence[str], end: Sequence[str]) -> bool:
    """Whether the words of an end stand among others as a run."""
    return any(list(words[i : i + len(end)]) == list(end) for i in range(len(words) - len(end) + 1))


TASK = Task(
    name="wts_generate",
    version=1,
    stage="learn",
    reply=Triples,
    system=lambda _: write_system(),
    is_asked=lambda settings: settings.llm.provider != "none",
)
