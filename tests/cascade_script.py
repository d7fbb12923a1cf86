"""A cascade whose model answers from a script: what is asked, what is replied, what is read."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from kpyramid.documents.sentences import Span
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.types import Chunk, Claim, Extraction, Fact, Mention
from kpyramid.llm.task import Failure, FailureKind, ReplyError, Request, ThreadCounts
from kpyramid.settings import CascadeSettings

T = TypeVar("T")
Script = Callable[[Request], str | FailureKind | Failure]

TEXT = (
    "Marie Curie was born in Warsaw in 1867. She shared the Nobel Prize with Pierre Curie. "
    "The prize is not awarded by France."
)
CHUNK = Chunk(TEXT, "Marie Curie", "doc-1")
LLM = CascadeSettings(paraphrase="llm", entities="llm", relations="llm")
PAPER = replace(LLM, mode="paper", disambiguation="llm")
THREE = replace(PAPER, disambiguation="rules")
STEPS = ("paraphrase", "entities", "relations", "disambiguation")

CLAIMS = [
    {"evidence": TEXT[:39], "claim": "Marie Curie was born in Warsaw."},
    {"evidence": TEXT[40:85], "claim": "Marie Curie shared the Nobel Prize."},
]

BY_RULES = Extraction(
    claims=(Claim("Marie Curie was born in Warsaw in 1867.", (Span(0, 39),)),),
    mentions=(
        Mention(0, "Marie Curie", "PERSON", Span(0, 11)),
        Mention(0, "Warsaw", "GPE", Span(24, 30)),
    ),
    facts=(
        Fact(
            0,
            "Marie Curie",
            "was born in",
            "Warsaw",
            Span(0, 11),
            Span(12, 23),
            Span(24, 30),
            qualifiers={"time": "1867"},
            confidence=0.9,
        ),
    ),
)
RULED = replace(CHUNK, extraction=BY_RULES)

Row = tuple[str, str, str]


class ScriptedAsker:
    """Answers from a function; keeps what was asked, and how many at a time."""

    def __init__(self, script: Script, seconds: float = 0.0) -> None:
        self.script = script
        self.seconds = seconds
        self.asked: list[Request] = []
        self.most = 0
        self._busy = 0
        self._guard = threading.Lock()

    def ask(self, request: Request, parse: Callable[[str], T]) -> T | Failure:
        with self._guard:
            self.asked.append(request)
            self._busy += 1
            self.most = max(self.most, self._busy)
        try:
            time.sleep(self.seconds)
            answer = self.script(request)
            if isinstance(answer, FailureKind):
                return Failure("k", answer, "scripted")
            return answer if isinstance(answer, Failure) else parse(answer)
        except ReplyError as e:
            return Failure("k", e.kind, e.detail)
        finally:
            with self._guard:
                self._busy -= 1

    @property
    def tasks(self) -> list[str]:
        return [request.task for request in self.asked]


def reply_by_task(**made: Any) -> Script:
    """What a model says by task, as JSON; of a list one after the other, the last one on."""

    def reply(request: Request) -> str | FailureKind:
        said = made[request.task]
        if isinstance(said, list):
            said = said.pop(0) if len(said) > 1 else said[0]
        return said if isinstance(said, FailureKind) else json.dumps(said)

    return reply


class CountingScript(ScriptedAsker):
    """A scripted asker that keeps count as the real one does."""

    spent = ThreadCounts()

    def ask(self, request: Request, parse: Callable[[str], T]) -> T | Failure:
        self.spent.calls += 1
        self.spent.tokens += 10
        return super().ask(request, parse)


class Counter:
    """A progress that adds up."""

    def __init__(self) -> None:
        self.expected = self.advanced = 0

    def expect(self, total: int) -> None:
        self.expected += total

    def advance(self, count: int) -> None:
        self.advanced += count


def open_cascade(
    asker: ScriptedAsker,
    choice: CascadeSettings = LLM,
    concurrency: int = 2,
    progress: Counter | None = None,
) -> Cascade:
    return Cascade(
        asker,
        choice,
        model="m",
        max_tokens=512,
        concurrency=concurrency,
        progress=progress or Counter(),
    )


def read_one(script: Script, choice: CascadeSettings = LLM, chunk: Chunk = CHUNK) -> Extraction:
    (result,) = open_cascade(ScriptedAsker(script), choice).read([chunk])
    assert isinstance(result, Extraction), result
    return result


def write_merged(
    facts: Iterable[Sequence[object]], entities: Sequence[Sequence[object]] = ()
) -> str:
    """A merged reply: rows of facts and of entities."""
    return json.dumps({"entities": [*map(list, entities)], "facts": [*map(list, facts)]})


def answer_steps(
    claims: Sequence[tuple[str, str, Sequence[Row]]], entities: Sequence[str] = ()
) -> Script:
    """Replies to the paper's steps: (evidence, claim, triples) and the names."""

    def answer(request: Request) -> str:
        if request.task == "paraphrase":
            return json.dumps({"claims": [{"evidence": e, "claim": c} for e, c, _ in claims]})
        rows = [
            dict(zip(("head", "relation", "tail"), t, strict=True)) for *_, r in claims for t in r
        ]
        ends = [row[end] for row in rows for end in ("head", "tail")]
        names = [name for name in (*entities, *ends) if name] or ["x"]
        return json.dumps({"entities": names} if request.task == "entities" else {"triples": rows})

    return answer


def read_row(
    triple: Row,
    evidence: str = "Marie Curie was born in Warsaw in 1867.",
    claim: str = "Marie Curie was born in Warsaw in 1867.",
    chunk: Chunk = CHUNK,
) -> Fact | str:
    """The fact that a reply with one triple leads to, or the reason why there is none."""
    made = read_one(answer_steps([(evidence, claim, [triple])]), THREE, chunk)
    if made.facts:
        (fact,) = made.facts
        return fact
    (dropped,) = made.dropped
    return dropped.reason


def answer_paper(request: Request) -> str:
    triples: list[Mapping[str, str]] = [
        {"head": "Marie Curie", "relation": "was born in", "tail": "Warsaw"},
        {"head": "Marie Curie", "relation": "is native of", "tail": "Warsaw"},
        {"head": "Marie Curie", "relation": "shared", "tail": "Nobel Prize"},
    ]
    replies: dict[str, object] = {
        "paraphrase": {"claims": CLAIMS},
        "entities": {"entities": ["Marie Curie", "Warsaw", "Nobel Prize"]},
        "relations": {"triples": triples},
        "disambiguation": {"triples": [triples[0], {**triples[2], "relation": "won"}]},
    }
    return json.dumps(replies[request.task])


def list_reasons(extraction: Extraction) -> list[str]:
    return [dropped.reason for dropped in extraction.dropped]


def list_triples(extraction: Extraction) -> list[Row]:
    return [(fact.head, fact.relation, fact.tail) for fact in extraction.facts]


def check_closed(content: str, begins: str) -> None:
    """Only the end of a message closes its data, and no line of the data begins so."""
    closing = content.partition("\n")[0].replace("<", "</")
    assert content.count(closing) == 1
    assert content.endswith(closing)
    assert not re.search(begins, content, re.MULTILINE)
