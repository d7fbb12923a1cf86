"""The entities that names and words of names stand for, found in files of any size."""

from collections.abc import Iterator, Mapping

from kpyramid.snapshot.view import View


class EntitiesByName(Mapping[str, tuple[str, ...]]):
    """The ids of the entities that have a name, in their order; `prefix` is put before each.

    Names are in the form of `join_words`. A name that no text uses which is seen is none.
    """

    def __init__(self, view: View, prefix: str = "") -> None:
        self._view = view
        self._prefix = prefix

    def __getitem__(self, name: str) -> tuple[str, ...]:
        rows = self._view.find_named(name)
        if rows is None:
            raise KeyError(name)
        return self._name_rows(rows)

    def __iter__(self) -> Iterator[str]:
        return self._view.list_all_names()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def with_word(self, word: str) -> tuple[str, ...]:
        """The entities with a word in one of their names; none for one that too many share."""
        return self._name_rows(self._view.find_with_word(word))

    def with_start(self, start: str) -> tuple[str, ...]:
        """The entities with a word in one of their names that begins so."""
        return self._name_rows(self._view.find_with_start(start))

    def list_names(self, entity_id: str) -> tuple[str, ...]:
        """The names of an entity; none for an unknown id."""
        row = self._view.find("entities", entity_id.removeprefix(self._prefix))
        return () if row is None else self._view.names_of(row)

    def _name_rows(self, rows: list[int]) -> tuple[str, ...]:
        return tuple(self._prefix + self._view.key_of(row) for row in rows)


class EntityTexts(Mapping[str, str]):
    """The name or the type of every entity by its id; nothing is read before it is asked for."""

    def __init__(self, view: View, *, types: bool = False) -> None:
        self._view = view
        self._types = types

    def __getitem__(self, key: str) -> str:
        row = self._view.locate("entities", key)
        return self._view.type_of(row) if self._types else self._view.name_of(row)

    def __iter__(self) -> Iterator[str]:
        return self._view.keys("entities")

    def __len__(self) -> int:
        return self._view.count("entities")
