"""Exact match: the facts about what the question names, nearest first (WTS, Table 2: EM-QSR)."""

from kpyramid.errors import InputError
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.facts import MOST_ENTITIES, find_about, state_facts
from kpyramid.query.kaping import read_facts
from kpyramid.query.types import Answer


def ask_exact(asked: QuestionAnalysis, decisions: Decisions, *, triples: int = 10) -> Answer:
    """What a reader makes of the nearest `triples` of the facts about the question's entities.

    Raises:
        InputError: `triples` is less than 1.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if triples < 1:
        raise InputError(f"triples = {triples}: at least one fact is read")
    linked = asked.linked
    entities = linked.entities[:MOST_ENTITIES]
    about = find_about(entities, asked, triples) if entities else {}
    named = ", ".join(dict.fromkeys(linked.names))
    seen = f"about {named}" if entities else "as the question names nothing that the graph knows"
    return read_facts(asked, state_facts(about, asked.snapshot), seen, decisions)
