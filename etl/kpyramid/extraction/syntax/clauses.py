"""Frames of clauses: subjects, auxiliaries, objects, complements, circumstances."""

from __future__ import annotations

from collections.abc import Iterator

from kpyramid.extraction.syntax.kinds import MANNER_PHRASES, MANNERS, is_office
from kpyramid.extraction.syntax.polarity import WORDS as POLARITY
from kpyramid.extraction.syntax.predicates import (
    AUXILIARIES,
    MAX_HOPS,
    OBJECTS,
    RELATIVES,
    TIMES,
    VERBS,
    Frame,
    Kids,
    Part,
    find_infinitive_mark,
    find_noun_clause,
    group_kids,
    is_predicate,
)
from kpyramid.extraction.syntax.tree import WORDS, Node, Tree, find_first, is_counted

# Parts of a clause besides its subject: objects, complements, circumstances.

_PREPOSITIONS = frozenset({"prep", "agent", "dative"})
_PREPOSITION_NOUNS = WORDS["preposition_nouns"]
"""Nouns that belong to the prepositions around them: "on behalf of", "in front of"."""
_SECOND = frozenset({"to", "with"})
OCCASIONS = WORDS["occasions"]
CONNECTIVES = WORDS["connectives"]
"""Phrases that join sentences: they do not qualify their clause."""


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
        else:  # "there is a house in the wood": the place may depend on the house
            for child in node.children:
                if child.dep == "prep" and child.word != "of":
                    yield from list_prepositional(child)
    elif dep in _PREPOSITIONS:
        if _is_connective(node):
            return
        if node.pos == "ADP" or dep != "dative":
            yield from list_prepositional(node)
            manners = (c for c in node.children if c.dep == "advmod" and c.i == verb.i + 1)
            yield from (Part("adverb", c) for c in manners if _tells_way(c))
        else:
            yield Part("receiver", node)
    elif dep == "acomp":
        if verb is frame.verb:
            yield Part("quality", node)
    elif dep == "npadvmod":
        often = node.lemma == "time" and is_counted(node)
        yield Part("time" if often or node.entity in TIMES else "manner", node)
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
        grades = [
            c
            for c in node.children
            if (c.tag in {"RBR", "RBS"} or (c.word == "no" and preps)) and c.i < node.i
        ]  # "no later than at"
        for prep in preps:
            yield from list_prepositional(prep, (*grades, node))
        if not preps and node.tag not in RELATIVES:
            often = node.entity in TIMES and node.word.endswith("ly")
            yield Part("time" if often else "adverb", node)


def _tells_way(adverb: Node) -> bool:
    """Whether an adverb before a preposition is the verb's: "worked badly below the crag"."""
    return adverb.word.endswith("ly") and adverb.word not in POLARITY["sharing"]


def _is_connective(prep: Node) -> bool:
    first, last = prep.left_edge.i, prep.right_edge.i
    if not 0 < last - first < 4:
        return False
    return "_".join(node.word for node in prep.tree.nodes[first : last + 1]) in CONNECTIVES


def _is_independent(clause: Node, verb: Node) -> bool:
    """Whether a clause labelled as complement is a sentence of its own: "X left; Y stayed".

    It then precedes a verb that already has its object, or a semicolon.
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
    if prep.word == "of" and prep.i and prep.tree[prep.i - 1].word == "instead":
        return  # "0.25 instead of 0.20"
    opening = (*prep.tree.nodes[prep.left_edge.i : prep.i], *prep.children)
    denying = {n.i: n for n in opening if n.dep == "neg"}.values()  # "not at all from May to June"
    distances = [c for c in prep.children if c.dep == "npadvmod" and is_counted(c)]
    far = [
        n for c in distances for n in prep.tree.nodes[c.left_edge.i : c.i + 1]
    ]  # "30 days after"
    stack = [(prep, (*before, *denying, *far, prep))]
    most = 3 + len(before) + len(far)
    while stack:
        node, link = stack.pop()
        for child in node.children:
            if _is_second_half(child) and len(link) < most:
                stack.append((child, (*link, child)))
            elif child.dep == "prep" and len(link) < most:
                # "out of" is one relation; "from A to B" is two, even if the parser nests them.
                stack.append((child, (*link, child) if child.i == node.i + 1 else (child,)))
            elif child.word in _PREPOSITION_NOUNS and (of := _find_second(child)) is not None:
                stack.append((of, (*link, child, of)))
            elif (
                node.word == "until" and is_office(child.word) and child.left_edge.tag not in _KNOWN
            ):
                continue  # "Ann Lee, until March head of sales, joined the board"
            elif child.dep in {"pobj", "pcomp"}:
                role = "manner" if _tells_manner(child) else "preposition"
                yield Part("time" if child.entity in TIMES else role, child, link)


_KNOWN = frozenset({"DT", "PRP$"})
"""Tags of what opens no bare office: "until its merger with"."""


def list_led(quality: Node) -> list[Part]:
    """The prepositional phrases of an adjective: "higher in June than in May"."""
    preps = [c for c in quality.children if c.dep in {"prep", "agent"}]
    return [part for prep in preps for part in list_prepositional(prep)]


def _tells_manner(noun: Node) -> bool:
    """Whether a noun is a manner: "by hand", "by accident", not "by a hand"; "in a safe way"."""
    if noun.head.word == "in" and noun.word in _MANNER_NOUNS:
        whole = all(c.i < noun.i for c in noun.children)  # not "in a new way of making glass"
        return whole and noun.left_edge.word in {"a", "an"}
    completed = noun.left_edge is not noun or any(
        c.dep != "prep" or c.word == "of" for c in noun.children
    )
    led = noun.head.word == "by" and noun.word in MANNERS
    return not completed and (led or f"{noun.head.word}_{noun.word}" in MANNER_PHRASES)


_MANNER_NOUNS = frozenset({"fashion", "manner", "way"})


def _is_second_half(word: Node) -> bool:
    """Whether the word ends a preposition of two words: "due to", "because of"."""
    return word.dep == "pcomp" and word.i == word.head.i + 1 and word.tag in {"IN", "TO"}


def _find_second(noun: Node) -> Node | None:
    """The second preposition of a phrase with a noun between two: "behalf of", "respect to"."""
    return next(
        (
            c
            for c in noun.children
            if c.dep == "prep" and (c.word == "of" or (c.i == noun.i + 1 and c.word in _SECOND))
        ),
        None,
    )


def _fill_relative(part: Part, clause: Node | None) -> Part:
    """The part, with a relative word replaced by its antecedent."""
    if part.root.tag in RELATIVES and clause is not None and clause.dep == "relcl":
        return Part(part.role, clause.head, part.link, part.root)
    return part


def _find_gap(frame: Frame) -> Part | None:
    """The noun that a relative clause leaves out: "the book (that) he wrote"."""
    top, kids = frame.top, frame.kids
    if top.dep != "relcl" or frame.way == "antecedent":
        return None
    if any(dep in kids for dep in ("dobj", "attr", "oprd", "ccomp", "xcomp", "acomp")):
        return None
    preps = kids.get("prep", [])
    holders = (top, *preps, *frame.subjects)  # "whose team sits in Velm" leaves nothing out
    if any(c.tag in RELATIVES for node in holders for c in node.children):
        return None
    stranded = next((p for p in preps if not p.children), None)
    if stranded is not None:
        return Part("preposition", top.head, (stranded,), frame.verb)
    return None if "nsubjpass" in kids else Part("object", top.head, (), frame.verb)


# Subjects of a clause, verbs that govern it, and auxiliaries it shares.

_VERBAL = frozenset({"VERB", "AUX"})
_SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass")
MEANS = frozenset("use utilize utilise employ".split())
"""Verbs whose subject, not object, does what the infinitive after the object says."""
_SHARING = frozenset({"conj", "xcomp", "advcl", "pcomp", "ccomp"})
_CONSTRUCTIONS = {
    "conj": "conjunct",
    "relcl": "relative",
    "acl": "infinitive",
    "advcl": "adverbial",
    "ccomp": "complement",
    "csubj": "complement",
    "xcomp": "infinitive",
    "pcomp": "infinitive",
}


def read_frames(tree: Tree) -> dict[int, Frame]:
    """The clauses of a tree by the token of their verb, in text order."""
    verbs = [node for node in tree.nodes if is_predicate(node)]
    known = {verb.i: group_kids(verb) for verb in verbs}
    frames: dict[int, Frame] = {}
    for verb in verbs:
        subjects, way = _find_subjects(verb, known)
        frame = Frame(verb, known[verb.i], _name_construction(verb), subjects, way)
        frame.chain = _list_chain(verb, known)
        if not frame.chain and (governor := _find_governor(verb, known)) is not None:
            frame.chain, frame.noun = [governor], _find_object(verb, known[governor.i])
            frame.subjects, way = _find_subjects(governor, known)
            frame.way = "shared" if way == "own" else way
        frame.lender = _find_lender(frame.top, known)
        frame.clause = find_noun_clause(frame.top)
        frame.parts = sorted(list_parts(frame, known), key=lambda part: part.place)
        frames[verb.i] = frame
    for verb in reversed(verbs):
        _share_complement(frames[verb.i], frames)
    return frames


def _share_complement(frame: Frame, frames: dict[int, Frame]) -> None:
    """Give "born" the place in "was born and raised in Rome", which follows both verbs.

    The first verb has no parts of its own, only a conjunction separates it from the second, and
    the second has no object and the same voice.
    """
    verb = frame.verb
    later = next((c for c in frame.kids.get("conj", ()) if c.i in frames), None)
    if later is None or any(p.place > verb.i for p in frame.parts):
        return
    second = frames[later.i]
    between = verb.tree.nodes[verb.i + 1 : later.i]
    joined = all(c.dep in {"cc", "prt"} or c.text == "," for c in between)
    if not joined or not OBJECTS.isdisjoint(second.kids):
        return
    if _is_passive(frame, frames) != _is_passive(second, frames):
        return
    end = max([later.i, *(c.i for c in second.kids.get("prt", ()))])
    frame.parts += [p for p in second.parts if p.link and p.link[0].i == end + 1]


def _is_passive(frame: Frame, frames: dict[int, Frame]) -> bool:
    lender = frames[frame.lender.i] if frame.lender is not None else frame
    return any(dep in each.kids for each in (frame, lender) for dep in ("auxpass", "nsubjpass"))


def _name_construction(verb: Node) -> str:
    if verb.tag in {"VBN", "VBG"} and verb.dep in {"advcl", "acl", "pcomp"}:
        return "participle"
    return _CONSTRUCTIONS.get(verb.dep, "main")


def _list_direct_subjects(kids: Kids) -> list[Node]:
    """Subjects; only the clause in "what needs structure is asked", whose noun is parsed as one."""
    subjects = [node for dep in _SUBJECTS for node in kids.get(dep, ())]
    clause = next((node for node in subjects if node.dep.startswith("csubj")), None)
    return [n for n in subjects if clause is None or n is clause or n.i < clause.i]


def _find_subjects(verb: Node, known: dict[int, Kids]) -> tuple[list[Node], str]:
    way, node = "own", verb
    for _ in range(MAX_HOPS):
        kids = known.get(node.i)
        if kids is None:
            break
        nouns = _list_direct_subjects(kids)
        if nouns:
            if node.dep == "relcl" and nouns[0].tag in RELATIVES and node.head.pos not in _VERBAL:
                return [node.head], "antecedent"
            return nouns, way
        if "expl" in kids and (there := kids.get("attr") or kids.get("dobj")):
            return there[:1], "existential"
        head = node.head
        if head is node:
            break
        if node.dep == "relcl" or (node.dep == "acl" and node.tag in {"VBN", "VBG"}):
            if node.tag == "VB" and head.lemma in OCCASIONS:
                break  # "the reason to sell": a reason sells nothing
            if head.pos not in _VERBAL:
                return [head], "antecedent"
        elif (
            node.dep == "xcomp"
            and head.lemma not in VERBS["subject_control"]
            and (controlled := known.get(head.i, {}).get("dobj"))
        ):
            return controlled, "object_control"
        elif node.dep not in _SHARING or not _is_subjectless(node):
            break
        if head.pos in {"ADP", "ADJ", "ADV", "SCONJ"}:
            head = head.head  # "able to go", "by going"
        node, way = head, "shared"
    return [], "none"


def _is_subjectless(verb: Node) -> bool:
    """Whether the verb's form needs no subject: that of conjuncts and non-finite verbs."""
    if verb.dep in {"advcl", "ccomp"}:
        bare = verb.tag == "VB" and find_infinitive_mark(verb) is None
        first = verb.left_edge.i
        opens = first == verb.tree.sentences[verb.sentence][0] or verb.tree[first - 1].text == ";"
        opens = opens and verb.i < verb.head.i
        commands = bare and (opens or any(c.tag == "MD" for c in verb.children))
        return verb.tag in {"VB", "VBG", "VBN"} and not commands
    return verb.dep != "conj" or verb.tree[verb.i - 1].text != ":"  # "is full: put it back"


def _list_chain(verb: Node, known: dict[int, Kids]) -> list[Node]:
    """The predicates above that merge with the verb: begin, want, be able."""
    chain: list[Node] = []
    node = verb
    for _ in range(MAX_HOPS):
        head = node.head
        if _list_direct_subjects(known[node.i]):
            break
        if node.dep == "conj" and head.dep == "xcomp" and node.tag == head.tag and head.i in known:
            node = head
            continue
        if node.dep != "xcomp" or head is node or node.tag == "VBD":
            break
        if head.dep == "acomp":
            head = head.head
        if head.i not in known or not OBJECTS.isdisjoint(known[head.i]):
            break
        chain.append(head)
        node = head
    return chain[::-1]


def _find_governor(verb: Node, known: dict[int, Kids]) -> Node | None:
    """The verb above an infinitive of its object ("has a chance to win") or of its purpose.

    A verb with a receiver does not govern: who is given a chance is the one who wins.
    """
    while verb.dep == "conj" and verb.tag == verb.head.tag == "VB" and verb.head.i in known:
        if _list_direct_subjects(known[verb.i]):
            return None
        verb = verb.head  # "has the power to uplift and bring together"
    if verb.tag != "VB" or verb.dep not in {"acl", "advcl", "xcomp"}:
        return None
    kids = known[verb.i]
    if _list_direct_subjects(kids) or all(node.tag != "TO" for node in kids.get("aux", ())):
        return None
    head = verb.head
    if verb.dep == "acl":
        governor = head.head
        if "expl" in known.get(governor.i, {}):
            return None  # "there is a plan to move": the plan is the subject
        if head.dep == "attr" and head.lemma in OCCASIONS:
            return None
        fits = head.dep in {"dobj", "attr"} and "dative" not in known.get(
            governor.i, {"dative": []}
        )
        return governor if fits else None
    if head.i not in known or head.i > verb.i:
        return None
    if any(c.dep == "prep" and c.word == "of" for c in head.children):
        return None  # "consists of tests to find it"
    return head if verb.dep == "advcl" or head.lemma in MEANS else None


def _find_object(verb: Node, kids: Kids) -> Node | None:
    """The noun between a governing verb and its infinitive, which may be coordinated."""
    verb = find_first(verb)
    if verb.dep == "acl":
        return verb.head
    return next(iter(kids.get("dobj") or kids.get("oprd") or []), None)


def _is_alike(verb: Node, first: Node) -> bool:
    """Whether both verbs have one form: "do not take blood, give (VBP) it or discuss it"."""
    joining = {c.word for each in (verb, first) for c in each.children if c.dep == "cc"}
    base = {verb.tag, first.tag} == {"VB", "VBP"} and not joining.isdisjoint({"or", "nor"})
    either = {verb.tag, first.tag} == {"VBD", "VBN"} and verb.word == verb.lemma  # "cost", "put"
    return verb.tag == first.tag or base or (either and verb.tag == "VBD")


def _find_lender(verb: Node, known: dict[int, Kids]) -> Node | None:
    """The verb whose auxiliaries a coordinated verb shares ("was built and opened")."""
    node = verb
    for _ in range(MAX_HOPS):
        kids = known[node.i]
        if any(dep in kids for dep in AUXILIARIES):
            return node if node is not verb else None
        head = node.head
        if node.dep != "conj" or not _is_alike(verb, head) or head.i not in known:
            return None
        if _list_direct_subjects(kids):
            return None
        node = head
    return None
