"""Facts that a clause states: subject, verb group, and each object or prepositional object."""

from __future__ import annotations

from dataclasses import replace

from kpyramid.extraction.candidates import Candidate, Findings, word_noun
from kpyramid.extraction.copulas import list_copula_facts
from kpyramid.extraction.coreference import is_person_noun
from kpyramid.extraction.phrases import Phrase, is_nominal, list_containers
from kpyramid.extraction.tree import Node
from kpyramid.extraction.verbs import (
    VerbGroup,
    find_subjects,
    is_copula,
    is_predicate,
    read_group,
)

# "on behalf of", "in front of": the noun belongs to the preposition.
_PREPOSITION_NOUNS = frozenset("behalf front favor favour support charge terms addition".split())


def find_clause_facts(findings: Findings) -> None:
    """Add the candidates of every clause of the document, in text order."""
    for token in findings.tree.nodes:
        if is_predicate(token):
            _read_clause(token, findings)


def _read_clause(verb: Node, findings: Findings) -> None:
    heads, way = list_heads(verb, findings)
    if not heads:
        return
    group = read_group(verb)
    if way == "object_control":
        group = _word_controlled(verb, group)
    elif verb.dep == "xcomp":
        group = _word_raised(verb, group)
    findings.claim_heads[verb.i] = heads[0]
    before = len(findings.candidates)
    if is_copula(verb):
        list_copula_facts(verb, group, heads, findings)
    for head in heads:
        for tail, suffix, tokens, negated in _list_tails(verb, group, findings):
            relation = f"{group.text} {suffix}".strip()
            findings.candidates.append(
                Candidate(
                    verb.i,
                    head,
                    relation,
                    tail,
                    tuple(sorted((*group.tokens, *tokens))),
                    group.negated or negated,
                    group.modality,
                    indirect=way != "own",
                )
            )
    if len(findings.candidates) == before and not _has_complement(verb):
        findings.drop("no_object", verb.i, verb.i)


def list_heads(verb: Node, findings: Findings) -> tuple[list[Phrase], str]:
    """Return the resolved subjects of a clause and the way they were found.

    A noun that only says what kind of thing another is hands the role on: in "X is a book
    written by Y" it is X that was written.
    """
    subjects, way = find_subjects(verb)
    heads: list[Phrase] = []
    for subject in subjects:
        if subject.tag == "EX":
            subject = next((c for c in verb.children if c.dep in {"attr", "dobj"}), subject)
        if subject.dep == "expl" or _is_expletive(subject, verb):
            findings.drop("expletive_subject", subject.i, subject.i)
            continue
        if verb.dep == "advcl" and way == "shared":
            # "Established in 1845, its first bishop was ..." means the owner, not the bishop.
            owner = next((c for c in subject.children if c.tag == "PRP$"), None)
            subject = owner if owner is not None else subject
        if way == "antecedent":
            lifted = _lift_kind(_find_who(verb, subject))
            if lifted is not subject:
                heads += findings.read_arguments(lifted)
                continue
        heads += findings.read_arguments(subject)
    return heads, way


def _find_who(verb: Node, noun: Node) -> Node:
    """Return the person noun that "who" means when the parser attached the clause too low."""
    if not any(c.word == "who" for c in verb.children) or noun.entity in {"PERSON", ""}:
        return noun
    at = noun
    for _ in range(3):
        if at.dep not in {"pobj", "conj", "prep"}:
            break
        at = at.head
        if at.pos == "NOUN" and is_person_noun(at.word):
            return at
    return noun


def _is_expletive(subject: Node, verb: Node) -> bool:
    if subject.word != "it" or find_subjects(verb)[1] != "own":
        return False
    kids = [c.dep for c in verb.children]
    return "ccomp" in kids or ("acomp" in kids and "xcomp" in kids)


def _lift_kind(noun: Node) -> Node:
    """Return the subject of "S is a <noun>" or the name before ", a <noun>", else the noun."""
    at = noun
    for _ in range(4):
        if at.pos == "PROPN" and at is not noun:
            return at
        if at.dep == "conj" and at.pos == "NOUN":
            at = at.head
        elif at.dep == "attr" and at.head.lemma == "be" and noun.pos == "NOUN":
            subjects, _way = find_subjects(at.head)
            if not subjects or subjects[0].tag == "EX" or subjects[0].word in {"this", "that"}:
                return noun
            return subjects[0]
        elif at.dep == "appos" and noun.pos == "NOUN":
            at = at.head
        else:
            break
    return at if at.pos == "PROPN" else noun


def _word_raised(verb: Node, group: VerbGroup) -> VerbGroup:
    """Return "began to play" for the infinitive of "X began to play Y"."""
    head = verb.head
    if head.pos not in {"VERB", "AUX"} or verb.tag not in {"VB", "VBG"}:
        return group
    outer = read_group(head)
    particle = "to " if any(c.tag == "TO" for c in verb.children) else ""
    inner = verb.lemma.lower() if particle else verb.word
    passive = "be " if particle and group.passive else ""
    inner = f"{passive}{verb.word}" if passive else inner
    return VerbGroup(
        f"{outer.text} {particle}{inner}",
        tuple(sorted((*outer.tokens, *group.tokens))),
        outer.negated or group.negated,
        outer.modality or group.modality,
        group.passive,
    )


def _word_controlled(verb: Node, group: VerbGroup) -> VerbGroup:
    """Return "was hired to coach" for the infinitive of "they hired X to coach Y"."""
    head = verb.head
    if head.tag not in {"VBD", "VBN"} or not any(c.tag == "TO" for c in verb.children):
        return group
    # Only regular participles can be read off the past tense.
    form = head.word if head.tag == "VBN" or head.word.endswith("ed") else ""
    if not form:
        return group
    return replace(group, text=f"was {form} to {verb.lemma.lower()}", tokens=group.tokens)


def _list_tails(
    verb: Node, group: VerbGroup, findings: Findings
) -> list[tuple[Phrase, str, list[int], bool]]:
    """Return (tail, words after the verb, their tokens, negated) for each complement."""
    found: list[tuple[Phrase, str, list[int], bool]] = []
    copula = is_copula(verb)
    base: list[str] = []
    base_tokens: list[int] = []
    for child in verb.children:
        if child.dep == "acomp":
            base, base_tokens = [child.word], [child.i]
            found += [
                (p, f"{child.word} {w}", [child.i, *t], False)
                for p, w, t in _list_preps(child, findings)
            ]
    for child in verb.children:
        if child.dep in {"dobj", "oprd"} or (child.dep == "attr" and not copula):
            found += _list_object(child, verb, findings)
        elif child.dep == "dative" and child.pos != "ADP":
            found += [(p, "to", [], False) for p in findings.read_arguments(child)]
        elif child.dep in {"npadvmod"} and child.entity in {"DATE", "TIME"}:
            found += [
                (p, "on" if p.words > 2 else "in", [], False)
                for p in findings.read_arguments(child)
            ]
        elif child.dep == "advmod" and any(c.dep == "prep" for c in child.children):
            found += [
                (p, f"{child.word} {w}", [child.i, *t], False)
                for p, w, t in _list_preps(child, findings)
            ]
    objects = [c for c in verb.children if c.dep in {"dobj", "attr", "oprd"}]
    plain = [o for o in objects if o.dep == "dobj" and o.pos == "NOUN"]
    if plain:
        # "made in 1984" says little of "made his debut in 1984".
        words, base_tokens = word_noun(plain[0])
        base = [words]
    for phrase, prep, tokens in _list_preps(verb, findings):
        if not (copula and objects):
            found.append((phrase, " ".join([*base, prep]), [*base_tokens, *tokens], False))
    found += _list_antecedent_object(verb, findings)
    return found


def _list_object(
    noun: Node, verb: Node, findings: Findings
) -> list[tuple[Phrase, str, list[int], bool]]:
    """Return the direct object; "has" takes the object's noun into the relation."""
    negated = any(c.dep == "det" and c.word == "no" for c in noun.children)
    having = verb.lemma.lower() == "have"
    found: list[tuple[Phrase, str, list[int], bool]] = []
    for phrase in findings.read_arguments(noun, full=not having):
        root = findings.tree[phrase.root]
        words, tokens = word_noun(root)
        if having and root.pos == "NOUN":
            if phrase.text.lower() not in {words, root.word} or negated:
                found.append((phrase, words, tokens, negated))
        else:
            found.append((phrase, "", [], negated))
        if root.pos == "NOUN" and not phrase.resolved:
            found += [
                (p, f"{words} {w}", [*tokens, *t], negated)
                for p, w, t in _list_preps(root, findings)
                if w != "of" or having
            ]
    return found


def _list_preps(head: Node, findings: Findings) -> list[tuple[Phrase, str, list[int]]]:
    """Return (object, preposition words, their tokens) under `head`, chains of places unrolled."""
    found: list[tuple[Phrase, str, list[int]]] = []
    stack = [(c, [c]) for c in head.children if c.dep in {"prep", "agent"}]
    while stack:
        prep, path = stack.pop(0)
        words = " ".join(t.word for t in path)
        if words.startswith("according") or prep.pos not in {"ADP", "SCONJ", "VERB"}:
            continue
        for child in prep.children:
            if child.dep == "prep" and len(path) < 3:
                # "out of" is one relation; "from A to B" holds two, whatever the parser nests.
                adjacent = child.i == prep.i + 1
                stack.append((child, [*path, child] if adjacent else [child]))
            elif child.word in _PREPOSITION_NOUNS and (of := _find_of(child)) is not None:
                stack.append((of, [*path, child, of]))
            elif child.dep == "pobj" and is_nominal(child):
                for phrase in findings.read_arguments(child, full=True):
                    tokens = [t.i for t in path]
                    found.append((phrase, words, tokens))
                    if words in {"in", "at", "near", "on", "to", "from"}:
                        within = "in" if words in {"at", "near", "on"} else words
                        found += [
                            (p, within, [] if within != words else tokens)
                            for p in list_containers(phrase, findings.tree)
                        ]
    return found


def _find_of(noun: Node) -> Node | None:
    return next((c for c in noun.children if c.dep == "prep" and c.word == "of"), None)


def _list_antecedent_object(
    verb: Node, findings: Findings
) -> list[tuple[Phrase, str, list[int], bool]]:
    """Return the noun a relative clause leaves out: "the book (that) he wrote"."""
    if verb.dep != "relcl" or not any(c.dep == "nsubj" for c in verb.children):
        return []
    own = next(c for c in verb.children if c.dep == "nsubj")
    objects = [c for c in verb.children if c.dep in {"dobj", "attr"}]
    relative = [c for c in objects if c.tag in {"WDT", "WP"}]
    if own.tag in {"WDT", "WP"} or (objects and not relative) or own.i < verb.head.i:
        return []
    if any(c.tag == "WRB" for c in verb.children) or (not relative and _has_complement(verb)):
        return []
    return [(p, "", [], False) for p in findings.read_arguments(_lift_kind(verb.head))]


def _has_complement(verb: Node) -> bool:
    return any(c.dep in {"xcomp", "ccomp", "prep"} for c in verb.children)
