"""Cuts from WordNet 3.0 what the comparison of relation wordings needs.

    python etl/cut_wordnet.py [/usr/share/wordnet]

writes `extract.txt.gz` and `nouns.txt.gz` into `etl/kpyramid/graph/synonyms/wordnet/`; the same
WordNet gives the same bytes. Of `nouns.txt.gz` a line is NOUN and a letter of `FILES` for each of
its first three senses, `-` for another file. Of `extract.txt.gz` one tab-separated line each;
senses in WordNet's order, the most frequent first, synsets as their offsets:

    v  LEMMA  SYNSETS  TIMES   a verb's senses, and how often WordNet's texts use it as a verb
    n  LEMMA  SYNSETS  TIMES   the same of a noun that a verb is derived from, or a person's
    a  LEMMA  SYNSETS  TIMES   the same of an adjective that WordNet's texts use
    k  LEMMA  LEMMAS           nouns that are most often used for one kind of thing (film, movie)
    x  FORM   LEMMA            an irregular form of a verb
    h  SYNSET SYNSETS          a verb's more general meanings
    o  LEMMA  LEMMAS           antonyms, verbs and adjectives
    d  NOUN   VERB KIND RANKS  the noun is derived from the verb; KIND is WordNet's file of the noun
                               (person, act, ...), RANKS are the senses' places, the first is 0
    t  LEMMA  KIND             a noun that is mostly used for a kind of one of `ENDS`
"""

import gzip
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from kpyramid.ontology.bootstrapping import Synset, list_entries, parse_senses, parse_synset

TARGET = Path(__file__).parent / "kpyramid" / "graph" / "synonyms" / "wordnet"
FILES = {
    **{18: "p", 14: "g", 15: "l", 17: "o", 6: "a", 10: "c", 4: "t", 11: "e"},
    **{5: "A", 8: "B", 13: "F", 20: "P", 21: "M", 26: "S", 27: "U"},
    **{3: "x", 7: "x", 23: "x", 24: "x", 25: "x", 28: "x"},
}
"""Files of the nouns of what has names: person, group, location, object, artifact, communication,
act, event; of what has none and is a thing all the same: animal, body, food, plant, possession,
state, substance. `x`: of what is no thing: the most general, attribute, quantity, relation, shape,
time."""
KINDS = {4: "act", 18: "person", 11: "event", 10: "communication", 14: "group"}
"""WordNet's lexicographer files of nouns that matter to relations; `lexnames(5WN)`."""
NAMED = KINDS.keys() | {6, 15, 17}
"""Those of nouns for kinds of things that have names: artifacts, places and objects too."""
ENDS = {"music_genre": "GENRE", "musical_instrument": "INSTRUMENT", "discipline": "FIELD"}
"""Nouns whose kinds tell a relation's meaning: `plays jazz` and `plays the harp`."""
SENSES = 6
"""Rarer senses of a word are left out."""


def read_synsets(path: Path) -> dict[str, Synset]:
    """The synsets of a part of speech, by offset."""
    lines = list_entries(path.read_text("latin-1").splitlines())
    return {synset.key: synset for synset in map(parse_synset, lines)}


def read_senses(path: Path) -> dict[str, list[str]]:
    """The synsets of each lemma in WordNet's order."""
    lines = list_entries(path.read_text("latin-1").splitlines())
    return {lemma.lower(): keys for lemma, keys in map(parse_senses, lines)}


def name_word(synset: Synset, number: int) -> str:
    """A word of a synset, counted from 1, as a lemma of the index, without the adjective's mark."""
    return synset.words[number - 1].split("(")[0].lower().replace(" ", "_")


def count_uses(folder: Path) -> dict[tuple[str, str], int]:
    """How often the tagged texts use a lemma, by part of speech (1 noun, 2 verb, 3 adjective)."""
    uses: dict[tuple[str, str], int] = defaultdict(int)
    for line in (folder / "cntlist.rev").read_text("latin-1").splitlines():
        key, _, times = line.split()
        lemma, _, rest = key.partition("%")
        uses[lemma, rest[0].replace("5", "3")] += int(times)
    return uses


def cut(folder: Path) -> Iterator[tuple[str, ...]]:
    """The lines of the extract, unsorted."""
    names = ("verb", "noun", "adj")
    verbs, nouns, adjectives = (read_synsets(folder / f"data.{name}") for name in names)
    verb_senses, noun_senses, adjective_senses = (read_senses(folder / f"index.{n}") for n in names)
    uses = count_uses(folder)

    def list_synsets(senses: dict[str, list[str]], lemma: str) -> str:
        return " ".join(o.lstrip("0") or "0" for o in senses[lemma][:SENSES])

    for lemma in verb_senses:
        yield ("v", lemma, list_synsets(verb_senses, lemma), str(uses[lemma, "2"]))
    for lemma in adjective_senses:
        if uses[lemma, "3"] and "_" not in lemma:
            yield ("a", lemma, list_synsets(adjective_senses, lemma), str(uses[lemma, "3"]))
    for line in (folder / "verb.exc").read_text("latin-1").splitlines():
        form, lemma, *_ = line.split()
        yield ("x", form, lemma)
    kept: set[str] = {"relative", "spouse"}
    for offset, synset in verbs.items():
        above = [p[1].lstrip("0") for p in synset.pointers if p[0] == "@"]
        if above:
            yield ("h", offset.lstrip("0"), " ".join(above))
        for symbol, target, part, source, to in synset.pointers:
            if symbol != "+" or part != "n" or not source:
                continue
            verb, noun = name_word(synset, source), name_word(nouns[target], to)
            ranks = (noun_senses[noun].index(target), verb_senses[verb].index(offset))
            if max(ranks) < SENSES and "_" not in noun:
                kind = KINDS.get(nouns[target].field, "other")
                yield ("d", noun, verb, kind, f"{ranks[0]} {ranks[1]}")
                kept.add(noun)
    for lemma, offsets in noun_senses.items():
        person = nouns[offsets[0]].field == 18 and uses[lemma, "1"]
        if "_" not in lemma and (lemma in kept or person):
            yield ("n", lemma, list_synsets(noun_senses, lemma), str(uses[lemma, "1"]))
    for name, end in ENDS.items():
        below, open_ = set[str](), {noun_senses[name][0]}
        while open_:
            below |= open_
            open_ = {
                offset
                for offset, synset in nouns.items()
                if any(p[0] == "@" and p[1] in open_ for p in synset.pointers)
            } - below
        for lemma, offsets in noun_senses.items():
            if not below.isdisjoint(offsets[:2]):
                yield ("t", lemma, end)
    alike: dict[str, list[str]] = defaultdict(list)
    for lemma, offsets in noun_senses.items():
        synset = nouns[offsets[0]]
        if synset.field in NAMED and lemma in {word.replace(" ", "_") for word in synset.words}:
            alike[offsets[0]].append(lemma)
    for first, *others in alike.values():
        if others:
            yield ("k", first, " ".join(others))
    opposites: dict[str, set[str]] = defaultdict(set)
    for synsets in (verbs, adjectives):
        for synset in synsets.values():
            for symbol, target, part, source, to in synset.pointers:
                if symbol == "!" and part in "vas":
                    other = (verbs if part == "v" else adjectives)[target]
                    opposites[name_word(synset, source)].add(name_word(other, to))
    for lemma, contrary in opposites.items():
        yield ("o", lemma, " ".join(sorted(contrary)))


def cut_nouns(folder: Path) -> Iterator[tuple[str, ...]]:
    """The lines of `nouns.txt.gz`, unsorted: nouns of one word in small letters."""
    nouns = read_synsets(folder / "data.noun")
    for lemma, offsets in read_senses(folder / "index.noun").items():
        if lemma.isalpha():
            yield lemma, "".join(FILES.get(nouns[key].field, "-") for key in offsets[:3])


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/wordnet")
    for name, lines in (("extract", cut(folder)), ("nouns", cut_nouns(folder))):
        text = "\n".join(sorted({"\t".join(line) for line in lines})) + "\n"
        packed = gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0)
        (TARGET / f"{name}.txt.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
