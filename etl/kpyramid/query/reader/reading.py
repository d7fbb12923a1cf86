"""What a reader makes of context: by rules, or by the model that is asked."""

from collections.abc import Sequence
from dataclasses import replace

from kpyramid.query.doubt import Doubt, doubt_places, find_doubt
from kpyramid.query.grounds import add_fact, find_grounds
from kpyramid.query.pyramid.linking import find_names
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.reader.asked import Asked, read_number, read_question
from kpyramid.query.reader.choosing import choose
from kpyramid.query.reader.deciding import confirm, decide, is_decision
from kpyramid.query.reader.finding import gather_values
from kpyramid.query.reader.hits import Hit, is_akin, measure_hits
from kpyramid.query.reader.pieces import Piece, cut_items
from kpyramid.query.reader.weighing import Supported, weigh
from kpyramid.query.types import Item, Makers, Question, Reading

SURE = 0.3
"""Probability of a short answer below which the sentence it stands in is the answer, or none."""
SURE_IF_SOUND = 0.15
"""The same of one whose place says all that the question says."""
GIVES_WAY, MOST_DOUBTED, MOST_PLACES = 0.3, 8, 2
"""Share of its probability that is left to a value that is not borne out, beside others; values and
places of each that are looked at."""
LEAST_SAID = 0.5
"""Share of what a question says besides names that a sentence has to say to be its answer."""


def read(question: Question, items: Sequence[Item], snapshot: Snapshot, makers: Makers) -> Reading:
    """The answer that context gives, best items first; empty when it does not say.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if not items:
        return Reading("", (), 0.0, ())
    if makers.reader == "llm":
        assert makers.asker is not None  # `Makers` demands it
        from kpyramid.query.model.reading import read_by_model  # prompts take as long as the rest

        return read_by_model(question, items, makers.asker, logprobs=makers.logprobs)
    asked = read_question(question.text, snapshot.link(question.text))
    pieces = cut_items(items, snapshot)
    if question.candidates and is_decision(question.candidates):
        return decide(asked, question.candidates, pieces, snapshot)
    if question.candidates:
        chosen = choose(asked, question.candidates, pieces, snapshot)
        return _doubt_options(question, chosen, items, snapshot)
    if asked.is_yes_no:
        return confirm(asked, pieces, snapshot)
    return _find_value(asked, pieces, snapshot)


def _doubt_options(
    question: Question, chosen: Reading, items: Sequence[Item], snapshot: Snapshot
) -> Reading:
    """The options chosen, no surer than their places bear them out.

    Where the wording leaves open whether several are asked for, the ones that are borne out in
    the words of the question stand alone: who starred in a film is not who directed it.
    """
    if not chosen.choices:
        return chosen
    open_question = Question(question.text)
    if len(chosen.choices) > 1 and read_number(question.text) == "any":
        sound = tuple(
            choice
            for choice in chosen.choices
            if not doubt_places(open_question, [choice], chosen.evidence, items, snapshot).reason
        )
        if sound and sound != chosen.choices:
            chosen = replace(chosen, text="; ".join(sound), choices=sound)
    doubt = doubt_places(question, chosen.choices, chosen.evidence, items, snapshot)
    if doubt.bound >= chosen.confidence:
        return chosen
    return replace(chosen, confidence=doubt.bound, reason=doubt.reason)


def _find_value(asked: Asked, pieces: Sequence[Piece], snapshot: Snapshot) -> Reading:
    """The value that answers most probably, else the sentence that says most of the question.

    One that its place does not bear out gives way to one that is less probable and borne out.
    """
    texts, hits = gather_values(asked, pieces)
    best = 0.0
    if hits:
        weighed = weigh(hits, measure_hits(asked, hits), "open")
        best = weighed[0].probability
        context = [piece.text for piece in pieces]
        found: list[tuple[float, Doubt, Hit, Supported]] = []
        for one in weighed[:MOST_DOUBTED]:
            if found and one.probability <= max(standing for standing, *_ in found):
                break
            hit, doubt = _find_soundest(asked, texts[one.candidate], one, context, snapshot)
            found.append((one.probability * (GIVES_WAY if doubt.reason else 1.0), doubt, hit, one))
        _, doubt, hit, one = max(found, key=lambda each: each[0])
        if one.probability >= (SURE if doubt.reason else SURE_IF_SOUND):
            text = hit.piece.text[hit.start : hit.end] or texts[one.candidate]
            return Reading(text, (text,), one.probability, hit.piece.evidence)
    return _find_sentence(asked, pieces, best)


def _find_soundest(
    asked: Asked, text: str, one: Supported, context: Sequence[str], snapshot: Snapshot
) -> tuple[Hit, Doubt]:
    """The surest place of a value that bears it out, else its surest place and what is amiss."""
    first = None
    for hit in one.hits[:MOST_PLACES]:
        grounds = find_grounds(hit.piece.evidence, (), snapshot)
        if hit.side is not None:  # its words as well: a pronoun is resolved in them
            grounds = [add_fact(ground, hit.piece.text) for ground in grounds]
        doubt = find_doubt(asked, text, grounds, context, snapshot)
        if not doubt.reason:
            return hit, doubt
        first = first or (hit, doubt)
    assert first is not None
    return first


def _find_sentence(asked: Asked, pieces: Sequence[Piece], probability: float) -> Reading:
    names = find_names(asked.text, first_counts=False)
    near = [p for p in pieces if not names or names & find_names(p.text, first_counts=True)]
    near = [p for p in near if not p.sides]
    said = [sum(any(is_akin(w, o) for o in p.words) for w in asked.content) for p in near]
    if not any(said) or max(said) < LEAST_SAID * len(asked.content):
        return Reading("", (), probability, ())
    piece = near[said.index(max(said))]
    return Reading(piece.text, (piece.text,), probability, piece.evidence)
