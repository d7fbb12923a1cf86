"""Induction by a model: what is asked of which text, and what its replies come to (f_ins)."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from kpyramid.extraction.cascade.chunks import Chunk
from kpyramid.extraction.cascade.reading import Progress
from kpyramid.extraction.text.screening import Dropped
from kpyramid.induction.examples import Example
from kpyramid.induction.grounding import Grounding
from kpyramid.induction.groups import Group
from kpyramid.induction.prompt import NAMES, Noted, Question, parse
from kpyramid.induction.routing import Router
from kpyramid.induction.types import Value
from kpyramid.llm.caller import Asker
from kpyramid.llm.types import Failure
from kpyramid.ontology.schema import Schema


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk's text; `title`: its document's, `document`: the id that calls are booked on."""

    text: str
    title: str | None = None
    document: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A question about a text that got no usable reply; `asked` says for what, in words."""

    asked: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model found in one text; spans are characters of it."""

    values: tuple[Value, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    failures: tuple[Failed, ...] = ()


class Inducer:
    """Asks for the values of groups of properties, text by text; `model` names it in the values.

    Without a router every group is asked for in every text. `left_out`: the questions that
    routing spared; `concurrency`: those that are under way at a time.
    """

    def __init__(
        self,
        asker: Asker,
        schema: Schema,
        groups: Sequence[Group],
        *,
        router: Router | None,
        mode: str,
        model: str,
        max_tokens: int,
        concurrency: int,
        progress: Progress,
        examples: tuple[Example, ...] = (),
    ) -> None:
        self.model = model
        self.left_out = 0
        self._asker = asker
        self._questions = [Question(group, schema, examples) for group in groups]
        self._router = router
        self._task = NAMES[mode]
        self._max_tokens = max_tokens
        self._concurrency = concurrency
        self._progress = progress

    def induce(self, passages: Sequence[Passage]) -> list[Reading]:
        """What each text states, in order; equal texts of one title are asked about once.

        Raises:
            BudgetError, EndpointError: no further call can be made; the answers so far are kept.
        """
        distinct: dict[tuple[str, str | None], Passage] = {}
        for passage in passages:
            distinct.setdefault((passage.text, passage.title), passage)
        texts = [text for text, _ in distinct]
        routed = self._choose(texts)
        pairs = [
            (passage, question)
            for passage, questions in zip(distinct.values(), routed, strict=True)
            for question in questions
        ]
        self.left_out += len(texts) * len(self._questions) - len(pairs)
        self._progress.expect(len(pairs))
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="induction")
        try:
            asked = [pool.submit(self._ask, *pair) for pair in pairs]
            for done in as_completed(asked):
                done.result()
        finally:
            # After a fatal error: what is under way ends and is kept, nothing more begins.
            pool.shutdown(cancel_futures=True)
        answers = (done.result() for done in asked)
        readings = {
            key: self._read(key[0], [(question, next(answers)) for question in questions])
            for key, questions in zip(distinct, routed, strict=True)
        }
        return [readings[p.text, p.title] for p in passages]

    def _choose(self, texts: Sequence[str]) -> list[list[Question]]:
        if self._router is None:
            return [self._questions for _ in texts]
        return [
            [question for question in self._questions if classes & {*question.group.domains}]
            for classes in self._router.route(texts)
        ]

    def _ask(self, passage: Passage, question: Question) -> tuple[Noted, ...] | Failure:
        chunk = Chunk(passage.text, passage.title, passage.document)
        answer = self._asker.ask(question.render(chunk, self._task, self._max_tokens), parse)
        self._progress.advance(1)
        return answer

    def _read(
        self, text: str, answers: Sequence[tuple[Question, tuple[Noted, ...] | Failure]]
    ) -> Reading:
        grounding = Grounding(text, self.model)
        failures = []
        for question, answer in answers:
            if isinstance(answer, Failure):
                failures.append(Failed(question.name, answer))
            else:
                grounding.add(answer, question.properties)
        return Reading(tuple(grounding.values.values()), tuple(grounding.dropped), tuple(failures))
