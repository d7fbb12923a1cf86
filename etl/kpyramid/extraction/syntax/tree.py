"""Dependency trees as plain Python objects, their noun phrases, and places inside places."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from kpyramid.documents.sentences import Span
from kpyramid.documents.words import read_words
from kpyramid.extraction.syntax.kinds import LABEL_BY_NOUN, find_kind_label


@dataclass(slots=True, eq=False)
class Node:
    """One token. `i` counts tokens and `idx` characters from the start of the tree's text.

    `word` is the text in lower case, `entity` the entity type ("" outside entities), `iob` is
    I, O or B. `children` and the edges of the subtree are in text order. `doubt` is the
    probability of other decisions at the parser's least sure one on the token, in tenths.
    """

    tree: Tree = field(repr=False)
    i: int
    idx: int
    text: str
    word: str
    lemma: str
    pos: str
    tag: str
    dep: str
    entity: str
    iob: str
    space: bool
    sentence: int
    doubt: int = 0
    head: Node = field(init=False, repr=False)
    left_edge: Node = field(init=False, repr=False)
    right_edge: Node = field(init=False, repr=False)
    children: list[Node] = field(default_factory=list, repr=False)

    @property
    def end(self) -> int:
        """The character after the token."""
        return self.idx + len(self.text)


@dataclass(slots=True, eq=False)
class Tree:
    """The tokens of one text, a forest with one root per sentence."""

    text: str
    nodes: list[Node]
    sentences: list[tuple[int, int]]
    """First token and token after the last, sentence by sentence; `Node.sentence` counts them."""
    phrases: dict[int, Phrase | None] = field(default_factory=dict, repr=False)
    """Phrases so far, so that each is built once (`find_phrase`)."""

    def __getitem__(self, i: int) -> Node:
        return self.nodes[i]

    def __len__(self) -> int:
        return len(self.nodes)

    def list_entities(self) -> list[tuple[int, int]]:
        """First and last token of each named entity, in text order."""
        spans: list[tuple[int, int]] = []
        for node in self.nodes:
            if node.iob == "B" or (node.iob == "I" and not (spans and spans[-1][1] == node.i - 1)):
                spans.append((node.i, node.i))
            elif node.iob == "I":
                spans[-1] = (spans[-1][0], node.i)
        return spans


def count_brackets(tree: Tree) -> list[int]:
    """The number of open brackets at each token; none is open at the start of a sentence."""
    depths, depth = [], 0
    starts = {first for first, _ in tree.sentences}
    for node in tree.nodes:
        depth = 0 if node.i in starts else depth
        depth -= node.text.endswith((")", "]")) and depth > 0
        depths.append(depth)
        depth += node.text.startswith(("(", "["))
    return depths


# Noun phrases: where an argument starts and ends, and what it names.

MAX_WORDS = 12
# A phrase retains all its prepositional attachments up to this length; beyond it the attachments
# are in facts of their own, and a shorter argument is easier to resolve.
FULL_WORDS = 8
_WHOLE_WORDS = 20
"""The most words of a common noun with all that restricts it; without these it is too general."""
_MAX_BRACKET = 12
"""The most tokens of a bracket inside a phrase."""
_BRACKET = re.compile(r"\s*\([^()]*\)(?=\s|[,;]|$)")

PLACES = frozenset({"GPE", "LOC", "FAC"})
LITERALS = frozenset(
    {"DATE", "TIME", "CARDINAL", "QUANTITY", "MONEY", "PERCENT", "ORDINAL", "STATE"}
)
MEASURES = LITERALS - {"ORDINAL", "STATE"}
_NAMED_AFTER_COMMA = frozenset({"PERSON", "WORK_OF_ART"})
_NUMBERS = frozenset({"CARDINAL", "DATE", "ORDINAL"})
_CUT = frozenset(
    {"relcl", "acl", "appos", "conj", "cc", "parataxis", "advcl", "ccomp", "dep", "preconj", "neg"}
)
_STRIP_TAGS = frozenset({"DT", "PDT", "PRP$", "WDT", "WP$", "WP", "CC", "IN", "RB", "HYPH", "POS"})
WORDS = read_words(__file__, "words.toml")
"""Words by their function in a clause or phrase."""
QUOTATION = frozenset("\"'“”\u2018\u2019«»`") | {"``", "''"}
_MARKS = QUOTATION - {"'", "\u2019"}
# These introduce a time, a cause or an example, which completes no noun.
_LISTING = frozenset({"including"})
LOCATIVE = frozenset({"in", "at", "near", "on"})
_COMMON = frozenset({"NN", "NNS"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_MAX_CHILDREN = 12
_DANGLING = frozenset({"IN", "CC", "TO", "DT"})
_PARTING = frozenset({",", "(", "--", "-", "\u2013", "\u2014", ":", ";"})
_HYPHENS = frozenset("-\u2010\u2011\u2013")
_RANGES = frozenset({"--", "\u2013", "-", "+", "/-", "+/-", "\u00b1"})
_INNER_PUNCT = QUOTATION | frozenset("-\u2013\u2014/&.!?:°#+@")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A literal stretch of the text that can be an argument; `root` is its head's token index."""

    text: str
    span: Span
    root: int
    first: int
    last: int
    label: str
    resolved: bool = False
    literal: bool = True

    @property
    def words(self) -> int:
        return len(self.text.split())

    @property
    def is_named(self) -> bool:
        return self.label not in {"NOUN", *LITERALS}


def is_nominal(token: Node) -> bool:
    """Return whether `token` can head an argument."""
    return token.pos in {"NOUN", "PROPN", "NUM", "PRON", "SYM"} or token.entity != ""


def find_label(tree: Tree, root: int) -> str:
    """Return the NER label of the token, PROPN-only names as MISC, anything else as NOUN."""
    token = tree[root]
    if token.pos == "NUM" and any(c.word == "of" for c in token.children):
        return "NOUN"  # "one of the oldest bridges" is a bridge
    if token.entity:
        return token.entity
    if token.pos == "PROPN" and not token.text.islower():
        return "MISC"
    return "CARDINAL" if token.pos == "NUM" else "NOUN"


def build_phrase(tree: Tree, first: int, last: int, root: int) -> Phrase | None:
    """Return tokens `first`..`last` (inclusive) without determiners and edge punctuation."""
    nodes = tree.nodes
    first, last = _complete_words(nodes, first, last)
    while first <= last and _is_stripped_start(nodes[first], first == last):
        first += 1
    while last >= first and _is_stripped_end(nodes, first, last):
        last -= 1
    if first > last:
        return None
    first, last = _balance_quotes(nodes, first, last, root)
    last = _close_quotation(nodes, first, last)
    last = _close_bracket(nodes, first, last, root)
    start, end = nodes[first].idx, nodes[last].end
    text = " ".join(tree.text[start:end].split())
    if not _has_letter(text) or _is_fragment(nodes, first, last):
        return None
    root = root if first <= root <= last else last
    label = find_label(tree, root)
    if label in _NUMBERS and nodes[first].pos == "PROPN" and nodes[first].entity not in LITERALS:
        label = "MISC"  # "Shanghai 13" is a name
    return Phrase(text, Span(start, end), root, first, last, label)


def _complete_words(nodes: list[Node], first: int, last: int) -> tuple[int, int]:
    """The stretch with the rest of a word, a range or a name that its edges would cut.

    "well-being", "240 +/- 50", "Lund, Jr.".
    """
    while first > 1 and is_inside_word(nodes, first - 1):
        first -= 2
    while is_inside_word(nodes, last + 1):
        last += 2
    number = first
    while number < last and nodes[number].text in _RANGES:
        number += 1
    if nodes[number].text[:1].isdigit():
        first = min(first, _skip_range(nodes, number, -1))
    if nodes[last].text[-1:].isdigit():
        last = _skip_range(nodes, last, 1)
    suffix = nodes[last + 1 : last + 3]
    if len(suffix) == 2 and suffix[0].text == "," and nodes[last].pos == "PROPN":
        last += 2 if suffix[1].text in WORDS["name_suffixes"] else 0
    return first, last


def is_inside_word(nodes: list[Node], i: int) -> bool:
    """Whether the token is a hyphen between two parts of a word: "well-being"."""
    if not 0 < i < len(nodes) - 1 or nodes[i].text not in _HYPHENS:
        return False
    before, after = nodes[i - 1], nodes[i + 1]
    glued = not before.space and not nodes[i].space and before.end == nodes[i].idx
    return glued and before.text[-1:].isalnum() and after.text[:1].isalnum()


def _skip_range(nodes: list[Node], i: int, step: int) -> int:
    """The other end of "1,500 -- 2,000" or "23 -- 54 -- 7", seen from one of them, else `i`."""
    while True:
        index = i + step
        while 0 < index < len(nodes) - 1 and abs(index - i) < 3 and nodes[index].text in _RANGES:
            index += step
        if index == i + step or not nodes[index].text[:1].isdigit():
            return i
        i = index


def _balance_quotes(nodes: list[Node], first: int, last: int, root: int) -> tuple[int, int]:
    """The tokens of an initial quotation with the head inside, without those after it.

    Where the head is outside, the tokens with the opening mark: `"safe" stocks`.
    """
    if first == 0 or nodes[first - 1].text not in _MARKS:
        return first, last
    marks = [i for i in range(first, last + 1) if nodes[i].text in _MARKS]
    run = marks and marks[-1] - marks[0] < len(marks)  # one mark, or one doubled
    if run and len(marks) < 3:
        return (
            (first, marks[0] - 1)
            if first <= root < marks[0]
            else (max(first - len(marks), 0), last)
        )
    return first, last


def _is_fragment(nodes: list[Node], first: int, last: int) -> bool:
    """Whether the tokens name nothing by themselves: "that", "most of which", "than 23 hours"."""
    if nodes[first].word == "than":
        return True
    cut = nodes[last + 1] if last + 1 < len(nodes) and nodes[last].tag == "VBG" else None
    if cut is not None and cut.dep == "dobj" and cut.tag == "DT":
        return True  # "the best way of doing that"
    asked = nodes[last].tag in {"WDT", "WP"} and nodes[last].text.islower()
    return asked or (first == last and nodes[first].word == "that")


def _close_quotation(nodes: list[Node], first: int, last: int) -> int:
    """The last token, or the mark right after it that closes a quotation of the phrase."""
    marks = sum(nodes[i].text in _MARKS for i in range(first, last + 1))
    if marks % 2 == 0:
        return last
    ahead = range(last + 1, min(last + 3, len(nodes)))
    close = next((i for i in ahead if nodes[i].text in _MARKS), last)
    between = nodes[last + 1 : close]
    return close if all(n.text in {"!", "?", "."} for n in between) else last


def _close_bracket(nodes: list[Node], first: int, last: int, root: int) -> int:
    """The last token before a bracket that the phrase opens and does not close."""
    opened = [i for i in range(first, last + 1) if nodes[i].text.startswith("(")]
    closed = sum(nodes[i].text.endswith(")") for i in range(first, last + 1))
    if len(opened) > closed and first < opened[-1] and root < opened[-1]:
        return opened[-1] - 1
    return last


def _has_letter(text: str) -> bool:
    """Return whether the text has a letter or a digit."""
    return text[:1].isalnum() or any(c.isalnum() for c in text)


def _is_stripped_end(nodes: list[Node], first: int, last: int) -> bool:
    token = nodes[last]
    inner = last - (nodes[last - 1].text == token.text)  # a doubled mark is one
    if token.text in QUOTATION and any(
        n.text in QUOTATION and n.text != "'" for n in nodes[first:inner]
    ):
        return False  # it closes a title that opened inside: 'the term "polytechnic"'
    if token.tag in _DANGLING and first < last and token.text.islower():
        return token.entity != "WORK_OF_ART"  # it introduces a part that was cut
    if token.text in {"%", "\u2030", "\u00b0"}:
        return False
    if token.tag == "POS":
        after = nodes[last + 1] if last + 1 < len(nodes) else token
        acts = after.pos in {"VERB", "AUX"} and after.tag != "VBG"
        belongs = acts or nodes[last - 1].pos == "NUM"  # "Moody's rated", "the 80's"
        return first == last or not belongs
    return not _has_letter(token.text)


def _is_stripped_start(token: Node, only: bool) -> bool:
    if is_inside_word(token.tree.nodes, token.i + 1):
        return False
    if not _has_letter(token.text):
        return token.text not in {"$", "£", "€", "¥", "#"}
    if token.entity in MEASURES and token.word not in {"the", "a", "an"}:
        return False
    if token.tag in _STRIP_TAGS and token.entity in {"WORK_OF_ART", "DATE"}:
        return token.tag == "IN"
    if _limits_number(token) or _grades(token) or token.word == "another":
        return False
    if token.word in {"each", "every"} and token.head.dep in {"dobj", "pobj"}:
        return token.head.word == "other"
    if token.word == "some" and token.head.dep in _SUBJECTS and token.head.tag == "NNS":
        return False  # "some firms pay": others do not
    if token.text == "The" and not only:
        return True  # often tagged as part of a name
    return token.tag in _STRIP_TAGS and not only


def _grades(token: Node) -> bool:
    """Whether an adverb changes the adjective's meaning: "second largest", "too much"."""
    if token.tag != "RB" or token.dep != "advmod" or token.i > token.head.i:
        return False
    return token.head.dep == "amod" and (
        token.entity == "ORDINAL" or token.word.endswith(("ly", "too"))
    )


def _limits_number(token: Node) -> bool:
    """Whether the word belongs to a number: "over", "at least", "not more than", "up to"."""
    node = token
    if token.dep == "neg":
        after = token.tree[min(token.i + 1, len(token.tree) - 1)]
        return token.head.pos == "NUM" and (after.tag in {"JJR", "RBR"} or after.word == "quite")
    for _ in range(3):
        if node.dep not in {"quantmod", "advmod", "amod"} or node.head is node:
            return False
        node = node.head
        if node.pos == "NUM":
            return True
    return False


def find_phrase(root: Node, full: bool = False) -> Phrase | None:
    """Return the argument headed by `root`, at most `MAX_WORDS` words; None when none fits.

    A name retains its of-phrase. A common noun retains its complements ("belief in ghosts"), but no
    time; `full` retains every preposition and restrictive clause ("patients who received it").
    Both apply while the phrase is within `FULL_WORDS`, for a common noun in `full` within
    `_WHOLE_WORDS`.
    """
    known = root.tree.phrases
    key = 3 * root.i + full
    if key not in known:
        keep = _keep_name if root.pos == "PROPN" else _keep_complement
        keep = (_keep_beside if root.pos == "PROPN" else _keep_all) if full else keep
        known[key] = _cut_phrase(root, keep)
    return known[key]


def find_kind(noun: Node) -> Phrase | None:
    """Return the kind that a noun names: with its of-phrase, without place and circumstance.

    A definite kind, "the largest church in the town", is the whole phrase. A noun of no known kind
    retains its complements, "a catalyst for change"; a relative clause is a fact of its own.
    """
    known = noun.tree.phrases
    key = 3 * noun.i + 2
    if key not in known:
        whole = is_singled_out(noun) or any(c.word == "the" for c in noun.children)
        completed = find_kind_label(noun.lemma.lower()) is None
        known[key] = _cut_phrase(
            noun, _keep_all if whole else _keep_kind if completed else _keep_of
        )
    return known[key]


def is_counted(noun: Node) -> bool:
    """Whether the noun has a number: "60 requests"."""
    return any(c.dep == "nummod" for c in noun.children)


def is_singled_out(noun: Node) -> bool:
    """Whether a superlative or an ordinal identifies the noun: "the most common cancer"."""
    graded = (*noun.children, *(g for c in noun.children if c.dep == "amod" for g in c.children))
    return any(c.tag in {"JJS", "RBS"} or c.entity == "ORDINAL" for c in graded)


def _keep_all(prep: Node) -> bool:
    return prep.word not in _LISTING


def _keep_beside(prep: Node) -> bool:
    """Whether a preposition may be part of a full name; a place, "in Kent", is not."""
    places = [c for c in prep.children if c.dep == "pobj" and c.entity in PLACES]
    placed = any(all(g.dep != "cc" for g in c.children) for c in places)
    return _keep_all(prep) and not (placed and prep.word in LOCATIVE)


def _keep_kind(prep: Node) -> bool:
    return prep.word not in _LISTING


def _keep_of(prep: Node) -> bool:
    return prep.word == "of"


def _keep_name(prep: Node) -> bool:
    """Whether a preposition stands inside a name: "Institute for Peace", "Council on Justice"."""
    if prep.word == "of":
        return True
    objects = [c for c in prep.children if c.dep == "pobj"]
    capital = bool(objects) and objects[0].pos == "PROPN" and prep.head.i == prep.i - 1
    return prep.word in {"for", "on"} and capital and prep.head.entity in {"ORG", "LAW"}


def is_restrictive(clause: Node) -> bool:
    """Whether a clause restricts the noun: no comma or dash separates them."""
    noun = clause.head
    if clause.dep not in {"relcl", "acl"} or noun.pos != "NOUN" or clause.left_edge.i <= noun.i:
        return False
    if noun.dep == "ROOT" and clause.dep == "acl" and clause.tag in {"VBN", "VBD"}:
        return False  # the clause's main verb: "The invention of steel allowed for higher houses"
    before = clause.tree.nodes[clause.left_edge.i - 1]
    return before.i >= noun.i and before.text not in _PARTING


def _completes(clause: Node) -> bool:
    """Whether a clause completes the noun: "a way to reduce costs", "a law governing trade"."""
    aimed = any(c.tag == "TO" for c in clause.children)
    return is_restrictive(clause) and (aimed or (clause.dep == "acl" and clause.tag == "VBG"))


def _keep_complement(prep: Node) -> bool:
    return prep.word == "of" or (
        prep.word not in WORDS["circumstances"]
        and not any(c.entity in {"DATE", "TIME"} for c in prep.children)
    )


def _cut_phrase(root: Node, keep: Callable[[Node], bool]) -> Phrase | None:
    """Return the longest phrase that fits: with prepositions by `keep`, with "of", without any."""
    if keep is not _keep_of:
        whole = root.pos == "NOUN" and keep in (_keep_all, _keep_kind)
        if whole:
            tells = is_restrictive if keep is _keep_all else _completes
            phrase = _cut_run(root, keep, tells=tells)
            if phrase is not None and phrase.words <= _WHOLE_WORDS:
                return phrase
        phrase = _cut_run(root, keep)
        most = _WHOLE_WORDS if whole else FULL_WORDS
        if phrase is not None and phrase.words <= most:
            return phrase
    phrase = _cut_run(root, _keep_of)
    limit = FULL_WORDS if root.pos == "PROPN" else MAX_WORDS
    if phrase is not None and phrase.words > limit:
        phrase = _cut_run(root, lambda prep: False, inner_lists=False)
    return phrase if phrase is not None and phrase.words <= MAX_WORDS else None


_MOST_TOKENS = 300
"""A phrase with more is too long for an argument, however it goes on."""


def _cut_run(
    root: Node,
    keep: Callable[[Node], bool],
    inner_lists: bool = True,
    tells: Callable[[Node], bool] | None = None,
) -> Phrase | None:
    """Return the contiguous phrase around `root`.

    A list below it is retained with `inner_lists`, a clause where `tells` accepts it.
    """
    tree = root.tree
    tokens, stack = {root.i}, [root]
    while stack and len(tokens) < _MOST_TOKENS:
        node = stack.pop()
        inner = inner_lists and node is not root and _heads_list(node)
        for child in node.children:
            if tells is not None and tells(child):
                tokens.update(range(child.left_edge.i, _find_clause_end(child) + 1))
                continue
            # "an issue of the newspaper Le Monde" holds the name.
            close = child.dep == "appos" and _is_close(child, node is root)
            if child.dep in _CUT and not close and not _limits_number(child):
                listed = inner and child.dep in {"conj", "cc"}
                if not listed and not _shares_entity(child, root) and not _is_pair(child):
                    continue
            elif child.dep == "punct":
                listed = tree[max(child.i - 1, 0)].dep != "advmod"  # "a dry, cold wind"
                graded = listed and node is root and root.pos == "NOUN" and child.i < root.i
                comma = child.text == "," and (inner or graded or child.entity == "DATE")
                if child.text not in _INNER_PUNCT and not comma:
                    continue
            elif child.dep == "prep" and not (keep(child) or _completes_quality(node, root)):
                continue
            tokens.add(child.i)
            stack.append(child)
    first = last = root.i
    while (before := _step_over(root, first, -1)) in tokens:
        first = before
    while (after := _step_over(root, last, 1)) in tokens:
        last = after
    bounds = find_entity(tree, root.i)
    if bounds is not None and _is_unbroken(tree, *bounds):
        first, last = min(first, bounds[0]), max(last, bounds[1])
    phrase = build_phrase(tree, _find_name_start(tree, first, last, root), last, root.i)
    if phrase is None or root.pos != "NOUN" or "(" not in phrase.text[1:]:
        return phrase
    text = _BRACKET.sub("", phrase.text)
    return replace(phrase, text=text, literal=text == phrase.text)


def _completes_quality(word: Node, root: Node) -> bool:
    """Whether a preposition under the word belongs to an adjective: "lizards native to Sonora"."""
    return word.pos == "ADJ" and root.pos == "NOUN"


def _is_close(name: Node, is_root: bool) -> bool:
    """Whether at most quotation marks separate an apposition from its common noun.

    A proper noun beside the argument's root (`is_root`) replaces it instead (`find_close_name`).
    """
    noun, first = name.head, name.left_edge.i
    if noun.i >= first or first - noun.i > 2 or (is_root and name.pos == "PROPN"):
        return False
    return all(n.text in QUOTATION for n in noun.tree.nodes[noun.i + 1 : first])


def _find_clause_end(clause: Node) -> int:
    """The last token of a restrictive clause, before additions after a comma or conjunction."""
    nodes, last = clause.tree.nodes, clause.right_edge.i
    for i in range(clause.i + 1, last):
        added = nodes[i].text == "," and nodes[i + 1].tag in {"WDT", "WP", "WP$", "WRB"}
        if added or (nodes[i].dep == "mark" and nodes[i].word in WORDS["adding"]):
            return i - 1
    return last


def _step_over(root: Node, index: int, step: int) -> int:
    """The adjacent token; for a common noun after a bracket: "heart (HR) rates (CR) of cases"."""
    nodes, marks = root.tree.nodes, "()"[::step]
    edge = index + step
    if root.pos != "NOUN" or not 0 < edge < len(nodes) or nodes[edge].text != marks[0]:
        return edge
    inside = nodes[edge + step : max(edge + step * (_MAX_BRACKET + 2), 0) : step]
    return next((node.i for node in inside if node.text == marks[1]), index) + step


def _heads_list(node: Node) -> bool:
    """Return whether something other than a larger place is coordinated with the node."""
    return any(c.dep == "conj" and not _is_container(c) for c in node.children)


def _is_pair(token: Node) -> bool:
    """Return whether the coordination is one argument, as in "between Asia and Europe"."""
    if token.dep not in {"cc", "conj"}:
        return False
    noun = token.head
    return noun.head.word == "between" or _shares_modifiers(noun) or _is_double_name(noun)


def _is_double_name(name: Node) -> bool:
    """Whether the name continues after "and": "Hotels and Resorts", "Particles and Fields"."""
    after = name.tree.nodes[name.i + 1 : name.i + 3]
    return (
        name.tag == "NNPS"
        and len(after) == 2
        and after[0].text in {"and", "&"}
        and after[1].tag == "NNPS"
        and after[1].head is name
    )


def _shares_modifiers(noun: Node) -> bool:
    """Whether one of two common nouns shares modifiers of the other: "size and shape of it".

    If split, "size" would lose its of-phrase, and "levels" in "different sites and levels" its
    adjective.
    """
    pairs = [c for c in noun.children[:_MAX_CHILDREN] if c.dep in {"conj", "cc"}]
    if noun.tag not in _COMMON or [c.dep for c in pairs] != ["cc", "conj"]:
        return False
    pair = pairs[1]
    if pair.tag not in _COMMON or (noun.entity or pair.entity):
        return False
    if len(pair.children) > _MAX_CHILDREN or any(c.dep == "conj" for c in pair.children):
        return False
    kinds = noun.dep in {"attr", "appos"}  # "is founder and president of it" says two things
    if kinds and any(find_kind_label(n.lemma) is not None for n in (noun, pair)):
        return False
    left = [c for c in noun.children if c.i < noun.i]
    right = [c for c in pair.children if c.i < pair.i]
    after = [c for c in noun.children if c.i > noun.i and c not in pairs]
    if any(c.i < pair.i for c in after):
        return False
    if any(c.dep == "det" for c in right) and not any(c.dep == "det" for c in left):
        return False
    both = all(any(c.dep != "det" for c in side) for side in (left, right))
    completed = [c for c in (*after, *(() if both else pair.children)) if c.left_edge.i > pair.i]
    if any(c.dep == "prep" and c.word not in WORDS["circumstances"] for c in completed):
        return True
    return not right and any(c.dep in {"amod", "poss"} for c in left)


def _shares_entity(first: Node, second: Node) -> bool:
    if not first.entity:
        return False
    bounds = find_entity(first.tree, second.i)
    return bounds is not None and bounds[0] <= first.i <= bounds[1]


def find_entity(tree: Tree, index: int) -> tuple[int, int] | None:
    """Return first and last token of the named entity around `index`, if there is one."""
    nodes = tree.nodes
    if nodes[index].iob in {"O", ""}:
        return None
    first = last = index
    while first > 0 and nodes[first].iob == "I":
        first -= 1
    while last + 1 < len(nodes) and nodes[last + 1].iob == "I":
        last += 1
    return first, last


def _is_unbroken(tree: Tree, first: int, last: int) -> bool:
    if tree[first].entity in LITERALS:
        return True
    return all(tree[i].text not in {",", "(", ")", ";"} for i in range(first, last + 1))


def _find_name_start(tree: Tree, first: int, last: int, root: Node) -> int:
    """Return where the bare name starts in "the British rock band Pearl Jam"."""
    start = find_title_end(tree, first, last, root)
    if start is None:
        start = find_office_end(tree, first, last, root)
    return first if start is None else start


def find_title_end(tree: Tree, first: int, last: int, root: Node) -> int | None:
    """Return the first token of a name that a common noun introduces, None without such a title."""
    if root.pos != "PROPN" or root.i != last or root.entity in LITERALS:
        return None
    start = root.i
    while start > first and (
        tree[start - 1].pos == "PROPN" or tree[start - 1].dep in {"case", "nmod"}
    ):
        start -= 1
    bounds = find_entity(tree, root.i)
    if bounds is not None and bounds[0] < start and bounds[0] >= first:
        start = bounds[0]
    if start <= first:
        return None
    before = tree[start - 1]
    named = before.pos == "NOUN" and before.text.islower() and not forms_term(before, tree[start])
    return start if named and not _is_modifier(before) else None


def _is_modifier(noun: Node) -> bool:
    """Whether a hyphenated noun modifies a name: "8000-series PEPs", "in-time Engine".

    A noun of a known kind is a title, "co-founder Anna Holm".
    """
    hyphened = noun.i > 1 and noun.tree[noun.i - 1].text == "-"
    joined = hyphened and not noun.tree[noun.i - 1].space
    numbered = hyphened and noun.tree[noun.i - 2].text[0].isdigit()
    return numbered or (joined and find_kind_label(noun.word) is None)


def forms_term(noun: Node, name: Node) -> bool:
    """Whether a noun of no known kind and capitals are one term: "serum ALP", not "band ABBA"."""
    capitals = name.text.isalpha() and name.text.isupper()
    return capitals and noun.i + 1 == name.i and find_kind_label(noun.word) is None


def find_office_end(tree: Tree, first: int, last: int, root: Node) -> int | None:
    """Return where the name starts in "U.S. Senator Sam Foley", None without an office."""
    bounds = find_entity(tree, root.i) if root.entity == "PERSON" else None
    if bounds is None or not first < bounds[0] <= last or root.i != last:
        return None
    before = tree[bounds[0] - 1]
    office = before.pos == "PROPN" and find_kind_label(before.word) == "PERSON"
    return bounds[0] if office and bounds[0] < root.i else None


def list_conjuncts(root: Node) -> Iterator[Node]:
    """Yield `root` and the nouns coordinated with it, unless they are part of its name."""
    seen, stack = {root.i}, [root]
    while stack:
        token = stack.pop(0)
        yield token
        for child in token.children:
            if child.dep == "conj" and child.i not in seen and is_nominal(child):
                if _is_pair(child) or _is_container(child):
                    continue
                seen.add(child.i)
                if not _shares_entity(child, root):
                    stack.append(child)


def list_ancestors(node: Node) -> Iterator[Node]:
    """The tokens above a token, nearest first."""
    while node.head is not node:
        node = node.head
        yield node


def find_first(node: Node) -> Node:
    """The first of the words that a word is coordinated with; without any the word itself."""
    while node.dep == "conj" and node.head is not node:
        node = node.head
    return node


def is_listed(node: Node) -> bool:
    """Whether a word is coordinated with another."""
    return node.dep == "conj" or any(c.dep == "conj" for c in node.children)


def _is_container(place: Node) -> bool:
    """Return whether a coordinated place is the next larger one: "Ford County, Kansas"."""
    if place.entity not in PLACES or place.head.entity not in PLACES:
        return False
    edge = place.left_edge.i
    if edge == 0 or place.tree[edge - 1].text != ",":
        return False
    node: Node | None = place.head
    while node is not None and node.dep == "conj" and node.head.entity in PLACES:
        node = node.head
    while node is not None:  # "and" anywhere in the chain makes it a list
        if any(c.dep == "cc" for c in node.children):
            return False
        node = next((c for c in node.children if c.dep == "conj"), None)
    return True


def find_close_name(noun: Node) -> Node | None:
    """Return the name in "the playwright Henrik Ibsen" where the parser calls it an apposition."""
    is_partitive = noun.word == "one" and any(c.word == "of" for c in noun.children)
    if noun.pos != "NOUN" and not is_partitive:
        return None
    children = noun.children
    if is_partitive:  # "one of the leads, Ann Lee": the parser hangs her on the leads
        children = [g for c in children if c.word == "of" for d in c.children for g in d.children]
        children = [*noun.children, *children]
    nodes = noun.tree.nodes
    for child in children:
        if child.dep != "appos" or child.pos != "PROPN" or child.i < noun.i:
            continue
        if child.left_edge.text == "(":
            continue
        gap = [n.text for n in nodes[noun.i + 1 : child.left_edge.i] if n.text not in QUOTATION]
        if is_partitive and nodes[child.left_edge.i - 1].text == ",":
            return child
        if gap == [","]:
            # "The chairman, Ann Lee, said", "its last album, Dawn": the name identifies the noun.
            label = find_kind_label(noun.word)
            known = label == child.entity and label in _NAMED_AFTER_COMMA
            definite = any(c.word == "the" or c.dep == "poss" for c in children)
            named = label in {None, "ORG", "PERSON"} and child.entity in {label, "ORG", "PRODUCT"}
            return child if known or (definite and named) else None
        if len(gap) <= 1:
            return child if not gap or gap[0] not in {",", "(", ":", "\u2013"} else None
    return None


# Places inside places: the containers of a place, and nouns for places that have a name.

_MAX_LINKS = 3
"""The most links of a chain such as "Salem, Kent County, Ohio, United States"; more is a list."""


def is_named_place(noun: Node) -> bool:
    """Whether a noun for a place has its name with it: "the city of Leeds", "Kent county"."""
    if noun.pos != "NOUN" or LABEL_BY_NOUN.get(noun.word) not in PLACES:
        return False
    determiners = [c.word for c in noun.children if c.dep == "det"]
    named = any(c.dep == "compound" and c.pos == "PROPN" for c in noun.children)
    if named and not determiners:
        return True
    of = [c for c in noun.children if c.word == "of"]
    named = any(c.pos == "PROPN" for prep in of for c in prep.children)
    return named and determiners == ["the"] and noun.word in WORDS["naming"]


def _find_link_end(tree: Tree, first: int) -> int:
    """Return the last token of the name that starts at `first`, at most up to a comma."""
    bounds = find_entity(tree, first)
    last = first
    while last + 1 < len(tree) and tree[last + 1].text != ",":
        inside = bounds is not None and last < bounds[1]
        if not inside and (tree[last + 1].pos != "PROPN" or bounds is not None):
            break
        last += 1
    return last


def list_containers(phrase: Phrase, tree: Tree) -> list[Phrase]:
    """Return the places named after `phrase`, innermost first ("Rome, Italy" gives Italy).

    A chain that ends in "and" or "or" is an enumeration, not containment.
    """
    # "the state of Johor, Malaysia": the place is named last.
    named = tree[phrase.root].pos == "PROPN" or tree[phrase.last].entity in PLACES
    if not named or phrase.label in {"PERSON", *LITERALS}:
        return []
    places: list[Phrase] = []
    known = 0  # the recogniser may miss a link, but not the last
    i = phrase.last + 1
    led = i < len(tree) - 1 and tree[i].word == "in" and tree[i].head.i == phrase.root
    if led and tree[i + 1].entity in PLACES:
        last = _find_link_end(tree, i + 1)
        place = build_phrase(tree, i + 1, last, last)
        places, known, i = [place] if place is not None else [], 1, last + 1
    while i + 1 < len(tree) and tree[i].text == "," and tree[i + 1].pos == "PROPN":
        last = _find_link_end(tree, i + 1)
        place = build_phrase(tree, i + 1, last, last)
        if place is None or place.label in {"PERSON", *LITERALS} or place.text[0].islower():
            break
        if place.text.split()[-1] == phrase.text.split()[-1]:
            return []  # "Lund Airport, Holm Airport"
        if last + 1 < len(tree) and tree[last + 1].tag == "POS":
            break  # "in Kent, Dover's harbour"
        places.append(place)
        known = len(places) if place.label in PLACES else known
        i = last + 1
    if i < len(tree) and tree[i].pos == "NUM":
        return []  # "Varna 1962, Tel Aviv 1964"
    links, back = len(places), phrase.first
    while back > 1 and tree[back - 1].text == "," and tree[back - 2].entity in PLACES:
        back = (find_entity(tree, back - 2) or (back - 2, 0))[0]
        links += 1
    if links > _MAX_LINKS:
        return []
    del places[known:]
    if i < len(tree) and tree[i].text == ",":
        i += 1
    if i + 1 < len(tree) and tree[i].pos == "CCONJ" and tree[i + 1].pos in {"PROPN", "DET"}:
        return []
    if i + 1 < len(tree) and tree[i].word == "the" and tree[i + 1].entity in PLACES:
        return []  # "Malta, the Netherlands"
    return places


def pack_tree(tree: Tree) -> str:
    """The tokens of a tree as one line of JSON; the text itself is not in it."""
    rows = [
        (
            *(node.text, node.word, node.lemma, node.pos, node.tag, node.dep, node.entity),
            *(node.iob, int(node.space), node.idx, node.doubt),
            *(node.head.i, node.left_edge.i, node.right_edge.i),
        )
        for node in tree.nodes
    ]
    packed = {"sentences": tree.sentences, "columns": [*zip(*rows, strict=True)]}
    return json.dumps(packed, ensure_ascii=False, separators=(",", ":"))


def unpack_tree(text: str, packed: str) -> Tree:
    """The tree of `text` that `pack_tree` packed."""
    data = json.loads(packed)
    tree = Tree(text, [], [(first, end) for first, end in data["sentences"]])
    sentence_of = [n for n, (first, end) in enumerate(tree.sentences) for _ in range(first, end)]
    columns = data["columns"]
    for i, row in enumerate(zip(*columns[:11], strict=True)):
        words, word, lemma, pos, tag, dep, entity, iob, space, idx, doubt = row
        place = (bool(space), sentence_of[i], doubt)
        fields = (tree, i, idx, words, word, lemma, pos, tag, dep, entity, iob)
        tree.nodes.append(Node(*fields, *place))
    nodes = tree.nodes
    for node, head, left, right in zip(nodes, *columns[11:], strict=True):
        node.head, node.left_edge, node.right_edge = nodes[head], nodes[left], nodes[right]
        if head != node.i:
            node.head.children.append(node)
    return tree
