"""What a model is asked about: facts around an anchor that no rule merged (f_con's X_k)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from kpyramid.condensation.condensing import Condensation
from kpyramid.condensation.graph import Graph
from kpyramid.condensation.merging import Merger
from kpyramid.condensation.types import Neighbourhood, Statement
from kpyramid.ontology.schema import Schema


def list_neighbourhoods(
    graph: Graph, made: Condensation, ids: Sequence[str], schema: Schema
) -> list[Neighbourhood]:
    """The facts left apart, by pair of ends and anchor; a fact is in one neighbourhood at most.

    `ids`: keys of the facts by row.
    """
    found = []
    for mergers in made.apart:
        by_anchor: dict[tuple[str, bool], list[Merger]] = defaultdict(list)
        for merger in mergers:
            for anchor in merger.fact.anchors:
                by_anchor[anchor].append(merger)
        taken: set[int] = set()
        for (iri, _), around in sorted(by_anchor.items(), key=lambda e: (-len(e[1]), e[0])):
            left = [merger for merger in around if merger.fact.place not in taken]
            if len(left) > 1:
                taken |= {merger.fact.place for merger in left}
                kind = schema.class_for_type(left[0].fact.ends[0])
                found.append(
                    Neighbourhood(
                        schema.property_by_iri[iri].label,
                        schema.class_by_iri[kind].label if kind else None,
                        tuple(_state(merger.fact.place, graph, ids) for merger in left),
                    )
                )
    return found


def merge_agreed(made: Condensation, ids: Sequence[str], agreed: Iterable[tuple[str, str]]) -> None:
    """Merges what a model agreed to: keys of a fact that goes and of the one that stays."""
    row = {key: at for at, key in enumerate(ids)}
    goes = {row[one]: row[other] for one, other in agreed}
    by_place = {merger.fact.place: merger for mergers in made.apart for merger in mergers}
    for place in sorted(goes):
        stays = place
        while stays in goes:
            stays = goes[stays]
        for fact, _ in by_place[place].merged:
            made.stands[fact.place], made.how[fact.place] = stays, "llm"


def _state(place: int, graph: Graph, ids: Sequence[str]) -> Statement:
    tail = int(graph.tails[place])
    return Statement(
        ids[place],
        graph.names[graph.heads[place]],
        graph.wordings[graph.relations[place]],
        graph.names[tail] if tail >= 0 else graph.texts[graph.literals[place]],
    )
