"""The stretches of a text that may be subject or value: names, titles, nouns, dates, numbers."""

import re
import unicodedata
from collections.abc import Container, Iterator
from dataclasses import dataclass

from kpyramid.documents.values import DAY, MONTH
from kpyramid.extraction.syntax.tree import PLACES, Node, Tree

# Small words that stand inside names: "Ministry of the Interior", "Rio de la Plata".
_INNER = frozenset(
    "of the and de la le du des der van von di da do dos del y e for in on at to a an with".split()
)
_QUOTES = {'"': '"', "“": "”", "``": "''", "«": "»", "‘": "’"}
_NOMINAL = frozenset(("NOUN", "PROPN", "ADJ", "NUM", "X", "VERB", "ADV"))
_MONTH = rf"{MONTH}\.?"
_DATE = re.compile(
    rf"\b(?:[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|{DAY}(?: of)? {_MONTH},? [0-9]{{4}}"
    rf"|{_MONTH} {DAY},? ?[0-9]{{4}}|{_MONTH},? [0-9]{{4}}|[12][0-9]{{3}})\b"
)
_NUMBER = re.compile(r"(?<![\w.,])[-+−]?[$€£¥]?[0-9][0-9,]*(?:\.[0-9]+)?(?![\w])")
_YEAR = re.compile(r"[12][0-9]{3}")
_CODE = re.compile(r"(?=.*[A-Z0-9])[A-Z0-9][A-Z0-9/.-]{1,11}")
_MIXED = re.compile(
    r"(?<!\S)(?=\S*[0-9])(?=\S*[A-Z/-])[A-Z0-9][A-Za-z0-9/.-]*[A-Za-z0-9](?=[\s.,;:)]|$)"
)
_JOINTS = frozenset(("-", "–", "/", ":", "&", "'s", "’s", "'", "!"))
_MOST_WORDS = 12
_MOST_MODIFIERS = 4
DATES = frozenset(("DATE", "YEAR"))
LITERALS = frozenset(("DATE", "YEAR", "NUMBER", "CODE"))


@dataclass(frozen=True, slots=True)
class CandidateSpan:
    """Characters `start` to `end`, tokens `first` to `last` of a tree, headed by token `head`.

    `kind` is the recogniser's label, or one of DATE, YEAR, NUMBER, CODE, TITLE (in quotation
    marks), NAME (in capitals), NOUN, PART (of a noun phrase).
    """

    start: int
    end: int
    first: int
    last: int
    head: int
    kind: str
    text: str
    is_name: bool


def find_candidates(tree: Tree, known: Container[str] = frozenset()) -> list[CandidateSpan]:
    """The candidates of a text in text order, each stretch once, under its most specific kind.

    `known`: names in the form of `fold_name`, which are candidates wherever they stand.
    """
    spans: dict[tuple[int, int], CandidateSpan] = {}

    def keep(first: int, last: int, kind: str) -> None:
        first, last = _trim(tree, first, last)
        if first > last or last - first >= _MOST_WORDS:
            return
        if (first, last) not in spans:
            spans[first, last] = _make_candidate(tree, first, last, kind)
        if (
            first > 0
            and tree[first - 1].text in {"The", "A", "An"}
            and tree[first].text[:1].isupper()
        ):
            # Whether the article belongs to the title no tagger knows: "The Hobbit", "The Hague".
            whole = (first - 1, last)
            spans.setdefault(whole, _make_candidate(tree, *whole, "NAME"))

    for first, last in _find_matches(tree, _DATE):
        is_year = first == last and _YEAR.fullmatch(tree[first].text)
        keep(first, last, "YEAR" if is_year else "DATE")
    for first, last in _find_matches(tree, _NUMBER):
        keep(first, last, "NUMBER")
    for first, last in _find_matches(tree, _MIXED):
        keep(first, last, "CODE")
    for first, last in tree.list_entities():
        keep(first, last, tree[first].entity or "NAME")
    for first, last in _find_quoted(tree):
        keep(first, last, "TITLE")
    for first, last in _find_names(tree):
        keep(first, last, "NAME")
    for first, last in _find_openings(tree):
        keep(first, last, "NAME")
    for first, last, kind in _find_nouns(tree):
        keep(first, last, kind)
    for first, last in _find_known(tree, known):
        keep(first, last, "NAME" if tree[first].text[:1].isupper() else "NOUN")
    return [spans[key] for key in sorted(spans)]


def fold_name(text: str) -> str:
    """A name without case, accents, blanks, underscores, marks and quotation marks."""
    plain = unicodedata.normalize("NFKD", text.replace("_", " ")).casefold()
    return "".join(c for c in plain if c.isalnum())


def _trim(tree: Tree, first: int, last: int) -> tuple[int, int]:
    """The stretch without articles, possessive endings and marks at its edges."""
    while first <= last and (
        not any(c.isalnum() for c in tree[first].text)
        or (first < last and tree[first].word in {"the", "a", "an"})
        or tree[first].tag in {"POS", "PRP$"}
    ):
        first += 1
    while last >= first and (tree[last].tag == "POS" or not _ends_name(tree[last])):
        if tree[last].text == ")" and any(n.text == "(" for n in tree.nodes[first:last]):
            break  # "Rosa (opera)"
        last -= 1
    return first, last


def _ends_name(node: Node) -> bool:
    return any(c.isalnum() for c in node.text) or node.text in {"!", "?", "+", "%"}


def _make_candidate(tree: Tree, first: int, last: int, kind: str) -> CandidateSpan:
    start, end = tree[first].idx, tree[last].end
    text = tree.text[start:end]
    head = _find_head(tree, first, last)
    if kind in {"CARDINAL", "QUANTITY", "MONEY", "PERCENT"}:
        kind = "NUMBER"
    if kind in {"NAME", "NOUN", "PART"} and _CODE.fullmatch(text) and first == last:
        kind = "CODE"
    names = sum(n.text[:1].isupper() for n in tree.nodes[first : last + 1])
    return CandidateSpan(start, end, first, last, head, kind, text, names > 0)


def _find_head(tree: Tree, first: int, last: int) -> int:
    """The token whose head is outside the stretch; the last of several."""
    for i in range(last, first - 1, -1):
        head = tree[i].head
        if head.i == i or not first <= head.i <= last:
            return i
    return last


def _find_matches(tree: Tree, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    starts = {node.idx: node.i for node in tree.nodes}
    ends = {node.end: node.i for node in tree.nodes}
    for match in pattern.finditer(tree.text):
        if match.start() in starts and match.end() in ends:
            yield starts[match.start()], ends[match.end()]


def _find_quoted(tree: Tree) -> Iterator[tuple[int, int]]:
    for first, end in tree.sentences:
        opened: int | None = None
        closing = ""
        for i in range(first, end):
            words = tree[i].text
            if opened is not None and words == closing:
                yield opened + 1, i - 1
                opened = None
            elif opened is None and words in _QUOTES:
                opened, closing = i, _QUOTES[words]


def _find_names(tree: Tree) -> Iterator[tuple[int, int]]:
    """Runs of capitals with the small words between them, and their parts."""
    for start, end in tree.sentences:
        i = start
        while i < end:
            if not _is_capital(tree[i], i == start):
                i += 1
                continue
            parts = [(i, i)]  # runs without anything small between them
            j = i + 1
            while j < end:
                k = j
                while k < end and k - j < 3 and tree[k].word in _INNER and tree[k].text.islower():
                    k += 1
                while k < end and k - j < 3 and tree[k].text in _JOINTS:
                    k += 1
                if k < end and (_is_capital(tree[k], False) or tree[k].text[:1].isdigit()):
                    if k == j:
                        parts[-1] = (parts[-1][0], k)
                    else:
                        parts.append((k, k))
                    j = k + 1
                elif j + 1 < end and _is_place_comma(tree, j):
                    parts.append((j + 1, j + 1))
                    j += 2
                else:
                    break
            for a in range(len(parts)):
                for b in range(a, min(len(parts), a + 4)):
                    yield parts[a][0], parts[b][1]
            for first, last in parts:  # "Suburban Legends Band", "Mayor Rob Ford"
                if last - first >= 2:
                    yield first, last - 1
                    yield first + 1, last
            i = max(j, i + 1)


def _is_capital(node: Node, leads: bool) -> bool:
    if not node.text[:1].isupper():
        return False
    return not leads or node.entity != "" or node.pos in {"PROPN", "NOUN", "NUM", "X"}


def _find_openings(tree: Tree) -> Iterator[tuple[int, int]]:
    """Stretches from the start of a sentence to a verb or bracket: titles of any form.

    A title may hold a verb or a bracket itself, so there are several: "Ah Pook Is Here was ...".
    """
    for start, end in tree.sentences:
        if not (tree[start].text[:1].isupper() or tree[start].text[:1].isdigit()):
            continue
        for i in range(start + 1, min(end, start + _MOST_WORDS)):
            node = tree[i]
            if node.text == ")":
                yield start, i
            elif node.text in {"(", ":"} or (
                node.text.islower()
                and (node.pos in {"AUX", "VERB"} or node.tag == "POS")
                and tree[i - 1].text not in {",", "and"}
            ):
                yield start, i - 1


def _find_known(tree: Tree, known: Container[str]) -> Iterator[tuple[int, int]]:
    words = [fold_name(node.text) for node in tree.nodes]
    for first in range(len(words)):
        name = ""
        for last in range(first, min(len(words), first + _MOST_WORDS) if words[first] else first):
            name += words[last]
            if words[last] and name in known:
                yield first, last


def _is_place_comma(tree: Tree, comma: int) -> bool:
    """Whether a larger place follows the comma: "Thurleigh, Bedfordshire"."""
    return tree[comma].text == "," and tree[comma - 1].entity in PLACES >= {tree[comma + 1].entity}


def _find_nouns(tree: Tree) -> Iterator[tuple[int, int, str]]:
    """Noun phrases without their complements, and their parts."""
    for node in tree.nodes:
        if node.pos not in {"NOUN", "PROPN", "NUM"} and not (
            node.pos == "ADJ" and node.dep in {"attr", "acomp", "pobj", "dobj", "conj"}
        ):
            if node.tag in {"JJ"} and node.text[:1].isupper():
                yield node.i, node.i, "PART"
            continue
        first = node.i
        while first > 0 and _is_modifier(tree[first - 1], node) and node.i - first < 7:
            first -= 1
        if node.dep in {"compound", "nmod", "amod", "nummod"} and node.head.i > node.i:
            kind = "PART"
        else:
            kind = "NOUN"
        for i in range(first, node.i + 1):
            if node.i - i <= _MOST_MODIFIERS or i == first:
                yield i, node.i, kind if i == first else "PART"
        # "doo-wop song" holds a genre, "mass media industry" a field
        for i in range(first, node.i):
            for to in range(i, min(node.i, i + _MOST_MODIFIERS)):
                yield i, to, "PART"
        if kind == "NOUN":
            prep = next((c for c in node.children if c.word == "of" and c.i == node.i + 1), None)
            if prep is not None and prep.children:
                yield first, prep.children[-1].i, "NOUN"
                if first < node.i:  # "the 14th president of the United States"
                    yield node.i, prep.children[-1].i, "NOUN"


def _is_modifier(node: Node, head: Node) -> bool:
    if node.pos not in _NOMINAL and node.text not in {"-", "'s", "/"}:
        return False
    above = node
    for _ in range(6):
        if above is head:
            return True
        if above.head is above or above.head.i < node.i:
            return False
        above = above.head
    return False
