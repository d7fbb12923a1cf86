"""Facts inside noun phrases: appositions, titles, possessives, places, and dates in brackets."""

from __future__ import annotations

from itertools import pairwise

from kpyramid.extraction.candidates import Candidate, Findings, word_noun
from kpyramid.extraction.copulas import list_noun_preps
from kpyramid.extraction.phrases import (
    LITERALS,
    PLACES,
    Phrase,
    build_phrase,
    find_entity,
    find_phrase,
    find_title_end,
    list_containers,
)
from kpyramid.extraction.tree import Node


def find_nominal_facts(findings: Findings) -> None:
    """Add the candidates stated inside noun phrases, in text order."""
    for token in findings.tree.nodes:
        if token.pos not in {"NOUN", "PROPN"}:
            continue
        if token.dep == "appos":
            _add_apposition(token.head, token, findings)
        if token.pos == "PROPN":
            _add_title(token, findings)
            _add_containers(token, findings)
            _add_location(token, findings)
            _add_life_dates(token, findings)


def _add(findings: Findings, head: Phrase | None, relation: str, tail: Phrase | None) -> None:
    if head is None or tail is None or head.text == tail.text:
        return
    findings.candidates.append(Candidate(None, head, relation, tail, (), indirect=True))


def _add_apposition(noun: Node, appositive: Node, findings: Findings) -> None:
    """Add "X is a Y" for "X, a Y" and "Y X", and the relation a noun like "author of" carries."""
    if noun.pos == "PROPN" and appositive.pos == "PROPN":
        if appositive.entity not in PLACES or noun.entity not in PLACES:
            findings.drop("ambiguous_apposition", noun.i, appositive.i)
        return
    name, kind = (noun, appositive) if noun.pos == "PROPN" else (appositive, noun)
    if name.pos != "PROPN" or kind.pos != "NOUN" or name.entity in LITERALS:
        return
    if kind.entity in LITERALS or kind.tag == "NNS":
        return
    before = find_phrase(noun)
    if before is None or appositive.left_edge.i - max(before.last, noun.i) > 2:
        # Something stands between the two: the parser attached the name too far up.
        findings.drop("distant_apposition", noun.i, appositive.i)
        return
    if name.dep == "pobj" and name.head.word == "of" and name.head.head.pos == "PROPN":
        name = name.head.head
    head = find_phrase(name)
    _add(findings, head, "is a", find_phrase(kind))
    owner = findings.find_owner(kind)
    words, _tokens = word_noun(kind)
    _add(findings, owner, f"has {words}", head)
    for phrase, prep, _at in list_noun_preps(kind, findings):
        if head is not None and phrase.root != head.root:
            _add(findings, head, f"is {words} {prep}", phrase)


def _add_title(name: Node, findings: Findings) -> None:
    """Add "Pearl Jam is a rock band" for "the rock band Pearl Jam"."""
    tree = findings.tree
    first = name.left_edge.i
    if any(c.dep == "conj" for c in name.children) and name.right_edge.i - first > 20:
        return
    start = find_title_end(tree, first, name.i, name)
    if start is None:
        return
    begin = start
    while begin > first and tree[begin - 1].pos in {"NOUN", "ADJ", "PROPN"}:
        begin -= 1
    title = build_phrase(tree, begin, start - 1, start - 1)
    head = find_phrase(name)
    if title is not None:
        _add(findings, head, "is a", title)
    owner = findings.find_owner(name)
    if owner is not None and owner.last < start:
        _add(findings, owner, f"has {tree[start - 1].word}", head)


def _add_containers(place: Node, findings: Findings) -> None:
    if place.entity not in PLACES or place.dep == "compound":
        return
    phrase = find_phrase(place)
    if phrase is None:
        return
    chain = [phrase, *list_containers(phrase, findings.tree)]
    for inner, outer in pairwise(chain):
        _add(findings, inner, "is located in", outer)


def _add_location(name: Node, findings: Findings) -> None:
    """Add "X is located in Y" for the organisation, building or place of "X in Y"."""
    if name.entity not in {"ORG", "FAC", "GPE", "LOC"} or name.dep == "compound":
        return
    for phrase, prep, _at in list_noun_preps(name, findings):
        if prep in {"in", "at", "near"} and phrase.label in PLACES:
            _add(findings, find_phrase(name), f"is located {prep}", phrase)


def _add_life_dates(name: Node, findings: Findings) -> None:
    """Add birth and death from "Ann Lee (born May 2, 1951 in Oslo)" and "(1900 - 1980)"."""
    tree, at = findings.tree, name.i + 1
    if at >= len(tree) or tree[at].text != "(":
        return
    close = next((i for i in range(at, min(at + 40, len(tree))) if tree[i].text == ")"), None)
    if close is None:
        return
    inside = [tree[i] for i in range(at + 1, close)]
    head = find_phrase(name)
    event = "born" if any(t.word in {"born", "b."} for t in inside) else None
    person = name.entity == "PERSON" and findings.antecedents.topic is not None
    dash = next((t.i for t in inside if t.text in {"\u2013", "-", "--", "\u2014"}), None)
    if event is None and not (person and dash is not None):
        return
    seen: set[int] = set()
    for token in inside:
        bounds = find_entity(tree, token.i)
        if token.word in {"died", "d."} or (dash is not None and token.i == dash):
            event = "died"
        if bounds is None or bounds[0] in seen or bounds[0] < at:
            continue
        seen.add(bounds[0])
        # Without "born" the first date before the dash is the birth.
        verb = "died" if event == "died" else "was born"
        last = min(bounds[1], close - 1)
        if dash is not None and bounds[0] < dash <= last:
            last = dash - 1
            tail = build_phrase(tree, dash + 1, min(bounds[1], close - 1), bounds[1])
            _add(findings, head, "died on", tail)
        phrase = build_phrase(tree, bounds[0], last, last)
        if phrase is None:
            continue
        if token.entity == "DATE":
            has_day = len(phrase.text.split()) > 2
            _add(findings, head, f"{verb} {'on' if has_day else 'in'}", phrase)
        elif token.entity in {"GPE", "LOC"}:
            _add(findings, head, f"{verb} in", phrase)
