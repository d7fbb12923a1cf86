"""Facts inside noun phrases: appositions, possessives, lifespans in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from kpyramid.documents.sentences import Span
from kpyramid.documents.values import DAY, MONTH
from kpyramid.documents.words import ARTICLES, lemmatise
from kpyramid.extraction.facts.candidates import (
    DIRECTIONS,
    PLURAL,
    WORDS,
    Candidate,
    Findings,
    word_noun,
)
from kpyramid.extraction.facts.copulas import list_kind_relations, list_noun_preps
from kpyramid.extraction.facts.coreference import find_long_form
from kpyramid.extraction.syntax.kinds import LABEL_BY_NOUN, find_kind_label
from kpyramid.extraction.syntax.predicates import find_noun_clause, is_past_clause
from kpyramid.extraction.syntax.stance import is_past, read_aside
from kpyramid.extraction.syntax.tree import (
    LITERALS,
    PLACES,
    QUOTATION,
    Node,
    Phrase,
    Tree,
    build_phrase,
    find_entity,
    find_kind,
    find_office_end,
    find_phrase,
    find_title_end,
    forms_term,
    is_named_place,
    list_conjuncts,
    list_containers,
)

# Births, deaths and other names in a bracket after a name: "(born 4 May 1902 in Oslo)".

_MONTH = rf"{MONTH}\.?"
_YEAR = r"\d{3,4}(?:\s*(?:BCE?|CE|AD)\b)?"
_DATE = re.compile(
    rf"(?:(?:c\.|ca\.|circa)\s*)?"
    rf"(?:{DAY}\s+{_MONTH},?\s+{_YEAR}|{_MONTH}\s+{DAY},?\s+{_YEAR}|{_MONTH}\s+{_YEAR}"
    rf"|(?<![\d,.]){_YEAR}(?![\d%]))"
)
_YEARS = re.compile(r"\b[12]\d{3}\b")
_WORD = r"[^\W\d_][\w.'\u2019-]*"
_PLACE = re.compile(
    rf"(?:(?:in|at|near)\s+|,\s*(?:in\s+)?)?"
    rf"((?:[Tt]he\s+)?(?=[^\W\d_a-z]){_WORD}"
    rf"(?:\s+(?:of|de|la|le|upon|am|der|del|el|al|the|(?=[^\W\d_a-z]){_WORD}))*)"
)
_BORN = re.compile(r"\b(?:born|b\.)(?=\W)", re.IGNORECASE)
_DIED = re.compile(r"\b(?:died|d\.)(?=\W)", re.IGNORECASE)
_DASH = re.compile(r"\s+-{1,2}\s+|\s*[\u2013\u2014]\s*|(?<=\d)-(?=\d)")
_MAX_TOKENS = 60

_TITLE = r"[\"\u201c\u2018]?((?:the\s+)?(?=[^\W\d_a-z])[^,;:()\"\u201d]{2,60}?)[\"\u201d\u2019]?"
_ALIAS = re.compile(
    rf"(?:(?P<known>\b(?:known|called|spelled|nicknamed|titled|named|aka|a\.k\.a\.)(?:\s+as)?)"
    rf"|(?P<born>\bn[ée]e)|(?P<language>(?:^|[;,])\s*[A-Z][a-z]+(?:an|ish|ese|ch|ic|se|h|k|i):))"
    rf"\s*{_TITLE}\s*(?=[,;:()]|$)",
)

Event = tuple[str, Phrase]
_Stated = tuple[str, int, int, str]
"""A relation, the start and end of its tail in the text, and the tail's type."""


def list_life_events(name: Node, is_person: bool) -> Iterator[Event]:
    """Relations with a date, a place or another name, from the bracket that follows a name.

    Without the word "born" its dates count only after a person's name.
    """
    tree, opening = name.tree, name.i + 1
    # "(;" is a single token, since it may be an emoticon.
    if opening >= len(tree) or not tree[opening].text.startswith("("):
        return
    limit = min(opening + _MAX_TOKENS, len(tree))
    closing = next((i for i in range(opening + 1, limit) if tree[i].text.endswith(")")), None)
    if closing is None:
        return
    start = tree[opening].idx + 1
    inside = tree.text[start : tree[closing].idx]
    for alias in _ALIAS.finditer(inside):
        relation = "was born as" if alias["born"] else "is also known as"
        first, last = alias.span(4)
        yield relation, _cut(tree, opening, start + first, start + last, "MISC")
    if not any(c.isdigit() for c in inside):
        return
    for part in inside.split(";"):
        end = start + len(part)
        for relation, first, last, label in _read_part(tree.text, start, end, is_person):
            yield relation, _cut(tree, opening, first, last, label)
        start = end + 1


def _read_part(text: str, start: int, end: int, is_person: bool) -> Iterator[_Stated]:
    born, died = _BORN.search(text, start, end), _DIED.search(text, start, end)
    dates = list(_DATE.finditer(text, start, end))
    if not dates or (born is None and not is_person):
        return
    dash = next((d for d in _DASH.finditer(text, dates[0].end(), end)), None)
    if died is not None:
        middle, after = died.start(), died.end()
    elif dash is not None and len(dates) > 1:
        middle, after = dash.start(), dash.end()
    elif born is not None:
        middle = after = end
    else:
        return  # a single date is ambiguous
    begin = born.end() if born is not None and born.start() < middle else start
    yield from _read_side(text, begin, middle, "was born", born is not None)
    yield from _read_side(text, after, end, "died", True)


def _read_side(text: str, begin: int, end: int, verb: str, named: bool) -> Iterator[_Stated]:
    """Yield date and places of one side; a name right after "born" is no place."""
    dates = list(_DATE.finditer(text, begin, end))
    if dates:
        words = len(dates[0].group().split())
        yield f"{verb} {'on' if words > 2 else 'in'}", *dates[0].span(), "DATE"
    middle = dates[0].start() if dates else end
    if named and (verb == "died" or re.match(r"\s+(?:in|at|near)\b", text[begin:middle])):
        yield from _list_places(text, begin, middle, verb)
    if dates:  # "1838 or 1839 in Dresden": the place follows the last of them.
        yield from _list_places(text, dates[-1].end(), end, verb)


def _list_places(text: str, begin: int, end: int, verb: str) -> Iterator[_Stated]:
    while begin < end and text[begin] == " ":
        begin += 1
    while place := _PLACE.match(text, begin, end):
        yield f"{verb} in", *place.span(1), "GPE"
        begin = place.end()


def _cut(tree: Tree, opening: int, start: int, end: int, label: str) -> Phrase:
    """Return the characters `start`..`end` of the bracket as a phrase."""
    first = opening
    while first + 1 < len(tree) and tree[first].end <= start:
        first += 1
    last = first
    while last + 1 < len(tree) and tree[last + 1].idx < end:
        last += 1
    text = " ".join(tree.text[start:end].split())
    return Phrase(text, Span(start, end), last, first, last, label)


# Appositions, titles, possessives and places.

_SHORT_FORM = re.compile(r"[a-z]{0,3}[A-Z][A-Za-z0-9/&.-]*[A-Z0-9]s?|[A-Z]{2,}")
_ITEMS = frozenset({"CCONJ", "NOUN", "ADJ"})
"""Tags of words that begin another item of a list after a comma."""
_DASHES = frozenset({"-", "--", "\u2013", "\u2014"})
_LATIN = "\u024f"
"""The last letter of Latin script."""
_ERA = re.compile(r"(BCE?|CE|AD)\.?")
_SEATS = frozenset("capital metropolis district territory colony settlement".split())
"""Nouns before "of" that name a part of the place, not the place: "the capital of Norway"."""


def find_nominal_facts(findings: Findings) -> None:
    """Add the candidates stated inside noun phrases, in text order."""
    tree = findings.tree
    roots = {n.sentence: n.pos for n in tree.nodes if n.head is n}
    for token in tree.nodes:
        if token.pos not in {"NOUN", "PROPN"} or roots.get(token.sentence) == "ADP":
            continue  # "For a chat ring Ann Lee", which the parser reads as a phrase
        if token.dep == "appos":
            _add_apposition(token.head, token, findings)
        _add_owner(token, findings)
        _add_place(token, findings)
        if token.tag == "NNS":
            _add_examples(token, findings)
            _add_members(token, findings)
        if token.pos == "PROPN":
            _add_title(token, findings)
            _add_containers(token, findings)
            _add_location(token, findings)
            _add_life_events(token, findings)
            _add_named_kind(token, findings)


def _add(
    findings: Findings,
    head: Phrase | None,
    relation: str,
    tail: Phrase | None,
    construction: str = "noun",
) -> None:
    if head is None or tail is None or head.text == tail.text:
        return
    if _ERA.fullmatch(head.text) or _ERA.fullmatch(tail.text):
        return
    if min(len(head.text), len(tail.text)) < 2:
        return  # a letter of a transcription, the "s" of "award(s)"
    candidate = Candidate(None, head, relation, tail, indirect=True, construction=construction)
    findings.candidates.append(candidate)


def _add_apposition(noun: Node, appositive: Node, findings: Findings) -> None:
    """Add "X is a Y" for "X, a Y" and "Y X", and the relation a noun like "author of" carries."""
    if _add_abbreviation(noun, appositive, findings):
        return
    if noun.pos == "PROPN" and appositive.pos == "PROPN":
        if _is_title(appositive):
            _add_kind(noun, appositive, noun, findings)
        else:
            _add_container(noun, appositive, findings)
        return
    name, kind = (noun, appositive) if noun.pos == "PROPN" else (appositive, noun)
    if name.pos != "PROPN" or kind.pos != "NOUN" or name.entity in LITERALS:
        return
    if min(kind.text) > _LATIN:
        return  # a name in another script: "Baptism (Крещение)"
    capital = kind.text[1:] != kind.text[1:].lower() and "-" not in kind.text
    determined = any(c.dep in {"det", "poss"} for c in kind.children)
    if capital and not determined:
        findings.drop("distant_apposition", noun.i, appositive.i)
        return  # a name that the tagger takes for a noun: "the Orm 500 (ORM)", "Orm, OrmKit, Tarn"
    if kind.entity in LITERALS or kind.tag == "NNS" or (kind is noun and is_named_place(kind)):
        return
    mark = findings.tree[appositive.left_edge.i - 1].text
    labels = mark == ":" and kind is noun and not determined  # "Author: Ann Lee"
    if labels or mark == ";" or (mark in _DASHES and _explains(noun, appositive)):
        return  # another item of the sentence
    # "Markers of growth (Ki67)", "after resection (arm A)": it may refer to more than the noun.
    aside = kind is noun and not determined and findings.tree[name.left_edge.i - 1].text == "("
    edge = appositive.left_edge
    bracketed = "(" in {findings.tree[edge.i - 1].text, edge.text}
    classified = determined or find_kind_label(kind.word)
    complete = kind is appositive and mark == "," and any(c.dep == "prep" for c in kind.children)
    if not (classified or complete):  # "Mozilla, maker of Firefox"
        findings.drop("distant_apposition", noun.i, appositive.i)
        return  # "Live demo: X", "for MS, antistreptolysin O and", "carcinoma, grade IV"
    if bracketed and name is noun and _completes_noun(noun):  # "36 boys without X (arm B)"
        aside = not determined
    several = kind is noun and name.entity in PLACES and any(c.dep == "conj" for c in name.children)
    nodes = findings.tree.nodes[edge.i : appositive.right_edge.i + 1]
    graded = any(c.tag == "JJR" for c in kind.children)  # "a greater damage (total SDI)"
    ranged = any("-" in n.text[1:] and n.text[:1].isdigit() for n in nodes)  # "(IQR 4-11)"
    within = (c for c in kind.children if c.dep == "compound")  # "endemic Sorbus minima (Rosaceae)"
    named = kind is noun and any(c.text.istitle() for c in within)
    aside = aside or (bracketed and (graded or ranged or named))
    before = find_phrase(noun)
    gap = findings.tree.nodes[max(before.last, noun.i) + 1 : edge.i] if before else ()
    parted = before is None or sum(n.text not in QUOTATION for n in gap) > 1
    # Where the two are not adjacent, the parser attached the name too far up.
    parted = parted and not _ends_bracket(findings.tree[edge.i - 1], noun.i)
    # "plugins for A, B, and C, a server for D, and a client for E"
    joints = (c.i for c in appositive.children if c.dep == "cc" and noun.dep == "conj")
    item = any(findings.tree[i - 1].text == "," for i in joints)
    if aside or several or parted or item or _is_item(appositive) or forms_term(kind, name):
        findings.drop("distant_apposition", noun.i, appositive.i)
        return
    if name.dep == "pobj" and name.head.word == "of" and name.head.head.pos == "PROPN":
        name = name.head.head
    _add_kind(name, kind, noun, findings)


def _completes_noun(name: Node) -> bool:
    """Whether a name follows a preposition of a common noun, to which a bracket may refer."""
    node = name
    while node.dep in {"pobj", "prep", "conj"} and node.head.pos in {"ADP", "SCONJ"}:
        node = node.head
    return node is not name and node.head.pos == "NOUN"


def _add_kind(name: Node, kind: Node, first: Node, findings: Findings) -> None:
    """Add the facts of a noun beside a name: its kind, its owner and its relations."""
    label = find_kind_label(kind.word)
    some = {c.word for c in kind.children} & {"some", "certain"}  # "Rich, some discussion"
    if some or (name.entity == "PERSON" and label not in {"PERSON", "ORG", None}):
        findings.drop("distant_apposition", min(name.i, kind.i), max(name.i, kind.i))
        return
    aside = read_aside(kind)
    if aside.negated or aside.mood is not None:
        findings.drop("negated" if aside.negated else "not_asserted", kind.left_edge.i, kind.i)
        return
    head = find_phrase(name)
    if first is name and name.entity in PLACES and label == "PERSON":
        head = _find_who(name, findings)
    passing = label == "PERSON" and kind.word not in WORDS["relatives"]
    be = "was" if is_past(kind) or (passing and _is_dated(name, findings)) else "is"
    owner = findings.find_owner(kind)
    words, _tokens = word_noun(kind)
    _add(findings, owner, f"has {words}", head, "relation")
    related = owner is not None
    for phrase, rest, _prep_tokens in list_kind_relations(kind, findings):
        if head is not None and phrase.root != head.root:
            _add(findings, head, f"{be} {rest}", phrase, "relation")
            related = related or rest.endswith(" of")
    # "his wife, Ann Lee" makes her his wife, a fact that is already added.
    if kind.pos != "NOUN" or kind.word in DIRECTIONS:
        return
    owned = None in {label, owner} and any(c.dep == "poss" for c in kind.children)
    worded = kind.lemma.lower() in WORDS["wordings"]  # "the term X" says what it is in words
    if not (owned or worded or (related and kind.word in WORDS["relatives"])):
        _add(findings, head, f"{be} a", find_kind(kind), "apposition")


def _is_dated(name: Node, findings: Findings) -> bool:
    """Whether the clause about a person is in a past year: the person's kind may have changed."""
    frame = findings.find_frame(name)
    if frame is None or not is_past_clause(frame.verb, findings.frames):
        return False
    times = (part.root for part in frame.parts if part.role == "time")
    return any(_YEARS.search(findings.tree.text, n.left_edge.idx, n.right_edge.end) for n in times)


def _explains(noun: Node, appositive: Node) -> bool:
    """Whether a dash outside a clause introduces contents: "Search - indexes and ranks"."""
    node = noun
    while node.dep in {"conj", "compound", "nmod"}:
        node = node.head
    fragment = node.head is node and node.pos in {"NOUN", "PROPN"}
    return fragment and not any(c.dep in {"det", "poss"} for c in appositive.children)


def _find_who(place: Node, findings: Findings) -> Phrase | None:
    """Return the subject in "Ann was born in Salem, the daughter of ...", not the place."""
    node = place
    for _ in range(6):
        if node.head is node or node.pos in {"VERB", "AUX"}:
            break
        node = node.head
    frame = findings.frames.get(node.i)
    subjects = frame.subjects if frame is not None else []
    phrases = findings.read_arguments(subjects[0]) if len(subjects) == 1 else []
    return phrases[0] if len(phrases) == 1 and phrases[0].label not in PLACES else None


def _is_title(noun: Node) -> bool:
    """Return whether a capitalised noun is an office with its seat: "Professor of Law"."""
    return (
        find_kind_label(noun.word) == "PERSON"
        and not any(c.dep == "compound" for c in noun.children)
        and any(c.dep == "prep" for c in noun.children)
    )


def _is_item(appositive: Node) -> bool:
    """Whether an apposition is an item of a list or only a part of a bracket."""
    nodes, first, after = appositive.tree.nodes, appositive.left_edge, appositive.right_edge.i + 1
    before, ahead = nodes[first.i - 1].text, nodes[after : after + 2]
    if before in {"(", "["}:
        listed = any(c.dep in {"conj", "cc", "nummod", "punct"} for c in appositive.children)
        listed = appositive.pos != "PROPN" and (listed or first.text[0].isdigit())
        return listed or not ahead or ahead[0].text not in {")", "]", ";"}
    if before == ",":
        items = len(ahead) == 2 and ahead[0].text == "," and ahead[1].pos in _ITEMS
        open_ended = bool(ahead) and ahead[0].tag in {"VBD", "VBZ", "VBP", "MD"}
        # "for Alpha, Beta, and Gamma, a server for Delta, and a library for others"
        joined = [c.left_edge for c in appositive.children if c.dep == "conj"]
        listed = appositive.head.dep == "conj" and any(nodes[n.i - 2].text == "," for n in joined)
        # "the mill on Church Street, the clinic and the brewery"
        closed = bool(ahead) and ahead[0].text in {",", ")"}
        same = first.word == "the" and any(n.word in ARTICLES for n in joined)
        listed = listed or (not closed and same)
        return open_ended or listed or (items and first.word not in {"a", "an"})
    return before == ")" and first.dep != "det"


def _ends_bracket(node: Node, after: int) -> bool:
    """Return whether only a bracket is between token `after` and `node`."""
    tree = node.tree
    index = node.i - 1 if node.text == "," else node.i
    if index <= after or tree[index].text != ")":
        return False
    opening = next((i for i in range(index, after, -1) if tree[i].text == "("), None)
    return opening == after + 1


def _add_abbreviation(noun: Node, short: Node, findings: Findings) -> bool:
    """Add what "World Trade Union (WTU)" abbreviates; return whether a bracket holds capitals only.

    Such a bracket names no other thing, even where the long form is missing.
    """
    tree, index = findings.tree, short.i
    around = [i for i in (index - 1, index - 2) if i > noun.i and tree[i].text not in QUOTATION]
    if not around or tree[around[0]].text != "(" or not _SHORT_FORM.fullmatch(short.text):
        return False
    closed = index + 1 < len(tree) and tree[index + 1].text in {")", ";", ",", *QUOTATION}
    last = around[0] - 1
    if not closed or (noun.pos == "PROPN" and tree[index + 1].text != ")"):
        return False
    several = tree[index + 1].text == "," and any(c.dep == "conj" for c in tree[last].head.children)
    first = None if several else find_long_form(tree.nodes, around[0], short.text)
    if first is None:
        if noun.pos == "PROPN":
            return False
        findings.drop("bracket_without_name", noun.i, index)
        return True
    if tree[last].pos not in {"NOUN", "PROPN"}:
        return True  # "33 nonatopic (NA) subjects"
    head, tail = build_phrase(tree, first, last, last), build_phrase(tree, index, index, index)
    _add(findings, head, "is abbreviated as", tail)
    return True


def _add_container(place: Node, outer: Node, findings: Findings) -> None:
    """Add "X is located in Y" for "near X, Y" where only Y was known to be a place."""
    tree = findings.tree
    edge = outer.left_edge.i
    around = place.head.word if place.dep == "pobj" else ""
    if (
        outer.entity != "GPE"
        or place.entity in {"DATE", *PLACES}
        or around not in {"in", "at", "near", "of", "from", "to"}
        or tree[edge - 1].text != ","
        or edge - 1 != place.i + 1
    ):
        findings.drop("ambiguous_apposition", place.i, outer.i)
        return
    _add(findings, find_phrase(place), "is located in", find_phrase(outer))


def _add_title(name: Node, findings: Findings) -> None:
    """Add "Pearl Jam is a rock band" for "the rock band Pearl Jam"."""
    tree = findings.tree
    first = name.left_edge.i
    if any(c.dep == "conj" for c in name.children) and name.right_edge.i - first > 20:
        return
    if name.dep == "compound" and name.head.text.islower():
        return  # "the production Jenkins job"
    start = find_title_end(tree, first, name.i, name)
    if start is None:
        _add_office(name, findings)
        return
    begin = start
    while begin > first and (
        tree[begin - 1].pos in {"NOUN", "ADJ", "PROPN"}
        or (begin < start and not tree[begin - 1].space)  # "editor-in-chief Anna Holm"
    ):
        begin -= 1
    title = build_phrase(tree, begin, start - 1, start - 1)
    if any(n.tag == "POS" for n in tree.nodes[start - 1 : start + 1]):
        return  # "the hospital's Medical Officer"
    if title is not None and tree[start - 1].tag == "NNS":  # "astronauts Ann Lee and Bo Berg"
        last = tree[start - 1]
        text = title.text.removesuffix(last.text) + lemmatise(last.word)
        title = replace(title, text=text, literal=False)
    head = find_phrase(name)
    person = find_kind_label(tree[start - 1].word) == "PERSON"
    joined = begin > 0 and tree[begin - 1].dep == "cc" and not person
    foreign = tree[begin].pos == "PROPN" and tree[begin].entity != "NORP"
    named = head is not None and not head.text[:1].islower()
    if title is not None and named and not joined and not foreign:
        be = "was" if person and _is_dated(name, findings) else "is"
        _add(findings, head, f"{be} a", title, "title")
    owner = findings.find_owner(name)
    if owner is not None and owner.last < start:
        _add(findings, owner, f"has {tree[start - 1].word}", head, "relation")


def _add_office(name: Node, findings: Findings) -> None:
    """Add "Sam Foley has title U.S. Senator" for "U.S. Senator Sam Foley"."""
    tree, first = findings.tree, name.left_edge.i
    start = find_office_end(tree, first, name.i, name)
    if start is None:
        return
    begin = start
    while begin > first and tree[begin - 1].pos in {"PROPN", "ADJ"}:
        begin -= 1
    office = build_phrase(tree, begin, start - 1, start - 1)
    _add(findings, find_phrase(name), "has title", office, "title")


def _add_containers(place: Node, findings: Findings) -> None:
    if place.entity not in PLACES or place.dep == "compound":
        return
    first, end = findings.tree.sentences[place.sentence]
    nodes = findings.tree.nodes[first:end]
    listed = nodes[-1].text == "," or any(node.text == ":" for node in nodes)
    if listed and not any(node.i in findings.frames for node in nodes):
        return  # "There: Imogen, Tomasz, Ruth"
    phrase = find_phrase(place)
    if phrase is None:
        return
    chain = [phrase, *list_containers(phrase, findings.tree)]
    for inner, outer in combinations(chain, 2):
        _add(findings, inner, "is located in", outer)


def _add_members(kind: Node, findings: Findings) -> None:
    """Add "Ann is a duty leader" for "there are two duty leaders: Ann and Per"."""
    listed = (c for c in kind.children if c.dep == "appos" and c.pos == "PROPN")
    first = next((c for c in listed if findings.tree[c.left_edge.i - 1].text == ":"), None)
    counts = [c.i for c in kind.children if c.dep == "nummod"]
    phrase = build_phrase(findings.tree, counts[-1] + 1, kind.i, kind.i) if counts else None
    single, verb, aside = lemmatise(kind.word), kind.head, read_aside(kind)
    stated = verb.lemma in {"be", "have", "include"} and not (aside.negated or aside.mood)
    modal = any(c.tag == "MD" or c.dep == "neg" for c in verb.children)
    if first is None or phrase is None or not stated or modal or single == kind.word:
        return
    words = phrase.text.removesuffix(kind.text) + single
    be = "was a" if verb.tag == "VBD" else "is a"
    for name in list_conjuncts(first):
        if name.pos == "PROPN":
            _add(findings, find_phrase(name), be, replace(phrase, text=words, literal=False))


def _add_examples(kind: Node, findings: Findings) -> None:
    """Add "Norway is a country" for "countries such as Norway" (Hearst, COLING 1992)."""
    for prep in kind.children:
        such = prep.word == "as" and any(c.word == "such" for c in prep.children)
        if not (such or (prep.word == "including" and prep.dep == "prep")):
            continue
        first = kind.left_edge.i
        for word in findings.tree.nodes[first : kind.i]:
            if word.tag == "RBR":  # "more frequent bad storms": than what is not said
                first = max(first, min(word.head.i, kind.i - 1) + 1)
        while findings.tree[first].pos in {"CCONJ", "PUNCT"}:
            first += 1
        phrase = build_phrase(findings.tree, first, kind.i, kind.i)
        counted = any(c.dep == "nummod" for c in kind.children)
        # In "forms of energy and matter such as light" the examples may belong to either.
        between = (c for c in kind.children if kind.i < c.i < prep.left_edge.i)
        unclear = kind.dep == "conj" or any(c.dep != "punct" for c in between)
        if phrase is None or unclear or counted or kind.word in WORDS["empty_kinds"]:
            continue
        words = [w for w in phrase.text.split()[:-1] if w.lower() not in WORDS["quantities"]]
        plural = " ".join([*words, kind.text])
        many = replace(phrase, text=plural, literal=plural == phrase.text)
        singular = replace(phrase, text=" ".join([*words, lemmatise(kind.word)]), literal=False)
        for root in (c for c in prep.children if c.dep == "pobj"):
            if not such and root.pos != "PROPN":
                continue  # "including" may go on to a part: "films including two sequels"
            for example in _list_examples(root, findings):
                if findings.tree[example.root].tag == "NNS":
                    _add(findings, example, "are", many)
                else:
                    _add(findings, example, "is a", singular)


def _list_examples(root: Node, findings: Findings) -> list[Phrase]:
    """The members of a list, which ends with the member after "and" or "or"."""
    examples = findings.read_arguments(root)
    for index, example in enumerate(examples):
        ends = example.first > root.i and findings.tree[example.first - 1].word in {"and", "or"}
        if ends:
            return examples[: index + 1]
    return examples


def _add_named_kind(name: Node, findings: Findings) -> None:
    """Add "Elk Horn is a town" for "the town of Elk Horn"."""
    kind = name.head.head
    if name.dep != "pobj" or name.head.word != "of" or kind.pos != "NOUN" or kind.tag != "NN":
        return
    definite = any(c.word == "the" for c in kind.children)
    definite = definite and not any(c.entity == "ORDINAL" for c in kind.children)
    whole = any(c.word == "the" for c in name.children)  # "the shire town of the Borough of Ash"
    if definite and not whole and LABEL_BY_NOUN.get(kind.word) == "GPE" and kind.word not in _SEATS:
        first = min([c.i for c in kind.children if c.dep in {"amod", "compound"}] or [kind.i])
        words = build_phrase(findings.tree, first, kind.i, kind.i)
        _add(findings, find_phrase(name), "is a", words)


def _add_location(name: Node, findings: Findings) -> None:
    """Add "X is located in Y" for the organisation, building or place of "X in Y"."""
    if name.entity not in {"ORG", "FAC", "GPE", "LOC"} or name.dep == "compound":
        return
    if name.entity == "ORG" and name.dep == "pobj" and name.head.head.tag == "NNS":
        return  # "sites on the List in Kent": the sites are there
    for phrase, prep, _prep_tokens in list_noun_preps(name, findings):
        inside = prep == "of" and phrase.label in PLACES and name.entity in PLACES
        inside = inside and name.word not in LABEL_BY_NOUN  # "the Borough of Camden" is Camden
        apart = find_entity(findings.tree, name.i) != find_entity(findings.tree, phrase.root)
        if inside and apart:
            # "the South Slave Region of the Northwest Territories"
            head = build_phrase(findings.tree, name.left_edge.i, name.i, name.i)
            _add(findings, head, "is located in", phrase)
        elif prep in {"in", "at", "near"} and phrase.label in PLACES:
            _add(findings, find_phrase(name), f"is located {prep}", phrase)


def _add_owner(owned: Node, findings: Findings) -> None:
    """Add "X has Y" for "X's Y" and for "X, whose Y"."""
    owner = next((c for c in owned.children if c.dep == "poss" and c.tag != "PRP$"), None)
    if owner is None:
        return
    whole = build_phrase(findings.tree, owner.right_edge.i + 1, owned.i, owned.i)
    if owner.tag == "WP$":
        clause = find_noun_clause(owned.head)
        owner = clause.head if clause is not None and clause.dep == "relcl" else None
    if owner is not None:
        has = "have" if owner.tag in PLURAL else "has"
        _add(findings, find_phrase(owner), has, whole, "possessive")


def _add_place(noun: Node, findings: Findings) -> None:
    """Add "Y is in X" for "the Y in X"."""
    be = "are" if noun.tag in PLURAL else "is"
    for prep in noun.children:
        for place in prep.children if prep.word in {"in", "at"} else ():
            if place.dep == "pobj" and place.entity in PLACES:
                head, tail = find_phrase(noun), find_phrase(place)
                _add(findings, head, f"{be} {prep.word}", tail, "place")


def _add_life_events(name: Node, findings: Findings) -> None:
    for relation, phrase in list_life_events(name, name.entity in {"PERSON", ""}):
        _add(findings, find_phrase(name), relation, phrase)
