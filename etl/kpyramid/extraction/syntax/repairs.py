"""Repairs of parser errors: names, dates, subjects in brackets, attachments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set

from simplemma import is_known

from kpyramid.documents.values import MONTH, WEEKDAYS, Date, read_value
from kpyramid.documents.words import lemmatise, pick_table
from kpyramid.extraction.syntax.kinds import (
    ATTRIBUTES,
    FIRM_ENDINGS,
    LABEL_BY_NOUN,
    PERSON_NOUNS,
    PLACE_OPENINGS,
    find_kind_label,
    is_office,
    is_person_noun,
)
from kpyramid.extraction.syntax.polarity import WORDS as POLARITY
from kpyramid.extraction.syntax.predicates import REPORTING, SUBJECTS, VERBS, group_kids
from kpyramid.extraction.syntax.tree import LITERALS, PLACES, WORDS, Node, Tree, is_counted

# Titles of works, which the parser splits.

_OPENING = {"(": ")", "[": "]"}
_QUOTES = {
    '"': '"',
    "`": "''",
    "\u201c": "\u201d",
    "``": "''",
    "\u00ab": "\u00bb",
    "\u201e": "\u201c",
}
_MAX_TITLE = 10
_SUBJECTS = SUBJECTS | {"csubj", "csubjpass"}
_NO_ARGUMENTS = frozenset("relcl advcl conj parataxis compound amod nmod det".split())
_SMALL = frozenset({"ADP", "DET", "CCONJ", "PART", "SCONJ"})


def _join_title(quote: Node) -> None:
    """Join a short quotation that begins with a capital and is used as a noun into a name."""
    nodes, closing = quote.tree.nodes, _QUOTES[quote.text]
    start = quote.i + 1
    limit = min(start + _MAX_TITLE + 1, len(nodes))
    end = next((i for i in range(start, limit) if nodes[i].text == closing), None)
    if end is None or end == start:
        return
    inner = nodes[start:end]
    capitals = sum(n.text[:1].isupper() for n in inner if n.text[:1].isalpha())
    words = sum(n.text[:1].isalpha() for n in inner)
    if not inner[0].text[:1].isupper() or 2 * capitals < words or inner[-1].text in {",", ";"}:
        return
    root = _find_root(inner)
    if root is None or root.dep in {"ccomp", "ROOT", "advcl", "prep", "dep"}:
        _seat_title(inner, end + 1)
        if root is None or root.dep != "prep":
            return
    if root.dep in _NO_ARGUMENTS:
        return
    _join_name(inner, root)


def _seat_title(inner: list[Node], after: int) -> None:
    """Make a title the subject of the finite verb right after it: ""Never Say Never" is a song".

    The parser read the title as a clause and attached the sentence to it.
    """
    tree = inner[0].tree
    if after >= len(tree) or tree[after].sentence != inner[0].sentence:
        return
    verb = tree[after]
    if verb.dep in {"aux", "auxpass"} and verb.head.i > after:
        verb = verb.head
    within = set(map(id, inner))
    if verb.pos not in {"VERB", "AUX"} or tree[after].tag not in {"VBZ", "VBD", "MD"}:
        return
    above = verb.head
    root = inner[-1]
    orphans = [c for n in inner for c in n.children if id(c) not in within and c is not verb]
    if id(above) in within:
        if not any(n.head is n for n in inner):
            return
        if verb in above.children:
            above.children.remove(verb)
        verb.head, verb.dep = verb, "ROOT"
    for child in orphans:
        _move(child, verb)
    _move(root, verb)
    passive = any(c.dep == "auxpass" for c in verb.children)
    root.dep = "nsubjpass" if passive else "nsubj"
    _join_name(inner, root)
    verb.left_edge = tree[min(verb.left_edge.i, inner[0].i)]
    verb.right_edge = tree[max([verb.right_edge.i, *(c.right_edge.i for c in orphans)])]


def _join_leading_title(copula: Node) -> None:
    """Join the capitalised words before "is a film" into a name: "Meet Me Again is a film"."""
    tree = copula.tree
    attribute = next((c for c in copula.children if c.dep == "attr" and c.pos == "NOUN"), None)
    if attribute is None or LABEL_BY_NOUN.get(attribute.word) != "WORK_OF_ART":
        return
    first = tree.sentences[copula.sentence][0]
    inner = tree.nodes[first : copula.i]
    if inner and inner[-1].text == ")":
        opening = next((n.i for n in inner if n.text == "("), first)
        inner = tree.nodes[first:opening]
    if not 2 <= len(inner) <= _MAX_TITLE or not inner[-1].text[:1].isupper():
        return
    small = [n for n in inner if n.text[:1].islower()]
    if not inner[0].text[:1].isupper() or any(n.pos not in _SMALL for n in small):
        return
    if inner[0].word in {"the", "a", "an"} and len(inner) > 2:
        inner = inner[1:]
    root = _find_root(inner)
    if root is not None and root.dep in _SUBJECTS:
        _join_name(inner, root)
    elif root is None:
        _seat_title(inner, copula.i)


def _find_root(inner: list[Node]) -> Node | None:
    """Return the only node of a span whose head is outside it; None when several or none are."""
    first, last = inner[0].i, inner[-1].i
    outside = [n for n in inner if n.head is n or not first <= n.head.i <= last]
    return outside[0] if len(outside) == 1 and outside[0].head is not outside[0] else None


def _join_name(inner: list[Node], root: Node, entity: str = "WORK_OF_ART") -> None:
    """Join a span into a name headed by `root`, of an entity type."""
    root.pos, root.tag = "PROPN", "NNP"
    root.dep = {"csubj": "nsubj", "csubjpass": "nsubjpass", "ccomp": "dobj"}.get(root.dep, root.dep)
    for node in inner:
        if node is not root:
            node.dep = "compound"
            _move(node, root)
        if node.text[:1].isalpha() and node.pos != "PROPN":
            node.pos, node.tag = "PROPN", "NNP"
    _mark_entity(inner, entity)
    root.left_edge, root.right_edge = inner[0], max(inner[-1], root.right_edge, key=lambda n: n.i)
    _close_entity(root.tree.nodes, inner[-1].i)


def _move(node: Node, head: Node) -> None:
    """Attach a node to another, unless that would create a cycle."""
    if node.head is head or _is_above(node, head):
        return
    if node.head is not node and node in node.head.children:
        node.head.children.remove(node)
    node.head = head
    head.children.append(node)
    head.children.sort(key=lambda c: c.i)


def _refit(node: Node) -> None:
    """Set a node's right edge to that of its dependents, after one was moved away."""
    node.right_edge = max([node, *(c.right_edge for c in node.children)], key=lambda n: n.i)


def _mark_entity(run: Sequence[Node], label: str) -> None:
    """Make consecutive tokens one entity of a type."""
    for node in run:
        node.entity, node.iob = label, "I"
    run[0].iob = "B"


def _close_entity(nodes: list[Node], last: int) -> None:
    """End an entity at `last`: its remaining words begin another entity, or none."""
    index = last + 1
    if index < len(nodes) and nodes[index].iob == "I":
        if nodes[index].text[:1].isalnum():
            nodes[index].iob = "B"
        else:
            nodes[index].entity, nodes[index].iob = "", "O"
            _close_entity(nodes, index)


def _clear_type(first: Node) -> None:
    """Remove the type of an entity from one of its words on."""
    nodes, index = first.tree.nodes, first.i
    first.entity, first.iob = "", "O"
    while (index := index + 1) < len(nodes) and nodes[index].iob == "I":
        nodes[index].entity, nodes[index].iob = "", "O"


def _is_above(node: Node, descendant: Node) -> bool:
    """Whether `node` is `descendant` or an ancestor of it."""
    for _ in range(50):
        if node is descendant or descendant.head is descendant:
            return node is descendant
        descendant = descendant.head
    return True


# Errors of the parser and of the entity recogniser that the words of the text reveal.

_IS_MONTH = re.compile(MONTH)
_VERBAL = frozenset("to from against over into as".split())
_DAYS = frozenset("today yesterday tomorrow tonight".split())
_PARTICLES = frozenset("down out off up over".split())
_WAYS = frozenset("from to into onto of towards toward".split())
_ENDS = frozenset("later newer higher above up more earlier older lower below less two".split())
"""Words that open a range after a number: "12 or higher"."""
_PATH = re.compile(r"/\w")
_BOUNDS = {"up": frozenset({"to"}), "at": frozenset({"most", "least"})}
_LASTING = frozenset("from since until till between through".split())
_LEADING = _LASTING | {"after", "before", "with", "without"}
_FRAMING = frozenset("after although because before once since though unless when while".split())
_NOMINAL = frozenset({"NOUN", "PROPN"})
_PLACED_NOUNS = frozenset({"pobj", "dobj", "nsubj", "nsubjpass", "attr"})
_NUMBERED_NAME = re.compile(r"\d+[a-z]{4,}")
"""A firm's name: "37signals" is no plural."""
_FINITE_BY_NOUN = {"NN": "VBP", "NNS": "VBZ"}
_GAPPED = frozenset({"dep", "npadvmod"})
_EACH = frozenset({"any", "each", "every"})
_PARTS_OF_DAY = frozenset({"morning", "afternoon", "evening"})
_TO = frozenset({"to", "until", "till", "–", "-"})
_MAX_BRACKET = 60
"""The most tokens between brackets; more are no aside."""
_MEDIA = frozenset("radio television tv cable fm am news".split())
_DEEDS = pick_table(VERBS, "deeds")
"""Predicates of things of one type only: they do, undergo ("be_bear") or have ("have_office")."""
_SETTLING = pick_table(VERBS, "settling")
"""Verbs by the preposition before a place after them."""
_MAX_RISE = 6
"""The most tokens on the path from "who" up to its antecedent."""


def repair_tree(tree: Tree) -> None:
    """Repair the tree in place, in time linear in its tokens.

    Dates that the recogniser split are joined, titles, numerals and bynames become part of a
    name, subjects that the parser attached inside a bracket are moved before it, and a name's type
    follows the kind that the text states.
    """
    starts = {first for first, _ in tree.sentences}
    names = {n.text for n in tree.nodes if n.pos == "PROPN" and n.i not in starts}
    for first, last in tree.sentences:
        _part_stamp(tree.nodes[first:last])
    for node in tree.nodes:
        if node.pos == "PROPN" and node.i and _is_date(tree[node.i - 1]):
            _part_date(node)
        if _IS_MONTH.fullmatch(node.word.title()) and node.text[:1].isupper():
            _join_date(node)
        elif node.text in {"age", "aged"} and node.entity == "DATE" and node.iob == "B":
            if any(c.i == node.i + 1 and c.pos == "NUM" for c in node.children):
                _clear_type(node)  # "age 50" is no date
        elif node.text in _QUOTES:
            _join_title(node)
        elif node.text in _OPENING:
            _lift_subject(node)
        elif node.text in {"is", "was"} and node.lemma == "be" and node.i:
            _join_leading_title(node)
            if node.iob == "I" and any(c.dep in SUBJECTS and not c.entity for c in node.children):
                _clear_type(node)  # "The gender of [Akbar is Male]": no title
        elif node.text == "I" and node.i:
            _join_numeral(node)
        elif node.text == "the" and node.i:
            _join_byname(node)
            if node.iob == "I" and node.head.dep in SUBJECTS and node.head.head.i > node.head.i:
                _part_contact(node)
        elif node.word in _LEADING and node.head.dep == "ROOT" and _opens_clause(node):
            _lower_mark(node)
        elif node.word in _FRAMING and node.dep == "mark" and node.i < node.head.head.i:
            _part_frame(node)
        elif node.word == "if" and node.head.dep == "ROOT" and node.dep == "mark":
            _part_order(node)
        elif node.dep == "prep" and not node.children and node.head.tag == "VBN":
            _join_stranded(node)
        elif node.dep == "prep" and node.word in _LASTING and node.head.pos in _NOMINAL:
            _lift_period(node)
        elif node.dep == "prep" and node.word in _EXCEPTING and node.head.pos in _NOMINAL:
            _lift_exception(node)
        elif node.dep == "prep" and node.head.dep in {"dobj", "pobj"}:
            _lift_preposition(node)
        elif node.dep == "prep" and node.word in {"to", "in"} and node.head.pos == "VERB":
            _lower_ratio(node)
            _lower_first_time(node)
        elif node.word == "for" and node.dep == "prep" and node.head.pos == "VERB":
            _lower_year(node)
        elif node.word in {"with", "without"} and node.dep == "prep" and node.head.pos == "VERB":
            _lower_trait(node)
        elif node.dep == "relcl" and node.head.dep == "pobj" and node.head.pos != "PRON":
            _lift_relative(node)
        elif node.word == "between" and node.entity == "DATE" and node.dep != "prep":
            _join_period(node)
        elif node.dep == "conj" and node.head.pos in {"VERB", "AUX"}:
            _lower_condition(node)
            _seat_infinitive(node)
            _share_passive(node)
            _lower_later(node)
        elif node.word == "owing" and node.i + 1 < len(tree) and tree[node.i + 1].word == "to":
            node.pos, node.tag, node.dep = "ADP", "IN", "prep"
        elif node.dep == "cc" and node.word == "plus":
            _drop_after(node)
        elif node.dep == "cc" and node.word == "but" and node.head.pos == "NOUN":
            _read_exception(node)
        elif node.dep == "cc" and node.head.text.istitle() and node.word in {"and", "&"}:
            _join_union(node)
        elif _BELOW_ZERO.fullmatch(node.text) and node.dep == "punct" and node.i:
            _join_minus(node)
        elif node.dep == "punct" and node.text[-1:].isdigit() and node.text[:1].isalpha():
            node.dep = "nmod"  # "scanners of type H-40"
        elif node.dep == "aux" and node.tag == "MD" and node.head.tag in {"VBD", "VBZ"}:
            node.dep = "dep"  # "Three can't, since the cable supports two"
        elif node.dep == "conj" and node.word == "reports" and node.i + 1 < len(tree):
            _seat_report(node)
        elif node.word in _RARELY and node.dep == "advmod" and node.head.dep in {"acomp", "advmod"}:
            _move(node, node.head.head)  # "is seldom first on scene"
        elif node.word in _PARTICLES and node.dep == "advmod" and not node.children:
            _join_particle(node)
        elif node.tag == "VBG" and 0 < node.i < len(tree) - 1 and tree[node.i - 1].lemma == "be":
            _seat_office(node)
        elif node.tag == "TO" and node.dep == "aux" and node.head.dep == "ROOT":
            _read_task(node)
        elif node.tag == "VBN" and node.i and tree[node.i - 1].tag == "TO":
            node.tag, node.lemma = "VB", node.word  # "went on to found a school"
        elif node.text == ":" and node.i and tree[node.i - 1].dep in SUBJECTS:
            _unseat_label(tree[node.i - 1])
        elif node.text == ":" and node.i:
            _attach_list(node)
        if node.word in _TO and 0 < node.i < len(tree) - 1:
            _join_days(tree[node.i - 1], node, tree[node.i + 1])
        elif node.word == "between" and node.i + 3 < len(tree):
            _join_amounts(node)
        elif node.dep in _GAPPED and node.pos in _NOMINAL and node.head.pos == "VERB":
            _read_gap(node)
        elif node.dep == "conj" and node.pos == "NOUN" and node.head.pos == "VERB":
            _read_verb(node)
        elif node.dep in _SUBJECTS and node.head.dep == "auxpass":
            _seat_passive(node)
        elif node.dep == "conj" and node.tag == "CD" and node.head.dep in SUBJECTS:
            _part_subject(node)
        elif node.dep == "conj" and node.head.dep == "pobj" and node.right_edge.i + 1 < len(tree):
            _part_second(node, tree[node.right_edge.i + 1])
        elif node.dep == "conj" and node.head.dep == "dobj" and node.i + 1 < len(tree):
            _seat_subject(node, tree.nodes[node.right_edge.i + 1 : node.right_edge.i + 2])
        elif node.dep in {"dobj", "attr"} and node.left_edge.i > node.head.i + 1:
            _part_object(node)
        elif node.dep == "conj" and node.tag == "VBN" and node.head.dep == "oprd":
            node.pos, node.tag = "ADJ", "JJ"  # "must keep it accessible and protected"
        elif node.dep in {"xcomp", "advcl"} and node.tag == "VB":
            _lower_infinitive(node)
        elif node.dep == "nummod" and node.tag == "CD":
            _part_count(node)
        elif node.dep == "relcl" and node.lemma == "be":
            _fill_copula(node)
        elif node.dep == "appos" and node.entity not in LITERALS:
            for part in (c for c in node.head.children if c.i == node.right_edge.i + 1):
                if part.dep == "prep" and tree[part.i - 1].text != ")":
                    _move(part, node)  # "A means action, B within a month"
        elif node.dep == "acl" and node.head.head.dep == "agent":
            prepared = node.head.head.head
            if prepared.dep == "ROOT" and not any(c.dep in _SUBJECTS for c in prepared.children):
                node.dep = "dep"  # "Prepared by Ann Holm, approved by the board"
        elif node.dep == "advmod" and node.head.dep == "prep" and node.word in POLARITY["hedging"]:
            node.head.dep = "dep"  # "it burned down, probably because of a stove"
        elif node.word in {"since", "because"} and node.dep == "mark":
            _part_reason(node)
        elif node.dep == "preconj" and node.word == "either" and node.head.dep == "appos":
            node.head.dep = "dep"  # "Register – Either the red book or the list"
        if node.dep in SUBJECTS and node.i:
            _part_subjects(node)
        if _NUMBERED_NAME.fullmatch(node.text) and node.tag in {"CD", "NN", "NNS"}:
            node.pos, node.tag = "PROPN", "NNP"
            if node.entity in LITERALS and node.iob == "B":
                _clear_type(node)
            for after in tree.nodes[node.i + 1 : node.i + 2]:
                if after.pos in _NOMINAL and (after.head, after.dep) == (node.head, node.dep):
                    _move(node, after)
                    node.dep, after.left_edge = "compound", node.left_edge
        if node.dep == "npadvmod" and is_counted(node) and node.i + 1 < len(tree):
            _lower_distance(node, tree[node.i + 1])
        if node.dep == "dobj" and node.right_edge.i + 1 < len(tree):
            _part_clause(node, tree[node.right_edge.i + 1])
        elif node.dep == "expl" and node.word == "there":
            for speaker in (c for c in node.head.children if c.dep == "nsubj"):
                if "," in {n.text for n in tree.nodes[speaker.i : node.i]}:
                    speaker.dep = "appos"  # "Ann, there are two ways"
        elif node.dep == "xcomp" and node.text.istitle() and tree[node.i - 1].text == ",":
            node.dep = "dep"  # a name in a list: "include frames, Go pro cameras"
        elif node.word == "using" and node.dep in {"advcl", "xcomp"} and node.head.tag == "VBN":
            _read_means(node)
        elif node.dep == "csubj" and node.pos == "NOUN" and node.left_edge.tag == "VBG":
            _lower_object(node, node.left_edge)
        placed = node.tag == "JJ" and node.dep in _PLACED_NOUNS
        if placed and any(c.dep == "compound" for c in node.children):
            node.pos, node.tag = "NOUN", "NN"  # "the secrets repo"
        if node.dep == "ROOT" and node.tag in _FINITE_BY_NOUN:
            _read_root(node)
        elif node.dep == "ROOT" and node.tag == "VBZ" and node.i:
            _read_subject(tree[node.i - 1], node, names)
        elif node.dep == "ROOT" and node.tag == "VBN" and node.entity and node.i + 1 < len(tree):
            _join_opening(node, tree[node.i + 1])
        if node.tag in {"NNP", "NNPS"} and tree.sentences[node.sentence][0] == node.i:
            _unname_plural(node)
        if node.tag == "NN" and node.entity not in {"", *LITERALS}:
            _unname(node)
        if node.word == "not" and node.i + 1 < len(tree):
            _drop_contrast(node)
        elif node.word in _NEARLY and node.i + 1 < len(tree) and tree[node.i + 1].word == "any":
            _attach([node], tree[node.i + 1], "advmod")
        elif node.word == "no" and node.i + 2 < len(tree) and tree[node.i + 2].word == "than":
            node.dep = "advmod"  # "no later than at noon"
        if node.word in _BOUNDS and node.i + 2 < len(tree) and tree[node.i + 2].pos == "NUM":
            _join_bound(node)
        elif node.word == "up" and 0 < node.i < len(tree) - 3 and tree[node.i + 2].tag == "$":
            _join_limit(tree[node.i - 1], tree[node.i + 3])
        elif node.word == "per" and node.i and is_counted(tree[node.i - 1]):
            _move(node, tree[node.i - 1])
        elif node.i and (tree[node.i - 1].word, node.word) in _REPLACING:
            _lower_alternative(node)
        elif node.word == "than" and node.dep == "prep" and node.head.pos in _NOMINAL:
            _lift_standard(node)
        elif node.word == "than" and node.i > 1 and tree[node.i - 1].word == "other":
            _except_other(tree[node.i - 1])
        elif node.word == "than" and node.i and tree[node.i - 1].tag == "JJR":
            _join_bound_of(tree[node.i - 1], node.head.head)
        elif node.word in {"once", "twice"}:
            _join_frequency(node)
        elif node.word == "on" and node.dep == "prep" and tree[node.i - 1].dep == "pobj":
            _join_day(tree[node.i - 1], node)
        elif node.word in {"each", "every"} and node.i + 1 < len(tree):
            _join_recurrence(node)
        elif node.text in _ENDS and node.i > 1 and tree[node.i - 1].word == "or":
            _join_range(node)
        elif _PATH.match(node.text) and node.i and not node.children:
            _join_path(node)
    _retype_names(tree)


def _part_frame(mark: Node) -> None:
    """Give the main clause what stands before a clause: "In 1961, after the Beck rose, we met"."""
    verb = mark.head
    if (
        verb.i < mark.i
        or verb.head.pos not in {"VERB", "AUX"}
        or verb.dep not in {"advcl", "ccomp"}
    ):
        return
    verb.dep = "advcl"
    for part in verb.children[:]:
        if part.dep == "prep" and part.right_edge.i + 2 == mark.i:
            _move(part, verb.head)
    verb.left_edge = mark


def _join_days(first: Node, to: Node, last: Node) -> None:
    """Make a range of days or months one time: "works Monday to Friday"."""
    days = first.word in WEEKDAYS and last.word in WEEKDAYS
    months = _IS_MONTH.fullmatch(first.text) and _IS_MONTH.fullmatch(last.text)
    if (days or months) and not last.children and to.head is not last:
        _attach((to, last), first, "nmod")
        _widen(first, last)
        _mark_entity((first, to, last), "DATE")


def _join_amounts(between: Node) -> None:
    """Make a range part of the noun after it: "landings of between 1,200 and 1,300 tonnes"."""
    least, link, most = between.tree.nodes[between.i + 1 : between.i + 4]
    counts = link.word == "and" and least.tag == most.tag == "CD" and most.dep == "nummod"
    counts = counts and least.head in {most, most.head}
    if counts and "DATE" not in {least.entity, most.entity}:
        _attach((between, least, link), most, "quantmod")
        most.left_edge = between
        most.head.left_edge = min(most.head.left_edge, between, key=lambda n: n.i)


def _read_gap(noun: Node) -> None:
    """Give a subject without verb what follows it: "Orm opened in 1994, and Velm in 2013"."""
    verb, before = noun.head, noun.tree[noun.left_edge.i - 1]
    timed = noun.dep == "npadvmod" and (noun.left_edge.word != "the" or noun.entity in LITERALS)
    if noun.i < verb.i or before.text not in {",", ";", "and"} or timed:
        return
    for part in verb.children[:]:
        if part.dep == "prep" and part.i > noun.i:
            _move(part, noun)


def _read_verb(noun: Node) -> None:
    """Make a verb of a bare noun that is joined to one: "begin at 16:00 and end by 18:30"."""
    bare = all(c.dep in {"prep", "cc", "conj", "punct"} for c in noun.children)
    if bare and noun.tag == "NN" and noun.head.tag in {"VB", "VBP"} and noun.left_edge is noun:
        noun.pos, noun.tag, noun.lemma = "VERB", noun.head.tag, noun.word
        _close_entity(noun.tree.nodes, noun.i - 2)


def _part_subject(count: Node) -> None:
    """Make "30 of them" the only subject: "60 dogs seen, and 30 of them have been booked in"."""
    whole, verb = count.head, count.head.head
    if any(g.word == "them" for c in count.children if c.word == "of" for g in c.children):
        _move(count, verb)
        count.dep, whole.dep = whole.dep, "dep"


def _seat_subject(noun: Node, after: Sequence[Node]) -> None:
    """Make a joined object the subject of the verb after it: "pay 4 % and boats pay 6 %"."""
    for verb in after:
        subjects = [c for c in verb.children if c.dep in _SUBJECTS]
        joined = noun.tree[noun.left_edge.i - 1].dep == "cc" and verb.dep == "conj"
        if joined and verb.tag in {"VBP", "VBZ", "VBD"} and not subjects:
            _move(noun, verb)
            noun.dep = "nsubj"


def _part_clause(noun: Node, after: Node) -> None:
    """Make an object the subject of the clause it opens: "ensures staff are paid"."""
    verb = after.head if after.dep in {"aux", "auxpass"} else after
    bare = all(c.dep not in _SUBJECTS for c in verb.children)
    bare = bare and verb.dep == "ccomp" and verb.head is noun.head
    if bare and after.tag in {"MD", "VBD", "VBP", "VBZ"}:
        _move(noun, verb)
        noun.dep = "nsubjpass" if after.dep == "auxpass" else "nsubj"


def _read_root(noun: Node) -> None:
    """Make a verb of a noun with a subject: "Most people at Orm work from home"."""
    subjects = [c for c in noun.children if c.dep == "nsubj" and c.right_edge.i < noun.i]
    subjects = [c for c in subjects if c.right_edge.tag != "CD"]  # "Ward 1 moves"
    led = any(c.dep in {"prep", "npadvmod", "advmod"} and c.i > noun.i for c in noun.children)
    plain = all(
        c.dep not in {"cop", "det", "amod", "compound", "poss", "aux"} for c in noun.children
    )
    if (
        len(subjects) == 1
        and (subjects[0].tag in {"NNS", "NNPS"}) == (noun.tag == "NN")
        and led
        and plain
    ):
        noun.pos, noun.tag = "VERB", _FINITE_BY_NOUN[noun.tag]
        noun.lemma = noun.word if noun.tag == "VBP" else lemmatise(noun.word)


def _lower_distance(measure: Node, prep: Node) -> None:
    """Attach a distance to its preposition: "is located two blocks from the House"."""
    apart = prep.dep == "prep" and prep.word in {"from", "off", "above", "below"}
    apart = apart and measure.text.isalpha() and measure.entity not in {"DATE", "TIME"}
    if apart and prep.head is measure.head:
        _move(measure, prep)
        prep.left_edge = measure.left_edge


def _read_subject(first: Node, verb: Node, names: Set[str]) -> None:
    """Make a name of the text the subject: "Fastly appends a header", where Fastly is a name."""
    opens = first.tree.sentences[first.sentence][0] == first.i and first.head is verb
    named = opens and first.dep == "advmod" and first.text in names
    if named and all(c.dep not in _SUBJECTS for c in verb.children):
        first.pos, first.tag, first.dep = "PROPN", "NNP", "nsubj"


def _part_subjects(second: Node) -> None:
    """Leave a verb one of two subjects: "A writer and baker, Ann's books sell".

    The end of a range is none: "access between 6 p.m. and 7 a.m. is free".
    """
    nodes, mark = second.tree.nodes, second.tree[second.left_edge.i - 1]
    others = [c for c in second.head.children if c.dep in SUBJECTS and c.i < second.i]
    end = nodes[mark.i - 1] if mark.i else mark
    if not others or second.i > second.head.i:
        return
    named = second.pos == "PROPN" or second.left_edge.pos == "PROPN"
    if mark.text == "," and named and others[-1].left_edge.word in {"a", "an"}:
        others[-1].dep = "dep"
    elif mark.word == "and" and end.dep == "pobj" and end.head.word == "between":
        _move(second, end)
        second.dep = "conj"
        _widen(end, second)


def _lower_object(noun: Node, gerund: Node) -> None:
    """Make a gerund the subject, not its object: "Tracking the yearly spend is a duty"."""
    if gerund.head is noun and gerund.dep == "advcl":
        _move(gerund, noun.head)
        _move(noun, gerund)
        gerund.dep, noun.dep = "csubj", "dobj"
        gerund.right_edge, noun.left_edge = noun.right_edge, noun.tree[gerund.i + 1]


def _read_means(using: Node) -> None:
    """Make "using" a preposition after a passive: "is deployed using Jenkins"."""
    passive = any(c.dep == "auxpass" for c in (*using.head.children, *using.head.head.children))
    if passive and all(c.dep == "dobj" for c in using.children):
        using.pos, using.tag, using.dep = "ADP", "IN", "prep"
        for noun in using.children:
            noun.dep = "pobj"


def _part_contact(article: Node) -> None:
    """Part a name from the subject of its contact clause: "the Search Firm the PSF is using"."""
    noun, verb = article.tree[article.i - 1], article.head.head
    _close_entity(article.tree.nodes, noun.i)
    if noun.pos in _NOMINAL and verb.dep in {"advcl", "ccomp", "relcl"}:
        _move(verb, noun)
        verb.dep = "relcl"


def _join_opening(participle: Node, name: Node) -> None:
    """Join a participle to the name that it opens: "Made Tech have a limit"."""
    verb = name.head
    opens = participle.text.istitle() and name.iob == "I" and name.dep in _SUBJECTS
    if opens and name.left_edge is name and verb.head is participle:
        participle.pos, participle.tag, participle.dep = "PROPN", "NNP", "compound"
        participle.children.remove(verb)
        verb.head, verb.dep = verb, "ROOT"
        _move(participle, name)
        name.left_edge = verb.left_edge = participle


def _seat_passive(noun: Node) -> None:
    """Give a participle the subject that the parser gave its auxiliary."""
    verb = noun.head.head
    forms = [c for c in verb.children if c.dep in {"aux", "auxpass", *_SUBJECTS}]
    if all(c is noun.head or c.tag == "MD" for c in forms):
        for helper in [c for c in noun.head.children if c.dep == "aux"]:
            _move(helper, verb)
        _move(noun, verb)
        noun.dep = "nsubjpass"


def _part_second(noun: Node, prep: Node) -> None:
    """Detach a second object with its measure: "raises the fee by 6 % and the rate by 5 %"."""
    path = _list_path(noun.head)
    before = [c for each in path for c in each.children if c.dep == "prep" and c.i < noun.i]
    measured = [c for c in before if any(is_counted(g) for g in c.children)]
    again = prep.dep == "prep" and prep.head in {*path, noun} and not is_counted(noun)
    again = again and any(is_counted(c) or c.tag == "CD" for c in prep.children)
    if again and noun.pos in _NOMINAL and prep.word in {c.word for c in measured}:
        noun.dep = prep.dep = "dep"


def _part_object(noun: Node) -> None:
    """Detach what a comma parts from its verb: "Alarm set at 25 ppm, evacuation at 100"."""
    between = noun.tree.nodes[noun.head.i + 1 : noun.left_edge.i]
    commas = sum(n.text == "," for n in between)
    plain = len(between) == 1 or any(n.dep in {"prep", "attr", "acomp"} for n in between)
    plain = plain and noun.pos == "NOUN"
    if commas == 1 and between[-1].text == "," and plain and noun.head.i < noun.i:
        noun.dep = "dep"


def _lower_infinitive(verb: Node) -> None:
    """Attach an infinitive to its own subject: "asked for the sale to begin at noon"."""
    nodes, to = verb.tree.nodes, next((c for c in verb.children if c.tag == "TO"), verb)
    subject = nodes[to.i - 1]
    leads = subject.dep == "pobj" and subject.head.word == "for"
    if leads and subject.head.head is verb.head and subject.head.i == verb.head.i + 1:
        _move(verb, subject)
        verb.dep = "acl"


def _part_count(number: Node) -> None:
    """Return a number from a date to the noun it counts: "that year nineteen crews met"."""
    noun = next(iter(number.tree.nodes[number.i + 1 : number.i + 2]), number)
    if noun.tag != "NNS" or noun.entity:
        return
    month = number.tree[max(number.i - 1, 0)]
    if _is_year(number) and _IS_MONTH.fullmatch(month.text):  # "until April 2023 vets worked"
        _move(number, month)
        _widen(month, number)
        noun.left_edge = noun
        return
    if number.head is not noun:  # "Today 255 people"
        _move(number, noun)
        noun.left_edge = number
    if number.entity == "DATE" and number.iob == "I":
        _clear_type(number)


def _fill_copula(copula: Node) -> None:
    """Give a copula without complement what follows it: "drivers who are an hour late lose it"."""
    after = copula.tree.nodes[copula.i + 1 : copula.i + _MAX_RISE]
    late = next((n for n in after if n.head is copula.head.head and n.dep == "advmod"), None)
    if late is None or late.left_edge.i != copula.right_edge.i + 1 or late.i > late.head.i:
        return
    if all(c.dep in {*_SUBJECTS, "aux", "neg"} for c in copula.children):
        _move(late, copula)
        late.dep = "acomp"
        copula.right_edge = late.right_edge
        copula.head.right_edge = late.right_edge


def _part_order(mark: Node) -> None:
    """Detach the order that the parser reads as a name: "If it shows the wrong way, press F2"."""
    nodes = mark.tree.nodes[mark.i : mark.tree.sentences[mark.sentence][1]]
    for node in (n for n in nodes if n.dep == "appos"):
        node.dep = "dep"


def _part_reason(mark: Node) -> None:
    """Detach a reason behind a relative clause, of which it may be: "Bo, who left, since"."""
    reason, nodes = mark.head, mark.tree.nodes
    for word in reason.children:  # "largely because it closed"
        if word.i < mark.i and word.dep == "advmod" and word.word.endswith("ly"):
            word.dep = "dep"
    between = nodes[reason.head.i + 1 : mark.i]
    if reason.dep == "advcl" and any(n.dep == "relcl" and n.head in between for n in between):
        reason.dep = "dep"


def _lower_condition(verb: Node) -> None:
    """Make a clause with "only when" adverbial: "may attend, but only when they are led"."""
    mark = next((c for c in verb.children if c.word in {"if", "when", "unless"}), verb)
    if mark.i < verb.i and mark.tree[mark.i - 1].word == "only":
        verb.dep = "advcl"


def _read_task(to: Node) -> None:
    """Make "to" the modal of a task or headline: "Ann Lee to order the sign by 31 March"."""
    before = [c for c in to.head.children if c.i < to.i]
    subject = before[0] if len(before) == 1 and before[0].dep == "nsubj" else None
    first = to.tree.sentences[to.sentence][0]
    if subject is not None and subject.pos == "PROPN" and subject.left_edge.i == first:
        to.tag, to.lemma, to.word = "MD", "will", "will"


def _join_period(between: Node) -> None:
    """Make a fronted period qualify its verb: "Between 1 May and 3 June the shop is shut"."""
    nodes, last = between.tree.nodes, between.i
    while last + 1 < len(nodes) and nodes[last + 1].entity == "DATE":
        last += 1
    run = nodes[between.i + 1 : last + 1]
    ends = [n for n in run if n.head not in run and n.head is not between]
    verb = next((n.head for n in ends if n.head.pos in {"VERB", "AUX"}), None)
    if verb is None or len(run) < 3:
        return
    between.dep, between.pos, between.tag = "prep", "ADP", "IN"
    _move(between, verb)
    for end in ends:
        _move(end, between if end is ends[0] else ends[0])
        end.dep = "pobj" if end is ends[0] else "conj"
    between.left_edge, between.right_edge = between, nodes[last]


_EXCEPTING = frozenset({"barring", "except", "excluding"})


def _lower_later(verb: Node) -> None:
    """Attach what follows a coordinated verb to it, not to the first: "began and ended in May"."""
    first = verb.head
    later = [c for c in first.children if c.dep == "conj" and c.i > verb.i]
    end = later[0].left_edge.i if later else len(verb.tree)
    for child in list(first.children):
        condition = child.dep == "advcl" and any(c.word in _CONDITIONS for c in child.children)
        if verb.right_edge.i < child.i < end and child.dep in _FOLLOWING and not condition:
            _move(child, verb)
            verb.right_edge = max(verb.right_edge, child.right_edge, key=lambda n: n.i)


_CONDITIONS = frozenset({"if", "provided", "unless"})
_FOLLOWING = frozenset({"advcl", "agent", "npadvmod", "prep"})


_REPLACING = {("rather", "than"), ("instead", "of")}
_REPLACED = frozenset({"prep", "conj", "dobj", "attr"})
_NEARLY = frozenset({"barely", "hardly", "scarcely"})
_RARELY = _NEARLY | POLARITY["rare"]
_ALL = frozenset({"all", "any", "each", "every", "last", "next"})


def _read_exception(but: Node) -> None:
    """Make "but" a preposition after all of a kind: "every test but one", "the last but two"."""
    noun = but.head
    other = next((c for c in noun.children if c.dep == "conj" and c.i > but.i), None)
    if other is None or all(c.word not in _ALL for c in noun.children if c.i < noun.i):
        return
    if any(c.word in {"last", "next"} for c in noun.children):
        _attach([but, other], noun, "advmod")
        noun.right_edge = other
        return
    _move(other, but)
    but.pos, but.tag, but.dep, but.word, other.dep = "ADP", "IN", "prep", "except", "pobj"
    but.right_edge = other.right_edge


def _drop_contrast(negation: Node) -> None:
    """Detach the noun that is denied beside another: "a role taken in turns, not a post"."""
    nodes, before = negation.tree.nodes, negation.tree[negation.i - 1].text
    noun = nodes[negation.i + 1].head if nodes[negation.i + 1].dep == "det" else None
    if before == "," and noun is not None and noun.head.i < negation.i and noun.dep in _CONTRASTED:
        noun.dep = "dep"
    elif negation.dep == "conj":  # "is the tank and not, as many believe, the pond"
        _drop_after(negation)
    elif before == "," and negation.dep == "neg" and negation.head.i < negation.i:
        other = nodes[negation.i + 1]  # "starts in week 14, not week 12"
        while other.dep in {"compound", "nummod"} and other.head is not other:
            other = other.head
        if other.pos not in {"VERB", "AUX", "ADP"} and other.i > negation.i:
            negation.dep = other.dep = "dep"


def _drop_after(joint: Node) -> None:
    """Detach the complements after a joint: the apron in "is 8.4 m, plus an apron"."""
    for child in joint.head.children:
        if child.i > joint.i > joint.head.i and child.dep in _CONTRASTED:
            child.dep = "dep"


_CONTRASTED = frozenset({"acomp", "attr", "dobj", "npadvmod", "oprd"})


def _lift_exception(prep: Node) -> None:
    """Attach an exception to the verb: "lost money every year except 1951"."""
    path = _list_path(prep.head)
    if path[-1].pos in {"VERB", "AUX"} and path[-1].i < prep.i:
        _lift(prep, path)


def _except_other(other: Node) -> None:
    """Make "other than" behind a comma an exception: "is not paid out, other than on leaving"."""
    path = _list_path(other.head)
    if other.tree[other.i - 1].text == "," and path[-1].i < other.i:
        other.pos, other.tag, other.dep, other.word = "ADP", "IN", "prep", "except"
        _lift(other, path)


def _list_path(node: Node) -> list[Node]:
    """The token and its ancestors up to the verb of its clause, or to the root."""
    path = [node]
    while path[-1].pos not in {"VERB", "AUX"} and path[-1].head is not path[-1]:
        path.append(path[-1].head)
    return path


def _lift(prep: Node, path: Sequence[Node]) -> None:
    """Attach a preposition to the end of the path from its head."""
    _move(prep, path[-1])
    for node in path[:-1]:
        _refit(node)


def _join_union(conjunction: Node) -> None:
    """Join "Hall and Vale Railway" into a name where its verb is in the singular.

    What follows in "Ann Lee and Sons" always belongs to the name.
    """
    first, nodes = conjunction.head, conjunction.tree.nodes
    last = next((c for c in first.children if c.dep == "conj" and c.i > conjunction.i), first)
    if not last.text.istitle() or last.left_edge.i != conjunction.i + 1:
        return
    if first.i != conjunction.i - 1:
        return
    start = first.i
    if last.word in WORDS["partners"]:
        while start and nodes[start - 1].head is first and nodes[start - 1].text.istitle():
            start -= 1
    elif not _forms_union(first, last):
        return
    inner = nodes[start : last.i + 1]
    _join_name(inner, first, "ORG")
    for child in [c for c in last.children if c.i > last.i]:
        _move(child, first)


def _forms_union(first: Node, last: Node) -> bool:
    """Whether the second of two names ends in a kind, and both have a verb in the singular."""
    named = first.pos == last.pos == "PROPN" and last.left_edge is not last
    if not named or LABEL_BY_NOUN.get(last.word) not in {"ORG", "FAC"} or last.tag == "NNPS":
        return False
    helpers = (c for c in first.head.children if c.dep in {"aux", "auxpass"})
    finite = next(helpers, first.head)
    single = first.dep in SUBJECTS and (finite.tag == "VBZ" or finite.word == "was")
    return single and all(c.dep == "det" for c in first.children if c.i < first.i)


_BELOW_ZERO = re.compile(r"[-\u2212]\d+")


def _join_minus(number: Node) -> None:
    """Make "-5" a number, and its unit the object of a preposition: "below -5 degrees"."""
    after, prep = number.tree.nodes[number.i + 1 : number.i + 2], number.tree[number.i - 1]
    unit = next((n for n in after if n.tag == "NNS"), None)
    if unit is None:
        return
    _attach([number], unit, "nummod")
    number.pos, number.tag, unit.left_edge = "NUM", "CD", number
    if prep.dep == "prep" and not prep.children and unit.dep == "dobj":
        _move(unit, prep)
        unit.dep, prep.right_edge = "pobj", unit.right_edge


def _unname_plural(noun: Node) -> None:
    """Make a common noun of a restricted plural that opens a sentence: "Records that we need"."""
    parts = group_kids(noun)
    restricted = "relcl" in parts and noun.tag == "NNPS" and not noun.entity
    done = any(c.tag == "VBN" and c.i == noun.i + 1 for c in parts.get("acl", ()))
    if noun.left_edge is noun and (restricted or (done and noun.word[-1] == "s")):
        noun.pos, noun.tag = "NOUN", "NNS"


def _unname(noun: Node) -> None:
    """Clear the type of a common noun that the recogniser took for a name.

    It has an article, "a lien", or a capital only where a sentence opens, "Chlorine was added".
    """
    if noun.text.islower():
        is_common = any(c.word in {"a", "an"} for c in noun.children if c.i < noun.i)
    else:
        opens = noun.tree.sentences[noun.sentence][0] == noun.i
        is_common = opens and noun.entity in {*PLACES, "PERSON"} and is_known(noun.word, lang="en")
    if noun.iob == "B" and is_common:
        noun.entity = noun.iob = ""


def _unseat_label(label: Node) -> None:
    """Detach words before a colon as subject: "Background: boards sell shares".

    What the parser took for their apposition is the subject: "Known issue: the alarm rings".
    """
    named = next((c for c in label.children if c.dep == "appos" and c.i > label.i + 1), None)
    if named is not None:
        for child in [c for c in label.children if c.i > label.i and c.text != ":"]:
            _move(child, label.head if child is named else named)
        named.dep = label.dep
        _refit(label)
        _refit(named)
    label.dep = "dep"


def _attach(words: Iterable[Node], head: Node, dep: str) -> None:
    """Attach words without dependents to another word."""
    for word in words:
        _move(word, head)
        word.dep, word.left_edge, word.right_edge = dep, word, word


def _join_bound(first: Node) -> None:
    """Make "up to" and "at most" part of the number after them: "contains at most 200 items"."""
    number = first.tree[first.i + 2]
    noun = number.head if number.dep == "nummod" else number
    if first.tree[first.i + 1].word not in _BOUNDS[first.word] or first.dep not in {"prep", "prt"}:
        return
    verb = first.head
    if noun.dep == "pobj" and noun.head is first:
        _move(noun, verb)
        taken = noun.entity in {"DATE", "TIME"} or any(c.dep == "dobj" for c in verb.children)
        noun.dep = "npadvmod" if taken else "dobj"
    _attach(first.tree.nodes[first.i : number.i], number, "quantmod")
    number.left_edge = noun.left_edge = first


def _join_limit(noun: Node, amount: Node) -> None:
    """Make a limit part of the noun before it: "pays travel costs up to £80"."""
    if noun.pos == "NOUN" and amount.pos == "NUM" and amount.dep in {"dobj", "appos", "npadvmod"}:
        _move(amount, noun)
        amount.dep, amount.left_edge = "nmod", noun.tree[noun.i + 1]
        _widen(noun, amount)


def _join_bound_of(adjective: Node, measure: Node) -> None:
    """Attach a measure to the adjective that it bounds: "claims older than 90 days"."""
    if measure.dep == "conj" and measure.head is adjective.head:
        _move(measure, adjective)
        measure.dep, adjective.right_edge = "npadvmod", measure.right_edge
        _widen(adjective.head, adjective)


def _join_path(path: Node) -> None:
    """Make a path part of the name of its method: "GET /labels"."""
    method = path.tree[path.i - 1]
    if method.text.isupper() and method.head not in {path, method}:
        _end_name(method, path, [])


def _seat_office(verb: Node) -> None:
    """Make "managing director" an office: somebody "has been managing director since 2019".

    After a verb the director would have an article.
    """
    be, office = verb.tree.nodes[verb.i - 1 : verb.i + 2 : 2]
    top = office if verb.head is office else verb
    joined = office.head is verb or top is office
    bare = all(c is verb or c.i > office.i for c in office.children)
    if not (joined and bare and is_office(office.word)) or (office.tag, be.head) != ("NN", verb):
        return
    moved = [c for c in verb.children if c is not be and c is not office]
    be.head, be.dep = be if top.head is top else top.head, top.dep
    if be.head is not be:
        be.head.children[be.head.children.index(top)] = be
    be.left_edge, be.right_edge = top.left_edge, top.right_edge
    for child in (*moved, office):
        child.head = be
    be.children = sorted({*be.children, *moved, office}, key=lambda n: n.i)
    office.children = sorted({*office.children, verb}, key=lambda n: n.i)
    office.dep, office.left_edge = "attr", verb
    verb.head, verb.dep, verb.pos, verb.tag = office, "compound", "NOUN", "NN"
    verb.children, verb.left_edge, verb.right_edge = [], verb, verb


def _join_particle(adverb: Node) -> None:
    """Make "down" in "stepped down as chair" part of its verb, except before "from"."""
    after = adverb.tree.nodes[adverb.i + 1 : adverb.i + 2]
    behind = adverb.i == adverb.head.i + 1 and adverb.head.pos == "VERB"
    if behind and not any(n.word in _WAYS for n in after):
        adverb.dep = "prt"


def _join_stranded(prep: Node) -> None:
    """Make a preposition without an object part of a passive verb: "faults are dealt with"."""
    passive = any(c.dep == "auxpass" for c in prep.head.children)
    if passive and prep.i == prep.head.i + 1:
        prep.dep = "prt"


def _lower_alternative(joint: Node) -> None:
    """Detach what "rather than" or "instead of" replaces: "at noon rather than at night"."""
    nodes = joint.tree.nodes
    end = joint.tree.sentences[joint.sentence][1]
    verb = joint.head if joint.head.pos in {"VERB", "AUX"} else joint.head.head
    above = (joint, joint.head, verb)
    after = (n for n in nodes[joint.i + 1 : end] if n.dep != "advmod")
    other = next((n for n in after if n.head in above), None)
    if other is not None and (other.dep in _REPLACED or other.pos == "VERB"):
        _move(other, joint)
        other.dep = joint.dep = "dep"


def _opens_clause(word: Node) -> bool:
    """Whether a preposition has no object: a conjunction, or before "1948 ice came by rail"."""
    after = word.tree.nodes[word.i + 1 : word.i + 2]
    bare = word.dep == "prep" and not word.children and any(map(_is_year, after))
    return word.dep == "mark" or bare


def _lower_mark(mark: Node) -> None:
    """Make a preposition of what the parser reads as the conjunction of the only clause.

    "Until 2021 transport was free" has a year, "after three failures call Ann" an imperative, and
    "a request after a delay creates another" two subjects.
    """
    verb, tree = mark.head, mark.tree
    subjects = [c for c in verb.children if c.dep in _SUBJECTS]
    noun = next((c for c in subjects if c.left_edge.i == mark.i + 1), None)
    if noun is None:
        return
    first = noun.left_edge
    if len(subjects) > 1 and subjects[0].i < mark.i:
        _move(mark, subjects[0])
        _widen(subjects[0], noun)
    elif _is_year(first) and first.head is noun and noun.i > first.i:
        noun.left_edge = tree[first.i + 1]
        noun = first
    elif verb.tag not in {"VB", "VBP"} or any(c.dep == "aux" for c in verb.children):
        return
    _move(noun, mark)
    mark.dep, noun.dep, mark.right_edge = "prep", "pobj", noun.right_edge


def _join_numeral(numeral: Node) -> None:
    """Make "I" in "Albert I of Germany", which the parser reads as a pronoun, part of the name."""
    name, verb = numeral.tree.nodes[numeral.i - 1], numeral.head
    if numeral.dep == "compound":
        numeral.pos, numeral.tag = "PROPN", "NNP"  # "Henry I Duke of Guise"
    elif _ends_name(name):
        beside = name.head is numeral or (numeral.dep in _SUBJECTS and name.head is verb)
        owns = any(c.word == "of" for c in numeral.children) or numeral.dep not in _SUBJECTS
        if owns or verb.tag == "VBZ" or (beside and verb.word == "was"):
            _end_name(name, numeral, [], stays=beside)  # but not "In Paris I was happy"


def _join_byname(article: Node) -> None:
    """Make "the Great" part of the name before it: "Tigranes the Great"."""
    nodes = article.tree.nodes
    name, byname = nodes[article.i - 1], nodes[min(article.i + 1, len(nodes) - 1)]
    if not _ends_name(name) or byname.head is byname or not byname.text.istitle():
        return
    beside = byname.dep == "appos"
    joined = byname.iob == article.iob == "I"
    after = nodes[byname.i + 1] if byname.i + 1 < len(nodes) else None
    if not (beside or joined) or name.dep == "compound":
        return
    if after is None or after.pos not in {"NOUN", "PROPN"}:
        _end_name(name, byname, [article])


def _ends_name(node: Node) -> bool:
    """Whether the word after a name, without punctuation between, may be part of the name."""
    named = node.pos == "PROPN" and node.text[:1].isupper() and node.entity not in {"DATE", "TIME"}
    return named and node.space and node.head is not node


def _end_name(name: Node, last: Node, between: Sequence[Node], *, stays: bool = False) -> None:
    """Make `last` the head of the name before it, at the name's position unless it `stays`."""
    if not stays:
        if last.head is not last:
            last.head.children.remove(last)
        above = name.head
        above.children[above.children.index(name)] = last
        last.head, last.dep = above, name.dep
        name.head = name
        for child in list(name.children):
            _move(child, last)
        _widen(above, last)
    for part in (name, *between):
        _move(part, last)
        part.dep = "compound"
    for part in (*between, last):
        part.pos, part.tag, part.lemma = "PROPN", "NNP", part.text
        part.entity, part.iob = name.entity, "I" if name.entity else "O"
    last.left_edge = min(name.left_edge, last.left_edge, key=lambda n: n.i)
    _close_entity(last.tree.nodes, last.i)


def _join_date(month: Node) -> None:
    """Join "31 May 1955" and "May 31, 1955" into a DATE, whatever the entity types of the parts."""
    nodes, first, last = month.tree.nodes, month.i, month.i
    has_day = has_year = False
    if first > 0 and _is_day(nodes[first - 1]):
        first, has_day = first - 1, True
    if not has_day and last + 1 < len(nodes) and _is_day(nodes[last + 1]):
        last, has_day = last + 1, True
    i = last + 2 if has_day and last + 1 < len(nodes) and nodes[last + 1].text == "," else last + 1
    if i < len(nodes) and _is_year(nodes[i]):
        last, has_year = i, True
    if not (has_day or has_year) or nodes[first].sentence != nodes[last].sentence:
        return
    weekday = nodes[first - 1] if first else month
    if weekday.word in WEEKDAYS and month.head is weekday and weekday.head is not weekday:
        _end_name(weekday, month, nodes[first : month.i])  # "Monday 6 October"
        first -= 1
    elif weekday.word in WEEKDAYS and nodes[first].head is weekday:  # "Monday 6 | October"
        _attach([month], weekday, "nmod")
        _widen(weekday, nodes[last])
        first -= 1
    first = _open_range(nodes, first, last)
    run, prep = nodes[first : last + 1], nodes[max(first - 1, 0)]
    _mark_entity(run, "DATE")
    _close_entity(nodes, last)
    apart = [node for node in run if node.head not in run]
    if len(apart) > 1 and prep.dep == "prep" and prep in {node.head for node in apart}:
        _move(month, prep)  # "as of 1 | May 2025"
        month.dep = "pobj"
        _attach((node for node in apart if node is not month), month, "nummod")
        month.left_edge = nodes[first]


def _open_range(nodes: list[Node], first: int, last: int) -> int:
    """The start of a range without a month of its own: "Monday 4 to Friday 8 August"."""
    start = first - 2
    if (
        start < 1
        or nodes[first - 1].word not in {*_TO, "and"}
        or nodes[first].sentence != nodes[start].sentence
    ):
        return first
    if not (_is_day(nodes[start]) or nodes[start].word in WEEKDAYS) or not nodes[start - 1].space:
        return first
    if _is_day(nodes[start]) and nodes[start - 1].word in WEEKDAYS:
        start -= 1
    lists = nodes[first - 1].word == "and" and nodes[start - 1].word != "between"
    if lists or _IS_MONTH.fullmatch(nodes[start - 1].word.title()):
        return first
    lead, run = nodes[start:first], nodes[first : last + 1]
    tops = [node for node in run if node.head not in run]
    ends = [node for node in lead if node.head not in lead and node.head not in run]
    if len(tops) == 1 and ends:
        _move(tops[0], ends[0].head)
        tops[0].dep = ends[0].dep if ends[0].dep != "prep" else "pobj"
        _attach(lead, tops[0], "nummod")
        tops[0].left_edge = lead[0]
    return start


def _is_date(node: Node) -> bool:
    """Whether the token is part of a date, by its digits ("4/5/2020") or by the recogniser."""
    numeral = node.text[0].isdigit() and not node.text.isdigit()
    return (
        node.entity == "DATE"
        or node.word in _DAYS
        or (numeral and isinstance(read_value(node.text), Date))
    )


def _part_date(start: Node) -> None:
    """Separate a name from the date before it: "On 4/5/2020 Orm Bank bought Tarn Mills".

    A name that includes a date has an article: "the 1990 World Cup".
    """
    nodes = start.tree.nodes
    first = start.i - 1
    if start.entity == nodes[first].entity == "DATE":
        dated = _IS_MONTH.fullmatch(nodes[first].text) and first and _is_day(nodes[first - 1])
        if dated and start.text.istitle():
            _clear_type(start)  # "On [17 January Eva Moe] came home"
        elif start.iob == "I":
            return
    while first and _is_date(nodes[first - 1]):
        first -= 1
    run, opening = nodes[first : start.i], start.tree.sentences[start.sentence][0]
    prep = nodes[first - 1] if first > opening else None
    name = start
    while name.head.i > name.i and name.dep in {"compound", "nmod", "amod", "poss"}:
        name = name.head
    glued = [node for node in run if node.head not in run and node.head is not prep]
    inside = all(start.i <= node.head.i <= name.i for node in glued)
    single = len(run) == 1 and run[0].word not in _DAYS and run[0].text.isdigit()
    if not glued or not inside or (prep.tag != "IN" if prep else single):
        return
    verb = name.head if prep is None else prep.head
    if name.dep == "pobj" and name.head is prep:
        if verb.i < name.i or verb.pos not in {"VERB", "AUX"} or group_kids(verb).keys() & SUBJECTS:
            return
        _move(name, verb)
        name.dep = "nsubjpass" if any(c.dep == "auxpass" for c in verb.children) else "nsubj"
    elif name.dep not in SUBJECTS:
        return
    date = next((node for node in run if node.pos == "PROPN"), run[-1])
    _move(date, prep or verb)
    date.dep = "npadvmod" if prep is None else "pobj"
    for node in glued:
        if node is not date:
            _move(node, date)
            node.dep = "nummod"
    date.left_edge, date.right_edge, name.left_edge = run[0], run[-1], start
    if prep is not None:
        prep.right_edge = run[-1]
    _mark_entity(run, "DATE")
    _close_entity(nodes, run[-1].i)


_STAMP = re.compile(
    rf"(?:[A-Z]\w+ )?(?:\d{{4}}-\d\d-\d\d|\d\d\.\d\d\.\d\d(?:\d\d)?"
    rf"|\d\d?/\d\d?(?:/\d{{2,4}})?|\d\d? {MONTH}(?: \d{{4}})?)"
    r"(?= (?!Day|Road|Street)[A-Z])"
)
"""The date before an entry of a log."""
_SHORT = len("08/09")


def _part_stamp(sentence: list[Node]) -> None:
    """Separate an entry of a log from its date: "08 May Controller froze at noon"."""
    start, text = sentence[0].idx, sentence[0].tree.text
    stamp = _STAMP.match(text, start, sentence[-1].end)
    root = next((node for node in sentence if node.dep == "ROOT"), sentence[0])
    run = [node for node in sentence if stamp is not None and node.end <= stamp.end()]
    if not run or stamp is None or root in run or root.pos not in {"VERB", "AUX"}:
        return
    if run[0].pos not in {"PROPN", "NUM"}:
        return  # "On 17 January Ann came"
    for node in run:
        for child in [c for c in node.children if c not in run]:
            _move(child, root)
    after = sentence[len(run)]
    _attach(run, root, "npadvmod" if len(stamp.group()) > _SHORT else "dep")
    by = run[0].text[:1].isupper()
    _attach(run[by:-1], run[-1], "nummod")
    if by:  # "Ingrid 06.02.26 All computers restarted"
        run[0].dep, run = "dep", run[1:]
    run[-1].left_edge = run[0]
    while after is not root and after.left_edge in run:
        after.left_edge, after = sentence[len(run)], after.head
    _mark_entity(run, "DATE")
    _close_entity(root.tree.nodes, run[-1].i)


def _is_day(node: Node) -> bool:
    digits = node.text.rstrip("stndrh")
    return digits.isdecimal() and len(digits) <= 2 and 1 <= int(digits) <= 31


def _is_year(node: Node) -> bool:
    return node.text.isdecimal() and len(node.text) in {3, 4}


def _attach_list(colon: Node) -> None:
    """Attach a list to the noun that counts it: "is the currency of 19 states: Cyprus, Malta"."""
    for node in colon.tree.nodes[colon.i + 1 : colon.i + 4]:
        values = [c for c in node.head.children if c.dep == "attr" and c.i < colon.i]
        if node.dep == "attr" and node.left_edge.i == colon.i + 1 and values:
            counts = is_counted(colon.tree[colon.i - 1])
            node.dep = "appos" if counts else "dep"  # "were part of it: Cyprus, Malta"
            if counts:
                _move(node, colon.tree[colon.i - 1])
            return


def _lift_preposition(prep: Node) -> None:
    """Attach a preposition to the verb, not to a name or a given thing: "sold Beta to Delta".

    Nor to a place: "died in Oslo of cholera".
    """
    noun = prep.head
    verb = noun.head if noun.dep == "dobj" else noun.head.head
    if prep.i < noun.i or prep.iob == "I" or verb.pos != "VERB":
        return
    lemma = verb.lemma.lower()
    bare = noun.dep == "pobj" and noun.left_edge is noun and noun.head.word in {"at", "in"}
    dated = prep.word in {"in", "on"} and any(c.entity == "DATE" for c in prep.children)
    margin = prep.word == "by" and any(map(is_counted, prep.children))
    apart = noun.entity == "DATE" and prep.word in {"at", "for", "with"}
    if noun.dep == "pobj" and (apart or (bare and noun.tag == "NN" and (dated or margin))):
        _move(prep, verb)  # "warned in writing in 2022", "on 4 May for repairs"
        _refit(noun)
        return
    passive = {c.dep for c in verb.children} & {"auxpass", "agent"} == {"auxpass"}
    placed = noun.dep == "pobj" and noun.head.word in {"in", "at"}
    if noun.pos == "PROPN" and placed and prep.word == "by" and passive:
        prep.dep = "agent"  # "was founded in Bruges by Ann Lee"
    elif noun.dep == "pobj" and (lemma, prep.word) != ("die", "of"):
        return
    between_names = any(c.pos == "PROPN" for c in prep.children)  # "wrote Journey to Italy"
    is_name = noun.pos == "PROPN" or (noun.dep == "dobj" and noun.text[:1].isupper())
    priced = prep.word == "for" and any(map(is_counted, prep.children))
    named = is_name and (prep.word in _VERBAL or priced) and not between_names
    given = noun.dep == "pobj" or (prep.word == "to" and lemma in VERBS["giving"])
    if not named and not given:
        return
    _move(prep, verb)
    _refit(noun)


def _lower_year(prep: Node) -> None:
    """Attach the year that a thing is for to it: "presented the accounts for 2024"."""
    noun = next((c for c in prep.head.children if c.dep == "dobj"), prep)
    years = [c for c in prep.children if _is_year(c)]
    if years and noun.right_edge.i == prep.i - 1:
        _move(prep, noun)
        noun.right_edge = prep.right_edge


def _lower_trait(prep: Node) -> None:
    """Attach "with" or "without" to persons before it: "was measured in 20 women with asthma"."""
    nodes, index = prep.tree.nodes, prep.i - 1
    if nodes[index].text == ")":
        opening = (i for i in range(index, prep.head.i, -1) if nodes[i].text == "(")
        index = next(opening, prep.i) - 1
    person = nodes[index]
    denied = any("neg" in {c.dep, *(g.dep for g in c.children)} for c in prep.head.children)
    if denied and prep.word == "without" and person.dep == "dobj":
        _move(prep, person)  # "no longer accepts a tube without a number"
        _widen(person, prep)
        return
    if not is_counted(person) and person.head.word not in {"in", "among", "for", "of"}:
        return  # "lends to strangers without a pledge"
    if person.dep == "pobj" and person.i > prep.head.i and is_person_noun(person.lemma.lower()):
        _move(prep, person)
        person.right_edge = prep.right_edge
        _widen(person.head, person)


def _lower_ratio(prep: Node) -> None:
    """Attach what goes with a number to it: "by 27 votes to 3", "one day in three"."""
    before, after = prep.tree[prep.i - 1], prep.children
    counted = is_counted(before) and len(after) == 1 and after[0].tag == "CD"
    counted = counted and (prep.word == "in" or before.head.word == "by")
    counted = counted and not after[0].children and after[0].entity not in {"DATE", "TIME", "MONEY"}
    counted = counted or (  # "eight weeks in any year"
        is_counted(before) and any(c.word in _EACH for noun in after for c in noun.children)
    )
    day = before.tag == "CD" and any(c.word in _PARTS_OF_DAY for c in after)
    if counted or day:
        _move(prep, before)
        _widen(before, prep)


def _lower_first_time(to: Node) -> None:
    """Attach the first of two times to its amount: "fell from 9 million in 2024 to 7 in 2025"."""
    preps = [c for c in to.head.children if c.dep == "prep"]
    start = next((c for c in preps if c.word == "from" and c.i < to.i), to)
    amounts = [c for c in start.children if c.pos == "NUM" or is_counted(c)]
    dated = [
        c
        for c in (*preps, *start.children)
        if c.dep == "prep" and c.i > start.i and any(g.entity == "DATE" for g in c.children)
    ]
    first = next((c for c in dated if c.i < to.i), None)
    if amounts and first is not None and any(c.i > to.i for c in dated):
        _move(first, amounts[0])
        _widen(amounts[0], first)


def _lift_relative(clause: Node) -> None:
    """Attach a clause with "who" to persons, one with "which" to a thing.

    "Patients with lung cancer who smoked", "a film by Ann Lee, which follows a ferry", "the mill in
    Brook, which was built by Ann Lee".
    """
    ancestor = clause.head
    asked = {c.word for c in clause.children} & {"who", "which"}
    placed = ancestor.head.word == "in" and ancestor.head.head.pos == "NOUN" and "which" in asked
    if placed and ancestor.pos == "PROPN" and clause.lemma in VERBS["of_buildings"]:
        _move(clause, ancestor.head.head)
        return
    personal = "who" in asked
    full = ancestor.entity != "PERSON" or ancestor.iob == "I"  # a river may pass for a person
    if not asked or _is_personal(ancestor) is personal or not (personal or full):
        return
    for _ in range(_MAX_RISE):
        ancestor = ancestor.head
        if ancestor.pos == "NOUN" and _is_personal(ancestor) is personal:
            _move(clause, ancestor)
            return
        if ancestor.dep not in ({"pobj", "prep", "conj"} if personal else _RISING):
            return


_RISING = frozenset({"acl", "agent", "conj", "pobj", "prep"})
"""Labels on the path from a person up to the thing that a clause with "which" is about."""


def _is_personal(noun: Node) -> bool:
    people = noun.word == "people" or is_person_noun(noun.lemma.lower())
    return people or noun.entity == "PERSON"


def _lift_standard(than: Node) -> None:
    """Attach a distant "than" to the verb: "better results in winter than in June".

    Right after the graded word it is unchanged: "more clients than Orm Bank".
    """
    path = _list_path(than.head)
    verb, nodes = path[-1], than.tree.nodes
    first = than.tree.sentences[than.sentence][0]
    graded = max((n.i for n in nodes[first : than.i] if n.tag in {"JJR", "RBR"}), default=than.i)
    inside = than.head.left_edge.i <= graded
    parted = any(n.dep == "prep" and n.word != "of" for n in nodes[graded : than.i])
    named = all(c.word not in {"that", "those"} for c in than.children)
    if verb.pos not in {"VERB", "AUX"} or (inside and named and not parted):
        return
    _lift(than, path)


def _share_passive(verb: Node) -> None:
    """Retag a past tense after a present passive as a participle: "is made and kept", "must be".

    With an object or a year it is a past tense: "is owned by Ann and opened in 1990".
    """
    deps = {c.dep for c in verb.children}
    present = any(c.dep == "auxpass" and c.tag in _UNDATED for c in verb.head.children)
    dated = any(_is_year(n) for c in verb.children for n in c.children)
    alone = deps.isdisjoint({*_SUBJECTS, "aux", "auxpass", "dobj"}) and not dated
    if verb.tag == "VBD" and present and alone:
        verb.tag = "VBN"


_UNDATED = frozenset({"VB", "VBP", "VBZ"})


def _join_frequency(adverb: Node) -> None:
    """Join "once a year" into a time that qualifies the verb."""
    nodes = adverb.tree.nodes[adverb.i : adverb.i + 3]
    if len(nodes) < 3 or nodes[1].word not in {"a", "an", "each", "every", "per"}:
        return
    noun = nodes[2]
    if noun.lemma not in WORDS["spans"] or noun.dep in _SUBJECTS or adverb.dep == "mark":
        return  # "once a request is approved", "twice a widow"
    verb = next((n.head for n in (noun, adverb) if n.head.pos == "VERB"), None)
    if noun.pos != "NOUN" or verb is None:
        return
    _move(noun, verb)
    noun.dep, noun.left_edge = "npadvmod", adverb
    _attach(nodes[:2], noun, "advmod")
    _mark_entity(nodes, "DATE")


def _join_recurrence(every: Node) -> None:
    """Make "every" part of the time after it, which is not the last one: "every Sunday"."""
    time = every.tree[every.i + 1]
    if time.entity not in {"DATE", "TIME"} and time.word not in _DAYS:
        return
    _mark_entity((every, time), time.entity or "DATE")


def _join_day(clock: Node, on: Node) -> None:
    """Make a day without a date part of the time before it: "by noon on Saturday"."""
    days = [c for c in on.children if c.entity == "DATE" and c.right_edge.i - on.i < _MAX_DAY]
    if clock.head.word in _TO and clock.head.head.entity == "TIME":
        clock = clock.head.head  # "from 8:00 to 18:30 on weekdays"
    if clock.entity == "TIME" and _is_above(on.head, clock) and len(days) == 1:
        nodes, last = clock.tree.nodes, days[0].right_edge
        day = nodes[on.i : last.i + 1]
        if not any(n.text.isdigit() or _IS_MONTH.fullmatch(n.text) or n.dep == "cc" for n in day):
            _move(on, clock)
            clock.right_edge = clock.head.right_edge = last
            _mark_entity(nodes[clock.left_edge.i : last.i + 1], "TIME")
            _close_entity(nodes, last.i)


_MAX_DAY = 6
"""Most tokens of "on the day of sale"."""


def _join_range(last: Node) -> None:
    """Make "or later" part of the number before it: "Python 3.10 or later", "a day or two"."""
    number, link = last.tree.nodes[last.i - 2 : last.i]
    ends = last.i + 1 == len(last.tree) or last.tree[last.i + 1].pos in {"PUNCT", "ADP", "CCONJ"}
    others = [c for c in last.children if c is not link]
    if (number.pos != "NUM" and not is_counted(number)) or others or not ends:
        return
    _attach((link, last), number, "advmod")
    _widen(number, last)


def _lift_period(prep: Node) -> None:
    """Attach a period to the verb: "was mayor of Lund from 1990 to 1998".

    Names and roles have no duration; an event has ("the war from 1914 to 1918").
    """
    noun = prep.head
    dated = any(c.entity == "DATE" and c.text[-1:].isdigit() for c in prep.children)
    path = [noun]
    while path[-1].dep in {"pobj", "prep", "dobj"} and path[-1].head.pos not in {"VERB", "AUX"}:
        path.append(path[-1].head)
    verb, top = path[-1].head, path[-1]
    is_name = noun.pos == "PROPN" and noun.entity not in {"EVENT", "DATE"}
    if not dated or prep.i < noun.i or verb.pos not in {"VERB", "AUX"} or verb.i > noun.i:
        return
    is_kind = find_kind_label(top.lemma.lower()) not in {None, "EVENT"}
    if not (is_kind and verb.lemma == "be" if top.dep == "attr" else is_name):
        return
    _move(prep, verb)
    for node in path:
        _refit(node)


def _seat_infinitive(verb: Node) -> None:
    """Join "raise" to "spark" in "has the potential to spark debate, raise awareness".

    A base form is coordinated with an infinitive, never with a participle or with "has".
    """
    first = verb.head
    if verb.tag not in {"VB", "VBP"} or first.tag not in {"VBZ", "VBD", "VBN", "VBP"}:
        return
    if verb.tag == first.tag or any(c.dep in {*_SUBJECTS, "aux", "expl"} for c in verb.children):
        return
    infinitives = [
        node
        for node in verb.tree.nodes[first.i + 1 : verb.left_edge.i]
        if node.tag == "VB" and any(c.tag == "TO" for c in node.children) and _is_above(first, node)
    ]
    if not infinitives:
        return
    verb.tag = "VB"
    _move(verb, infinitives[-1])
    _widen(infinitives[-1], verb)


def _seat_report(noun: Node) -> None:
    """Make "reports" a verb in "leads the team and reports to Ann Lee".

    Beside a bare plural it is a noun, unless a person follows: "writes blogs and reports to shops".
    """
    to, path = noun.tree[noun.i + 1], _list_path(noun)
    verb = path[-1]
    bare = noun.left_edge is noun and all(c is to for c in noun.children)
    if (noun.tag, verb.tag, to.word) != ("NNS", "VBZ", "to") or not bare:
        return
    plural = noun.head.tag == "NNS" and noun.head.dep == "dobj"
    if noun.head.dep == "conj" or (plural and all(c.entity != "PERSON" for c in to.children)):
        return
    reporting = (c for c in verb.children if c.dep in SUBJECTS)
    if not any(c.entity == "PERSON" or is_person_noun(c.lemma.lower()) for c in reporting):
        return
    if any(c.dep == "neg" or c.word == "longer" for c in verb.children):
        return
    _move(noun, verb)
    _move(to, noun)
    noun.pos, noun.tag, noun.lemma, noun.right_edge = "VERB", "VBZ", "report", to.right_edge
    for node in path[1:-1]:
        for conjunction in [c for c in node.children if c.dep == "cc" and c.i == noun.i - 1]:
            _move(conjunction, verb)
        _refit(node)


def _widen(node: Node, last: Node) -> None:
    """Extend the right edge of a node and its ancestors to that of its new dependent."""
    for _ in range(_MAX_BRACKET):
        node.right_edge = max(node.right_edge, last.right_edge, key=lambda n: n.i)
        if node.head is node:
            break
        node = node.head


def _part_bracket(bracket: Node) -> None:
    """Detach from the words before a bracket what it contrasts, and a name that it calls out.

    "from the first day (in Orland from the third)", "a new driver (Ann!)", "a page (Ann, by May)".
    """
    nodes = bracket.tree.nodes[bracket.i + 1 : bracket.i + _MAX_BRACKET]
    end = next((i for i, node in enumerate(nodes) if node.text in {")", "]"}), 0)
    inside = nodes[:end]
    led = [node for node in inside if node.dep == "prep" and node.head.i < bracket.i]
    if len(led) > 1 and led[0] is inside[0]:
        for node in led:
            node.dep = "dep"
    called = inside[-1:] and inside[-1].text == "!"
    called = called or [node.dep for node in inside[1:3]] == ["punct", "prep"]
    if called and inside[0].dep == "appos" and inside[0].head.i < bracket.i:
        inside[0].dep = "dep"


def _seat_change(bracket: Node) -> None:
    """Attach what a bracket tells of an amount to it: "a fine of $500 (raised from $250)"."""
    amount, *after = bracket.tree.nodes[max(bracket.i - 1, 0) : bracket.i + 2]
    if amount.pos == "NUM" and after[-1].tag == "VBN" and after[-1].dep == "advcl":
        noun = amount.head.head if amount.head.word == "of" else amount
        _move(after[-1], noun)
        after[-1].dep = "acl"


def _lift_subject(bracket: Node) -> None:
    """Give a clause whose subject is inside "Name (...)" the name before the bracket."""
    tree, nodes = bracket.tree, bracket.tree.nodes
    _part_bracket(bracket)
    if bracket.i == 0 or nodes[bracket.i - 1].pos not in {"PROPN", "NOUN"}:
        _seat_change(bracket)
        return
    closing = _OPENING[bracket.text]
    limit = min(bracket.i + _MAX_BRACKET, tree.sentences[bracket.sentence][1])
    end = next((i for i in range(bracket.i + 1, limit) if nodes[i].text == closing), None)
    if end is None:
        return
    inside = [n for n in nodes[bracket.i + 1 : end] if n.dep in _SUBJECTS and n.head.i > end]
    if len(inside) != 1:
        return
    wrong, verb = inside[0], inside[0].head
    name = nodes[bracket.i - 1]
    if _is_above(name, verb):
        return
    _move(name, verb)
    name.dep = "nsubjpass" if wrong.dep.endswith("pass") else "nsubj"
    wrong.dep = "appos"
    _move(wrong, name)
    name.right_edge = nodes[end]
    if name.left_edge.i < verb.left_edge.i:
        verb.left_edge = name.left_edge


def _retype_names(tree: Tree) -> None:
    """Give each name the type of the kind that the text states: "Tor Falls is a waterfall".

    Its predicates and possessions count too: who died is a person, what was acquired a firm.
    """
    votes: dict[str, Counter[str]] = {}
    stated = [(name, label) for name, noun in _list_kinds(tree) if (label := _find_label(noun))]
    for name, label in (*stated, *_list_deeds(tree), *_list_owners(tree)):
        if name.text[:1].isupper():
            if name.pos == "NOUN":
                name.pos, name.tag = "PROPN", "NNP"
            first, last = _find_name(name)
            text = " ".join(n.text for n in tree.nodes[first : last + 1])
            votes.setdefault(text, Counter())[label] += 1
    ends = {text.rsplit(" ", 1)[-1] for text in votes}
    for node in tree.nodes:
        if node.pos != "PROPN" or not (node.text in ends or node.entity not in PLACES):
            continue
        first, last = _find_name(node)
        words = [n.text for n in tree.nodes[first : last + 1]]
        by_words = _read_label(node, words)
        counts = by_words if by_words == {"ORG": 1} else votes.get(" ".join(words)) or by_words
        if counts and last == node.i:
            _mark_entity(tree.nodes[first : last + 1], _choose_label(node.entity, counts))


def _read_label(node: Node, words: Sequence[str]) -> Counter[str] | None:
    """The type by a name's words, where the recogniser has an organisation, a person or nothing."""
    if len(words) < 2 or node.entity not in {"", "PERSON", "ORG"}:
        return None
    if words[-1].lower().rstrip(".") in FIRM_ENDINGS:
        return Counter(["ORG"])
    return Counter(["LOC"]) if words[0].lower().rstrip(".") in PLACE_OPENINGS else None


def _find_label(noun: Node) -> str | None:
    """Return the entity type of a kind noun; a radio station is no building."""
    label = find_kind_label(noun.lemma if noun.tag == "NNS" else noun.word)
    if noun.word == "place" and any(c.word.endswith("designated") for c in noun.children):
        return "GPE"  # "a census-designated place"
    if label == "FAC" and any(c.word in _MEDIA for c in noun.children if c.dep == "compound"):
        return "ORG"
    return label


def _choose_label(label: str, votes: Counter[str]) -> str:
    """Return the most frequent type, or the recogniser's if it is among the types."""
    if label in votes or (label in PLACES and not votes.keys().isdisjoint(PLACES)):
        return label
    best = max(votes.values())
    return min(name for name, count in votes.items() if count == best)


def _find_name(node: Node) -> tuple[int, int]:
    """First and last token of the consecutive name words around `node`."""
    nodes = node.tree.nodes
    first = last = node.i
    while first > 0 and _continues(nodes[first - 1], nodes[first]):
        first -= 1
    while last + 1 < len(nodes) and _continues(nodes[last], nodes[last + 1]):
        last += 1
    return first, last


def _continues(left: Node, right: Node) -> bool:
    """Whether two neighbours belong to one name."""
    if right.iob == "I" and right.entity == left.entity and right.entity and not _is_date(left):
        return right.text not in {",", "(", ";"} and left.text not in {",", "(", ";"}
    if left.pos != "PROPN" or right.pos != "PROPN":
        return False
    if left.entity and right.entity:
        return False
    return left.head is right or right.head is left or left.head is right.head


def _list_kinds(tree: Tree) -> Iterator[tuple[Node, Node]]:
    """Pairs of a name and a common noun that the text states as its kind."""
    for node in tree.nodes:
        if node.dep == "attr" and node.head.lemma == "be":
            subject = next((c for c in node.head.children if c.dep == "nsubj"), None)
            if subject is not None and (subject.pos == "PROPN" or _is_lone_name(subject, node)):
                yield from ((subject, noun) for noun in _list_nouns(node))
            elif node.pos == "PROPN" and subject is not None and subject.word in PERSON_NOUNS:
                yield node, subject  # "the managing director is Ann Lee"
        elif node.dep == "appos":
            if node.head.pos == "PROPN" and node.pos == "NOUN" and node.left_edge.tag == "DT":
                # In "born in Salem, the son of ..." the parser attaches the son to the place.
                if node.head.entity in PLACES and find_kind_label(node.word) == "PERSON":
                    continue
                if node.head.dep in {"pobj", "conj", "appos"}:
                    continue  # the noun may belong to what stands further up
                yield from ((node.head, noun) for noun in _list_nouns(node))
            elif node.head.pos == "NOUN" and node.pos == "PROPN" and node.i - node.head.i < 4:
                yield node, node.head
        elif (
            node.entity == "PERSON"
            and node.word in LABEL_BY_NOUN
            and any(c.word == "the" for c in node.children)
        ):
            yield node, node  # "the Harlow Mill"
        elif (
            node.dep == "pobj"
            and node.pos == "PROPN"
            and node.head.word == "of"
            and LABEL_BY_NOUN.get(node.head.head.word) == "GPE"
            and node.head.head.pos == "NOUN"
            and any(c.word == "the" for c in node.head.head.children)
        ):
            yield node, node.head.head


def _is_lone_name(subject: Node, noun: Node) -> bool:
    """Whether a capitalised word that opens a sentence begins a name: "Selb is a town".

    A word without entity type only where it is a place.
    """
    bare = subject.tag == "NN" and subject.text.istitle() and not subject.children
    return bare and (bool(subject.entity) or find_kind_label(noun.word) in PLACES)


_FULLY_NAMED = frozenset({"ORG", "WORK_OF_ART"})
"""Types of things whose names the recogniser confuses with full names of persons."""


def _list_deeds(tree: Tree) -> Iterator[tuple[Node, str]]:
    """Pairs of a name and the type of things with its predicates or possessions in the text.

    What reports something and is never the object of "in" or "to" is no place.
    """
    placed = {n.text for n in tree.nodes if n.dep == "pobj" and n.head.word != "by"}
    for name in tree.nodes:
        if name.pos == "PROPN" and name.head.dep == "agent" and name.head.head.lemma == "write":
            yield name, "PERSON"  # "was written by Ann Lee"
        if name.pos != "PROPN" or name.dep not in SUBJECTS or name.head.pos not in {"VERB", "AUX"}:
            continue
        full = name.entity == "PERSON" and name.iob == "I"
        verb, lemma = name.head, name.head.lemma.lower()
        if (
            name.entity == "GPE"
            and lemma in REPORTING
            and not (name.children or name.text in placed)
        ):
            yield name, "PERSON"
        if any(c.dep in {"det", "cc", "conj"} for c in name.children):
            continue  # "the Titanic died"; of two names each may be anything
        words = {lemma, *(f"{lemma}_{c.word}" for c in verb.children if c.dep == "prep")}
        if name.dep == "nsubjpass":
            words = {f"be_{lemma}"} if lemma != "found" or name.entity not in PLACES else set()
        if lemma == "have":
            words = {f"have_{c.lemma.lower()}" for c in verb.children if c.dep == "dobj"}
        for label, deeds in _DEEDS.items():
            # A full name recognised as a person's may be that of a firm, hardly of a town.
            if not words.isdisjoint(deeds) and (label in _FULLY_NAMED or not full):
                yield name, label


def _list_owners(tree: Tree) -> Iterator[tuple[Node, str]]:
    """Pairs of a name and the type of things with such an office or with births.

    "The mayor of Holtwick", "born in Castle Ambry".
    """
    for name in tree.nodes:
        made = name.dep == "dobj" and name.head.lemma == "found" and name.head.word == "founded"
        if name.pos == "PROPN" and made and name.entity not in {"GPE", "LOC"}:
            yield name, "ORG"
        if name.pos != "PROPN" or name.dep != "pobj" or name.entity in PLACES:
            continue
        above, prep = name.head.head, name.head.word
        labels = ATTRIBUTES.get(above.word, frozenset()) if prep == "of" else frozenset()
        if len(labels) == 1 and find_kind_label(above.word) == "PERSON":
            yield name, next(iter(labels))
        elif above.lemma.lower() in _SETTLING.get(prep, ()) and name.entity in {"", "PERSON"}:
            yield name, "GPE"


def _list_nouns(noun: Node) -> Iterator[Node]:
    """The kind nouns coordinated under an attribute; "one of the towns" gives towns."""
    if noun.word in WORDS["groups"]:
        deeper = [g for c in noun.children if c.word == "of" for g in c.children if g.dep == "pobj"]
        if noun.word == "one" and deeper and deeper[0].pos == "NOUN":
            yield deeper[0]
        return
    if noun.pos == "NOUN":
        yield noun
        yield from (c for c in noun.children if c.dep == "conj" and c.pos == "NOUN")
