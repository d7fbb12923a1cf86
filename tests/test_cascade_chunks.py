"""Many chunks at a time: their order, their failures, and what the rules found in each."""

import threading
import time
from dataclasses import replace

import pytest

from kpyramid.documents.sentences import Dropped, Span
from kpyramid.errors import BudgetError
from kpyramid.extraction.types import Chunk, Claim, Extraction, Fact, Mention, cut_extraction
from kpyramid.llm.task import Failure, FailureKind, Request
from tests.cascade_script import (
    CHUNK,
    PAPER,
    STEPS,
    Counter,
    ScriptedAsker,
    answer_paper,
    open_cascade,
    write_merged,
)


def test_results_keep_the_order() -> None:
    chunks = [Chunk(f"City{at % 3} lies in Land{at % 3}.", None, f"d{at}") for at in range(9)]

    def answer(request: Request) -> str:
        name = request.subject[4]
        time.sleep(0.005 * (3 - int(name)))
        return write_merged([(f"City{name}", "lies in", f"Land{name}", 1)])

    progress = Counter()
    results = open_cascade(ScriptedAsker(answer), progress=progress).read(chunks)
    heads = [r.facts[0].head for r in results if isinstance(r, Extraction)]
    assert heads == [f"City{at % 3}" for at in range(9)]
    assert (progress.expected, progress.advanced) == (9, 9)


def test_a_chunk_without_a_reply_fails_alone() -> None:
    def answer(request: Request) -> str | FailureKind:
        if "two" in request.subject:
            return FailureKind.REFUSED
        return "no JSON" if "three" in request.subject else write_merged([])

    progress = Counter()
    results = open_cascade(ScriptedAsker(answer), progress=progress).read(
        [Chunk(word) for word in ("one", "two", "three", "four")]
    )
    kinds = [r.kind if isinstance(r, Failure) else None for r in results]
    assert kinds == [None, FailureKind.REFUSED, FailureKind.INVALID, None]
    assert progress.advanced == 4


@pytest.mark.parametrize("step", range(4))
def test_a_step_without_a_reply_ends_its_chunk(step: int) -> None:
    def answer(request: Request) -> str | FailureKind:
        return FailureKind.EMPTY if request.task == STEPS[step] else answer_paper(request)

    asker = ScriptedAsker(answer)
    (result,) = open_cascade(asker, PAPER).read([CHUNK])
    assert isinstance(result, Failure)
    assert asker.tasks == list(STEPS[: step + 1])


def test_as_many_chunks_are_under_way_as_may_be() -> None:
    four = threading.Barrier(4)

    def answer(request: Request) -> str:
        if request.task == "paraphrase":
            four.wait(timeout=120)  # passes only when four are asked at a time
        return answer_paper(request)

    asker = ScriptedAsker(answer)
    chunks = [replace(CHUNK, title=f"Title {at}") for at in range(8)]
    open_cascade(asker, PAPER, concurrency=4).read(chunks)
    assert asker.most == 4


def test_when_no_further_call_can_be_made_the_rest_is_not_asked() -> None:
    turns = iter(range(1000))

    def answer(request: Request) -> str:
        if next(turns) == 4:
            raise BudgetError("the next call might pass the budget")
        return answer_paper(request)

    asker = ScriptedAsker(answer, seconds=0.02)
    chunks = [replace(CHUNK, title=f"Title {at}") for at in range(200)]
    with pytest.raises(BudgetError):
        open_cascade(asker, PAPER, concurrency=3).read(chunks)
    # Two more threads end the call that they are in, or one that they had begun.
    assert len(asker.asked) <= 5 + 4
    asked = len(asker.asked)
    time.sleep(0.05)
    assert len(asker.asked) == asked


# What the rules found, in the chunk's own characters.


def test_what_the_rules_found_is_cut_to_the_chunk() -> None:
    found = Extraction(
        claims=(
            Claim("before", (Span(0, 9),)),
            Claim("inside", (Span(2, 5), Span(12, 20))),
            Claim("behind", (Span(30, 40),)),
        ),
        mentions=(Mention(0, "a", "ORG", Span(1, 2)), Mention(1, "b", "GPE", Span(14, 16))),
        facts=(
            Fact(0, "a", "r", "t", Span(1, 2), None, None),
            Fact(1, "h", "r", "b", Span(2, 5), Span(12, 13), Span(14, 16)),
        ),
        dropped=(Dropped("x", "y", Span(11, 12)), Dropped("x", "y", Span(1, 2))),
    )
    part = cut_extraction([(100, found), (200, found)], 110, 130)
    assert part.claims == (replace(found.claims[1], spans=(Span(2, 10),)),)
    assert part.mentions == (Mention(0, "b", "GPE", Span(4, 6)),)
    assert part.facts == (Fact(0, "h", "r", "b", None, Span(2, 3), Span(4, 6)),)
    assert part.dropped == (Dropped("x", "y", Span(1, 2)),)
    both = cut_extraction([(100, found), (130, found)], 110, 150)
    assert [both.claims[fact.claim].text for fact in both.facts] == ["inside", "before", "inside"]
