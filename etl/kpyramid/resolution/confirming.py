"""Asking a model which near duplicates are the same, batch by batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from kpyramid.extraction.cascade.duplicates import (
    Group,
    KeyPair,
    ask_for_duplicates,
    parse_duplicates,
)
from kpyramid.llm.caller import Asker
from kpyramid.llm.questions import ask_all
from kpyramid.llm.types import Failure, Request
from kpyramid.resolution.duplicates import cut_groups


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
        batches = list(cut_groups(groups))
        questions = [
            (self._write(kind, batch), partial(parse_duplicates, groups=batch)) for batch in batches
        ]
        answers = ask_all(self.asker, questions, self.concurrency)
        pairs: list[KeyPair] = []
        failures = []
        for batch, answer in zip(batches, answers, strict=True):
            if isinstance(answer, Failure):
                failures.append((answer, batch))
            else:
                pairs.extend(answer)
        return Confirmed(tuple(sorted(pairs)), tuple(failures))

    def _write(self, kind: str, batch: tuple[Group, ...]) -> Request:
        return ask_for_duplicates(
            kind,
            batch,
            domain=self.domain,
            language=self.language,
            max_tokens=self.max_tokens,
        )
