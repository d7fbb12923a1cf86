"""What the grammar rules hand to the filter: one candidate fact each, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kpyramid.extraction.facts.coreference import Antecedents
from kpyramid.extraction.syntax.frames import Frame, find_noun_clause
from kpyramid.extraction.syntax.phrases import (
    FULL_WORDS,
    Phrase,
    build_phrase,
    find_close_name,
    find_phrase,
    list_conjuncts,
)
from kpyramid.extraction.syntax.reading import read_frames
from kpyramid.extraction.syntax.stance import Stance
from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.extraction.text.screening import Dropped
from kpyramid.extraction.text.sentences import Span


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed fact; `clause` is the token whose clause it comes from, None if from a phrase."""

    clause: int | None
    head: Phrase
    relation: str
    tail: Phrase
    tokens: tuple[int, ...] = ()
    negated: bool = False
    modality: str | None = None
    indirect: bool = False


@dataclass(slots=True)
class Findings:
    """What the rules share while they read one document."""

    tree: Tree
    antecedents: Antecedents
    candidates: list[Candidate] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    claim_heads: dict[int, Phrase] = field(default_factory=dict)
    stances: dict[int, Stance] = field(default_factory=dict)
    """How the clauses that yield candidates are meant, by their verb's token."""
    frames: dict[int, Frame] = field(init=False)
    """The clauses by their verb's token."""

    def __post_init__(self) -> None:
        self.frames = read_frames(self.tree)

    def drop(self, reason: str, first: int, last: int) -> None:
        """Record the tokens `first`..`last` as a candidate given up for `reason`."""
        start = self.tree[first].idx
        end = self.tree[last].idx + len(self.tree[last].text)
        text = self.tree.text[start:end]
        if text.strip():
            self.dropped.append(Dropped(reason, text, Span(start, end)))

    def read_arguments(self, root: Node, full: bool = False) -> list[Phrase]:
        """Return the phrases coordinated under `root`, pronouns and "the town" resolved."""
        found: list[Phrase] = []
        name = find_close_name(root)
        if name is not None:
            tokens = [*list_conjuncts(name), *list(list_conjuncts(root))[1:]]
        else:
            tokens = list(list_conjuncts(root))
        for token in tokens:
            phrase = self._read_argument(token, full)
            if phrase is not None:
                found.append(phrase)
        return found

    def _read_argument(self, token: Node, full: bool) -> Phrase | None:
        if token.tag in {"PRP", "PRP$", "DT", "WDT", "WP", "EX"} or token.pos == "PRON":
            phrase = self.antecedents.resolve_pronoun(token)
            if phrase is None:
                self.drop("unresolved_pronoun", token.i, token.i)
            return phrase
        phrase = self.antecedents.resolve_definite(token) or find_phrase(token, full)
        if phrase is not None and not phrase.resolved:
            phrase = self._name_owner(token, phrase)
        if phrase is None:
            too_long = build_phrase(self.tree, token.left_edge.i, token.right_edge.i, token.i)
            reason = "argument_too_long" if too_long is not None else "no_words"
            self.drop(reason, token.i, token.i)
        return phrase

    def _name_owner(self, noun: Node, phrase: Phrase) -> Phrase:
        """Return "X's municipalities" for "its municipalities"; such words are not literal.

        An unsure owner is left out: the municipalities are still some.
        """
        pronoun = next((c for c in noun.children if c.tag in {"PRP$", "WP$"}), None)
        if pronoun is None or pronoun.i >= phrase.first:
            return phrase
        if pronoun.tag == "WP$":
            clause = find_noun_clause(noun.head)
            owner = find_phrase(clause.head) if clause is not None else None
        else:
            owner = self.antecedents.resolve_pronoun(pronoun)
        if owner is None or owner.words + phrase.words > FULL_WORDS:
            return phrase
        mark = "'" if owner.text.endswith("s") else "'s"
        text = f"{owner.text}{mark} {phrase.text}"
        return replace(phrase, text=text, resolved=True, literal=False)

    def find_owner(self, noun: Node) -> Phrase | None:
        """Return who "X's noun" or "its noun" belongs to."""
        for child in noun.children:
            if child.dep == "poss":
                owners = self.read_arguments(child)
                return owners[0] if owners else None
        return None


def word_noun(noun: Node, ordinals: bool = True) -> tuple[str, list[int]]:
    """Return a common noun with its compounds and superlatives, as it stands in a relation."""
    tokens = [noun]
    for child in noun.children:
        if child.i > noun.i or child.entity in {"GPE", "NORP", "DATE", "PERSON"}:
            continue
        superlative = child.tag in {"JJS"} or child.entity == "ORDINAL"
        kind = child.dep == "compound" or (
            child.dep == "amod" and child.word in {"younger", "older", "elder", "current"}
        )
        counted = any(c.dep == "nummod" for c in child.children)  # "1001-room hotel"
        if (kind and child.pos != "PROPN" and not counted) or (ordinals and superlative):
            tokens.append(child)
    if noun.pos == "PROPN":
        tokens += [c for c in noun.children if c.dep == "compound" and c.i < noun.i]
    tokens = sorted(set(tokens), key=lambda t: t.i)
    words = (t.text if noun.pos == "PROPN" or not t.text.islower() else t.word for t in tokens)
    return " ".join(words), [t.i for t in tokens]
