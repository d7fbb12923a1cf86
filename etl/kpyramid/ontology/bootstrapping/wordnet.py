"""WordNet's nouns, read from its own files: `index.noun` and `data.noun`, as Debian lays them."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kpyramid.errors import InputError

DEFAULT_FOLDER = Path("/usr/share/wordnet")
_NEAR_WORDS = 5
_ENDINGS = (
    ("ies", "y"),
    ("men", "man"),
    ("ses", "s"),
    ("xes", "x"),
    ("ches", "ch"),
    ("shes", "sh"),
)


@dataclass(frozen=True, slots=True)
class Synset:
    """One meaning: its words, most usual first, its gloss, and pointers as (symbol, key).

    `field` is the number of its lexicographer file, such as 17 for natural objects.
    """

    key: str
    field: int
    words: tuple[str, ...]
    gloss: str
    pointers: tuple[tuple[str, str], ...]

    def find(self, *symbols: str) -> list[str]:
        """The keys that pointers of these kinds lead to, in their order."""
        return [key for symbol, key in self.pointers if symbol in symbols]


class WordNet:
    """Nouns by word and by key; keys are the offsets that WordNet names synsets by."""

    def __init__(self, folder: Path) -> None:
        """Opens a folder.

        Raises:
            InputError: the folder has no noun files.
        """
        self._data, self._index = folder / "data.noun", folder / "index.noun"
        for path in (self._data, self._index):
            if not path.is_file():
                raise InputError(
                    f"{path}: no such file; install WordNet (on Debian the package wordnet-base), "
                    "or name the folder of its database files with --wordnet"
                )

    @cached_property
    def _lines(self) -> dict[str, str]:
        return {line[:8]: line for line in _read_lines(self._data) if not line.startswith("  ")}

    @cached_property
    def _senses(self) -> dict[str, str]:
        lines = (line for line in _read_lines(self._index) if not line.startswith("  "))
        return {line.partition(" ")[0]: line for line in lines}

    @cached_property
    def licence(self) -> str:
        """The licence that WordNet's files begin with, which every copy must carry."""
        head = []
        for line in _read_lines(self._data):
            if not line.startswith("  "):
                break
            head.append(line.strip().partition(" ")[2].strip())
        return "\n".join(head).strip()

    def find_senses(self, word: str) -> list[Synset]:
        """The meanings of a noun, the most frequent first.

        Raises:
            InputError: WordNet does not have the word; names words that are near.
        """
        for lemma in _list_lemmas(word):
            if line := self._senses.get(lemma):
                parts = line.split()
                try:
                    count, pointers = int(parts[2]), int(parts[3])
                    keys = parts[6 + pointers :]
                    if len(keys) != count:
                        raise ValueError("the number of synsets")
                except (IndexError, ValueError) as e:
                    raise InputError(f"{self._index}: the line of {lemma!r} is broken: {e}") from e
                return [self.read(key) for key in keys]
        near = self._find_near(word)
        hint = f"; near it are {', '.join(near)}" if near else ""
        raise InputError(f"WordNet has no noun {word!r}{hint}")

    def _find_near(self, word: str) -> list[str]:
        lemma = next(_list_lemmas(word))
        close = [w for w in self._senses if w[:1] == lemma[:1] and abs(len(w) - len(lemma)) <= 3]
        found = difflib.get_close_matches(lemma, close, n=_NEAR_WORDS, cutoff=0.7)
        return [w.replace("_", " ") for w in found]

    def read(self, key: str) -> Synset:
        """The synset of a key.

        Raises:
            InputError: it is not there, or its line is broken.
        """
        line = self._lines.get(key)
        if line is None:
            raise InputError(f"{self._data}: no synset {key}; the files do not belong together")
        head, _, gloss = line.partition("|")
        parts = head.split()
        try:
            words = int(parts[3], 16)
            at = 4 + 2 * words
            count = int(parts[at])
            pointers = [
                (parts[at + 1 + 4 * i], parts[at + 2 + 4 * i])
                for i in range(count)
                if parts[at + 3 + 4 * i] == "n"
            ]
            names = tuple(parts[4 + 2 * i].replace("_", " ") for i in range(words))
            return Synset(key, int(parts[1]), names, gloss.strip(), tuple(pointers))
        except (IndexError, ValueError) as e:
            raise InputError(f"{self._data}: the line of synset {key} is broken: {e}") from e


def _read_lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line.rstrip("\n")
    except UnicodeDecodeError as e:
        raise InputError(f"{path}: not UTF-8, so not WordNet's file: {e}") from e


def _list_lemmas(word: str) -> Iterator[str]:
    """The word as WordNet spells it, then its likely singulars."""
    lemma = "_".join(word.lower().split())
    yield lemma
    for plural, singular in _ENDINGS:
        if lemma.endswith(plural):
            yield lemma.removesuffix(plural) + singular
    if lemma.endswith("s"):
        yield lemma.removesuffix("s")
