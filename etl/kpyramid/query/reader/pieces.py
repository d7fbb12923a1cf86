"""Context cut into what a reader weighs: sentences of passages, and facts with their two sides."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kpyramid.extraction.text.sentences import split_sentences
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.reader.matching import Word, split_words
from kpyramid.query.reader.values import Value, find_values
from kpyramid.query.types import Evidence, Item


@dataclass(frozen=True, slots=True)
class Side:
    """What a fact speaks of at one end; a literal has no id."""

    entity: str | None
    name: str
    kind: str


@dataclass(frozen=True, slots=True, order=True)
class Mention:
    """A name or noun phrase in a piece, by its characters there, with its entity type."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Piece:
    """A sentence or a fact in words, with its places.

    `sides` are a fact's head and tail and `relation` what joins them. `around` are the stems of
    the passage that a sentence stands in, with its title's; `rank` is the item's place in the
    context, from 0.
    """

    text: str
    evidence: tuple[Evidence, ...]
    rank: int
    layer: str
    sides: tuple[Side, Side] | None = None
    relation: str = ""
    around: frozenset[str] = frozenset()
    mentions: tuple[Mention, ...] = ()

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its words."""
        return split_words(self.text)

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Its dates and numbers."""
        return find_values(self.text)


def cut_items(items: Sequence[Item], snapshot: Snapshot) -> list[Piece]:
    """The pieces of a context in its order; passages that overlap give a sentence once."""
    places = [place for item in items if item.layer == "text" for place in item.evidence]
    titles = snapshot.titles({place.document_id for place in places})
    mentions: dict[str, set[Mention]] = {}
    for row in snapshot.mentions_in(sorted({place.chunk_id for place in places})):
        mention = Mention(row["start"], row["end"], row["type"])
        mentions.setdefault(row["chunk_id"], set()).add(mention)
    pieces: list[Piece] = []
    seen: set[tuple[str, int, int]] = set()
    for rank, item in enumerate(items):
        if item.layer == "text" and item.evidence:
            for place in item.evidence:
                title = titles.get(place.document_id, "")
                around = frozenset(w.stem for w in split_words(f"{title}\n{place.text}"))
                for sentence in _split(place):
                    key = (sentence.document_id, sentence.start, sentence.end)
                    if key in seen:
                        continue
                    seen.add(key)
                    inside = _find_inside(sentence, mentions.get(place.chunk_id, set()))
                    pieces.append(
                        Piece(
                            sentence.text,
                            (sentence,),
                            rank,
                            item.layer,
                            around=around,
                            mentions=inside,
                        )
                    )
        else:
            pieces.append(_read_fact(item, rank, snapshot))
    return pieces


def _read_fact(item: Item, rank: int, snapshot: Snapshot) -> Piece:
    if item.key.startswith("condensed-"):
        stated = snapshot.state_condensed(item.key)
    elif item.key.startswith("instance-"):
        stated = snapshot.state_instance(item.key)
    else:  # a value that a query found: what it is of, the query says
        own = Side(None, item.text, "")
        return Piece(item.text, item.evidence, rank, item.layer, (Side(None, "", ""), own))
    head_id, head, head_type, relation, tail_id, tail, kind = stated
    sides = Side(head_id, head, head_type), Side(tail_id, tail, kind)
    return Piece(item.text, item.evidence, rank, item.layer, sides, relation)


def _split(place: Evidence) -> list[Evidence]:
    return [
        Evidence(
            place.document_id,
            place.chunk_id,
            place.start + span.start,
            place.start + span.end,
            place.text[span.start : span.end],
            place.source,
        )
        for span in split_sentences(place.text)
    ]


def _find_inside(sentence: Evidence, mentions: set[Mention]) -> tuple[Mention, ...]:
    return tuple(
        Mention(mention.start - sentence.start, mention.end - sentence.start, mention.kind)
        for mention in sorted(mentions)
        if sentence.start <= mention.start and mention.end <= sentence.end
    )
