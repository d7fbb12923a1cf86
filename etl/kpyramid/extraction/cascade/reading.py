"""The cascade: the steps that a model does for a chunk, its requests and the results of replies."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Protocol, TypeVar

from kpyramid.documents.sentences import Dropped
from kpyramid.extraction.cascade.evidence import Text, assign_triples, prepare_text
from kpyramid.extraction.cascade.grounding import ground_statements, ground_triples, show_row
from kpyramid.extraction.cascade.review import (
    CHECK,
    SECOND,
    apply_verdicts,
    ask_check,
    ask_second,
    draw_facts,
    join_readings,
    list_unread,
    read_verdicts,
)
from kpyramid.extraction.cascade.tasks import (
    Form,
    Triple,
    ask_claims,
    ask_disambiguation,
    ask_entities,
    ask_relations,
    clean_items,
    read_claims,
    read_entities,
    read_triples,
)
from kpyramid.extraction.cascade.windows import (
    NO_VOCABULARY,
    Reading,
    Vocabulary,
    WindowExtraction,
    ask_window,
    ground_window,
    read_window,
)
from kpyramid.extraction.types import Chunk, Claim, Extraction, Fact
from kpyramid.llm.caller import Asker, is_due
from kpyramid.llm.task import Failure, Request
from kpyramid.settings import CascadeSettings

T = TypeVar("T")
Rows = Sequence[Sequence[Triple]]


class Progress(Protocol):
    """Reports the progress of long work."""

    def expect(self, total: int) -> None: ...

    def advance(self, count: int) -> None: ...


class NoReplyError(Exception):
    """A step of a chunk had no usable reply; its later steps are not requested."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


@dataclass
class _Draft:
    """The results of a chunk's steps so far; `triples` has a row per claim."""

    chunk: Chunk
    claims: tuple[Claim, ...] = ()
    entities: tuple[str, ...] = ()
    triples: Rows = ()
    facts: tuple[Fact, ...] = ()
    """Facts of the rules, of which `triples` are the words."""
    dropped: list[Dropped] = field(default_factory=list)

    @cached_property
    def text(self) -> Text:
        """The chunk, prepared for checking replies."""
        return prepare_text(self.chunk)

    def write_claims(self) -> list[str]:
        """The claims' texts."""
        return [claim.text for claim in self.claims]


@dataclass(eq=False, repr=False)
class Cascade:
    """Reads chunks with a model; `model` is the producer named in its rows.

    In mode `merged` the chunks are windows, and `vocabulary` lists the kinds and relations.
    `seed` draws the facts to check. `concurrency` chunks are processed at a time, each in one
    thread from its first step to its last.
    """

    asker: Asker
    settings: CascadeSettings
    _: KW_ONLY
    model: str
    max_tokens: int
    concurrency: int
    progress: Progress
    vocabulary: Vocabulary = NO_VOCABULARY
    seed: int = 0
    _stopped: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._form = Form(self.settings, self.max_tokens)

    @property
    def producers(self) -> tuple[str, str]:
        """The producers of claims and of facts: the model, or the rules for their steps.

        Facts of the rules that the model disambiguated count as the model's.
        """
        settings = self.settings
        relates = "llm" in (settings.relations, settings.disambiguation)
        return self.model if settings.paraphrase == "llm" else "rules", (
            self.model if relates else "rules"
        )

    def read(self, chunks: Sequence[Chunk]) -> list[Extraction | Failure]:
        """The extraction of each chunk, in order, or the reason why there is no reply.

        Raises:
            BudgetError, EndpointError: no further call can be made; the rest was not asked.
        """
        self.progress.expect(len(chunks))
        self._stopped = False
        pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="cascade")
        try:
            futures = [pool.submit(self._read, chunk) for chunk in chunks]
            for future in as_completed(futures):
                future.result()
                self.progress.advance(1)
            return [future.result() for future in futures]
        finally:
            # After a fatal error: running chunks end and are retained, no other chunk begins.
            self._stopped = True
            pool.shutdown(cancel_futures=True)

    def _read(self, chunk: Chunk) -> Extraction | Failure:
        draft = _Draft(chunk)
        try:
            if self.settings.mode == "merged":
                return self._merge(draft)
            for step in (self._paraphrase, self._list_entities, self._relate, self._disambiguate):
                step(draft)
        except NoReplyError as e:
            return e.failure
        made = ground_triples(
            draft.text, draft.claims, draft.entities, draft.triples, facts=draft.facts
        )
        return replace(made, dropped=(*draft.dropped, *made.dropped))

    def _try(self, request: Request, parse: Callable[[str], T]) -> T | Failure:
        if self._stopped:
            raise CancelledError
        return self.asker.ask(request, parse)

    def _ask(self, request: Request, parse: Callable[[str], T]) -> T:
        answer = self._try(request, parse)
        if isinstance(answer, Failure):
            raise NoReplyError(answer)
        return answer

    def _merge(self, draft: _Draft) -> WindowExtraction:
        request = ask_window(draft.chunk, self.settings, self.vocabulary, self._form.max_tokens)
        return self._review(draft, self._ask(request, read_window))

    def _review(self, draft: _Draft, reading: Reading) -> WindowExtraction:
        """The extraction of a reading after a second look and a check, and which had no answer.

        Facts are checked after the second look, so that none is checked twice.
        """
        form, settings = self._form, self.settings
        made, failures = ground_window(draft.text, reading, self.vocabulary), list[Failure]()
        unread = list_unread(made, draft.chunk) if settings.glean else []
        if unread:
            asked = (settings, self.vocabulary, form.max_tokens)
            second = self._try(ask_second(draft.chunk, reading, unread, *asked), read_window)
            if not isinstance(second, Failure):
                joined = join_readings(reading, second)
                made = ground_window(draft.text, joined, self.vocabulary)
            else:
                failures.append(replace(second, detail=f"{SECOND.name}: {second.detail}"))
        share = 0.0 if any(map(is_due, failures)) else settings.check_share
        if drawn := draw_facts(made, share, self.seed):
            request = ask_check(draft.chunk, made, drawn, settings, form.max_tokens)
            verdicts = self._try(request, read_verdicts)
            if not isinstance(verdicts, Failure):
                made = apply_verdicts(draft.text, made, drawn, verdicts)
            else:
                failures.append(replace(verdicts, detail=f"{CHECK.name}: {verdicts.detail}"))
        return replace(made, unanswered=tuple(failures))

    def _paraphrase(self, draft: _Draft) -> None:
        if self.settings.paraphrase == "llm":
            statements = self._ask(ask_claims(draft.chunk, self._form), read_claims)
            claims, dropped = ground_statements(draft.text, statements)
            draft.claims = tuple(claims)
            draft.dropped += dropped
        else:
            draft.claims = draft.chunk.extraction.claims

    def _list_entities(self, draft: _Draft) -> None:
        if not draft.claims:
            return
        if self.settings.entities == "llm":
            request = ask_entities(draft.write_claims(), draft.chunk, self._form)
            draft.entities = self._ask(request, read_entities)
        else:
            draft.entities = clean_items(each.text for each in draft.chunk.extraction.mentions)

    def _relate(self, draft: _Draft) -> None:
        if self.settings.relations == "rules":
            draft.facts = draft.chunk.extraction.facts
            draft.triples = _write_rows(draft.facts, len(draft.claims))
            return
        draft.triples = ((),) * len(draft.claims)
        if draft.claims and draft.entities:
            claims = draft.write_claims()
            request = ask_relations(claims, draft.entities, draft.chunk, self._form)
            draft.triples = assign_triples(claims, self._ask(request, read_triples))

    def _disambiguate(self, draft: _Draft) -> None:
        before = tuple(chain(*draft.triples))
        if self.settings.disambiguation == "rules" or len(before) < 2:
            return
        claims = draft.write_claims()
        request = ask_disambiguation(claims, before, draft.entities, draft.chunk, self._form)
        after = self._ask(request, read_triples)
        draft.triples = assign_triples(claims, after)
        gone = _list_gone(before, after)
        draft.dropped += [Dropped("repeated", show_row(row), draft.text.whole) for row in gone]


def _write_rows(facts: Sequence[Fact], claims: int) -> Rows:
    rows: list[list[Triple]] = [[] for _ in range(claims)]
    for fact in facts:
        rows[fact.claim].append(Triple(fact.head, fact.relation, fact.tail))
    return rows


def _list_gone(before: Sequence[Triple], after: Sequence[Triple]) -> list[Triple]:
    """The triples before that no triple after replaces: a different one with the same ends.

    Unchanged triples are matched first.
    """
    stayed = Counter(after)
    changed = [row for row in before if not _subtract(stayed, row)]
    places = Counter((row.head.casefold(), row.tail.casefold()) for row in stayed.elements())
    return [
        row for row in changed if not _subtract(places, (row.head.casefold(), row.tail.casefold()))
    ]


def _subtract(counts: Counter[T], key: T) -> bool:
    """Lowers a count by 1, unless it is 0; whether it did."""
    if counts[key] < 1:
        return False
    counts[key] -= 1
    return True
