"""Which class a name or a noun says: `University of Lark` a university, `small town` a town."""

import re

from kpyramid.extraction.normal import lemmatise
from kpyramid.ontology.schema import Schema

_COMPLEMENT = re.compile(
    r"\s(?:of|in|for|from|at|on|by|with|to|who|which|that|and|or|near)\s|[(:;/]|,(?!\d)",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:the|a|an|this|these|his|her|its|their)\s+", re.IGNORECASE)
_COUNT = re.compile(
    r"(?:(?:about|almost|around|at least|more than|nearly|over|some|up to)\s+)*"
    r"(?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|many|several|some|few)\s",
    re.IGNORECASE,
)
_TITLES = frozenset({"WORK_OF_ART", "LAW"})


class Kinds:
    """The classes of a schema by their labels; a label that several classes have says none."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        found: dict[tuple[str, ...], set[str]] = {}
        for entry in schema.classes:
            for label in (entry.label, *entry.alt_labels):
                found.setdefault(_reduce(label), set()).add(entry.iri)
        self._by_label = {label: min(iris) for label, iris in found.items() if len(iris) == 1}
        self._labels = found.keys() - {()}
        self._longest = max(map(len, self._labels), default=0)

    def find(self, words: str) -> str | None:
        """The class that the head of a noun phrase names, by the longest label that ends it."""
        core = _reduce(_COMPLEMENT.split(words, maxsplit=1)[0])
        for size in range(min(self._longest, len(core)), 0, -1):
            found = self._by_label.get(core[-size:])
            if found is not None:
                return found
        return None

    def find_by_name(self, name: str, entity_type: str) -> frozenset[str]:
        """The class that a name's head says, if any.

        A title of a work may hold any noun, so that its head says something only of a kind of
        work; and what is written small is a name only where the class takes common nouns.
        """
        found = self.find(name)
        if found is None or self.is_kind(name):
            return frozenset()
        if not is_written_as_name(name) and not takes_nouns(found, self._schema):
            return frozenset()
        if entity_type in _TITLES:
            own = self._schema.class_for_type(entity_type)
            if own is None or not self._schema.is_subclass(found, own):
                return frozenset()
        return frozenset({found})

    def is_kind(self, words: str) -> bool:
        """Whether words are a class's label and nothing else: `the drug` names no individual.

        Unless only a class above says that its individuals are common nouns: a label of a class
        below is then one of them, as `headache` is a symptom.
        """
        label = _reduce(words)
        if label not in self._labels:
            return False
        iri = self._by_label.get(label)
        entry = self._schema.class_by_iri[iri] if iri else None
        if entry is None or entry.common_nouns:
            return True
        return not takes_nouns(entry.iri, self._schema)


def is_written_as_name(words: str) -> bool:
    """Whether the first word and the head are capitals: `Several buildings` is no name."""
    core = _COMPLEMENT.split(words, maxsplit=1)[0].split()
    return bool(core) and not core[-1][0].islower() and not words[0].islower()


def is_count(words: str) -> bool:
    """Whether words say how many there are of something: `about 9,000 students`.

    The head is a plural in small letters: `100 Mile House` and `6 mercaptopurine` are names.
    """
    if not _COUNT.match(words):
        return False
    head = _COMPLEMENT.split(words, maxsplit=1)[0].split()[-1]
    return head[0].islower() and (head == "people" or lemmatise(head) != head)


def takes_nouns(class_iri: str, schema: Schema) -> bool:
    """Whether a class, or one above it, says that its individuals are named by common nouns."""
    above = (schema.class_by_iri.get(iri) for iri in schema.find_ancestors(class_iri))
    return any(found.common_nouns for found in above if found)


def _reduce(words: str) -> tuple[str, ...]:
    bare = _ARTICLE.sub("", " ".join(words.split()))
    return tuple(lemmatise(word.casefold()) for word in bare.split())
