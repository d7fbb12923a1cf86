"""Asking a model which near duplicates are the same, batch by batch."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from kpyramid.extraction.cascade.duplicates import (
    Group,
    KeyPair,
    ask_for_duplicates,
    parse_duplicates,
)
from kpyramid.llm.caller import Asker
from kpyramid.llm.types import Failure
from kpyramid.resolution.duplicates import cut_batches


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The pairs that mean the same, and the batches without an answer."""

    pairs: tuple[KeyPair, ...]
    failures: tuple[tuple[Failure, tuple[Group, ...]], ...]


@dataclass(frozen=True, slots=True)
class Disambiguator:
    """f_dis for a corpus; `concurrency` calls at a time."""

    asker: Asker
    domain: str
    language: str
    max_tokens: int
    concurrency: int

    def confirm(self, kind: str, groups: Sequence[Group]) -> Confirmed:
        """Which of the `entities` or `relations` in each group are the same.

        Raises:
            BudgetError, EndpointError: the answers so far are kept.
        """
        batches = list(cut_batches(groups))
        pool = ThreadPoolExecutor(self.concurrency)
        try:
            answers = list(pool.map(partial(self._ask, kind), batches))
        finally:
            pool.shutdown(cancel_futures=True)
        pairs: list[KeyPair] = []
        failures = []
        for batch, answer in zip(batches, answers, strict=True):
            if isinstance(answer, Failure):
                failures.append((answer, batch))
            else:
                pairs.extend(answer)
        return Confirmed(tuple(sorted(pairs)), tuple(failures))

    def _ask(self, kind: str, batch: tuple[Group, ...]) -> tuple[KeyPair, ...] | Failure:
        request = ask_for_duplicates(
            kind,
            batch,
            domain=self.domain,
            language=self.language,
            max_tokens=self.max_tokens,
        )
        return self.asker.ask(request, lambda content: parse_duplicates(content, batch))
