"""Questions that no passage answers, made from facts: their answers are computed from all facts.

Lists and counts of what stands in a relation to something, what has the most or the first of it,
two things compared, and what meets two conditions. The facts behind a question lie in five
documents or more, those of a comparison of two values in two. Each is stated in words and as the
typed question that asks the same.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any

from kpyramid.evaluation.questions import EvalQuestion, Kind
from making.facts import (
    Fact,
    Knowledge,
    Thing,
    find_precision,
    fold_words,
    is_grounded,
    measure,
    names_within,
)
from making.questions import (
    EVENTS,
    MOST_WORDS,
    Group,
    find_asked,
    group_facts,
    hash_draw,
    join_facts,
    make_plural,
    name_which,
    read_relation,
    word_for_subject,
)

LEAST_DOCUMENTS, LEAST_MEMBERS = 5, 3


@dataclass(frozen=True)
class TypedQuestion:
    """A question, and the tool and the arguments that ask the same of a snapshot."""

    question: EvalQuestion
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class TypedQuestions:
    """Questions, and how many there are none of, by the reason."""

    questions: tuple[TypedQuestion, ...]
    left_out: Mapping[str, int]


_LEAD = 2
"""By how many members what has the most leads: one that the text says otherwise is one too few."""
_MOST_PAIRS = 6
"""Pairs of one property that are compared or joined."""
_HIGHER = {"date": ("later", "latest", "last"), "number": ("higher", "highest", "")}
_LOWER = {"date": ("earlier", "earliest", "first"), "number": ("lower", "lowest", "")}


def make_structure_questions(
    facts: Iterable[Fact], *, count: int | None = None, seed: int = 0, least: float = 0.0
) -> TypedQuestions:
    """Questions whose answers many facts give together, at most `count`.

    They are dealt evenly over forms and properties. A fact whose evidence does not name both its
    ends counts for nothing: the corpus does not say it. Sets with a fact of a confidence below
    `least` are not asked about. The `group` of a question is its form and its property, as in
    "count: author".
    """
    left_out: Counter[str] = Counter()
    ordered = sorted(
        (fact for fact in join_facts(facts) if is_grounded(fact)),
        key=lambda f: (f.relation, f.subject.key, f.object.key),
    )
    knowledge = Knowledge(tuple(ordered))
    groups = []
    for group in group_facts(ordered, ("object", "subject")).values():
        if any(fact.confidence < least for fact in group.facts):
            left_out["a fact is not certain enough"] += 1
        elif knowledge.is_ambiguous(group.asked):
            left_out["several things have the name of what is asked about"] += 1
        elif any(len(fold_words(t.name)) > MOST_WORDS for t in (group.asked, *group.right)):
            left_out["a name is as long as a sentence"] += 1
        else:
            groups.append(group)
    made: dict[str, list[TypedQuestion]] = defaultdict(list)
    for typed in _make_all(groups, ordered, seed):
        question = typed.question
        if any(names_within(Thing("", v), fold_words(question.text)) for v in question.values) and (
            not question.group.startswith("comparison")
        ):
            left_out["the question names the answer"] += 1
        else:
            made[question.group].append(typed)
    dealt = sorted(
        ((turn, hash_draw(name, seed), typed) for name, listed in made.items()
         for turn, typed in enumerate(sorted(listed, key=lambda q: q.question.id))),
        key=lambda t: t[:2],
    )  # fmt: skip
    chosen: dict[str, TypedQuestion] = {}
    for _, _, typed in dealt:
        chosen.setdefault(typed.question.text, typed)
    return TypedQuestions(tuple(chosen.values())[:count], dict(sorted(left_out.items())))


def _make_all(groups: Sequence[Group], facts: Sequence[Fact], seed: int) -> Iterator[TypedQuestion]:
    wide = [g for g in groups if len(_list_names(g.right)) >= LEAST_MEMBERS and _is_wide(g.facts)]
    for group in wide:
        rng = Random(f"{seed} {group.key}")  # noqa: S311
        yield from _ask_members(group, rng, seed)
    sides: dict[tuple[str, str], list[Group]] = defaultdict(list)
    for group in groups:
        sides[group.side, group.relation].append(group)
    for (side, relation), listed in sorted(sides.items()):
        rng = Random(f"{seed} most {side} {relation}")  # noqa: S311
        yield from _ask_most(listed, rng, seed)
    values: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.object.form in _HIGHER:
            values[fact.relation].append(fact)
    for relation, stated in sorted(values.items()):
        rng = Random(f"{seed} extreme {relation}")  # noqa: S311
        yield from _ask_extremes(relation, stated, rng, seed)
    yield from _ask_both([g for g in groups if g.side == "subject"], seed)


def _ask_members(group: Group, rng: Random, seed: int) -> Iterator[TypedQuestion]:
    """Who or what they are, and how many."""
    members = [name for name in _list_names(group.right)]
    if any(thing.form for thing in group.right):
        return
    if read_relation(group.relation).shape == "done":
        return  # "position held": by which people was ... is no English
    worded = group.word(several=True)
    find = "find", {"class_name": "thing", "where": [_meet(group)]}
    yield _state("list", group.relation, rng.choice(worded), members, group.facts, seed, *find)
    counted = [f"How many {text.removeprefix('Which ')}" for text in worded if _has_noun(text)]
    phrasing = read_relation(group.relation)
    if group.side == "object" and phrasing.shape == "noun":
        counted = [f"How many {make_plural(phrasing.core)} does {group.asked.name} have?"]
    if counted:
        number = [str(len(members))]
        counted_by = (*("count", group.relation), rng.choice(counted), number, group.facts, seed)
        yield _state(*counted_by, *find)


def _meet(group: Group) -> list[str]:
    """The condition on what is in a relation to what a group asks about."""
    back = "^" if group.side == "object" else ""
    return [f"{back}{group.relation}", group.asked.name]


def _has_noun(text: str) -> bool:
    return text.startswith("Which ")


def _ask_most(groups: Sequence[Group], rng: Random, seed: int) -> Iterator[TypedQuestion]:
    """What has the most members of a property, and which of two has more."""
    sized = [(len(_list_names(g.right)), g.asked.name, g) for g in groups]
    sized = sorted(((n, name, g) for n, name, g in sized if n > 1), key=lambda t: (-t[0], t[1]))
    if len(sized) < LEAST_MEMBERS or any(g.right[0].form for _, _, g in sized):
        return
    worded = list(_word_most(sized[0][2]))
    (most, name, _), (second, *_) = sized[:2]
    facts = [fact for _, _, group in sized for fact in group.facts]
    relation = sized[0][2].relation
    counted = f"^{relation}" if sized[0][2].side == "subject" else relation
    if most - second >= _LEAD and _is_wide(facts) and worded:
        text = rng.choice(worded).replace("MOST", "the most") + "?"
        ask = "find", _find_first(counted, f"-count({counted})")
        yield _state("superlative", relation, text, [name], facts, seed, *ask)
    pairs = [
        (one, other)
        for one, other in combinations(sized, 2)
        if one[0] - other[0] >= _LEAD and _is_wide((*one[2].facts, *other[2].facts))
    ]
    for one, other in rng.sample(pairs, min(len(pairs), _MOST_PAIRS)) if worded else ():
        both = sorted((one[1], other[1]))
        text = f"{rng.choice(worded).replace('MOST', 'more')}, {both[0]} or {both[1]}?"
        stated = (*one[2].facts, *other[2].facts)
        ask = "compare", {"first": both[0], "second": both[1], "name": f"count({counted})"}
        yield _state("comparison", relation, text, [one[1]], stated, seed, *ask)


def _word_most(group: Group) -> Iterator[str]:
    """Questions for what has `MOST` members, without the mark at their end."""
    phrasing = read_relation(group.relation)
    if phrasing.shape not in ("noun", "participle"):
        return
    if group.side == "object":
        which = _name(group.find_kind("subject"))
        if phrasing.shape == "noun":
            yield f"{which} has MOST {make_plural(phrasing.core)}"
        return
    many = _name(group.find_kind("subject"), several=True).removeprefix("Which ")
    if many == "What":
        return
    owner = _name(group.find_kind("object") or phrasing.core)
    if phrasing.shape == "participle":
        lead = owner.replace("Who", "Whom").lower()
        yield f"{phrasing.words[-1].capitalize()} {lead} were MOST {many} {phrasing.words[0]}"
        return
    yield f"Which {phrasing.core} do MOST {many} have"
    if owner != "What":
        yield f"{owner} is the {phrasing.core} of MOST {many}"


def _ask_extremes(
    relation: str, stated: Sequence[Fact], rng: Random, seed: int
) -> Iterator[TypedQuestion]:
    """What has the highest or the first value of a property, and which of two."""
    form = stated[0].object.form
    owned: dict[str, list[Fact]] = defaultdict(list)
    for fact in stated:
        if fact.object.form == form and measure(fact.object.name, form) is not None:
            owned[fact.subject.key].append(fact)
    single = [listed[0] for listed in owned.values() if len({f.object.name for f in listed}) == 1]
    ranked = sorted(single, key=lambda f: (_measure(f), f.subject.key))
    if len(ranked) < LEAST_DOCUMENTS or len({f.subject.name for f in ranked}) < len(ranked):
        return
    kind = _name(Group("object", tuple(stated)).find_kind("subject"))
    core = read_relation(relation).core
    event = next((EVENTS[w] for w in core.lower().split() if w in EVENTS and form == "date"), None)
    for words, at, beside in ((_LOWER, 0, 1), (_HIGHER, -1, -2)):
        than, most, adverb = words[form]
        if _years(ranked[at]) != _years(ranked[beside]) and _is_wide(ranked):
            text = f"{kind} has the {most} {core}?"
            if event:
                text = f"{kind} {event[0]} {event[1]} {adverb}?".replace("did die", "died")
            name = [ranked[at].subject.name]
            ask = "find", _find_first(relation, relation if at == 0 else f"-{relation}")
            yield _state("superlative", relation, text, name, ranked, seed, *ask)
        pairs = [
            (one, other)
            for one, other in combinations(ranked, 2)
            if _years(one) != _years(other) and not set(one.documents) & set(other.documents)
        ]
        for one, other in rng.sample(pairs, min(len(pairs), _MOST_PAIRS // 2)):
            right = one if words is _LOWER else other
            names = sorted((one.subject.name, other.subject.name))
            text = f"Which has the {than} {core}, {names[0]} or {names[1]}?"
            if event and event[0] == "was":
                text = rng.choice(
                    (
                        f"Which was {event[1]} {adverb}, {names[0]} or {names[1]}?",
                        f"Was {names[0]} {event[1]} {_order(words)} {names[1]}?",
                    )
                )
            elif rng.random() < 0.5:
                text = f"Does {names[0]} have a {than} {core} than {names[1]}?"
            value = right.subject.name
            if text.startswith(("Was ", "Does ")):
                value = "yes" if value == names[0] else "no"
            ask = "compare", {"first": names[0], "second": names[1], "name": relation}
            yield _state("comparison", relation, text, [value], (one, other), seed, *ask)


def _find_first(property_: str, order_by: str) -> dict[str, Any]:
    where = [[property_, {"not": None}]]
    return {"class_name": "thing", "where": where, "order_by": order_by, "limit": 1}


def _order(words: object) -> str:
    return "before" if words is _LOWER else "after"


def _measure(fact: Fact) -> float:
    return measure(fact.object.name, fact.object.form) or 0.0


def _years(fact: Fact) -> float:
    """A number, or a date's year: two dates of one year may be told by years alone."""
    if fact.object.form == "date" and find_precision(fact.object.name, "date"):
        return float(fact.object.name.split()[-1])
    return _measure(fact)


def _ask_both(groups: Sequence[Group], seed: int) -> Iterator[TypedQuestion]:
    """What meets two conditions; a document that states all of it does not answer alone."""
    by_pair: dict[tuple[str, str], list[tuple[Group, Group, list[Fact]]]] = defaultdict(list)
    for one, other in combinations(groups, 2):
        if one.relation == other.relation:
            continue
        shared = {t.key for t in one.right} & {t.key for t in other.right}
        if not shared or len(shared) == min(len(one.right), len(other.right)):
            continue
        if not _is_wide((*one.facts, *other.facts)):
            continue
        facts = [f for g in (one, other) for f in g.facts if f.subject.key in shared]
        if len(shared) > 1 or not set.intersection(*({*f.documents} for f in facts)):
            by_pair[one.relation, other.relation].append((one, other, facts))
    for (first, second), found in sorted(by_pair.items()):
        rng = Random(f"{seed} both {first} {second}")  # noqa: S311
        for one, other, facts in rng.sample(found, min(len(found), _MOST_PAIRS)):
            kind = one.find_kind("subject")
            parts = [
                rng.choice(
                    word_for_subject(
                        g.relation, g.asked.name, kind, g.find_kind("object"), several=True
                    )
                )
                for g in (one, other)
            ]
            lead = _name(kind, several=True)
            if not all(part.startswith(f"{lead} ") for part in parts) or lead == "What":
                continue
            rests = [part.removeprefix(lead)[1:-1] for part in parts]
            text = rng.choice(
                (
                    f"{lead} {rests[0]} and also {rests[1]}?",
                    f"Which of the {lead.removeprefix('Which ')} that {rests[0]} also {rests[1]}?",
                )
            )
            members = _list_names(tuple({f.subject.key: f.subject for f in facts}.values()))
            stated = (*one.facts, *other.facts)
            ask = "find", {"class_name": "thing", "where": [_meet(one), _meet(other)]}
            yield _state("conjunction", f"{first} + {second}", text, members, stated, seed, *ask)


def _name(kind: str, *, several: bool = False) -> str:
    """The beginning of a question for things of a kind."""
    return name_which(kind, find_asked(kind), several=several)


def _list_names(things: Sequence[Thing]) -> list[str]:
    """The names of things, each once however it is written."""
    return list({fold_words(thing.name): thing.name for thing in things}.values())


def _is_wide(facts: Iterable[Fact]) -> bool:
    return len({document for fact in facts for document in fact.documents}) >= LEAST_DOCUMENTS


def _state(
    form: str,
    relation: str,
    text: str,
    values: Sequence[str],
    facts: Iterable[Fact],
    seed: int,
    tool: str,
    arguments: Mapping[str, Any],
) -> TypedQuestion:
    facts = tuple(facts)
    is_set = form in ("list", "conjunction")
    kind: Kind = "values" if is_set else "yesno" if values[0] in ("yes", "no") else "open"
    question = EvalQuestion(
        id=f"{form}-{hash_draw(f'{relation} {text}', seed)[:12]}",
        text=text,
        kind=kind,
        answers=tuple((value,) for value in sorted(values)),
        gold_documents=tuple(sorted({d for fact in facts for d in fact.documents})),
        group=f"{form}: {relation}",
    )
    return TypedQuestion(question, tool, arguments)
