"""Candidate facts: the proposals of the grammar rules, and reasons to reject them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from simplemma import is_known

from kpyramid.documents.sentences import Dropped, Span
from kpyramid.documents.values import MONTH, MONTHS
from kpyramid.documents.words import (
    ARTICLES,
    AUXILIARIES,
    BE,
    HAVE,
    MODALS,
    PREPOSITIONS,
    name_owner,
    read_words,
)
from kpyramid.extraction.facts.coreference import Antecedents, find_counted, is_episodic
from kpyramid.extraction.syntax.clauses import read_frames
from kpyramid.extraction.syntax.kinds import is_office, is_person_noun
from kpyramid.extraction.syntax.polarity import NOBODY, is_instead
from kpyramid.extraction.syntax.predicates import (
    SUBJECTS,
    TIMES,
    VERBS,
    Frame,
    VerbGroup,
    find_noun_clause,
)
from kpyramid.extraction.syntax.stance import Stance, is_general
from kpyramid.extraction.syntax.tree import (
    FULL_WORDS,
    LITERALS,
    MAX_WORDS,
    PLACES,
    Node,
    Phrase,
    Tree,
    build_phrase,
    find_close_name,
    find_first,
    find_phrase,
    is_counted,
    is_inside_word,
    list_conjuncts,
)
from kpyramid.extraction.types import MAX_RELATION_WORDS

WORDS = read_words(__file__, "words.toml")
"""Lists of words; `words.toml` says what each is for."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed fact; `clause` is the verb's token of its clause, None if from a phrase.

    `construction` of a noun phrase: "apposition", "title" or "noun"; "relation" is a part of an
    apposition that the n-ary fact has as a whole; "possessive" and "place" are too vague for a
    triple.
    """

    clause: int | None
    head: Phrase
    relation: str
    tail: Phrase
    tokens: tuple[int, ...] = ()
    negated: bool = False
    modality: str | None = None
    indirect: bool = False
    construction: str = ""


_ANY = SUBJECTS | {"dobj", "pobj", "attr"}
PLURAL = frozenset({"NNS", "NNPS"})
ADDRESSED = frozenset({"you", "one", "your", "yours", "yourself"})
"""Pronouns for a reader, who may be anybody."""


@dataclass(slots=True)
class Findings:
    """The shared state of the rules while they read one document."""

    tree: Tree
    antecedents: Antecedents
    candidates: list[Candidate] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    claim_heads: dict[int, Phrase] = field(default_factory=dict)
    advice: list[Node] = field(default_factory=list)
    """Verbs of clauses addressed to the reader, which are claims, not facts."""
    stances: dict[int, Stance] = field(default_factory=dict)
    """The stance of the clauses that yield candidates, by their verb's token."""
    reported: dict[int, Stance] = field(default_factory=dict)
    """The stance of the tokens in quotations, plots and supposed cases."""
    frames: dict[int, Frame] = field(init=False)
    """The clauses by their verb's token."""

    def __post_init__(self) -> None:
        self.frames = read_frames(self.tree)

    def drop(self, reason: str, first: int, last: int) -> None:
        """Record the tokens `first`..`last` as a candidate rejected for `reason`."""
        span = Span(self.tree[first].idx, self.tree[last].end)
        text = self.tree.text[span.start : span.end]
        if text.strip():
            self.dropped.append(Dropped(reason, text, span))

    def drop_silent(self) -> None:
        """Reject each sentence without a candidate or a reject, as `no_statement`."""
        sentences = self.tree.sentences
        anchors = (c.tail.root if c.clause is None else c.clause for c in self.candidates)
        covered = {self.tree[index].sentence for index in anchors}
        starts = [self.tree[first].idx for first, _ in sentences]
        covered |= {bisect_right(starts, each.span.start) - 1 for each in self.dropped}
        for number in set(range(len(sentences))) - covered:
            self.drop("no_statement", sentences[number][0], sentences[number][1] - 1)

    def add(
        self,
        verb: Node,
        group: VerbGroup,
        head: Phrase,
        relation: str,
        tail: Phrase,
        tokens: Sequence[int] = (),
        *,
        negated: bool = False,
        indirect: bool = False,
    ) -> None:
        """Add a candidate of the verb's clause, with the negation and modality of its verb group.

        A plural pronoun gives one candidate per member. Respective arguments are only paired in
        order.
        """
        if _is_crossed(verb, head, tail):
            self.drop("respective_values", head.root, tail.root)
            return
        for member in self._part_resolved(head):
            self.candidates.append(
                Candidate(
                    *(verb.i, member, relation, tail, tuple(tokens)),
                    negated or (group.negated and not is_instead(self.tree[tail.root])),
                    group.modality,
                    indirect,
                )
            )

    def _part_resolved(self, phrase: Phrase) -> list[Phrase]:
        """The members of a pronoun's antecedent, each marked as resolved; else the phrase."""
        together = self.antecedents.members.get(phrase.span, []) if phrase.resolved else []
        return [replace(each, resolved=True) for each in together] or [phrase]

    def find_frame(self, node: Node) -> Frame | None:
        """The clause that a token is in."""
        while node.i not in self.frames and node.head is not node:
            node = node.head
        return self.frames.get(node.i)

    def read_arguments(self, root: Node, full: bool = False) -> list[Phrase]:
        """Return the phrases coordinated under `root`, pronouns and "the town" resolved."""
        nouns = list(list_conjuncts(root))
        last = _find_alternative(nouns)
        if len(nouns) > 1 and (
            _shares_head(nouns) or _shares_numbers(nouns) or _is_shared_out(root)
        ):
            last = max(noun.right_edge.i for noun in nouns)
        if last is not None:
            whole = build_phrase(self.tree, root.left_edge.i, last, root.i)
            return [whole] if whole is not None and whole.words <= MAX_WORDS else []
        phrases: list[Phrase] = []
        tokens: list[Node] = []
        for each in nouns:
            name = find_close_name(each)
            tokens += [each] if name is None else list_conjuncts(name)
        for token in tokens:
            before = self.tree[max(token.left_edge.i - 1, 0)]
            joined = not {before.word, token.left_edge.word}.isdisjoint({"never", "not"})
            if token is not root and (joined or _lists_verbs(token)):
                continue  # "because of dissection, and not disease"
            phrase = self._read_argument(token, full)
            if phrase is not None:
                phrases += self._part_resolved(phrase)
        return phrases

    def _read_argument(self, token: Node, full: bool) -> Phrase | None:
        among = [g for c in token.children if c.word == "of" for g in c.children]
        if token.word in NOBODY - {"nothing"} and among:  # "none of the mills"
            if self.tree[max(token.i - 1, 0)].word == "but":
                self.drop("empty_argument", token.i, token.i)
                return None
            token = among[0]
        if any(c.tag == "WDT" and c.dep == "det" for c in token.children):
            self.drop("unresolved_pronoun", token.i, token.i)
            return None  # "shows which releases are deployed"
        yours = token.tag == "NNS" and token.word in ADDRESSED
        if token.tag in {"PRP", "PRP$", "DT", "WDT", "WP", "EX"} or token.pos == "PRON" or yours:
            phrase = self.antecedents.resolve(token) or self.name_compared(token)
            if phrase is None:
                reason = "advice" if token.word in ADDRESSED else "unresolved_pronoun"
                self.drop(reason, token.i, token.i)
            return phrase
        phrase = self.antecedents.resolve(token) or find_phrase(token, full)
        if phrase is not None and not phrase.resolved:
            phrase = self._name_owner(token, phrase)
        if phrase is None:
            too_long = build_phrase(self.tree, token.left_edge.i, token.right_edge.i, token.i)
            reason = "argument_too_long" if too_long is not None else "no_words"
            self.drop(reason, token.i, token.i)
        return phrase

    def name_compared(self, token: Node) -> Phrase | None:
        """Return "rates of urban farms" for "those" after "higher than", from the subject."""
        if token.word not in {"that", "those"} or token.head.word not in _COMPARING:
            return None
        frame = self.find_frame(token)
        phrase = build_phrase(self.tree, token.i, token.right_edge.i, token.i)
        led = [c.word for c in token.children if c.dep == "prep"]
        if frame is None or not (frame.subjects and phrase and led) or phrase.words > FULL_WORDS:
            return None
        objects = [p.root for p in frame.parts if p.role == "object" and "of" in led]
        noun = next(iter([*objects, *frame.subjects]))
        graded = token.head.word == "than" or token.head.head.pos == "ADJ"
        agrees = noun.pos == "NOUN" and (noun.tag in PLURAL) == (token.word == "those")
        if not agrees or not (graded or objects):
            return None
        before = [c for c in noun.children if c.i < noun.i and c.dep in {"poss", "amod", "det"}]
        first = max([noun.left_edge.i, *(c.right_edge.i + 1 for c in before)])
        named = build_phrase(self.tree, first, noun.i, noun.i)
        rest = self.tree.text[token.end : phrase.span.end]
        text = " ".join(f"{named.text}{rest}".split()) if named else ""
        return replace(phrase, text=text, literal=False) if named else None

    def _name_owner(self, noun: Node, phrase: Phrase) -> Phrase:
        """Return "X's municipalities" for "its municipalities"; such words are not literal.

        An unresolved owner is left out.
        """
        pronoun = next((c for c in noun.children if c.tag in {"PRP$", "WP$"}), None)
        if pronoun is None or pronoun.i >= phrase.first:
            return phrase
        if pronoun.tag == "WP$":
            clause = find_noun_clause(noun.head)
            owner = find_phrase(clause.head) if clause is not None else None
        else:
            owner = self.antecedents.resolve(pronoun)
        if owner is None or owner.words + phrase.words > FULL_WORDS:
            return phrase
        text = f"{name_owner(owner.text)} {phrase.text}"
        return replace(phrase, text=text, resolved=True, literal=False)

    def find_owner(self, noun: Node) -> Phrase | None:
        """Return the owner in "X's noun" or "its noun"."""
        for child in noun.children:
            if child.dep == "poss":
                if child.tag == "PRP$":
                    return self._read_argument(child, full=False)
                owners = self.read_arguments(child)
                return owners[0] if owners else None
        return None


def is_respective(verb: Node) -> bool:
    """Whether the arguments of a clause are paired: "in 1180 and 1242, respectively"."""
    first, last = verb.tree.sentences[verb.sentence]
    return any(node.word == "respectively" for node in verb.tree.nodes[first:last])


def _is_crossed(verb: Node, head: Phrase, tail: Phrase) -> bool:
    """Whether a respective tail belongs to another head, or to one member of a plural head."""
    if not is_respective(verb):
        return False
    places = []
    for root in (head.root, tail.root):
        listed = [each.i for each in list_conjuncts(find_first(verb.tree[root]))]
        places.append((len(listed), listed.index(root) if root in listed else 0))
    left, right = places
    shared = left[0] == 1 < right[0] and verb.tree[head.root].tag in PLURAL  # "the two parts are"
    return shared or (left[0] == right[0] > 1 and left != right)


def _shares_head(nouns: Sequence[Node]) -> bool:
    """Whether the last noun heads all: "pressure, temperature and humidity probes"."""
    last = max(nouns, key=lambda noun: noun.i)
    modified = last.tag == "NNS" and any(c.dep == "compound" for c in last.children)
    modified = modified and last.tree[last.left_edge.i - 1].dep == "cc"
    bare = {"poss", "punct", "cc", "conj"}
    others = (noun for noun in nouns if noun is not last)
    modified = modified and all(c.dep in {"compound", "prep"} for c in last.children)
    return modified and all(
        n.tag == "NN" and not n.entity and bare.issuperset(c.dep for c in n.children)
        for n in others
    )


def _shares_numbers(nouns: Sequence[Node]) -> bool:
    """Whether the first noun heads numbers that name several: "Wards 2 and 3"."""
    first, *others = nouns
    named = first.tag in PLURAL and any(c.dep == "nummod" and c.i > first.i for c in first.children)
    return named and all(n.tag == "CD" and n.left_edge is n for n in others)


_SHARES = frozenset("half majority most quarter quarters rest third thirds".split())


def _is_shared_out(noun: Node) -> bool:
    """Whether an amount is of all members: "half of it is from sales and fees"."""
    if noun.dep != "pobj":
        return False
    clause = noun.head.head
    if clause.tag == "NNS" and is_counted(clause):
        return True  # "serves 690 flats at A and B"
    parts = [c for c in clause.children if c.dep in {"nsubj", "nsubjpass", "dobj"}]
    return any(
        c.entity in {"PERCENT", "MONEY"}
        or (
            (c.entity == "CARDINAL" or c.word in _SHARES)
            and any(g.word == "of" for g in c.children)
        )
        or (c.dep == "dobj" and c.tag == "NNS" and is_counted(c))
        for c in parts
    )


def _find_alternative(nouns: Sequence[Node]) -> int | None:
    """The last token of alternatives, "a house, apartment or flat"; None for other lists.

    Examples are no alternatives, nor are subjects of a general clause: "salt or sand melts ice".
    """
    root, verb = nouns[0], nouns[0].head
    marks = [c.i for noun in nouns[:-1] for c in noun.children if c.word == "or"]
    does = root.dep in SUBJECTS
    others = (g for c in verb.children if c.dep == "dobj" for g in c.children)
    each = does and is_general(verb) and all(g.word != "or" for g in others)
    led = root.head.word in {"as", "like", "including"} or root.dep not in _ANY
    aside = len(nouns) == 2 and any(root.tree[i - 1].text in {"(", ","} for i in marks)
    named = root.pos == "PROPN" and not does
    *firsts, last = nouns  # "adoption or placement leave", "TTS or 18F branding"
    joining = {"cc", "conj", "punct"}
    shares = {"compound", "nummod"} & {c.dep for c in last.children} and last.text.islower()
    shares = shares and {"compound", "nummod", "punct"}.issuperset(c.dep for c in last.children)
    shares = shares and all(joining.issuperset(c.dep for c in noun.children) for noun in firsts)
    if not marks or led or aside or ((named or each) and not shares):
        return None
    return last.right_edge.i


def _lists_verbs(noun: Node) -> bool:
    """Whether a noun without "and" is in a list of verbs: "kill X, move Y, and reduce Z"."""
    node = noun
    while node.dep == "conj" and node.head is not node:
        node = node.head
        if any(c.dep == "cc" for c in node.children):
            return False
    return node is not noun and any(c.dep == "conj" and c.i > noun.i for c in node.head.children)


def word_noun(noun: Node) -> tuple[str, list[int]]:
    """Return a common noun with its compounds and superlatives, as a relation words it."""
    tokens, nodes = [noun], noun.tree.nodes
    while is_inside_word(nodes, tokens[-1].i - 1):  # "vice-chairman"
        tokens += [nodes[tokens[-1].i - 1], nodes[tokens[-1].i - 2]]
    for child in noun.children:
        if child.i > noun.i or child.entity in {"GPE", "NORP", "DATE", "PERSON"}:
            continue
        superlative = child.tag in {"JJS"} or child.entity == "ORDINAL"
        kind = child.dep == "compound" or (
            child.dep == "amod"
            and (child.word in WORDS["telling"] or (child.tag == "VBG" and is_office(noun.word)))
        )
        counted = any(c.dep == "nummod" for c in child.children)  # "1001-room hotel"
        if (kind and child.pos != "PROPN" and not counted) or superlative:
            tokens.append(child)
            inside = is_inside_word(nodes, child.i - 1)  # "single-track railway"
            tokens += nodes[child.i - 2 : child.i] if inside else []
            tokens += [c for c in child.children if c.dep == "compound" and c.pos == "NOUN"]
    if noun.pos == "PROPN":
        tokens += [c for c in noun.children if c.dep == "compound" and c.i < noun.i]
    return spell_noun(noun, sorted(set(tokens), key=lambda t: t.i))


def spell_noun(noun: Node, tokens: Sequence[Node]) -> tuple[str, list[int]]:
    """The words of a noun with others, as a relation words them, and their tokens."""
    words = (t.text if noun.pos == "PROPN" or not t.text.islower() else t.word for t in tokens)
    spaced = (f"{w} " if t.space else w for w, t in zip(words, tokens, strict=True))
    return "".join(spaced).strip(), [t.i for t in tokens]


# Reasons to reject a candidate.

# A relation of these words alone does not state how its arguments are related.
_EMPTY_WORDS = AUXILIARIES | ARTICLES | PREPOSITIONS | {"not"}
_OPEN_QUOTE = re.compile('^[^"]*"[a-z][^"]*$|\u201c[a-z][^\u201d]*$')
_DAY_OPENS = re.compile(rf"\d{{1,2}} {MONTH}\b")
_DATED_RELATION = re.compile(
    rf"\b(?:{'|'.join(name.lower() for name in MONTHS if name not in {'March', 'May'})})\b"
)
_BARE_ONE = re.compile(r" ones?\b(?! of)")
_SYMBOL = re.compile(r"[=<>|{}\\_~^*+@#°]")
"""Characters outside verbs and prepositions; the parser reads formulas as clauses."""
_FORMULA = re.compile(r"[=<>|{}\\^~]|\+/-|/-")
"""Characters of formulas, not of names."""
_ADDRESS = re.compile(r"https?://|www\.")
_SELECTION = re.compile(
    r"one of .*|others? .*|(the )?(latter|former|above|following|next)( of .*)?|(.* )?ones"
    r"|(the )?(second|third|fourth|fifth|sixth|last)",
    re.IGNORECASE,
)
"""A subject that selects one of several without naming it."""
_STAND_IN = re.compile(r"(.+ )?((Mr|Mrs|Ms)\.? [A-Z]|(John|Jane) Doe|[Cc]ompany [A-Z]|XYZ)")
"""Names of fictitious people in examples."""
_GROUP = re.compile(
    r"((all|other|two|three|four|five|\d+) (groups|arms)|groups"
    r"|(other|first|second|third) (group|arm)"
    r"|(group|arm|cohort|patient|case|profile) (\d+|[IVX]+))( (in|at|for|with respect to)\b|$)",
    re.IGNORECASE,
)
"""A study's names for its groups, which are only meaningful within the text."""
_COMPARING = frozenset("in to with between than".split())
"""Prepositions before groups that are compared: "was higher in the two groups"."""
_NUMERAL = re.compile(r"[IVX]+|[A-Z]\.")
_BEFORE = frozenset({"det", "predet", "amod"})
"""How words that point depend on their noun: "this book", "such a book"."""
_SPEAKING = frozenset("i me my mine you your yours".split())
"""Pronouns for writer and reader; "we" may be all mankind."""
_UNPLACED_WORDS = _SPEAKING - {"i", "mine"} | frozenset("ones these this those it they".split())
_OWNED = frozenset("his her its their".split())
_ASKING = frozenset("how what who whom whose why".split())
_ABOUT_THE_TEXT = re.compile(
    r"(present |current )?(essay|paper|study)"
    r"|(main |primary |overall )?(aims?|purpose|goal|objectives?|hypothesis) of .*",
    re.IGNORECASE,
)
"""Subjects by which a text refers to itself and its aims."""
DIRECTIONS = WORDS["directions"]
_WHERE = WORDS["where"]
_RELATIVE = re.compile(
    r"(the )?(last|this|that|next|past|previous|preceding|following|coming|current|same|recent)"
    r"( [\w-]+)? ?([a-z]*days?|years?|months?|weeks?|decades?|century|quarters?|spring|summer"
    r"|autumn|fall|winter|morning|afternoon|evening|night|time|seasons?|hours?|minutes?)"
    r"|.{1,40}(?<! or)(?<! and) (ago|earlier|later|before|after)",
    re.IGNORECASE,
)
"""Times relative to the date of the text or to earlier events."""
_OCCASION = re.compile(r"((the )?(first|second|third|last|same|one|long|short|next) )?time")
"""Nouns of circumstances without a date: "for the first time", "at the time"."""


_ELIDED = re.compile(r".+ one|(?i:first|second|third|former|latter)")
"""Phrases whose noun is in another sentence."""
_COMPARED = re.compile(r" (?:(?:more|less|fewer) than|except) (?:in|at|on|for|during)$")


def find_fault(candidate: Candidate, tree: Tree) -> str | None:
    """The reason to reject a candidate, or None."""
    words = candidate.relation.split()
    if _SYMBOL.search(candidate.relation):
        return "no_words"
    if _BARE_ONE.search(candidate.relation):
        return "empty_argument"  # "has one with room for | 90 crates"
    if _DATED_RELATION.search(candidate.relation):
        return "bare_circumstance"  # "runs july from"
    empty = _EMPTY_WORDS.issuperset(words) and "_".join(words) not in WORDS["kind_relations"]
    empty = empty and not (candidate.negated and words[-1] in HAVE)  # "does not have | plans"
    empty = empty and candidate.tail.label != "STATE"  # "is | low"
    if is_location(words):
        empty = not (_names_place(candidate) or is_site(tree[candidate.tail.root]))
        timed = candidate.tail.label in TIMES and candidate.head.label != "PERSON"
        timed = timed and candidate.clause is not None and tree[candidate.clause].tag != "VBG"
        empty = empty and not timed  # "the fair is on | 3 May"
    led = len(words) > 1 and any(tree[i].pos == "ADP" for i in candidate.tokens[-1:])
    if empty or MODALS.issuperset(words[:-1] if led else words):  # "cannot, for good reasons"
        return "empty_relation"
    if words[0] in {"amount", "amounts", "amounted"} and words[1:2] != ["to"]:
        return "doubtful_verb"  # "in equal amounts on a monthly basis"
    verb = tree[candidate.clause] if candidate.clause is not None else None
    judges = verb is not None and all(c.dep not in {"auxpass", "dobj"} for c in verb.children)
    state = tree[candidate.tail.root]
    if judges and (state.dep, state.pos) == ("oprd", "ADJ"):
        return "incomplete_object"  # "a centre that teammates have found helpful"
    if _COMPARED.search(candidate.relation):
        return "bare_circumstance"  # "reported cases more than in", "may be except at"
    if not _UNPLACED_WORDS.isdisjoint(words):
        return "unplaced_argument"  # "wants you to pay"
    if len(words) > MAX_RELATION_WORDS:
        return "relation_too_long"
    head, tail = candidate.head, candidate.tail
    if _ADDRESS.match(head.text):
        return "no_words"
    first = tree[head.first]  # "Between 6 and 19 October five came"
    opens = _DAY_OPENS.match(head.text) is not None and tree[head.root].tag in {"NN", "NNS"}
    opens = opens and tree[head.root].entity != "DATE"
    led = opens or (first.tag == "IN" and first.entity == "DATE")
    # not "The Letter to the Romans"
    alone = head.is_named and head.words == 1
    alone = alone and all(c.dep != "det" for c in tree[head.root].children)
    routed = alone and any(c.word == "to" and c.i > head.last for c in tree[head.root].children)
    if not head.resolved and (led or routed):  # "Kell to Port Hallow follows in 2026"
        return "unplaced_argument"
    for phrase in (head, tail):
        half = phrase.text.startswith("to ") or (len(phrase.text) == 1 and phrase.text.islower())
        half = half or phrase.text.count("(") != phrase.text.count(")")
        half = half or _OPEN_QUOTE.search(phrase.text) is not None
        half = half or phrase.text in _ASKING  # "whose"
        if half or _FORMULA.search(phrase.text):
            return "no_words"
        if phrase.label in {"NOUN", "CARDINAL"} and is_empty(phrase.text):
            return "empty_argument"
        lacks = words[0] in BE and len(words) < 3 and _lacks_complement(phrase, tree)
        if lacks or phrase.text.lower() in _POSSESSIVE:
            return "empty_argument"
        if not phrase.resolved and _ELIDED.fullmatch(phrase.text):
            return "empty_argument"  # "has ordered the second one"
        if _STAND_IN.fullmatch(phrase.text):
            return "stand_in"
        bare = _GROUP.match(phrase.text) or (phrase is tail and phrase.text == "group")
        if bare and (phrase is head or words[-1] in _COMPARING):  # not "divided into two groups"
            return "unplaced_argument"
        if is_unplaced(phrase, tree):
            return "unplaced_argument"
    opening = tree[tree.sentences[tree[head.first].sentence][0]]
    is_name = head.is_named and head.words > 1  # "Align Technology acquired Velm"
    begins = head.first == opening.i and not (head.resolved or is_name)
    if begins and opening.word in WORDS["changing"]:
        return "advice"  # "Fix nested lists", of a list of changes
    root = tree[head.root]  # "the older treated with it", "Last touched in May"
    bare = root.tag == "CD" and not root.children and is_known(root.word, lang="en")
    graded = head.words == 1 and (root.tag == "JJR" or bare)
    selected = not head.is_named and _SELECTION.fullmatch(head.text)
    if not head.resolved and (graded or selected):
        return "empty_argument"
    if candidate.construction == "title" and _NUMERAL.fullmatch(head.text):
        return "unplaced_argument"  # "group II"
    if not head.resolved and (_is_owned(head, tree) or _is_some(head, tree, candidate.clause)):
        return "unplaced_argument"
    if _ABOUT_THE_TEXT.fullmatch(head.text):
        return "about_the_text"
    # "40 percent of the workers" are workers; a number alone is no subject of a fact.
    part = " of " in head.text and head.label != "DATE"
    if (head.label in LITERALS and head.label != "ORDINAL" and not part) or _FISCAL.search(
        head.text
    ):
        return "head_is_literal"
    number = tree[tail.root]
    counts = number.dep == "dobj" and number.head.lemma not in VERBS["counting"]
    counts = counts or (number.dep == "pobj" and words[-1] in {"among", "for"})
    bare = number.tag == "CD" and tail.text == number.text
    if counts and bare and not (len(tail.text) == 4 and tail.text.isdigit()):  # a year
        return "empty_argument"  # "logged 71", "asks for 72"
    tail_text = tail.text.lower()
    if is_deictic(tail_text):
        return "deictic"
    if candidate.construction == "apposition" and tail.label in LITERALS:
        return "empty_argument"  # "2.1 mm in men, 2.2 mm in women"
    if tail.label == "ORDINAL" or is_bare_half(words[-1], tail_text):
        return "bare_circumstance"
    towards = words[-1] == "to" and tail_text.split()[0] in DIRECTIONS and not tail.is_named
    if tail_text in DIRECTIONS or towards:
        return "bare_direction"
    if head.text.lower() == tail_text:
        return "self_reference"
    if head.resolved or tail.resolved:
        return None
    # A restrictive clause is a fact about the things of its noun: "eight patients treated with
    # terbutaline" were treated with it.
    is_narrowed = candidate.clause is not None and head.first < candidate.clause < head.last
    several = tree[head.root].tag == "NNS" and all(
        c.i > head.root for c in tree[head.root].children
    )
    inside = head.first <= tail.first <= tail.last <= head.last and (several or not is_narrowed)
    if inside or tail.first <= head.first <= head.last <= tail.last:
        return "nested_arguments"
    return None


def _lacks_complement(phrase: Phrase, tree: Tree) -> bool:
    """Whether a noun does not say of what it is one: "the only exception", "a common reason"."""
    noun = tree[phrase.root]
    bare = all(c.dep in _QUALIFYING for c in noun.children)
    return noun.word in WORDS["completed"] and noun.i == phrase.last and bare


_QUALIFYING = frozenset({"amod", "det", "nummod", "punct", "advmod", "cc", "conj", "appos"})
_POSSESSIVE = frozenset("mine ours yours hers theirs own".split())


def is_empty(text: str) -> bool:
    """Whether an argument is an empty noun with quantities at most: "various factors"."""
    *before, noun = text.lower().split()
    return noun in WORDS["empty_nouns"] and WORDS["quantities"].issuperset(before)


_FISCAL = re.compile(
    r"\b(?:FY|(?:fiscal|financial|tax) (?:year )?)(?:ended? )?\d{2,4}$", re.IGNORECASE
)
"""A fiscal year, which is a time and no name: "FY2019", "the end of fiscal 2019"."""


def is_bare_half(preposition: str, text: str) -> bool:
    """Whether a noun is only part of a preposition: "in addition to X"."""
    words = text.lower()
    joined = f"{preposition} {words}".replace(" ", "_")
    if joined in WORDS["discourse"] or _OCCASION.fullmatch(words):
        return True
    return preposition == "in" and words.partition(" to ")[0] in WORDS["phrasal"]


def is_deictic(text: str) -> bool:
    """Whether a time or place is relative to its text: "today", "last year"."""
    return text.lower() in WORDS["deictic"] or _RELATIVE.fullmatch(text) is not None


def is_unplaced(phrase: Phrase, tree: Tree) -> bool:
    """Whether only the context identifies an argument: "my bank", "people who need it"."""
    if phrase.resolved:
        return False
    noun = tree[phrase.root]
    inside = tree.nodes[phrase.first : phrase.last + 1]
    if is_personal(phrase, tree):
        return True
    if phrase.label != "NOUN":
        return False
    if noun.word in {"one", "ones"} and noun.tag != "CD":
        return True  # "the newer ones"
    if any(c.word == "same" for c in noun.children) and all(c.word != "as" for c in noun.children):
        return True  # "works in the same company"
    if any(_is_left_open(n, phrase, tree) for n in inside):
        return True
    if any(c.word == "both" and c.dep in {"det", "predet"} for c in noun.children):
        parts = (c for child in (noun, *noun.children) for c in child.children)
        return noun.tag == "NNS" and not any(c.dep == "conj" for c in parts)
    nouns = (n for n in inside if n.pos == "NOUN")
    before = (c for n in nouns for c in n.children if c.i < n.i and c.dep in _BEFORE)
    return any(c.word in WORDS["pointing"] for c in before)


def _is_some(head: Phrase, tree: Tree, clause: int | None) -> bool:
    """Whether a clause is about some unnamed members of a kind.

    "221 elderly patients were treated", "a number of carers fell ill", "shares were sold". General
    statements are about the kind, "butterflies lay eggs", and a name in the clause identifies the
    members: "Vikings raided Velm".
    """
    noun = tree[head.root]
    if head.label != "NOUN" or noun.head.i != clause or not is_episodic(noun):
        return False
    noun = find_counted(noun)
    inside = [c for c in noun.children if head.first <= c.i <= head.last]
    telling = [c for c in inside if c.dep != "nummod" and c.word not in WORDS["quantities"]]
    counted = any(c.dep == "nummod" or c.word in _MORE for c in inside)
    after = tree.nodes[head.root + 1 : tree[head.root].head.right_edge.i + 1]
    placed = any(c.i > noun.i or not counted for c in telling)
    named = any(n.pos == "PROPN" and n.text[0].isupper() for n in after)
    times = [c for c in noun.head.children if any(g.entity == "DATE" for g in c.children)]
    if noun.head.lemma in _CHANGES and len(times) < 2 and any(n.pos == "NUM" for n in after):
        return False  # "sales fell from 310 to 270"
    return not (placed or named) and all(c.dep not in {"det", "poss"} for c in noun.children)


_CHANGES = frozenset("climb decline decrease drop fall grow increase rise".split())
_MORE = frozenset({"more", "fewer", "less"})
PERSONAL = frozenset({"PRP", "PRP$"})


def is_speaking(node: Node) -> bool:
    """Whether a pronoun is for writer or reader."""
    return node.word in _SPEAKING | {"we", "us", "our"}


def is_personal(phrase: Phrase, tree: Tree) -> bool:
    """Whether an argument refers to writer or reader: "my bank", "the fees you pay"."""
    noun = tree[phrase.root]
    owners = [c for c in noun.children if c.dep == "poss" and c.i < noun.i]
    nodes = (*tree.nodes[phrase.first : phrase.last + 1], *owners)
    alone = (n for n in nodes if not is_inside_word(tree.nodes, n.i - 1))  # not "thank-you gift"
    return any(n.tag in PERSONAL and n.word in _SPEAKING and not n.entity for n in alone)


def _is_left_open(node: Node, phrase: Phrase, tree: Tree) -> bool:
    """Whether a pronoun of the argument refers outside of it: "the fact that it fell"."""
    if node.i == phrase.first:
        return node.tag == "PRP" or (node.word in _ASKING and phrase.words > 1)
    if node.tag != "PRP" or node.word in {"we", "us"} or node.word.endswith(("self", "selves")):
        return False
    if is_inside_word(node.tree.nodes, node.i - 1):
        return False  # "a thank-you gift"
    before = tree.nodes[phrase.first : node.i]
    return node.word not in {"they", "them"} or all(n.tag not in PLURAL for n in before)


def _is_owned(head: Phrase, tree: Tree) -> bool:
    """Whether a subject has an unnamed owner: "its value", "remission of her rash"."""
    if any(c.word in _OWNED for c in tree[head.root].children):
        return True
    for node in tree.nodes[head.first : head.last + 1]:
        before = tree.nodes[head.first : node.i]
        if before and before[-1].word in {"with", "under"}:
            continue  # "the frigate with her crew"
        some = any(n.tag in PLURAL or is_person_noun(n.lemma.lower()) for n in before)
        if node.word == "their" and not some:
            return True
        named = (n.pos == "PROPN" or is_person_noun(n.lemma.lower()) for n in before)
        if node.tag == "PRP$" and node.word in {"his", "her"} and not any(named):
            return True
    return False


def is_personal_text(findings: Findings) -> bool:
    """Whether the writer addresses the reader: "the car" is then yours or mine."""
    nodes = [n for n in findings.tree.nodes if n.tag in PERSONAL and n.word in _SPEAKING]
    count = sum(findings.antecedents.resolve(n) is None for n in nodes)
    return count >= _FEWEST_SPOKEN and count * _LEAST_SPOKEN >= len(findings.tree)


_FEWEST_SPOKEN, _LEAST_SPOKEN = 3, 100
"""Least pronouns for writer and reader in posts and manuals, and most tokens per pronoun."""


def is_bare_definite(phrase: Phrase, tree: Tree) -> bool:
    """Whether a common noun is identified by "the" alone."""
    noun = tree[phrase.root]
    ordinals = sum(c.entity == "ORDINAL" for c in noun.children)  # "the second chart"
    bare = phrase.label == "NOUN" and not phrase.resolved and phrase.words == 1 + ordinals
    return bare and noun.tag == "NN" and any(c.word == "the" for c in noun.children)


def is_location(words: Sequence[str]) -> bool:
    """Whether the relation is "is in", which states a location before a place."""
    return len(words) == 2 and words[0] in {"is", "was", "are", "were"} and words[1] in _WHERE


def is_site(noun: Node) -> bool:
    """Whether a noun with an article is a part of a building or holds things: "the first floor"."""
    known = noun.lemma.lower() in WORDS["sites"]
    return known and any(c.word in {"a", "an", "the"} or c.dep == "nummod" for c in noun.children)


def _names_place(candidate: Candidate) -> bool:
    """Whether the tail is a place, or a name that is probably a place: X is in Kent."""
    if candidate.tail.label in PLACES:
        return True
    named = candidate.tail.is_named and candidate.tail.label != "PERSON"
    return named and candidate.head.label != "PERSON"
