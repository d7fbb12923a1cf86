"""Facts of "X is a Y": kinds, noun-mediated relations, and attributes with their owner."""

from __future__ import annotations

import re
from dataclasses import replace

from kpyramid.documents.values import MONTH, Date, find_values
from kpyramid.extraction.facts.candidates import (
    ADDRESSED,
    DIRECTIONS,
    WORDS,
    Findings,
    word_noun,
)
from kpyramid.extraction.syntax.kinds import ATTRIBUTES, TAKING_BACK, find_kind_label, is_office
from kpyramid.extraction.syntax.polarity import is_excluded, is_instead
from kpyramid.extraction.syntax.predicates import VerbGroup
from kpyramid.extraction.syntax.tree import (
    FULL_WORDS,
    LOCATIVE,
    MEASURES,
    PLACES,
    Node,
    Phrase,
    build_phrase,
    find_first,
    find_kind,
    is_counted,
    is_listed,
    is_named_place,
    is_restrictive,
    is_singled_out,
    list_conjuncts,
    list_containers,
)

_DIMENSIONS = dict(pair.split(":") for pair in sorted(WORDS["dimensions"]))
"""The dimension for each word after a quantity: "64 km long", "64 m above sea level"."""
_MEASURE = re.compile(r"[\d.,]+ ?[^\W\d]{0,3}\W{0,2}[CF]?")
_WEEKDAY = re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b")
_NAMED_MONTH = re.compile(rf"\b{MONTH}\b")
PLURAL_BE = {"is": "are", "was": "were"}
_MEMBER_PREPS = frozenset({"in", "at", "on", "of", "by"})
_GROUPING = frozenset("in for among after with at per without on".split())
_MAX_KIND = 6
"""Words of a noun with its adjectives that a relation can hold."""
MAX_HELD = 4
"""Words of what a noun is of that a relation can hold: "is director of Holm Holding from"."""
_WEIGHING = WORDS["weighing"]
"""Adjectives of degree or importance, which do not describe a kind."""
_PERFECT = {"has been": "is", "have been": "are"}


def list_copula_facts(
    verb: Node, group: VerbGroup, heads: list[Phrase], findings: Findings
) -> None:
    """Add the candidates of one copula clause."""
    attributes = [c for c in verb.children if c.dep in {"attr", "acomp", "prep"}]
    frame = findings.frames.get(verb.i)
    subjects, way = (frame.subjects, frame.way) if frame is not None else ([], "none")
    past = group.text.startswith(("was", "were", "had"))
    if any(c.word == "since" for c in attributes):  # who "has been chair since 2019" is chair
        group = replace(group, text=_PERFECT.get(group.text, group.text))
    for attribute in attributes:
        _add_dimension(attribute, verb, group, heads, findings)
        if attribute.dep == "prep":
            continue
        if (
            subjects
            and subjects[0].word == "one"
            and _add_membership(subjects[0], attribute, verb, group, findings)
        ):
            continue
        if subjects and add_attribute_value(subjects[0], attribute, verb, group, past, findings):
            continue
        nouns = [*list_conjuncts(attribute)]
        either = not group.negated and any(c.word == "or" for n in nouns for c in n.children)
        if attribute.dep == "acomp" or either:
            continue  # "it is a tax or a fee"
        for noun in nouns:
            if noun is not attribute and noun.pos == "PROPN" and attribute.pos == "NOUN":
                continue  # "members: Austria, Belgium" lists no further kinds
            if noun is not attribute and (attribute.pos == "NUM" or attribute.entity in MEASURES):
                continue  # "100 % of the amount plus interest"
            for head in heads:
                _add_kind(head, noun, verb, group, past, way, findings)


def _add_dimension(
    attribute: Node, verb: Node, group: VerbGroup, heads: list[Phrase], findings: Findings
) -> None:
    """Add "X has length of 64 km" for "X is 64 km long", and the width of what is joined to it."""
    have = {"is": "has", "are": "have", "was": "had", "were": "had"}.get(group.text)
    for word in (attribute, *(c for c in attribute.children if c.dep == "conj")):
        last = word.right_edge if word.dep == "prep" else findings.tree[word.i - 1]
        value = next((c for c in word.children if c.i == word.i - 1), None)
        if word.word not in _DIMENSIONS or value is None or have is None:
            continue
        if not is_counted(value) or (word.dep == "prep" and last.word != "level"):
            continue
        tail = build_phrase(findings.tree, value.left_edge.i, last.i, value.i)
        relation = f"{have} {_DIMENSIONS[word.word]} of"
        for head in heads:
            if tail is not None:
                measure = replace(tail, label="QUANTITY")
                findings.add(verb, group, head, relation, measure, (*group.tokens, word.i))


def _add_membership(
    one: Node, member: Node, verb: Node, group: VerbGroup, findings: Findings
) -> bool:
    """Add "Y is one of the X" for "one of the X is Y"; return whether it applied."""
    of = next((c for c in one.children if c.word == "of"), None)
    whole = next((c for c in of.children if c.dep == "pobj"), None) if of is not None else None
    if whole is None:
        return False
    tails = findings.read_arguments(whole, full=True)
    for head in findings.read_arguments(member, full=True):
        for tail in tails:
            relation = f"{group.text} one of"
            findings.add(verb, group, head, relation, tail, group.tokens, indirect=True)
    return True


def add_attribute_value(
    subject: Node, value: Node, verb: Node, group: VerbGroup, past: bool, findings: Findings
) -> bool:
    """Add "owner has noun value" for "X's elevation is 3189 feet"; return whether it applied.

    Applies to "the symptoms of X include fever" too.
    """
    measured = value.entity in MEASURES or value.pos == "NUM"
    office = subject.pos == "PROPN" and is_office(subject.word)
    relational = subject.lemma.lower() in WORDS["relational"]
    opens = relational and subject.i == findings.tree.sentences[subject.sentence][0]
    if not office and (subject.pos != "NOUN" or not (subject.text.islower() or opens)):
        return False
    if office and find_kind_label(value.word) == "PERSON":
        return False  # "the Secretary of the Party is President of the Council"
    is_value = value.pos in {"PROPN", "NUM"} or value.entity in MEASURES
    is_value = is_value or value.text[:1].isupper()  # "Deism", "French": names of any class
    is_value = is_value or is_counted(value)
    is_value = is_value or (
        is_named_place(value) and not is_named_place(subject)
    )  # "its capital is the city of Oslo"
    has_poss = any(c.dep == "poss" for c in subject.children)
    is_value = is_value or (relational and value.pos == "NOUN")
    if not is_value and not (has_poss and subject.word in ATTRIBUTES):
        return False
    owner = findings.find_owner(subject)
    indirect = False
    if owner is None:
        of = [c for c in list_noun_preps(subject, findings) if c[1] in {"of", "in"}]
        owner = of[0][0] if of else None
    if owner is None and not has_poss and (relational or subject.word in ATTRIBUTES):
        owner, indirect = findings.antecedents.find_owner(subject), True
        bare = all(c.dep == "det" for c in subject.children)
        if owner is None and bare and not measured:
            findings.drop("unresolved_attribute", subject.i, value.i)
            return True
    words, tokens = _word_graded(subject) if measured or is_counted(value) else word_noun(subject)
    words = words.lower() if opens else words
    if owner is None or owner.last >= value.i or owner.first <= subject.i <= owner.last:
        return False
    if measured and owner.label == "NOUN" and not owner.resolved:
        return False  # "the rate of cases was 5%" is about the rate
    relation = f"{'had' if past and value.entity not in MEASURES else 'has'} {words}"
    for phrase in findings.read_arguments(value, full=False):
        if value.pos != "PROPN" or findings.tree[phrase.root].pos != "NOUN":  # "and the captain is"
            findings.add(verb, group, owner, relation, phrase, tokens, indirect=indirect)
    return True


def _add_kind(
    head: Phrase, noun: Node, verb: Node, group: VerbGroup, past: bool, way: str,
    findings: Findings,
) -> None:  # fmt: skip
    negated = any(c.word == "no" for c in noun.children)
    negated = negated or (noun.dep == "conj" and is_excluded(noun))  # "a fir and not a pine"
    if is_instead(noun):
        group = replace(group, negated=False)
    if any(c.word in WORDS["multiples"] for c in noun.children):
        findings.drop("no_kind", noun.i, noun.i)  # "is half the size of X"
        return
    tail = find_kind(noun)
    bare = noun.tag == "NN" and noun.dep == "attr" and not noun.children
    if bare and not is_office(noun.word):
        tail = None  # "the deck is enclosed", read as a noun
    if tail is None or noun.pos not in {"NOUN", "PROPN", "NUM"}:
        findings.drop("adjective_only" if noun.pos == "ADJ" else "no_kind", noun.i, noun.i)
        return
    if _is_cut_off(noun, tail):
        findings.drop("incomplete_object", noun.i, noun.i)
        return
    is_partitive = noun.word == "one"
    rated = any(c.word == "per" for c in noun.children)
    # "The limit is 60 calls", "fees are 12 euros per month", but "the winners are two boys"
    subject = findings.tree[head.root]
    counted = is_counted(noun) and (rated or subject.tag == "NN")
    if (counted or tail.label in MEASURES or _MEASURE.fullmatch(tail.text)) and not is_partitive:
        if head.label == "NOUN" and subject.text.islower():
            beside = {c.word for c in (*verb.children, *noun.children)}
            if is_listed(noun) or "respectively" in beside:  # "were 50% and 92%": of which?
                findings.drop("respective_values", verb.i, noun.i)
                return
            lead = lead_time(tail.text) if tail.label == "DATE" else ""
            verb_words = "amounted to" if past else "amounts to"
            if subject.lemma in WORDS["numbered"] and not is_counted(noun):
                verb_words = "had number" if past else "has number"
            elif lead:
                verb_words = f"{'fell' if past else 'falls'} {lead}"
            else:
                tail = _keep_group(tail, verb)
            findings.add(verb, group, head, verb_words, tail, group.tokens, negated=negated)
        else:
            findings.drop("measure_without_attribute", verb.i, noun.i)
        return
    if _lists_items(verb, noun):
        findings.add(verb, group, head, "included" if past else "includes", tail, group.tokens)
        return
    be = group.text
    relation: str | None = _word_kind(noun, be)
    common = {"negated": negated, "indirect": way != "own"}
    relations = [*list_kind_relations(noun, findings)]
    shared = noun.word in WORDS["shares"] and any(c.word == "of" for c in noun.children)
    if _holds_office(subject, noun):
        findings.add(verb, group, tail, f"{be} in the office of", head, (), **common)
        return
    if noun.pos == "PROPN" and noun.text[:1].isupper():
        relation = _word_identity(head, noun, be) if tail.words <= FULL_WORDS else None
    elif noun.tag == "NNS" and subject.tag == "NNP" and is_listed(subject):
        relation = "was a" if past else "is a"  # "Ann and Per are trustees": each is a trustee
        singular = tail.text.replace(noun.text, noun.lemma, 1)
        tail = replace(tail, text=singular, literal=singular == tail.text)
    elif is_partitive or shared or noun.word in DIRECTIONS:
        relation = None
    if relation is not None:
        findings.add(verb, group, head, relation, tail, group.tokens, **common)
    owner = findings.find_owner(noun)
    words, _ = word_kind(noun)
    if owner is not None and owner.root != head.root and noun.pos == "NOUN":
        findings.add(verb, group, head, f"{be} {words} of", owner, (), **common)
    if any(c.dep == "poss" and c.word in ADDRESSED for c in noun.children):
        relations.clear()  # "is your main point of contact"
    relations += list_kind_relations(noun, findings, verb)
    if is_partitive:
        relations = [(p, w, t) for p, w, t in relations if w == "one of"]
        relations += _list_group_preps(noun, findings)
    for phrase, rest, prepositions in relations:
        if (relation is not None or len(relations) > 1) and phrase.label in {"DATE", "TIME"}:
            continue  # when it is so qualifies the kind
        tokens = (*group.tokens, *prepositions)
        if noun.tag == "NNS" and subject.tag == "NN":  # one of several heads
            rest = rest.replace(f"{noun.word} ", f"{noun.lemma.lower()} ", 1)
        findings.add(verb, group, head, f"{be} {rest}", phrase, tokens, **common)


def _is_cut_off(noun: Node, kind: Phrase) -> bool:
    """Whether a kind lacks its restrictive part: "the first country [to sign]"."""
    definite = is_singled_out(noun) or any(c.word in {"only", "same"} for c in noun.children)
    after = [c for c in noun.children if c.i > kind.last]
    cut = any(map(is_restrictive, after)) or (definite and any(c.dep == "prep" for c in after))
    return cut and (definite or noun.lemma.lower() in WORDS["broad"])


def _lists_items(verb: Node, noun: Node) -> bool:
    """Whether a plural verb lists items of its subject: "the criteria were age and weight".

    So do lists of one and of several: "members are nurses, a judge and two vets".
    """
    first = find_first(noun)
    single = {node.tag == "NN" for node in list_conjuncts(first)}
    bare = noun.tag == "NN" and not any(c.word in {"a", "an", "no"} for c in first.children)
    many = any(c.dep == "nsubj" and c.tag == "NNS" for c in verb.children)
    return (bare or len(single) > 1) and many and is_listed(noun) and verb.word in {"are", "were"}


def _keep_group(value: Phrase, verb: Node) -> Phrase:
    """The value with the group that it applies to: "63% in the second group"."""
    end = value.last
    for prep in verb.children:
        if prep.dep == "prep" and prep.left_edge.i == end + 1 and prep.word in _GROUPING:
            end = prep.right_edge.i
    tree = verb.tree
    phrase = build_phrase(tree, value.first, end, value.root) if end > value.last else None
    if phrase is None:
        return value
    return replace(phrase, label=value.label)


def word_kind(noun: Node) -> tuple[str, list[int]]:
    """The noun as worded in "is a noun of", with the adjectives that change its meaning.

    A former district is no district, and the second largest is not the largest; an old district
    is a district. A noun of no known kind retains its adjectives, "is good idea for", except those
    of degree or importance: "is metabolite of".
    """
    text = noun.tree.text
    taken = any(text[c.left_edge.idx : c.end].lower() in TAKING_BACK for c in noun.children)
    taken = taken or text[: noun.idx].lower().endswith("ex-")
    special = is_singled_out(noun) or taken
    if noun.pos == "NOUN" and special:
        owned = [c.right_edge.i + 1 for c in noun.children if c.dep == "poss"]
        phrase = build_phrase(noun.tree, max([noun.left_edge.i, *owned]), noun.i, noun.i)
        if phrase is not None and phrase.words <= _MAX_KIND:
            return phrase.text, list(range(phrase.first, phrase.last + 1))
    words, tokens = word_noun(noun)
    if noun.word in DIRECTIONS:
        return f"located {words}", tokens
    if noun.word in WORDS["shares"] or find_kind_label(noun.lemma.lower()) is not None:
        return words, tokens
    return _word_graded(noun)


def _word_graded(noun: Node) -> tuple[str, list[int]]:
    """The noun with its adjectives, except those of degree or importance."""
    words, tokens = word_noun(noun)
    graded = [
        c.left_edge.i
        for c in noun.children
        if c.dep == "amod" and c.entity in {"", "DATE"} and c.i < noun.i and c.word not in _WEIGHING
    ]
    phrase = build_phrase(noun.tree, min([*graded, *tokens]), noun.i, noun.i) if graded else None
    if phrase is None or phrase.words > _MAX_KIND:
        return words, tokens
    return phrase.text, list(range(phrase.first, phrase.last + 1))


def list_kind_relations(
    noun: Node, findings: Findings, verb: Node | None = None
) -> list[tuple[Phrase, str, tuple[int, ...]]]:
    """Return the objects of "is a noun of X in Y" with the relation's words and their tokens.

    A director of X is not just a director: the relation of a phrase beside "of X" includes "of X".
    With `verb`, the phrases that depend on the verb.
    """
    words, tokens = word_kind(noun)
    whole = next((c for c in noun.children if c.word == "of" and c.dep == "prep"), None)
    single = is_singled_out(noun)
    narrowed = single and any(is_restrictive(c) for c in noun.children)
    placed = find_kind_label(noun.lemma.lower()) in {*PLACES, "ORG"}
    first = next((c.i for c in noun.children if c.dep == "prep"), None)
    relations: list[tuple[Phrase, str, tuple[int, ...]]] = []
    held: list[tuple[Phrase, list[int]]] = []
    for phrase, prep, ids in list_noun_preps(verb or noun, findings):
        if (narrowed and prep != "of") or (single and first not in {None, *ids}):
            continue  # "the first country to join in 1990", "the oldest town of Kent in 1990"
        lone = phrase.label in PLACES and any(of.words > MAX_HELD for of, _ in held)
        there = (placed or lone) and not single and (not ids or prep in LOCATIVE)
        if whole is None or prep == "of" or there:
            if prep == "of" and ids:
                held.append((phrase, ids))
            relations.append((phrase, f"{words} {prep}", (*tokens, *ids)))
            continue
        if not ids:
            continue  # where what it is of lies
        if verb is not None:
            held = [(p, a) for p, w, a in list_noun_preps(noun, findings) if w == "of" and a]
        if len(held) == 1 and held[0][0].words <= MAX_HELD:
            (of, of_ids) = held[0]
            relations.append((phrase, f"{words} of {of.text} {prep}", (*tokens, *of_ids, *ids)))
    return relations


def _word_kind(noun: Node, be: str) -> str:
    """Return "is a", "are" before a plural, "is the" before what is singled out."""
    if noun.tag == "NNS":
        return PLURAL_BE.get(be, be)
    singled = any(c.word == "the" or c.tag in {"JJS", "RBS"} for c in noun.children)
    return f"{be} the" if singled else f"{be} a"


def _word_identity(head: Phrase, name: Node, be: str) -> str | None:
    """Return the relation to a name: "in the office of" before an office, else identity."""
    if any(c.word in {"a", "an"} for c in name.children):
        return f"{be} a"
    if name.entity != "PERSON" and is_office(name.word):
        has_seat = any(c.dep == "prep" for c in name.children)
        return None if has_seat else f"{be} in the office of"
    return f"{be} the same as" if head.is_named else f"{be} identified as"


def _holds_office(office: Node, name: Node) -> bool:
    """Whether a clause names the holder of an office: "the Data Officer is Ann Lee"."""
    called = office.pos == "PROPN" and any(c.dep in {"det", "poss"} for c in office.children)
    full = [c.dep for c in name.children if c.i < name.i] == ["compound"]  # "Ann Lee", not a firm's
    is_person = name.entity == "PERSON" or (name.entity == "ORG" and name.tag == "NNP" and full)
    return called and is_person and is_office(office.word)


def lead_time(words: str) -> str:
    """The preposition for a time without one; "" for a span or rate: "20 weeks", "every May"."""
    if words.lower().startswith(("each ", "every ")):
        return ""
    date = next((v.value for v in find_values(words) if isinstance(v.value, Date)), None)
    if _WEEKDAY.search(words) or (date is not None and date.day):
        return "on"
    return "in" if date is not None or _NAMED_MONTH.search(words) else ""


def _list_group_preps(one: Node, findings: Findings) -> list[tuple[Phrase, str, tuple[int, ...]]]:
    """Return relations of a member: "one of the districts in Hainaut" is a "district in" it."""
    of = [c for c in one.children if c.word == "of"]
    group = next((g for c in of for g in c.children if g.dep == "pobj"), None)
    if group is None:
        return []
    preps = [*list_noun_preps(group, findings), *list_noun_preps(one, findings)]
    preps = [p for p in preps if p[0].root != group.i]
    held = [c.word for c in group.children if c.dep == "compound" and c.pos == "NOUN"]
    word = " ".join([*held, group.lemma.lower()])  # "interest rate in"
    return [(p, f"{word} {prep}", ()) for p, prep, _ in preps if prep in _MEMBER_PREPS]


def _is_area(noun: Node) -> bool:
    """Whether "of" implies "in" after the noun: a district of Leeds, England, is in England."""
    return noun.pos == "PROPN" or find_kind_label(noun.word) in PLACES


def list_noun_preps(noun: Node, findings: Findings) -> list[tuple[Phrase, str, list[int]]]:
    """Return (object, preposition, its tokens) under a noun, chains of places expanded."""
    objects: list[tuple[Phrase, str, list[int]]] = []
    above = noun.head.children if noun.dep == "conj" else ()
    shared = [c for c in above if c.dep == "prep" and c.i > noun.right_edge.i]
    for prep in [*noun.children, *shared]:  # "founder and president of Acme"
        if prep.dep not in {"prep", "agent"} or prep.pos not in {"ADP", "SCONJ"}:
            continue
        if prep.word in {"according", "with", "as", "like", "than", "per"}:
            continue
        for child in prep.children:
            if child.dep != "pobj":
                continue
            for phrase in findings.read_arguments(child, full=True):
                objects.append((phrase, prep.word, [prep.i]))
                if prep.word in LOCATIVE or (prep.word == "of" and _is_area(noun)):
                    objects += [(p, "in", []) for p in list_containers(phrase, findings.tree)]
                inner = child.children if prep.word in {"in", "of"} else ()
                deep = [c for c in inner if c.dep == "prep" and c.word in {"in", "at"}]
                for place in (c for within in deep for c in within.children if c.dep == "pobj"):
                    objects += [(p, "in", []) for p in findings.read_arguments(place)]
    return objects
