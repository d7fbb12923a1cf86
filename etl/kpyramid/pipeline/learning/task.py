"""LLM_Gen: triples from a question, its gold answer and what was retrieved (WTS, 3.2.2, D.1).

After Prompt 4, in meaning and order, with the domain a variable where the paper says medicine.
Beyond it: the material is fenced, and what may be said is bounded, because a triple becomes a
sentence of the corpus. A triple counts only when both its ends stand in the material and one of
them in the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kpyramid.documents.words import list_plain_words
from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import GUARD, Strict, Task, flatten
from kpyramid.llm.types import Asker, Failure, Reply
from kpyramid.pipeline.learning.feedback import Feedback
from kpyramid.pipeline.learning.statements import Made, Reader, Statement
from kpyramid.query.model.prompting import ask_model

MOST_TRIPLES = 10
"""Of one row; a question and its answer say one to three."""
MOST_WORDS = 8
"""Of a relation: it is a verb phrase."""
MOST_ENTITIES = 30
"""Retrieved triples that are shown."""
MAX_TOKENS = 2048
"""The paper's (4.1.2)."""

_SYSTEM = f"""\
You are an expert{{domain}} who extracts general knowledge from a question and its answer to create
knowledge graph triples.
{GUARD}
- The material is a question, its answer, and entities from triples that were retrieved for it.
- Take the answer for right. State what question and answer say together, and nothing besides:
  not what the question supposes, not what you know.
- "head" and "tail": names as the material writes them, one of them from the answer.
- "relation": a verb phrase, so that head, relation and tail make a sentence.
- No triples where the answer is no, or nothing is said.
Reply with JSON only: {{{{"triples": [{{{{"head": "…", "relation": "…", "tail": "…"}}}}]}}}}
"""


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
    return _SYSTEM.format(domain=f" in {flatten(domain, 100)}" if domain.strip() else "")


def parse(reply: Reply) -> tuple[Row, ...]:
    """The triples.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    return parse_json(reply.content, Triples).triples


def show_row(row: Feedback) -> str:
    """The material."""
    lines = [f"Question: {row.question}", f"Answer: {'; '.join(row.values)}"]
    shown = [flatten(triple.words, 300) for triple in row.triples[:MOST_ENTITIES]]
    return "\n".join([*lines, "Entity:", *(f"- {words}" for words in shown)])


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes statements of rows by a model; each is read as a sentence of the corpus will be."""

    asker: Asker
    reader: Reader
    domain: str = ""

    def state(self, row: Feedback) -> Made:
        """The statements of a row.

        Raises:
            BudgetError, EndpointError: the model may not or cannot be asked; nothing is learnt.
        """
        if row.is_no:
            return Made(reason="it says that something does not hold, not what does")
        request = TASK.request(write_system(self.domain), show_row(row), max_tokens=MAX_TOKENS)
        found = ask_model(self.asker, request, parse).value
        if isinstance(found, Failure):
            return Made(reason=f"the model made no triples: {found.kind}: {found.detail}")
        told: list[Statement] = []
        faults: list[str] = []
        for triple in found[:MOST_TRIPLES]:
            fault = find_fault(triple, row)
            text = f"{triple.head} {triple.relation} {triple.tail}"
            if not fault:
                said = " ".join(text.split())
                sentence = f"{said[:1].upper()}{said[1:]}."
                sound = self.reader.find_sound([sentence], triple.head, triple.tail)
                if sound is not None:
                    told.append(sound)
                    continue
                fault = "it is not read as one fact"
            faults.append(f"{flatten(text, 100)!r}: {fault}")
        why = "; ".join(faults) or "it made no triple"
        return Made(tuple(dict.fromkeys(told)), "" if told else why)


def find_fault(triple: Row, row: Feedback) -> str:
    """Why a triple of the model is none of its material; empty for one that is."""
    if not all(part.strip() for part in (triple.head, triple.relation, triple.tail)):
        return "a part of it is empty"
    if len(triple.relation.split()) > MOST_WORDS or not triple.relation.replace(" ", "").isalpha():
        return f"its relation is no phrase of at most {MOST_WORDS} words"
    answer = [list_plain_words(value) for value in row.values]
    entities = [list_plain_words(each.words) for each in row.triples[:MOST_ENTITIES]]
    material = [list_plain_words(row.question), *answer, *entities]
    ends = [list_plain_words(end) for end in (triple.head, triple.tail)]
    for end, name in zip(ends, (triple.head, triple.tail), strict=True):
        if not end or not any(_holds(part, end) for part in material):
            return f"{flatten(name, 60)!r} is not in the question, the answer or the entities"
    if not row.is_yes and not any(_holds(part, end) for part in answer for end in ends):
        return "neither of its ends is in the answer"
    return ""


def _holds(words: Sequence[str], end: Sequence[str]) -> bool:
    """Whether words stand in others as a run."""
    return any(
        list(words[at : at + len(end)]) == list(end) for at in range(len(words) - len(end) + 1)
    )


TASK = Task(
    name="wts_generate",
    version=1,
    stage="learn",
    reply=Triples,
    parse=parse,
    system=lambda _: write_system(),
    is_asked=lambda settings: settings.llm.provider != "none",
)
