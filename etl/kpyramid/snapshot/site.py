"""A snapshot as a static site: the page of the service over files that it loads when needed.

The files are scripts, since browsers do not let a local page read other files; each contains a part
of a list in ascending order, so that the page looks up a thing or a word without loading the rest.
"""

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

from kpyramid.snapshot.diff import NAMES, Diff, compare
from kpyramid.snapshot.individuals import describe_entity, summarise_snapshot
from kpyramid.snapshot.snapshot import Snapshot

PAGE = ("index.html", "page.css", "page.js", "data.js")
"""The files of the page."""
_THINGS, _PASSAGES, _WORDS = 50, 100, 1_000
"""Numbers of things, passages and words per file."""
_MOST_FACTS, _MOST_MEMBERS, _MOST_CHANGES, _MOST_MAIN = 200, 500, 500, 100
_MOST_POSTED = 200
"""Most things with a word in the index, those with most facts."""
_COMMON = 0.2
"""Share of passages with a word from which it is not indexed, unless there are few."""
_FEW = 50
_OMITTED = frozenset({"document_id", "chunk_id", "learnt", "producer"})
"""Fields that the page does not show."""
_WORD = re.compile(r"[^\W_]+")
_Postings = defaultdict[str, tuple[list[int], list[int]]]
"""Numbers of things, and numbers of passages with the word's frequency, by word."""


def read_page(name: str) -> bytes:
    """A file of the page."""
    return files("kpyramid.snapshot").joinpath("page", name).read_bytes()


def write_site(snapshot: Snapshot, path: Path, former: Snapshot | None = None) -> None:
    """Writes the visible part of a snapshot as a folder that a browser opens without a network.

    A thing has at most 200 facts, the best supported; changes are counted from `former`.
    """
    path.mkdir()
    for name in PAGE:
        page = read_page(name)
        if name == "index.html":
            page = page.replace(b"<html ", b'<html data-source="files" ', 1)
        (path / name).write_bytes(page)
    site = _Site(path / "data")
    postings: _Postings = defaultdict(lambda: ([], []))
    things = site.put_pieces("things", _list_things(snapshot, postings), _THINGS)
    passages = site.put_pieces("passages", _list_passages(snapshot, postings), _PASSAGES)
    count = sum(number for _, number in passages)
    words = site.put_pieces("words", _list_words(postings, count), _WORDS)
    overview = summarise_snapshot(snapshot, _MOST_MAIN)
    site.put("overview", asdict(overview))
    for index, entry in enumerate(overview.classes):
        members = snapshot.find(entry.iri, limit=_MOST_MEMBERS)
        listed = [{"id": member.id, "name": member.name} for member in members.members]
        site.put(f"classes/{index}", {"members": listed, "count": {"at_least": int(members.count)}})
    changed: dict[str, Any] = {"before": None, "after": snapshot.id, "tables": {}, "rows": {}}
    if former:
        with compare(former, snapshot) as changes:
            changed |= {"before": former.id, **_list_changes(changes)}
    site.put("diff", changed)
    site.put(
        "site",
        {
            "snapshot": snapshot.id,
            "things": [first["individual"]["entity_id"] for first, _ in things],
            "words": [first[0] for first, _ in words],
            "passages": count,
            "things_each": _THINGS,
            "passages_each": _PASSAGES,
        },
    )


class _Site:
    """The files of a site below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, value: Any) -> None:
        """Writes a file that gives the page a value under its name."""
        path = self._folder / f"{name}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        words = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        path.write_text(f'put("{name}",{words});\n', "utf-8")

    def put_pieces(self, name: str, values: Iterable[Any], each: int) -> list[tuple[Any, int]]:
        """Writes a list in files of `each` values; returns each file's first value and count."""
        pieces, rest = list[tuple[Any, int]](), iter(values)
        while piece := list(islice(rest, each)):
            self.put(f"{name}/{len(pieces)}", piece)
            pieces.append((piece[0], len(piece)))
        return pieces


def _list_things(snapshot: Snapshot, postings: _Postings) -> Iterator[dict[str, Any]]:
    """The things that are seen, in the order of their ids, with their facts."""
    counts = []
    for number, key in enumerate(sorted(snapshot._view.keys("entities"))):
        thing = describe_entity(key, snapshot, _MOST_FACTS)
        for word in {w for form in thing.individual.surface_forms for w in _split_words(form)}:
            postings[word][0].append(number)
        counts.append(thing.count)
        yield _omit(asdict(thing))
    for things, _ in postings.values():
        things.sort(key=lambda number: (-counts[number], number))
        del things[_MOST_POSTED:]


def _list_passages(snapshot: Snapshot, postings: _Postings) -> Iterator[dict[str, Any]]:
    """The passages that are seen, in the order of their ids, with their places."""
    for number, key in enumerate(snapshot._view.keys("chunks")):
        for place in snapshot.evidence(key):
            for word, times in Counter(_split_words(place.text)).items():
                postings[word][1].extend((number, times))
            title = snapshot.titles([place.document_id]).get(place.document_id)
            yield _omit(asdict(place)) | {"title": title}


def _list_words(postings: _Postings, passages: int) -> Iterator[tuple[str, list[int], list[int]]]:
    """Words in the order in which browsers compare them, with things and passages."""
    most = max(_FEW, _COMMON * passages)
    for word in sorted(postings, key=lambda word: word.encode("utf-16-be", "surrogatepass")):
        things, counted = postings[word]
        if things or len(counted) <= 2 * most:
            yield word, things, counted if len(counted) <= 2 * most else []


def _list_changes(changes: Diff) -> dict[str, Any]:
    """Counts by table, and the first rows of each."""
    return {
        "tables": {name: asdict(changes.count(name)) for name in NAMES},
        "rows": {
            name: [
                {"change": row.change, "words": row.words}
                for row in changes.read(name, _MOST_CHANGES)
            ]
            for name in NAMES
        },
    }


def _split_words(text: str) -> list[str]:
    """The words of a text without case and accents, as the page splits a question."""
    plain = unicodedata.normalize("NFKD", text)
    bare = "".join(sign for sign in plain if not unicodedata.category(sign).startswith("M"))
    return _WORD.findall(bare.lower())


def _omit(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _omit(each) for name, each in value.items() if name not in _OMITTED}
    return [_omit(each) for each in value] if isinstance(value, list | tuple) else value
