"""Features of candidates as values and subjects, and measures of properties' wording."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from operator import eq

import numpy as np

from kpyramid.documents.words import ARTICLES, JOINING, PREPOSITIONS
from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.numerics.moments import Array
from kpyramid.ontology.population.candidates import LITERALS, CandidateSpan, fold_name
from kpyramid.ontology.population.kinds import find_kind, find_kinds, split_words, widen_kind
from kpyramid.ontology.schema import OntologyProperty, Schema

# Features of a candidate as a value, and of another as that value's subject.

_SUBJECTS = frozenset(("nsubj", "nsubjpass", "csubj"))
_WINDOW = 6
_BOUNDS = (1, 2, 3, 5, 8, 12, 20)
"""Upper bounds of the classes of distances in tokens."""
_CONTENT = frozenset(("NOUN", "VERB", "ADJ", "PROPN", "ADP", "NUM"))
_SMALL = frozenset(("CCONJ", "ADP", "DET", "PUNCT", "PART"))
"""Parts of speech inside a candidate: "Ann Lee and Tom Askew" are two, "Rio de Janeiro" is one."""


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """A text's candidates with the features of each as a value."""

    tree: Tree
    candidates: Sequence[CandidateSpan]
    roles: Sequence[Sequence[str]]
    near: Sequence["Surroundings"]
    nested: Mapping[tuple[int, int], Sequence[str]]
    mentions: Mapping[str, int]
    pairs: dict[tuple[int, int, int, int], tuple[list[str], list[str]]] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Lemmas around a candidate: up the parse, beside it, inside it, and in its sentence.

    `form`: signs of a bad cut and of a name, as ones and zeros.
    """

    path: frozenset[str]
    window: frozenset[str]
    words: frozenset[str]
    sentence: frozenset[str]
    form: tuple[float, ...]


def describe_text(tree: Tree, candidates: Sequence[CandidateSpan]) -> TextFeatures:
    """The features of every candidate of a text."""
    nested = {(c.first, c.last): [*_list_nesting(c, candidates)] for c in candidates}
    return TextFeatures(
        tree,
        candidates,
        [[*_list_role_features(tree, c), *nested[c.first, c.last]] for c in candidates],
        [_look_around(tree, c) for c in candidates],
        nested,
        Counter(fold_name(c.text) for c in candidates),
    )


def _list_nesting(c: CandidateSpan, candidates: Sequence[CandidateSpan]) -> Iterator[str]:
    """Features of overlap: candidates that contain, lie in or cross this one."""
    inside = holds = 0
    for span in candidates:
        if span is c or span.last < c.first or c.last < span.first:
            continue
        recognised = span.kind.isupper() and span.kind not in {"NAME", "NOUN", "PART"}
        if span.first <= c.first and c.last <= span.last:
            inside += 1
            if recognised or span.kind == "NAME":
                side = "L" if span.first == c.first else "R" if span.last == c.last else "M"
                yield f"in:{span.kind}:{side}"
        elif c.first <= span.first and span.last <= c.last:
            holds += 1
            if recognised:
                yield "holds:" + span.kind
        elif recognised:
            yield "across:" + span.kind
    yield f"inside={min(inside, 3)}"
    yield f"holds={min(holds, 3)}"


def _climb(node: Node, most: int = 8) -> Iterator[tuple[str, Node]]:
    """The heads above a token, at most `most`, each with the dependency that leads to it."""
    while node.head is not node and most:
        yield node.dep, node.head
        node, most = node.head, most - 1


def _lemma(node: Node) -> str:
    # Names are left out: a name that one text has says nothing about the next.
    return "^" if node.pos == "PROPN" else node.lemma.lower()


def _look_around(tree: Tree, c: CandidateSpan) -> Surroundings:
    path: set[str] = set()
    nodes, node = tree.nodes, tree[c.head]
    for _, above in islice(_climb(node), 5):
        path.add(_lemma(above))
        if above.pos in {"VERB", "AUX"}:
            for child in above.children:
                if child.dep in _SUBJECTS | {"dobj", "attr"} and not c.first <= child.i <= c.last:
                    path.add(_lemma(child))
                    path.update(_lemma(g) for g in child.children if g.dep in {"compound", "amod"})
            break
    start, end = tree.sentences[node.sentence]
    window = {_lemma(n) for n in tree.nodes[max(start, c.first - _WINDOW) : c.first]}
    window |= {_lemma(n) for n in tree.nodes[c.last + 1 : min(end, c.last + 4)]}
    words = {n.word if n.pos == "PROPN" else n.lemma.lower() for n in nodes[c.first : c.last + 1]}
    sentence = {
        _lemma(n) for i, n in enumerate(nodes[start:end], start) if not c.first <= i <= c.last
    }
    flaws = (
        float(_is_cut_before(tree, c, start)),
        float(c.first > start and nodes[c.first - 1].text[:1].isupper() and c.is_name),
        float(c.last + 1 < end and nodes[c.last + 1].text[:1].isupper() and c.is_name),
        float(c.last + 1 < end and node.head.i == c.last + 1),
        float(c.is_name),
        float(c.kind in {"NOUN", "PART"}),
        float(c.kind == "PART"),
        float(c.first == start),
        float(node.dep in _SUBJECTS),
    )
    return Surroundings(
        frozenset(path), frozenset(window), frozenset(words), frozenset(sentence), flaws
    )


def _is_cut_before(tree: Tree, c: CandidateSpan, start: int) -> bool:
    """Whether a modifier of its head precedes a candidate; articles do not count."""
    before = tree[c.first - 1] if c.first > start else None
    return before is not None and before.head.i == c.head and before.pos != "DET"


def _list_capitals(tree: Tree, c: CandidateSpan, start: int, end: int) -> Iterator[str]:
    for name, i in (("capital-before", c.first - 1), ("capital-after", c.last + 1)):
        if start <= i < end and tree[i].text[:1].isupper():
            yield name


def _list_role_features(tree: Tree, c: CandidateSpan) -> Iterator[str]:
    """Features of a candidate itself, its surroundings, and its dependencies."""
    nodes, head = tree.nodes, tree[c.head]
    start, end = tree.sentences[head.sentence]
    yield from ("kind=" + c.kind, "name" if c.is_name else "noun", "shape=" + _shape(c.text))
    yield from (f"words={min(c.last - c.first + 1, 5)}", "dep=" + head.dep)
    yield "last=" + nodes[c.last].lemma.lower()
    yield from ("inner=" + n.word for n in nodes[c.first + 1 : c.last] if n.pos in _SMALL)
    if not c.is_name:
        yield "t=" + fold_name(c.text)
        yield from ("w=" + n.lemma.lower() for n in nodes[c.first : c.last + 1])
    before = [_mark_word(tree, c.first - step, start, end) for step in (1, 2, 3)]
    after = [_mark_word(tree, c.last + step, start, end) for step in (1, 2)]
    yield from ("p1=" + before[0], "p2=" + before[1], "p21=" + "_".join(before[1::-1]))
    yield from ("p321=" + "_".join(before[::-1]), "n1=" + after[0], "n12=" + "_".join(after))
    yield "p1n1=" + before[0] + "_" + after[0]
    form = "L" if c.kind in {"DATE", "YEAR", "NUMBER"} else "N" if c.is_name else "c"
    for i, node in enumerate(nodes[start:end], start):
        if c.first <= i <= c.last or node.pos not in _CONTENT:
            continue
        if c.first - _WINDOW <= i < c.first:
            yield from ("b=" + _lemma(node), f"b{form}=" + _lemma(node))
        elif c.last < i <= c.last + _WINDOW:
            yield "a=" + _lemma(node)
        if node.pos in {"VERB", "NOUN"}:
            yield f"s{form}=" + _lemma(node)
    yield from _list_path_features(head, c)
    yield from _list_capitals(tree, c, start, end)
    if head.head.i == c.last + 1 < end:
        yield "modifies=" + _lemma(head.head)
    if _is_cut_before(tree, c, start):
        yield "cut-before=" + nodes[c.first - 1].pos
    yield from ("then=" + n.word for n in head.children if n.i > c.last and n.dep == "prep")
    for name, holds in (("leads", c.first == start), ("opens", c.first == 0)):
        if holds:
            yield name


def _mark_word(tree: Tree, i: int, start: int, end: int) -> str:
    if not start <= i < end:
        return "<" if i < start else ">"
    node = tree[i]
    if node.pos == "PROPN":
        return "^"
    return "#" if node.text[:1].isdigit() else node.lemma.lower()


def _list_path_features(head: Node, c: CandidateSpan) -> Iterator[str]:
    """The heads above a candidate up to a verb, and that verb's subject and object."""
    way = lexical = ""
    steps = [(d, n) for d, n in _climb(head) if not c.first <= n.i <= c.last and d != "conj"][:4]
    for dep, above in steps:
        way += ">" + dep
        lexical += f">{dep}:{_lemma(above)}"
        yield from ("way=" + lexical, "up=" + _lemma(above))
        if above.pos not in {"VERB", "AUX"}:
            continue
        verb = _lemma(above)
        passive = above.tag == "VBN" or any(x.dep == "auxpass" for x in above.children)
        yield from (f"verb={verb}{'-ed' if passive else ''}:{way}", "verb=" + verb)
        for child in above.children:
            if c.first <= child.i <= c.last:
                continue
            if child.dep in _SUBJECTS:
                yield f"subj={_lemma(child)}:{way}"
                for modifier in child.children:
                    if modifier.dep in {"compound", "amod"} and modifier.pos != "PROPN":
                        yield f"subjmod={_lemma(modifier)}_{_lemma(child)}:{way}"
            elif child.dep in {"dobj", "attr", "acomp", "prt", "oprd"}:
                yield from (f"obj={verb}_{_lemma(child)}:{way}", f"obj={_lemma(child)}")
        break


def _shape(text: str) -> str:
    shape = ""
    for c in text:
        mark = "9" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else c
        if not shape.endswith(mark) or (mark == "9" and not shape.endswith("9999")):
            shape += mark
    return shape[:12]


def list_subject_features(
    reading: TextFeatures, s: CandidateSpan, o: CandidateSpan
) -> Iterator[str]:
    """Features of `s` as the subject of the value `o`."""
    tree = reading.tree
    nodes = tree.nodes
    head, value = nodes[s.head], nodes[o.head]
    yield "kind=" + s.kind
    yield "name" if s.is_name else "noun"
    yield f"words={min(s.last - s.first + 1, 5)}"
    yield from reading.nested[s.first, s.last]
    gap = head.sentence - value.sentence
    yield f"gap={max(-3, min(gap, 1))}"
    order = "before" if s.last < o.first else "after"
    yield order
    low, high = (s.last, o.first) if order == "before" else (o.last, s.first)
    yield f"{order}:{next((bound for bound in _BOUNDS if high - low <= bound), 99)}"
    between = (c for c in reading.candidates if low < c.first and c.last < high)
    names = sum(c.is_name and c.kind not in {"PART", "DATE", "YEAR", "NUMBER"} for c in between)
    yield f"{order}:names={min(names, 4)}"
    yield f"dep={head.dep}"
    start, end = tree.sentences[head.sentence]
    yield f"mentions={min(reading.mentions[fold_name(s.text)], 3)}"
    yield from _list_capitals(tree, s, start, end)
    signs = {
        "leads": s.first <= start + 1,
        "opens": s.first <= 1,
        "main-subject": head.dep in _SUBJECTS and head.head.head is head.head,
        "owner": s.last + 1 < end and nodes[s.last + 1].tag == "POS",
        "cut-before": _is_cut_before(tree, s, start),
        "cut-after": nodes[s.last].head.i == s.last + 1,
    }
    yield from (name for name, holds in signs.items() if holds)
    if s.first > 0:
        yield "p1=" + _mark_word(tree, s.first - 1, start, end)
    yield "n1=" + _mark_word(tree, s.last + 1, start, end)
    if not s.is_name:
        yield "w=" + head.lemma.lower()
    if gap == 0:
        yield "path=" + _find_path(head, value)
        for node in nodes[low + 1 : high] if high - low <= 9 else ():
            if node.pos in {"VERB", "ADP", "NOUN", "PUNCT", "PRON"}:
                yield f"{order}:m=" + _lemma(node)


def _find_path(first: Node, second: Node) -> str:
    """The dependencies up from one token and down to another, without coordination."""
    lines = [[node, *(above for _, above in _climb(node, 11))] for node in (first, second)]
    up, down = ({node.i: i for i, node in enumerate(line)} for line in lines)
    meeting = next((node for node in lines[1] if node.i in up), None)
    if meeting is None:
        return "none"
    parts = lines[0][: up[meeting.i]], lines[1][: down[meeting.i]][::-1]
    ups, downs = ([n.dep for n in part if n.dep not in {"conj", "compound"}] for part in parts)
    return f"{'>'.join(ups)}>{meeting.pos}<{'<'.join(downs)}"[:80]


# The wording of properties, and how well it fits a text.

MEASURES = 36

_EMPTY = ARTICLES | PREPOSITIONS | JOINING | frozenset("is are was were has have be its it".split())
_NUMBERS = "decimal double float integer nonNegativeInteger positiveInteger int long".split()
_BY_DATATYPE = {
    **dict.fromkeys(_NUMBERS, frozenset(("NUMBER", "YEAR"))),
    **dict.fromkeys(("date", "gYear", "gYearMonth"), frozenset(("DATE", "YEAR"))),
}


@dataclass(frozen=True, slots=True)
class Wording:
    """A property's content words by phrasing, and the kinds that its ends may have.

    An empty set of kinds allows anything.
    """

    phrasings: tuple[frozenset[str], ...]
    subject_kinds: frozenset[str]
    object_kinds: frozenset[str]


def describe_property(p: OntologyProperty, schema: Schema) -> Wording:
    """The wording of a property."""
    words = [frozenset(split_words(phrase)) for phrase in (p.label, *p.alt_labels)]
    phrasings = dict.fromkeys(phrase - _EMPTY or phrase for phrase in words)
    if p.is_datatype:
        objects = _BY_DATATYPE.get(p.range.rpartition("#")[2], frozenset())
    else:
        kind = find_kind(p.label)  # "birth date", "composer"
        named = widen_kind(kind) if kind in {"DATE", "YEAR", "PERSON"} else frozenset()
        objects = find_kinds(p.range, schema) or named
    return Wording(tuple(phrasings), find_kinds(p.domain, schema), objects)


def are_related(first: str, second: str) -> bool:
    """Whether two words share their stem: "director" and "directed", "birth" and "birthplace"."""
    if first == second:
        return True
    length = min(len(first), len(second))
    shared = sum(takewhile(bool, map(eq, first, second)))
    return length >= 4 and shared >= max(4, length - 2)


def fit_kind(kind: str, kinds: frozenset[str]) -> float:
    """1 if a candidate's kind is among the kinds, -1 if it is another, 0 if it is open."""
    if not kinds or kind in {"NAME", "TITLE", "NOUN", "PART", "CODE"}:
        return 0.0
    return 1.0 if kind in kinds else -1.0


class WordMatcher:
    """Similarity of the words around candidates to those of each property, vectorised."""

    def __init__(self, schema: Schema) -> None:
        self.wordings = wordings = [describe_property(p, schema) for p in schema.properties]
        self._is_literal = np.array([float(p.is_datatype) for p in schema.properties])
        self._is_open = np.array([float(not w.object_kinds) for w in wordings])
        phrases = [phrase for w in wordings for phrase in w.phrasings]
        counts = np.cumsum([0, *(len(w.phrasings) for w in wordings)])
        self._firsts = counts[:-1]
        self._words = [word for phrase in phrases for word in sorted(phrase)]
        self._share = np.zeros((len(self._words), len(phrases)))
        row = 0
        for column, phrase in enumerate(phrases):
            self._share[row : row + len(phrase), column] = 1 / max(len(phrase), 1)
            row += len(phrase)
        self._known: dict[str, Array] = {}

    @property
    def size(self) -> int:
        """The number of properties."""
        return len(self.wordings)

    def _match(self, lemma: str) -> Array:
        if lemma not in self._known:
            self._known[lemma] = np.array([float(are_related(lemma, w)) for w in self._words])
        return self._known[lemma]

    def _measure_words(self, lemmas: frozenset[str]) -> Array:
        """The share of each property's words among the lemmas, in its best phrasing."""
        if not lemmas:
            return np.zeros(self.size)
        hits = np.maximum.reduce([self._match(lemma) for lemma in sorted(lemmas)])
        return np.asarray(np.maximum.reduceat(hits @ self._share, self._firsts))

    def measure(self, reading: TextFeatures) -> Array:
        """Measures of wording and kinds; shape (candidates, properties, `MEASURES`)."""
        size = (len(reading.candidates), self.size)
        if 0 in size:
            return np.zeros((*size, MEASURES))
        path, window, words, sentence = (
            np.array([self._measure_words(getattr(near, part)) for near in reading.near])
            for part in ("path", "window", "words", "sentence")
        )
        fits = np.array(
            [[fit_kind(c.kind, w.object_kinds) for w in self.wordings] for c in reading.candidates]
        )
        form = np.array([near.form for near in reading.near])
        is_name, is_noun = form[:, 4:5], form[:, 5:6]
        is_literal = np.array([[float(c.kind in LITERALS)] for c in reading.candidates])
        right, wrong = (fits > 0).astype(float), (fits < 0).astype(float)
        columns = [
            *(path, window, words, sentence, right, wrong, self._is_open, self._is_literal),
            *(part * right for part in (path, window, sentence)),
            *(part == 1 for part in (path, window, sentence)),
            *(part - part.max(axis=1, keepdims=True) for part in (path, window, sentence)),
            *(self._is_open * part for part in (is_literal, is_name, is_noun)),
            *(self._is_literal * is_name, self._is_literal * is_literal),
            *(words * is_name, words * is_noun, path * window, path * wrong, window * wrong),
            *(form[:, k : k + 1] for k in range(form.shape[1])),
        ]
        return np.stack([np.broadcast_to(c, size).astype(float) for c in columns], axis=2)
