"""Facts inside noun phrases: appositions, titles, possessives, places, and dates in brackets."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from spacy.tokens import Token


def find_nominal_facts(findings: Findings) -> None:
    """Add the candidates stated inside noun phrases, in text order."""
    for token in findings.doc:
        if token.pos_ not in {"NOUN", "PROPN"}:
            continue
        if token.dep_ == "appos":
            _add_apposition(token.head, token, findings)
        if token.pos_ == "PROPN":
            _add_title(token, findings)
            _add_containers(token, findings)
            _add_location(token, findings)
            _add_life_dates(token, findings)


def _add(findings: Findings, head: Phrase | None, relation: str, tail: Phrase | None) -> None:
    if head is None or tail is None or head.text == tail.text:
        return
    findings.candidates.append(Candidate(None, head, relation, tail, (), indirect=True))


def _add_apposition(noun: Token, appositive: Token, findings: Findings) -> None:
    """Add "X is a Y" for "X, a Y" and "Y X", and the relation a noun like "author of" carries."""
    if noun.pos_ == "PROPN" and appositive.pos_ == "PROPN":
        if appositive.ent_type_ not in PLACES or noun.ent_type_ not in PLACES:
            findings.drop("ambiguous_apposition", noun.i, appositive.i)
        return
    name, kind = (noun, appositive) if noun.pos_ == "PROPN" else (appositive, noun)
    if name.pos_ != "PROPN" or kind.pos_ != "NOUN" or name.ent_type_ in LITERALS:
        return
    if kind.ent_type_ in LITERALS or kind.tag_ == "NNS":
        return
    before = find_phrase(noun)
    if before is None or appositive.left_edge.i - max(before.last, noun.i) > 2:
        # Something stands between the two: the parser attached the name too far up.
        findings.drop("distant_apposition", noun.i, appositive.i)
        return
    if name.dep_ == "pobj" and name.head.lower_ == "of" and name.head.head.pos_ == "PROPN":
        name = name.head.head
    head = find_phrase(name)
    _add(findings, head, "is a", find_phrase(kind))
    owner = findings.find_owner(kind)
    words, _tokens = word_noun(kind)
    _add(findings, owner, f"has {words}", head)
    for phrase, prep, _at in list_noun_preps(kind, findings):
        if head is not None and phrase.root != head.root:
            _add(findings, head, f"is {words} {prep}", phrase)


def _add_title(name: Token, findings: Findings) -> None:
    """Add "Pearl Jam is a rock band" for "the rock band Pearl Jam"."""
    doc = findings.doc
    first = name.left_edge.i
    if any(c.dep_ == "conj" for c in name.children) and name.right_edge.i - first > 20:
        return
    start = find_title_end(doc, first, name.i, name)
    if start is None:
        return
    begin = start
    while begin > first and doc[begin - 1].pos_ in {"NOUN", "ADJ", "PROPN"}:
        begin -= 1
    title = build_phrase(doc, begin, start - 1, start - 1)
    head = find_phrase(name)
    if title is not None:
        _add(findings, head, "is a", title)
    owner = findings.find_owner(name)
    if owner is not None and owner.last < start:
        _add(findings, owner, f"has {doc[start - 1].lower_}", head)


def _add_containers(place: Token, findings: Findings) -> None:
    if place.ent_type_ not in PLACES or place.dep_ == "compound":
        return
    phrase = find_phrase(place)
    if phrase is None:
        return
    chain = [phrase, *list_containers(phrase, findings.doc)]
    for inner, outer in pairwise(chain):
        _add(findings, inner, "is located in", outer)


def _add_location(name: Token, findings: Findings) -> None:
    """Add "X is located in Y" for the organisation, building or place of "X in Y"."""
    if name.ent_type_ not in {"ORG", "FAC", "GPE", "LOC"} or name.dep_ == "compound":
        return
    for phrase, prep, _at in list_noun_preps(name, findings):
        if prep in {"in", "at", "near"} and phrase.label in PLACES:
            _add(findings, find_phrase(name), f"is located {prep}", phrase)


def _add_life_dates(name: Token, findings: Findings) -> None:
    """Add birth and death from "Ann Lee (born May 2, 1951 in Oslo)" and "(1900 - 1980)"."""
    doc, at = findings.doc, name.i + 1
    if at >= len(doc) or doc[at].text != "(":
        return
    close = next((i for i in range(at, min(at + 40, len(doc))) if doc[i].text == ")"), None)
    if close is None:
        return
    inside = [doc[i] for i in range(at + 1, close)]
    head = find_phrase(name)
    event = "born" if any(t.lower_ in {"born", "b."} for t in inside) else None
    person = name.ent_type_ == "PERSON" and findings.antecedents.topic is not None
    dash = next((t.i for t in inside if t.text in {"\u2013", "-", "--", "\u2014"}), None)
    if event is None and not (person and dash is not None):
        return
    seen: set[int] = set()
    for token in inside:
        bounds = find_entity(doc, token.i)
        if token.lower_ in {"died", "d."} or (dash is not None and token.i == dash):
            event = "died"
        if bounds is None or bounds[0] in seen or bounds[0] < at:
            continue
        seen.add(bounds[0])
        # Without "born" the first date before the dash is the birth.
        verb = "died" if event == "died" else "was born"
        last = min(bounds[1], close - 1)
        if dash is not None and bounds[0] < dash <= last:
            last = dash - 1
            tail = build_phrase(doc, dash + 1, min(bounds[1], close - 1), bounds[1])
            _add(findings, head, "died on", tail)
        phrase = build_phrase(doc, bounds[0], last, last)
        if phrase is None:
            continue
        if token.ent_type_ == "DATE":
            has_day = len(phrase.text.split()) > 2
            _add(findings, head, f"{verb} {'on' if has_day else 'in'}", phrase)
        elif token.ent_type_ in {"GPE", "LOC"}:
            _add(findings, head, f"{verb} in", phrase)
