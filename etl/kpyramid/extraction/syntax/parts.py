"""The parts of a clause besides its subject: objects, complements, circumstances."""

from __future__ import annotations

from collections.abc import Iterator

from kpyramid.extraction.syntax.frames import OBJECTS, RELATIVES, TIMES, Frame, Kids, Part
from kpyramid.extraction.syntax.tree import Node

_PREPOSITIONS = frozenset({"prep", "agent", "dative"})
_PREPOSITION_NOUNS = frozenset(
    (
        "behalf front favor favour support charge terms addition recognition honor honour memory "
        "response accordance spite lieu"
    ).split()
)
"""Nouns that belong to the prepositions around them: "on behalf of", "in front of"."""
_BARE_ONLY = frozenset("recognition honor honour memory response accordance spite".split())
_CONNECTIVES = frozenset(
    (
        "for example,for instance,in addition,in conclusion,in fact,in contrast,by contrast,"
        "in general,in particular,in short,in turn,in other words,of course,as a result,"
        "on the other hand,on the contrary,above all,after all,at all,as well"
    ).split(",")
)
"""Phrases that join sentences: they say nothing of the clause they stand in."""


def list_parts(frame: Frame, known: dict[int, Kids]) -> Iterator[Part]:
    for verb in (*frame.chain, frame.verb):
        for dep, nodes in known[verb.i].items():
            for node in nodes:
                if node is frame.verb or node is frame.noun:
                    continue
                for part in _read_part(node, dep, verb, frame):
                    yield _fill_relative(part, frame.clause)
    gap = _find_gap(frame)
    if gap is not None:
        yield gap


def _read_part(node: Node, dep: str, verb: Node, frame: Frame) -> Iterator[Part]:
    if dep in OBJECTS:
        if node not in frame.subjects:
            yield Part("attribute" if dep == "attr" else "object", node)
        else:  # "there is a house in the wood": the place may hang on the house
            for child in node.children:
                if child.dep == "prep" and child.word != "of":
                    yield from list_prepositional(child)
    elif dep in _PREPOSITIONS:
        if _is_connective(node):
            return
        if node.pos == "ADP" or dep != "dative":
            yield from list_prepositional(node)
        else:
            yield Part("receiver", node)
    elif dep == "acomp":
        if verb is frame.verb:
            yield Part("quality", node)
    elif dep == "npadvmod":
        yield Part("time" if node.entity in TIMES else "manner", node)
    elif dep == "ccomp":
        if not _is_independent(node, verb):
            yield Part("clause", node, tuple(c for c in node.children if c.dep == "mark"))
    elif dep == "xcomp":
        if verb is frame.verb:
            yield Part("purpose", node)
    elif dep == "advcl":
        if any(c.dep == "mark" or c.tag in {"TO", "WRB"} for c in node.children):
            yield Part("circumstance", node)
    elif dep == "advmod":
        preps = [c for c in node.children if c.dep == "prep"]
        for prep in preps:
            yield from list_prepositional(prep, (node,))
        if not preps and node.tag not in RELATIVES:
            yield Part("adverb", node)


def _is_connective(prep: Node) -> bool:
    first, last = prep.left_edge.i, prep.right_edge.i
    if not 0 < last - first < 4:
        return False
    return " ".join(node.word for node in prep.tree.nodes[first : last + 1]) in _CONNECTIVES


def _is_independent(clause: Node, verb: Node) -> bool:
    """Whether what the parser calls a complement is a sentence of its own: "X left; Y stayed".

    It then stands before a verb that has its object already, or before a semicolon.
    """
    if clause.i > verb.i:
        return False
    return any(
        (c.dep in {"dobj", "attr", "acomp", "ccomp"} and c is not clause) or c.text in {";", ":"}
        for c in (*verb.children, *clause.children)
        if c.head is verb or c.dep == "punct"
    )


def list_prepositional(prep: Node, before: tuple[Node, ...] = ()) -> Iterator[Part]:
    """The objects of a preposition and of those nested in it; `before` are words in front."""
    stack = [(prep, (*before, *(c for c in prep.children if c.dep == "neg"), prep))]
    while stack:
        at, link = stack.pop()
        for child in at.children:
            if child.dep == "prep" and len(link) < 3:
                # "out of" is one relation; "from A to B" holds two, whatever the parser nests.
                stack.append((child, (*link, child) if child.i == at.i + 1 else (child,)))
            elif child.word in _PREPOSITION_NOUNS and (of := _find_of(child)) is not None:
                bare = all(c is of for c in child.children)
                if bare or child.word not in _BARE_ONLY:
                    stack.append((of, (*link, child, of)))
                else:  # "in the memory of the machine"
                    yield Part("preposition", child, link)
            elif child.dep in {"pobj", "pcomp"}:
                yield Part("time" if child.entity in TIMES else "preposition", child, link)


def _find_of(noun: Node) -> Node | None:
    return next((c for c in noun.children if c.dep == "prep" and c.word == "of"), None)


def _fill_relative(part: Part, clause: Node | None) -> Part:
    """The part, with what a relative word stands for in its place."""
    if part.root.tag in RELATIVES and clause is not None and clause.dep == "relcl":
        return Part(part.role, clause.head, part.link, part.root)
    return part


def _find_gap(frame: Frame) -> Part | None:
    """The noun that a relative clause leaves out: "the book (that) he wrote"."""
    top, kids = frame.top, frame.kids
    if top.dep != "relcl" or frame.way == "antecedent" or top.head in frame.subjects:
        return None
    if any(dep in kids for dep in ("dobj", "attr", "oprd", "ccomp", "xcomp", "acomp")):
        return None
    preps = kids.get("prep", [])
    if any(c.tag in RELATIVES for at in (top, *preps) for c in at.children if c.dep != "dobj"):
        return None
    stranded = next((p for p in preps if not p.children), None)
    if stranded is not None:
        return Part("preposition", top.head, (stranded,), frame.verb)
    return None if "nsubjpass" in kids else Part("object", top.head, (), frame.verb)
