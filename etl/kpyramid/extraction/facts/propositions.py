"""Propositions: n-ary facts of clauses and nominals, with their arguments worded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, pairwise, product

from kpyramid.documents.sentences import Span
from kpyramid.extraction.facts.candidates import Candidate, Findings
from kpyramid.extraction.facts.coreference import Antecedents
from kpyramid.extraction.facts.nominals import find_nominal_facts
from kpyramid.extraction.facts.scoring import Features, estimate_confidence
from kpyramid.extraction.syntax.clauses import list_prepositional
from kpyramid.extraction.syntax.polarity import is_denied
from kpyramid.extraction.syntax.predicates import (
    MAX_HOPS,
    Frame,
    Part,
    Predicate,
    count_clauses_above,
    is_copula,
    list_merged,
    read_predicate,
    word_group,
)
from kpyramid.extraction.syntax.stance import read_stance
from kpyramid.extraction.syntax.tree import PLACES, Node, Phrase, Tree, is_nominal, list_conjuncts
from kpyramid.extraction.types import Argument, Proposition

# The words of an argument.

Rename = Callable[[Node], str | None] | None
"""The replacement of a pronoun, None where there is none."""
MAX_TOKENS = 80
"""The most tokens of an argument, so that nested clauses cost linear time."""
_BRACKETS = frozenset({("(", ")"), ("[", "]")})
ENCLOSING = frozenset({",", "(", ")", "--", "\u2013", "\u2014"})
_EDGES = frozenset(",;:.-") | {"--", "\u2013", "\u2014", "..."}
_BREAKS = frozenset(",;:(") | {"--", "\u2013", "\u2014", "-LRB-"}
_CLOSING = {"(": ")", "[": "]", "``": "''", "`": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
_OPENING = {close: start for start, close in _CLOSING.items()} | {"''": "``"}
_ADDITIONS = frozenset({"relcl", "appos", "acl", "advcl", "parataxis", "dep"})
_COORDINATION = frozenset({"conj", "cc", "preconj"})


def collect_phrase(root: Node, split: bool = False, bare: Node | None = None) -> list[int]:
    """The tokens of a noun phrase, without non-restrictive additions.

    Relative clauses, appositions and participles after a comma or dash are left out; so are
    coordinated phrases where the phrase is `split`, and the clause `bare`.
    """
    tokens, stack, cut = [root.i], [root], False
    while stack and len(tokens) < MAX_TOKENS:
        node = stack.pop()
        for child in node.children:
            dep = child.dep
            if split and node is root and dep in _COORDINATION:
                continue
            if child is bare:
                cut = True
                continue
            within = node.entity in PLACES and child.entity in PLACES  # "Rome, Italy"
            if dep in _ADDITIONS and not within and child.i > node.i and _is_parted(child):
                cut = True
                continue
            tokens.append(child.i)
            stack.append(child)
    tokens.sort()
    tokens = _drop_bracket(root.tree, tokens)
    return trim_edges(root.tree, _drop_enclosing(root.tree, tokens) if cut else tokens)


def _drop_bracket(tree: Tree, tokens: list[int]) -> list[int]:
    """The tokens without those in a bracket right after a name: dates, other spellings."""
    nodes, left, end = tree.nodes, [], -1
    for i in tokens:
        if i <= end:
            continue
        left.append(i)
        if nodes[i].pos == "PROPN" and i + 1 < len(nodes) and nodes[i + 1].text == "(":
            limit = min(i + MAX_TOKENS, len(nodes))
            end = next((j for j in range(i + 2, limit) if nodes[j].text == ")"), end)
    return left


def _drop_enclosing(tree: Tree, ids: list[int]) -> list[int]:
    """The tokens without the commas and brackets around omitted ones."""
    among = set(ids)
    return [i for i in ids if tree[i].text not in ENCLOSING or (i - 1 in among and i + 1 in among)]


def collect_clause(root: Node) -> list[int]:
    """The tokens of a clause and its dependents."""
    tokens, stack = [root.i], [root]
    while stack and len(tokens) < MAX_TOKENS:
        for child in stack.pop().children:
            tokens.append(child.i)
            stack.append(child)
    return trim_edges(root.tree, sorted(tokens))


def _is_parted(child: Node) -> bool:
    edge, nodes = child.left_edge.i, child.tree.nodes
    return nodes[edge].text in _BREAKS or (edge > 0 and nodes[edge - 1].text in _BREAKS)


def trim_edges(tree: Tree, tokens: list[int]) -> list[int]:
    """The tokens without punctuation at the edges and without half a pair of brackets."""
    first, last = 0, len(tokens)
    while first < last and _is_edge(tree, tokens, first, last, first, _CLOSING):
        first += 1
    while last > first and _is_edge(tree, tokens, first, last, last - 1, _OPENING):
        last -= 1
    if last - first > 2:
        pair = (tree[tokens[first]].text, tree[tokens[last - 1]].text)
        if pair in _BRACKETS:
            first, last = first + 1, last - 1
    return tokens[first:last]


def _is_edge(
    tree: Tree, tokens: list[int], first: int, last: int, index: int, pairs: dict[str, str]
) -> bool:
    node = tree.nodes[tokens[index]]
    if node.text in _EDGES or node.pos == "CCONJ":
        return True
    counterpart = pairs.get(node.text)
    return counterpart is not None and all(tree[i].text != counterpart for i in tokens[first:last])


def write_words(tree: Tree, tokens: Iterable[int], rename: Rename = None) -> tuple[str, bool]:
    """The text of the tokens in the order given, and whether no word of it was renamed."""
    nodes = tree.nodes
    text, previous, literal = "", None, True
    for i in tokens:
        node = nodes[i]
        if previous is not None and (previous.i != i - 1 or previous.space):
            text += " "
        name = rename(node) if rename is not None and node.pos == "PRON" else None
        literal = literal and name is None
        text += node.text if name is None else name
        previous = node
    return " ".join(text.split()), literal


def find_span(tree: Tree, tokens: list[int], text: str) -> Span | None:
    """The span of the tokens; None where they have gaps or its text is not `text`.

    White space counts as one blank.
    """
    if any(after != before + 1 for before, after in pairwise(tokens)):
        return None
    span = Span(tree[tokens[0]].idx, tree[tokens[-1]].end)
    literal = tree.text[span.start : span.end]
    return span if literal == text or " ".join(literal.split()) == text else None


# The arguments of a clause: the first, and the others with the words that introduce them.

CLAUSES = frozenset({"clause", "purpose", "circumstance"})
_LOCATIVE = frozenset("in at on near within inside outside".split())
_MAX_CIRCUMSTANCE = 10
"""The most tokens of an adverbial clause as an argument; a longer one is a fact of its own."""


@dataclass(frozen=True, slots=True)
class Side:
    """The first argument after the subject, and the words that join the predicate with it."""

    part: Part | None
    quality: Node | None
    rest: list[Part]


def choose_side(frame: Frame) -> Side:
    """The object, else the quality, else the object of a preposition."""
    parts = frame.parts
    first = {part.role: part for part in reversed(parts)}
    chosen = first.get("object") or first.get("attribute")
    quality = first.get("quality")
    if chosen is None and quality is not None:
        led = [
            part
            for child in quality.root.children
            if child.dep == "prep" and child.i > quality.root.i
            for part in list_prepositional(child)
        ]
        rest = [*led[1:], *(p for p in parts if p is not quality)]
        return Side(led[0], quality.root, rest) if led else Side(quality, None, rest)
    chosen = chosen or first.get("clause")
    if chosen is None:
        others = (p for p in parts if p.role == "preposition")
        after = (p for p in others if p.gap is not None or p.place > frame.verb.i)
        chosen = next(after, first.get("purpose"))
    return Side(chosen, None, [p for p in parts if p is not chosen and p is not quality])


def list_quality(quality: Node) -> list[int]:
    """The adjective that joins the predicate: "is very fond of"."""
    before = (c for c in quality.children if c.i < quality.i and c.dep in {"advmod", "neg"})
    return [*(c.i for c in before), quality.i]


def list_subjects(frame: Frame, frames: dict[int, Frame]) -> list[Node]:
    """The heads of the subjects; a noun that only names a kind is replaced by its subject."""
    if frame.way != "antecedent":
        return frame.subjects
    return [lift_kind(noun, frames) for noun in frame.subjects]


def lift_kind(noun: Node, frames: dict[int, Frame]) -> Node:
    """Return the subject of "S is a <noun>" or the name before ", a <noun>", else the noun."""
    node = noun
    kind = noun.pos == "NOUN" or any(c.word in {"a", "an"} for c in noun.children)
    for _ in range(4):
        if node.pos == "PROPN" and node is not noun:
            return node
        if node.dep == "conj" and node.pos == "NOUN":
            node = node.head
        elif node.dep == "attr" and node.head.lemma == "be" and kind:
            above = frames.get(node.head.i)
            subjects = above.subjects if above is not None else []
            if not subjects or subjects[0] is node or subjects[0].word in {"this", "that"}:
                return noun
            return subjects[0]
        elif node.dep == "appos" and kind:
            node = node.head
        else:
            break
    return node if node.pos == "PROPN" else noun


def write_subject(root: Node, apart: bool, frame: Frame, rename: Rename) -> Argument | None:
    """The subject as an argument; `apart` leaves out coordinated nouns."""
    bare = frame.clause if frame.way == "antecedent" else None
    if frame.way == "existential":  # a phrase under "a house" is its place
        bare = next((c for c in root.children if c.dep == "prep" and c.word != "of"), None)
    return _write_argument("subject", _collect(root, apart, bare), (), root.tree, rename)


def write_object(
    root: Node, apart: bool, part: Part, frame: Frame, rename: Rename
) -> Argument | None:
    """The first argument after the subject, without the words that join the predicate."""
    if part.role in CLAUSES or part.role == "quality":
        link = {node.i for node in part.link}
        tokens = trim_edges(root.tree, [i for i in collect_clause(root) if i not in link])
    else:
        tokens = _collect(root, apart, frame.clause if part.gap is not None else None)
    return _write_argument(_name_role(part), tokens, (), root.tree, rename)


def write_others(
    frame: Frame,
    parts: Iterable[Part],
    frames: dict[int, Frame],
    predicate: list[int],
    rename: Rename,
) -> Iterator[Argument | None]:
    """The other arguments with the words that introduce them; those before the verb come last.

    `predicate`: the tokens of the predicate. None for an argument without words.
    """
    for part in sorted(parts, key=lambda part: part.place < frame.top.i):
        if part.role == "circumstance":
            if part.root.right_edge.i - part.root.left_edge.i > _MAX_CIRCUMSTANCE:
                continue
        elif part.role == "adverb" and (part.root.i in predicate or is_connective(part.root)):
            continue
        yield _write_part(part, frame.clause if part.gap is not None else None, rename)
    for part in list_fronted(frame, frames, shared=True):
        if part.role == "time":
            yield _write_part(part, None, rename)


def list_fronted(frame: Frame, frames: dict[int, Frame], shared: bool) -> list[Part]:
    """The parts before the first subject of coordinated verbs; `shared`: if they share it."""
    verb = frame.verb
    while verb.dep == "conj" and verb.head.i in frames and (verb is frame.verb or not shared):
        verb = verb.head
    above = frames.get(verb.i) if verb is not frame.verb else None
    if above is None or not above.subjects or (shared and above.subjects != frame.subjects):
        return []
    start = above.subjects[0].left_edge.i
    return [part for part in above.parts if part.place < start]


def _write_part(part: Part, bare: Node | None, rename: Rename) -> Argument | None:
    whole = part.role in CLAUSES
    tokens = collect_clause(part.root) if whole else _collect(part.root, False, bare)
    return _write_argument(_name_role(part), tokens, part.link, part.root.tree, rename)


def is_connective(adverb: Node) -> bool:
    """Whether a comma sets the adverb off: "however", "moreover"."""
    tree, after = adverb.tree, adverb.right_edge.i + 1
    return after < len(tree) and tree[after].text == ","


def _collect(root: Node, apart: bool, bare: Node | None) -> list[int]:
    if root.pos in {"VERB", "AUX"} and root.tag != "VBN":
        return collect_clause(root)
    return collect_phrase(root, apart, bare)


def _write_argument(
    role: str, tokens: list[int], link: tuple[Node, ...], tree: Tree, rename: Rename
) -> Argument | None:
    if not tokens:
        return None
    led = {node.i for node in link}
    joined = [*sorted(led), *(i for i in tokens if i not in led)] if led else tokens
    text, literal = write_words(tree, joined, rename)
    if not any(character.isalnum() for character in text):
        return None
    return Argument(role, text, find_span(tree, joined, text) if literal else None)


def _name_role(part: Part) -> str:
    if part.role != "preposition":
        return "object" if part.role in {"attribute", "quality"} else part.role
    words = " ".join(node.word for node in part.link)
    return "place" if part.root.entity in PLACES and words in _LOCATIVE else words


# Propositions of noun phrases: relations between two of them, with all their words.

_PREDICATES = {"is a": "is", "has title": "is", "is located in": "is in"}
"""The predicates of relations whose article is in the argument."""


def _write_nominal(candidate: Candidate, tree: Tree) -> Iterator[tuple[Proposition, Features]]:
    head, tail = candidate.head, candidate.tail
    first, second = _list_words(head, tail, tree), _list_words(tail, head, tree)
    subject = _write_argument("subject", first, (), tree, None)
    goal = _write_argument("object", second, (), tree, None)
    if subject is None or goal is None:
        return
    start, end = tree.sentences[tree[tail.root].sentence]
    features = Features(
        candidate.construction,
        sentence_words=end - start,
        subject_words=len(first),
        object_words=len(second),
        subject_named=head.is_named,
        object_named=tail.is_named,
        inferred_predicate=True,
    )
    span = Span(tree[min(first[0], second[0])].idx, tree[max(first[-1], second[-1])].end)
    predicate = _PREDICATES.get(candidate.relation, candidate.relation)
    confidence = estimate_confidence(features)
    yield Proposition(predicate, (subject, goal), span, confidence=confidence), features


def _list_words(phrase: Phrase, partner: Phrase, tree: Tree) -> list[int]:
    """The tokens of a phrase, without those of its partner and the words that introduce it."""
    root, node = tree[phrase.root], tree[partner.root]
    for _ in range(MAX_HOPS):
        if node.head is root:
            break
        node = node.head
    tokens = collect_phrase(root, split=True, bare=node)
    # "author Bill Hart": the title depends on the name; the parse of dates in brackets is a guess.
    if phrase.first not in tokens or "compound" in {root.dep, tree[partner.root].dep}:
        return list(range(phrase.first, phrase.last + 1))
    edges = {tokens[0], tokens[-1]}
    return [i for i in tokens if i not in edges or tree[i].tag not in {"POS", "WP$"}]


# Propositions of a clause: predicate, subject, and every complement and adjunct.

_MAX_SPLITS = 12
"""The most propositions of a clause with coordinated subjects and objects."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a clause, except its subject and first object.

    `tokens`: the predicate's tokens in the clause; `others`: the later arguments.
    """

    text: str
    tokens: list[int]
    predicate: Predicate
    side: Side
    others: tuple[Argument, ...]


def list_propositions(tree: Tree) -> tuple[Proposition, ...]:
    """The propositions of every clause in text order, then those of noun phrases."""
    return tuple(each for each, _ in draft_propositions(tree))


def draft_propositions(tree: Tree) -> Iterator[tuple[Proposition, Features]]:
    """The distinct propositions with the features of their confidence."""
    findings = Findings(tree, Antecedents(Tree("", [], [])))  # pronouns stay
    find_nominal_facts(findings)
    frames, merged = findings.frames, list_merged(findings.frames)
    stated = (f for f in frames.values() if f.subjects and f.verb.i not in merged)
    # A heading without a verb states nothing.
    sentences = {frame.verb.sentence for frame in frames.values()}
    related = (c for c in findings.candidates if c.construction != "relation")
    named = (c for c in related if tree[c.tail.root].sentence in sentences)
    known: set[tuple[str, ...]] = set()
    for pair in chain(
        chain.from_iterable(_write_frame(frame, frames) for frame in stated),
        chain.from_iterable(_write_nominal(candidate, tree) for candidate in named),
    ):
        key = (pair[0].predicate, *(argument.text for argument in pair[0].arguments))
        if key not in known:
            known.add(key)
            yield pair


def word_clause(frame: Frame, frames: dict[int, Frame], rename: Rename = None) -> Wording:
    """The predicate and later arguments of a clause, pronouns renamed."""
    tree = frame.verb.tree
    predicate = read_predicate(frame, frames)
    side = choose_side(frame)
    tokens = predicate.tokens
    if side.quality is not None:
        tokens = sorted({*tokens, *list_quality(side.quality)})
    link = [node.i for node in side.part.link] if side.part is not None else []
    words = [write_words(tree, part)[0] for part in (predicate.lent, tokens, link)]
    words.insert(1, predicate.be or "")
    others = tuple(filter(None, write_others(frame, side.rest, frames, tokens, rename)))
    text = " ".join(filter(None, words))
    opening = tree[tokens[0]]
    if opening.i == tree.sentences[opening.sentence][0] and opening.pos != "PROPN":
        text = text.replace(opening.text, opening.word, 1)
    return Wording(text, tokens, predicate, side, others)


def state_clause(
    frame: Frame, frames: dict[int, Frame], subject: Argument | None, rename: Rename
) -> tuple[str, tuple[Argument, ...]]:
    """Predicate and arguments of a clause as one fact; coordinated phrases are not split."""
    wording = word_clause(frame, frames, rename)
    part, text, verb = wording.side.part, wording.text, frame.verb
    be = wording.predicate.be
    if be is not None and verb.tag == "VBG":  # "..., printing money": prints
        finite = word_group(frame, frames, be in {"are", "were"}).text
        text = text.replace(f"{be} {verb.text}", finite, 1)
    if subject is None:
        subject = write_subject(list_subjects(frame, frames)[0], False, frame, rename)
    first = write_object(part.root, False, part, frame, rename) if part is not None else None
    stated = tuple(each for each in (subject, first) if each is not None)
    return text, (*stated, *wording.others)


def _write_frame(frame: Frame, frames: dict[int, Frame]) -> Iterator[tuple[Proposition, Features]]:
    tree = frame.verb.tree
    wording = word_clause(frame, frames)
    part, predicate = wording.side.part, wording.predicate
    stance = read_stance(frame, frames)
    source, modality = stance.source, stance.mood or predicate.modality
    negated = stance.negated
    attribution = None
    if source is not None:
        attribution = write_words(
            tree, collect_phrase(source) if is_nominal(source) else [source.i]
        )[0]
    groups = [list(list_conjuncts(subject)) for subject in list_subjects(frame, frames)]
    subjects = [
        (subject, write_subject(subject, len(group) > 1, frame, None))
        for group in groups
        for subject in group[:_MAX_SPLITS]
    ]
    objects: list[tuple[Node | None, Argument | None]] = [(None, None)]
    if part is not None:
        heads = [part.root] if part.role in CLAUSES else list(list_conjuncts(part.root))
        objects = [(o, write_object(o, len(heads) > 1, part, frame, None)) for o in heads]
    split = len(subjects) > 1 or len(objects) > 1
    last = wording.tokens[-1]
    span = Span(tree[wording.tokens[0]].idx, tree[last].end)
    first, end = tree.sentences[frame.verb.sentence]
    depth = count_clauses_above(frame.verb, frames)
    longest = max((each.text.count(" ") + 1 for each in wording.others), default=0)
    for (subject, agent), (target, goal) in islice(product(subjects, objects), _MAX_SPLITS):
        if agent is None or (target is not None and goal is None):
            continue
        arguments = (agent, *wording.others) if goal is None else (agent, goal, *wording.others)
        features = Features(
            frame.construction,
            depth,
            end - first,
            wording.text.count(" ") + 1,
            agent.text.count(" ") + 1,
            goal.text.count(" ") + 1 if goal is not None else 0,
            longest,
            len(arguments),
            subject_named=subject.pos == "PROPN",
            object_named=target is not None and target.pos == "PROPN",
            subject_pronoun=subject.pos == "PRON",
            object_pronoun=target is not None and target.pos == "PRON",
            object_clause=part is not None and part.role in CLAUSES,
            indirect_subject=frame.way != "own",
            inferred_predicate=predicate.be is not None,
            split=split,
            passive="auxpass" in frame.kids,
            copula=is_copula(frame.verb),
            negated=negated,
            modal=modality is not None,
            attributed=attribution is not None,
            preposition=part is not None and bool(part.link),
        )
        proposition = Proposition(
            wording.text,
            arguments,
            span,
            negated or is_denied(subject) or is_denied(target),
            modality,
            attribution,
            estimate_confidence(features),
        )
        yield proposition, features
