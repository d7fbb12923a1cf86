"""From the words of a text to the individual they name."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from kpyramid.extraction.normal import normalise_name
from kpyramid.extraction.text.sentences import Span
from kpyramid.induction.checking import UNTYPED, Named, is_name
from kpyramid.keys import content_id

Row = Mapping[str, object]


class Linker:
    """Knows the graph's entities, and gives one to what no entity names yet.

    `entities`, `mentions`: rows of these tables. `documents`: the document of each chunk. `kinds`:
    the classes that a name says, given the name and its type.
    """

    def __init__(
        self,
        entities: Iterable[Row],
        mentions: Iterable[Row],
        documents: Mapping[str, str],
        kinds: Callable[[str, str], frozenset[str]],
    ) -> None:
        self._kinds = kinds
        self.named: dict[str, Named] = {}
        self._by_place: dict[tuple[str, int, int], str] = {}
        self._local: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._anywhere: dict[str, set[str]] = defaultdict(set)
        self._types: dict[tuple[str, int, int], str] = {}
        self._made: dict[str, tuple[Named, set[str], set[str]]] = {}
        place_of = {}
        for row in mentions:
            place = documents[str(row["chunk_id"])], int(str(row["start"])), int(str(row["end"]))
            place_of[str(row["mention_id"])] = place, str(row["text"])
            if self._types.get(place, UNTYPED) == UNTYPED:
                self._types[place] = str(row["type"])
        self._mentions: dict[tuple[str, int, int], set[str]] = defaultdict(set)
        for key, (place, _) in place_of.items():
            self._mentions[place].add(key)
        for row in entities:
            entity = str(row["entity_id"])
            name, kind = str(row["name"]), str(row["type"])
            self.named[entity] = Named(entity, name, kind, kinds(name, kind))
            for form in _list(row["surface_forms"]):
                self._anywhere[normalise_name(form)].add(entity)
            for key in _list(row["mentions"]):
                place, text = place_of[key]
                self._by_place[place] = entity
                self._local[place[0], normalise_name(text)].add(entity)

    def find(self, document_id: str, words: str, span: Span | None) -> Named | str:
        """The individual that words name, at a place if it is known, or why there is none.

        The entity mentioned at that very place; else the one of that name in the document; else
        the only one of that name anywhere; else a new one, if the words are a name.
        """
        place = (document_id, span.start, span.end) if span else None
        known = self._by_place.get(place) if place else None
        if known is not None:
            return self.named[known]
        key = normalise_name(words)
        for found in (self._local.get((document_id, key)), self._anywhere.get(key)):
            if found and len(found) > 1:
                return f"{len(found)} entities are called {words!r}, none at that place"
            if found:
                return self.named[next(iter(found))]
        if not is_name(words):
            return f"{words!r} is no name of an individual"
        return self._make(key, " ".join(words.split()), place)

    def _make(self, key: str, name: str, place: tuple[str, int, int] | None) -> Named:
        entity = content_id("entity", key)
        entity = content_id("entity", key, "induced") if entity in self.named else entity
        kind = self._types.get(place, UNTYPED) if place else UNTYPED
        found = self._mentions.get(place, set()) if place else set()
        made, forms, mentions = self._made.get(entity, (Named(entity, name, kind), set(), set()))
        best = min(made.name, name, key=lambda n: (-len(n), n))
        kind = kind if made.type == UNTYPED else made.type
        made = Named(entity, best, kind, self._kinds(best, kind))
        self._made[entity] = made, forms | {name}, mentions | found
        return made

    @property
    def made(self) -> dict[str, Named]:
        """The individuals that were not there, by id."""
        return {key: named for key, (named, _, _) in self._made.items()}

    def list_made(self) -> list[Row]:
        """The rows of `entities` of the individuals that were not there."""
        return [
            {
                "entity_id": named.entity_id,
                "name": named.name,
                "type": named.type,
                "surface_forms": sorted(forms),
                "mentions": sorted(mentions),
            }
            for _, (named, forms, mentions) in sorted(self._made.items())
        ]


def _list(value: object) -> list[str]:
    assert isinstance(value, list)
    return value
