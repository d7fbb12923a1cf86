"""The reader: which values of a schema's properties a text states, by wording and by examples."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from kpyramid.extraction.syntax.tree import Tree
from kpyramid.induction.candidates import LITERALS, Candidate, find_candidates, normalise_name
from kpyramid.induction.examples import Example
from kpyramid.induction.features import Reading, describe_text
from kpyramid.induction.learning import RoleModel, SubjectModel
from kpyramid.induction.matching import KnownValues, Matcher
from kpyramid.induction.types import Value, Words
from kpyramid.induction.wording import WordMatcher, describe_properties
from kpyramid.ontology.schema import Schema

PRODUCER = "rules"
LIKELY = 0.5
"""The least confidence of what is taken for a fact: more likely right than wrong."""
# Below this chance of being a value, a candidate's subject is not looked for.
_FLOOR = 0.02
# Of one property, a value that is less than half as likely as the text's likeliest is not stated:
# in cross-validation on train sentences of Text2KGBench .03 of F1 better than stating them all.
_RIVAL = 0.5
_LOOK_BACK = 3
_LOOK_AHEAD = 1


@dataclass(frozen=True, slots=True)
class Statement:
    """A value with its subject, and how likely each is; `place`: of the property in the schema."""

    place: int
    subject: Candidate
    value: Candidate
    value_chance: float
    subject_chance: float

    @property
    def confidence(self) -> float:
        """How likely it is that the text states this."""
        return float(self.value_chance * self.subject_chance**0.5)


class Reader:
    """What reads the values of a schema's properties out of parsed texts.

    Without examples it knows a property by the words of its labels and by the kinds of things its
    domain and range name; examples teach it how sentences of the field state it. Two models decide:
    which candidates are values of a property, then whose. Both are regularised logistic regressions
    beside general weights that come with the package.

    `unaligned` counts the triples of examples whose value stands nowhere in their text as a name,
    noun, number or date; `unknown` those whose relation is no property of the schema.
    """

    def __init__(
        self, schema: Schema, examples: Sequence[Example] = (), trees: Sequence[Tree] = ()
    ) -> None:
        """Learns from examples; `trees` are the parses of their texts, in the same order."""
        self._schema = schema
        self._wordings = describe_properties(schema)
        self._words = WordMatcher(self._wordings, schema)
        matcher = Matcher(schema)
        self._known = KnownValues()
        for example in examples:
            for subject, relation, value in example.triples:
                if (place := matcher.find_place(relation)) is not None:
                    self._known.add(place, subject, value)
        aligned = []
        for example, tree in zip(examples, trees, strict=True):
            subjects = frozenset(normalise_name(subject) for subject, _, _ in example.triples)
            reading = self.describe(tree, subjects)
            triples = matcher.align(example, reading.candidates)
            aligned.append((reading, triples, example.is_complete))
        self.unaligned, self.unknown = matcher.unaligned, matcher.unknown
        self._roles = RoleModel(self._words, aligned)
        pairs = (
            (reading, p, o, tuple(self.list_subjects(reading, o)), frozenset(golden))
            for reading, triples, _ in aligned
            for (p, o), golden in _group_subjects(triples, reading).items()
        )
        self._subjects = SubjectModel(self._wordings, pairs)

    def read(self, tree: Tree, least: float = LIKELY) -> tuple[Value, ...]:
        """The values that a text states with at least this confidence, in text order."""
        values = []
        statements = self.find_statements(tree)
        best: dict[int, float] = {}
        for found in statements:
            best[found.place] = max(best.get(found.place, 0.0), found.confidence)
        for found in statements:
            if found.confidence < max(least, _RIVAL * best[found.place]):
                continue
            s, o = found.subject, found.value
            start, end = _find_evidence(tree, s, o)
            values.append(
                Value(
                    self._schema.properties[found.place].iri,
                    Words(s.text, s.start, s.end),
                    Words(o.text, o.start, o.end),
                    Words(tree.text[start:end], start, end),
                    round(min(found.confidence, 1.0), 4),
                    PRODUCER,
                )
            )
        return tuple(
            sorted(values, key=lambda v: (v.subject.start, v.object.start, v.property_iri))
        )

    def find_statements(self, tree: Tree) -> list[Statement]:
        """What a text may state, the unlikely included; a date or number is one value only."""
        reading = self.describe(tree)
        candidates = reading.candidates
        if not candidates:
            return []
        chances = self._roles.predict(reading)
        found = []
        for p in range(chances.shape[1]):
            taken: list[Candidate] = []
            for o in np.argsort(-chances[:, p], kind="stable"):
                if chances[o, p] < _FLOOR:
                    break
                value = candidates[o]
                if any(_overlap(value, other) for other in taken):
                    continue
                taken.append(value)
                best = self._subjects.choose(reading, p, value, self.list_subjects(reading, value))
                if best is not None:
                    found.append(Statement(p, best[0], value, float(chances[o, p]), best[1]))
        return _weigh_contradicted(found)

    def describe(self, tree: Tree, but_of: Set[str] = frozenset()) -> Reading:
        """A text's candidates with their features; see `KnownValues` for `but_of`."""
        reading = describe_text(tree, find_candidates(tree, self._known))
        roles = [
            [*role, *self._known.list_features(c, but_of)]
            for c, role in zip(reading.candidates, reading.roles, strict=True)
        ]
        return replace(reading, roles=roles)

    def list_subjects(self, reading: Reading, value: Candidate) -> list[Candidate]:
        """The candidates near enough to be a value's subject; the text's first sentence is near."""
        tree = reading.tree
        at = tree[value.head].sentence
        return [
            c
            for c in reading.candidates
            if _can_be_subject(c)
            and not _overlap(c, value)
            and (
                tree[c.head].sentence == 0
                or at - _LOOK_BACK <= tree[c.head].sentence <= at + _LOOK_AHEAD
            )
        ]


def _group_subjects(
    triples: Sequence[tuple[int, Sequence[int], Sequence[int]]], reading: Reading
) -> dict[tuple[int, Candidate], set[Candidate]]:
    """The right subjects of each value that an example gives for a property."""
    found: dict[tuple[int, Candidate], set[Candidate]] = {}
    for p, objects, subjects in triples:
        for o in objects:
            if subjects:
                key = (p, reading.candidates[o])
                found.setdefault(key, set()).update(reading.candidates[s] for s in subjects)
    return found


def _weigh_contradicted(found: Sequence[Statement]) -> list[Statement]:
    """Statements believed as far as what is likelier and speaks against them is not.

    A date or number says one thing of a subject; of one property between two stretches, one
    direction holds; and nothing is its own value. What is left of the less likely of two is
    never half.
    """
    uses: dict[object, list[float]] = {}
    for statement in found:
        for use in _list_uses(statement):
            uses.setdefault(use, []).append(statement.confidence)
    best = {use: max(confidences) for use, confidences in uses.items()}
    weighed = []
    for statement in found:
        if statement.subject.text.casefold() == statement.value.text.casefold():
            continue
        rival = max(best[use] for use in _list_uses(statement))
        if rival > statement.confidence:
            statement = replace(statement, value_chance=statement.value_chance * (1 - rival))
        weighed.append(statement)
    return weighed


def _list_uses(statement: Statement) -> Iterator[object]:
    """The uses of words that only one statement can have."""
    ends = (_place(statement.subject), _place(statement.value))
    yield statement.place, frozenset(ends)
    if statement.value.kind in LITERALS:
        yield ends


def _place(c: Candidate) -> tuple[int, int]:
    return c.first, c.last


def _can_be_subject(c: Candidate) -> bool:
    return c.kind not in {"DATE", "YEAR", "NUMBER"} and (c.is_name or c.kind in {"NOUN", "TITLE"})


def _overlap(one: Candidate, other: Candidate) -> bool:
    return one.first <= other.last and other.first <= one.last


def _find_evidence(tree: Tree, s: Candidate, o: Candidate) -> tuple[int, int]:
    """Start and end of the sentences that hold both ends."""
    low, high = sorted((tree[s.head].sentence, tree[o.head].sentence))
    start = tree[tree.sentences[low][0]].idx
    end = tree[tree.sentences[high][1] - 1].end
    return min(start, s.start, o.start), max(end, s.end, o.end)
