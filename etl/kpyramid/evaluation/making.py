"""Choice questions from facts, in the form of AcadChall (PolyRAG, section V): eight options each.

A question asks for the values of a property of something (`forward`) or for what has a property
with some value (`inverse`); one or several of its options are right. Everything is drawn with a
generator of the question's own, seeded by the question: more facts elsewhere change no question.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from random import Random
from typing import Literal

from kpyramid.errors import InputError
from kpyramid.evaluation.distractors import Pool
from kpyramid.evaluation.facts import (
    Fact,
    Knowledge,
    Thing,
    fold_words,
    holds_run,
    is_grounded,
    names_within,
)
from kpyramid.evaluation.question_wording import word_for_subject, word_for_value
from kpyramid.evaluation.questions import EvalQuestion, Kind

OPTIONS = 8
MOST_RIGHT = 3
"""Right options of one question; of more right values so many are drawn."""
_MOST_WORDS = 12
"""An option of more words is a sentence, not a name."""


@dataclass(frozen=True, slots=True)
class Made:
    """Questions, and by reason how many more the facts would have given."""

    questions: tuple[EvalQuestion, ...]
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Group:
    """The facts that answer one question: all of a subject and property, or property and value."""

    side: str
    facts: tuple[Fact, ...]

    @property
    def asked(self) -> Thing:
        return self.facts[0].subject if self.side == "object" else self.facts[0].object

    @property
    def right(self) -> tuple[Thing, ...]:
        ends = (fact.object if self.side == "object" else fact.subject for fact in self.facts)
        return tuple({thing.key: thing for thing in ends}.values())

    @property
    def relation(self) -> str:
        return self.facts[0].relation

    @property
    def key(self) -> str:
        return f"{self.side} {self.relation} {self.asked.key}"

    def find_kind(self, side: str) -> str:
        """The class in words of an end: what the property declares, else what most things are."""
        declared = self.facts[0].kinds[side == "object"]
        ends = [fact.object if side == "object" else fact.subject for fact in self.facts]
        own = Counter(thing.kinds[0] for thing in ends if thing.kinds)
        return declared or (max(sorted(own), key=own.__getitem__) if own else "")


def make_questions(
    facts: Iterable[Fact],
    *,
    count: int | None = None,
    seed: int = 0,
    options: int = OPTIONS,
    known: Iterable[tuple[str, str]] = (),
    others: Iterable[Thing] = (),
    sides: Sequence[str] = ("object", "subject"),
    grounded: bool = False,
    least: float = 0.0,
    kind: Literal["choice", "open"] = "choice",
) -> Made:
    """Questions that the facts answer, at most `count`, evenly over properties.

    `known` are subject and object of facts that nothing is asked about but that are true; `others`
    are things that may be wrong options beside the facts' own. `sides` is what is asked for: of a
    fact its `object`, its `subject`. With `grounded` facts whose evidence does not name both ends
    are left out: a corpus that does not say it cannot be asked; nor are those of a confidence
    below `least`, which are no wrong options either. Of kind `open` questions have no options, and
    all values are right.

    Raises:
        InputError: fewer than three options, or a count below one.
    """
    if options < 3 or (count is not None and count < 1):
        raise InputError("a choice question has three options or more, and one is made at least")
    left_out: Counter[str] = Counter()
    ordered = sorted(_join_facts(facts), key=_order)
    knowledge = Knowledge(tuple(ordered), tuple(known))
    pool = Pool(knowledge, others)
    asked = []
    for fact in ordered:
        if fact.confidence < least:
            left_out["the fact is not certain enough"] += 1
        elif grounded and not is_grounded(fact):
            left_out["the evidence does not name both ends"] += 1
        else:
            asked.append(fact)
    complete = _group_facts(ordered, sides)
    made: list[EvalQuestion] = []
    groups = _group_facts(asked, sides).values()
    for group in _deal(groups, seed):
        if count is not None and len(made) == count:
            break
        found = _make_one(
            group, complete[group.key], knowledge, pool, options if kind == "choice" else 0, seed
        )
        if isinstance(found, str):
            left_out[found] += 1
        else:
            made.append(found)
    return Made(tuple(made), dict(sorted(left_out.items())))


def _join_facts(facts: Iterable[Fact]) -> list[Fact]:
    """Each fact once, with all its documents and evidence."""
    found: dict[tuple[str, str, str], Fact] = {}
    for fact in facts:
        key = (fact.subject.key, fact.relation, fact.object.key)
        old = found.get(key)
        found[key] = fact if old is None else _join_two(old, fact)
    return list(found.values())


def _join_two(one: Fact, other: Fact) -> Fact:
    documents = tuple(sorted({*one.documents, *other.documents}))
    evidence = tuple(sorted({*one.evidence, *other.evidence}))
    surer = max(one.confidence, other.confidence)
    return replace(one, documents=documents, evidence=evidence, confidence=surer)


def _order(fact: Fact) -> tuple[str, str, str]:
    return fact.relation, fact.subject.key, fact.object.key


def _group_facts(facts: Iterable[Fact], sides: Sequence[str]) -> dict[str, _Group]:
    found: dict[tuple[str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if "object" in sides:
            found["object", fact.relation, fact.subject.key].append(fact)
        if "subject" in sides and not fact.object.form:
            found["subject", fact.relation, fact.object.key].append(fact)
    groups = [_Group(side, tuple(listed)) for (side, _, _), listed in found.items()]
    return {group.key: group for group in groups}


def _deal(groups: Iterable[_Group], seed: int) -> list[_Group]:
    """The groups in an order of chance, a property's turn after the other's."""
    by_property: dict[tuple[str, str], list[_Group]] = defaultdict(list)
    for group in sorted(groups, key=lambda g: _hash(g.key, seed)):
        by_property[group.side, group.relation].append(group)
    turns = [
        (turn, _hash(f"{side} {relation}", seed), group)
        for (side, relation), listed in sorted(by_property.items())
        for turn, group in enumerate(listed)
    ]
    return [group for _, _, group in sorted(turns, key=lambda t: t[:2])]


def _hash(text: str, seed: int) -> str:
    return sha256(f"{seed} {text}".encode()).hexdigest()


def _make_one(
    group: _Group, complete: _Group, knowledge: Knowledge, pool: Pool, options: int, seed: int
) -> EvalQuestion | str:
    """The question, or why there is none. `complete` is the group with what cannot be asked."""
    rng = Random(f"{seed} {group.key}")  # noqa: S311
    asked, all_right = group.asked, complete.right
    if knowledge.is_ambiguous(asked):
        return "several things have the name of what is asked about"
    if any(len(fold_words(thing.name)) > _MOST_WORDS for thing in (asked, *group.right)):
        return "a name is as long as a sentence"
    if not all(any(c.isalnum() for c in thing.name) for thing in (asked, *group.right)):
        return "a name has no letter"
    by_name = {fold_words(thing.name): thing for thing in group.right}
    right = sorted(by_name.values(), key=lambda t: t.key)
    if len({thing.form for thing in right}) > 1 or len({t.kinds[:1] for t in right}) > 1:
        right = right[:1]
    most = min(MOST_RIGHT, options // 2) if options else len(right)
    drawn = _drop_alike(rng.sample(right, min(len(right), most)))
    text = rng.choice(_word(group, asked, several=len(drawn) > 1, form=drawn[0].form))
    words = fold_words(text)
    if any(
        names_within(t, words) or holds_run(fold_words(t.name), fold_words(asked.name))
        for t in drawn
    ):
        return "the question names the answer"
    evidence = _list_evidence(group, drawn)
    if not options:
        return _state_question(group, drawn, (), text, seed)
    wrong = pool.draw(
        group.relation,
        group.side,
        drawn,
        all_right,
        asked,
        text,
        evidence,
        options - len(drawn),
        rng,
    )
    if len(wrong) < options - len(drawn):
        return f"fewer than {options} options of the answer's class"
    candidates = [thing.name for thing in (*drawn, *wrong)]
    rng.shuffle(candidates)
    return _state_question(group, drawn, tuple(candidates), text, seed)


def _state_question(
    group: _Group, drawn: Sequence[Thing], candidates: tuple[str, ...], text: str, seed: int
) -> EvalQuestion:
    kind: Kind = "choice" if candidates else "open" if len(drawn) == 1 else "values"
    return EvalQuestion(
        id=f"{kind}-{_hash(group.key, seed)[:12]}",
        text=text,
        kind=kind,
        answers=tuple((t.name, *(n for n in t.names if n != t.name)) for t in drawn),
        candidates=candidates,
        gold_documents=_list_documents(group, drawn),
        entities=(group.asked.name, *(thing.name for thing in drawn if not thing.form)),
        evidence=_list_evidence(group, drawn),
        group=f"{group.relation}{'' if group.side == 'object' else ' (inverse)'}",
    )


def _word(group: _Group, asked: Thing, *, several: bool, form: str) -> list[str]:
    if group.side == "object":
        kind = group.find_kind("object")
        return word_for_value(group.relation, asked.name, kind, form, several=several)
    kind, value_kind = group.find_kind("subject"), group.find_kind("object")
    return word_for_subject(group.relation, asked.name, kind, value_kind, several=several)


def _drop_alike(things: Sequence[Thing]) -> list[Thing]:
    """Right options that cannot be taken for each other."""
    kept: dict[frozenset[str], Thing] = {}
    for thing in things:
        words = frozenset(fold_words(thing.name))
        if not any(words <= other or other <= words for other in kept):
            kept[words] = thing
    return list(kept.values())


def _facts_of(group: _Group, drawn: Sequence[Thing]) -> list[Fact]:
    keys = {thing.key for thing in drawn}
    return [
        f for f in group.facts if (f.object if group.side == "object" else f.subject).key in keys
    ]


def _list_documents(group: _Group, drawn: Sequence[Thing]) -> tuple[str, ...]:
    return tuple(sorted({d for fact in _facts_of(group, drawn) for d in fact.documents}))


def _list_evidence(group: _Group, drawn: Sequence[Thing]) -> tuple[str, ...]:
    return tuple(sorted({e for fact in _facts_of(group, drawn) for e in fact.evidence}))
