"""Questions and their answers as statements: by rules, the twin of LLM_Gen (WTS, 3.2.2).

"Where was X born?" and "Oslo" become "X was born in Oslo." A question about what another thing
leads to names it first: with a fact that X was married to Y, "the nationality of X's spouse" is
that of Y. A statement counts only when the extractor, which reads it in the next build, finds in it
the fact that joins the thing and the answer, with every word that says something, and no other.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kpyramid.documents.words import (
    BE,
    FUNCTION,
    PREPOSITIONS,
    list_plain_words,
    normalise_name,
    stem_words,
)
from kpyramid.embeddings.port import Embedder
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.types import Extraction
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.graph.synonyms.words import load_wordnet
from kpyramid.llm.task import GUARD, Asker, Failure, Reply, Strict, Task, flatten, parse_json
from kpyramid.pipeline.learning.feedback import Feedback
from kpyramid.query.analysis import QuestionAnalysis, analyse
from kpyramid.query.model.prompting import ask_model
from kpyramid.query.paths import MOST_NEIGHBOURS
from kpyramid.query.wording import Step, cut_question
from kpyramid.snapshot.adjacency import Adjacency
from kpyramid.snapshot.snapshot import Snapshot

SAID = 0.5
"""Chance from which steps of the graph are what a part of the question names; ours: a step that
the lexicon knows has .9, one that is only near by its words at most .8 of its cosine."""
HOPS = 2
"""Steps to the thing that is asked about: PathQuestion's longest questions have three in all."""
MOST_FOLLOWED = 30
_MOST_WORDINGS = 3
_LONGEST_SUBJECT = 8

_POLITE = re.compile(
    r"^(?:please |kindly )?(?:(?:can|could) you |do you know )?(?:please )?"
    r"(?:(?:tell|give|show) (?:me |us )?|name )?(?=\S)",
    re.IGNORECASE,
)
_NAME_OF = re.compile(r"\bthe names? of (?:the )?(?=\S)", re.IGNORECASE)
_FRONT = re.compile(
    r"^(?P<prep>[a-z]+ )?(?P<asking>what|who|whom|which|where|when)\b(?P<noun>(?: [\w-]+){0,3}?) "
    r"(?P<aux>is|are|was|were|do|does|did|has|have|had|can|will) (?P<rest>.+)$",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"^(?:what|who|which [\w-]+(?: [\w-]+)?) (?P<rest>.+)$", re.IGNORECASE)
_YES_NO = re.compile(
    r"^(?P<aux>is|are|was|were|do|does|did|has|have|had|can) (?P<rest>.+)$", re.IGNORECASE
)
_OWNED = re.compile(r"^(?:the )?(?P<name>.+?)(?:'s|’s|') (?P<role>[^'’]+)$", re.IGNORECASE)
_ROLE_OF = re.compile(r"^(?:the )?(?P<role>.+?) of (?P<name>.+)$", re.IGNORECASE)
_NAME = re.compile(
    r"\b[A-Z][\w.-]*(?: (?:(?:of|the|de|la|von|van|der|du|di|da|al|and) ){0,2}[A-Z\d][\w.-]*)*"
)
_NESTED = re.compile(r"['’]s?\b|^(?:the )?[a-z]\w* of ")
"""A thing that is named by what it is to another: no name that others could know it by."""
_POSSESSIVE = re.compile(r"['’]s?$")
_DAY = re.compile(r"\b\d{1,2}\b.*[a-z]|[a-z].*\b\d{1,2}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Triple:
    """What a statement says, in the words that the extractor finds."""

    head: str
    relation: str
    tail: str

    def __str__(self) -> str:
        return f"{self.head} {self.relation} {self.tail}"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence and the facts that it will be read as."""

    text: str
    triples: tuple[Triple, ...]
    about: str
    """The thing that it is about."""


@dataclass(frozen=True, slots=True)
class Made:
    """Statements of one row, or why there are none."""

    statements: tuple[Statement, ...] = ()
    reason: str = ""


class Reader:
    """Reads sentences as the next build will."""

    def __init__(self, extractor: DependencyExtractor) -> None:
        self._extractor = extractor

    def read(self, sentences: Sequence[str]) -> list[Extraction]:
        """What each sentence states."""
        return list(self._extractor.extract_all(sentences))

    def find_sound(
        self, sentences: Sequence[str], about: str, value: str, words: frozenset[str] = frozenset()
    ) -> Statement | None:
        """The first sentence all of whose facts join a thing and a value, and say some words.

        With no thing given it is whatever the sentence joins with the value, by a name of its own.
        """
        for text, found in zip(sentences, self.read(sentences), strict=True):
            triples, said, name = [], {*_list_stems(f"{about} {value}")}, about
            for fact in found.facts:
                ends = [fact.head, fact.tail]
                keys = [normalise_name(end) for end in ends]
                if fact.negated or fact.modality or fact.attribution or len({*keys}) < 2:
                    break
                if normalise_name(value) not in keys:
                    break
                thing = ends[keys.index(normalise_name(value)) - 1]
                name = name or thing
                if normalise_name(thing) != normalise_name(name):
                    break
                if not about and _NESTED.search(name):
                    break
                held = " ".join((*ends, fact.relation, *fact.qualifiers.values()))
                said.update(_list_stems(held))
                triples.append(Triple(fact.head, fact.relation, fact.tail))
            else:
                if triples and words <= said:
                    return Statement(text, tuple(dict.fromkeys(triples)), name)
        return None


class Stater:
    """Makes statements of questions and their answers, by rules."""

    def __init__(self, snapshot: Snapshot, reader: Reader) -> None:
        self._snapshot = snapshot
        self._reader = reader
        embedder: Embedder = snapshot.embedder
        self._comparer = Comparer(embedder)

    @cached_property
    def _graph(self) -> Adjacency:
        return Adjacency(self._snapshot)

    @cached_property
    def _wordings(self) -> tuple[str, ...]:
        """The relation wordings of the graph, those of most facts first."""
        rows = self._snapshot.table("relations").select(["name", "support"]).to_pylist()
        ranked = sorted(rows, key=lambda row: (-row["support"], row["name"]))
        return tuple(row["name"] for row in ranked[:500])

    def state(self, row: Feedback) -> Made:
        """The statements of a row, one for each value that can be stated."""
        if row.is_no:
            return Made(reason="it says that something does not hold, not what does")
        question = clean_question(row.question)
        asked = analyse(question, self._snapshot)
        found, why = self._name_thing(asked)
        if why:
            return Made(reason=why)
        if found and len(row.values) > 1:
            return Made(
                reason=f"{len(row.values)} values, which may be of others than {found[0][1]}"
            )
        names = [*_list_names(question, asked), ""]
        ways = [*found, *((question, name) for name in names)]
        made = [self._state_value(ways, value, is_yes=row.is_yes) for value in row.values]
        told = tuple(statement for statement in made if statement is not None)
        return Made(told, "" if told else "no sentence says it as one fact about a thing")

    def _call(self, entity: str) -> str:
        """The longest of an entity's names: others may share a shorter one."""
        forms = self._snapshot.surface_forms([entity]).get(entity, ())
        names = [_POSSESSIVE.sub("", form) for form in (*forms, self._snapshot.names[entity])]
        return max(names, key=lambda name: (len(name.split()), len(name), name))

    def _state_value(
        self, ways: Sequence[tuple[str, str]], value: str, *, is_yes: bool
    ) -> Statement | None:
        for text, name in ways:
            if is_yes:
                options = list(_say_yes(text, name))
            else:
                options = [(said, value) for said in self._word(text, name, value)]
            asking = frozenset(
                lemma
                for word in list_plain_words(_drop_kind(text.replace(name, " ") if name else text))
                if word not in FUNCTION and (lemma := stem_words([word])[0])
            )
            for said, end in options:
                found = self._reader.find_sound([_finish(said)], name, end, asking)
                if found is not None:
                    return found
            role = _find_role(text, name)
            for wording in self._mean(role) if role and not is_yes else ():
                found = self._reader.find_sound([_finish(f"{name} {wording} {value}")], name, value)
                if found is not None:
                    return found
        return None

    def _word(self, text: str, name: str, value: str) -> Iterator[str]:
        role = _find_role(text, name)
        if role:
            yield f"the {role} of {name} is {value}"
            yield f"{name}'s {role} is {value}"
            yield f"{value} is the {role} of {name}"
        else:
            yield from declare(text, name, value)

    def _mean(self, role: str) -> list[str]:
        """Wordings of the graph that say that something has a role, as "was born in" does."""
        owns = f"has {role}"
        same = []
        for wording in self._wordings:
            verdict = self._comparer.compare(owns, wording)
            if verdict.likeness == "equivalent" and not verdict.turned:
                same.append(wording)
        return same[:_MOST_WORDINGS]

    def _name_thing(self, asked: QuestionAnalysis) -> tuple[list[tuple[str, str]], str]:
        """The question with the name of what a part of it leads to in its place, most words first.

        Where a part leads to several things it is not known which one is meant: the second value
        says so.
        """
        names: dict[tuple[int, int], dict[str, float]] = {}
        graph = self._graph
        rows = [row for key in asked.linked.entities if (row := graph.find(key)) is not None]
        last: list[tuple[int, int, tuple[Step, ...]]] = [(row, row, ()) for row in rows]
        for _ in range(HOPS):
            ahead = []
            for row, start, steps in last[:MOST_FOLLOWED]:
                edges = graph.leave(np.array([row], np.int64), MOST_NEIGHBOURS)
                columns = (edges.fact.tolist(), edges.target.tolist(), edges.forward.tolist())
                for fact, target, forward in zip(*columns, strict=True):
                    longer = (*steps, (graph.word_fact(fact), forward))
                    chance, span = cut_question(asked, graph.name_entity(start), longer)
                    if chance >= SAID and target != start:  # its own father's son is somebody
                        name = self._call(graph.name_entity(target))
                        known = names.setdefault(span, {})
                        known[name] = max(chance, known.get(name, 0.0))
                        ahead.append((-chance, target, start, longer))
            last = [(target, start, steps) for _, target, start, steps in sorted(ahead)]
        found = []
        for (start, end), ends in sorted(names.items(), key=lambda one: one[0][0] - one[0][1]):
            best = max(ends.values())
            likely = sorted(name for name, chance in ends.items() if chance >= best - 0.05)
            part = asked.text[start:end]
            if len(likely) > 1:
                return [], f"{part!r} may be {likely[0]} or {likely[1]}"
            found.append((f"{asked.text[:start]}{likely[0]}{asked.text[end:]}", likely[0]))
        return found, ""


def clean_question(text: str) -> str:
    """The question without its mark, its courtesies and spaces before "'s"."""
    plain = re.sub(r"\s+(?=['’]s\b|[?.,!])", "", " ".join(text.split())).rstrip("?.! ")
    return _NAME_OF.sub("the ", _POLITE.sub("", plain, count=1))


def _drop_kind(question: str) -> str:
    """The question without what "which" says of the kind of its answer."""
    front = _FRONT.match(question)
    return f"{front['aux']} {front['rest']}" if front else question


def declare(question: str, name: str, value: str) -> Iterator[str]:
    """The sentences that may state a value as the answer to a simple question about a thing."""
    if front := _FRONT.match(question):
        prep, aux, rest = front["prep"] or "", front["aux"].casefold(), front["rest"]
        for at in _list_ends(rest, name):
            subject, verb = rest[:at].strip(), rest[at:].strip()
            link = _choose_preposition(prep.strip(), front["asking"].casefold(), verb, value)
            yield " ".join(f"{subject} {_inflect(aux, verb)} {link} {value}".split())
        if aux in BE:
            yield f"{value} {aux} {rest}"
    if subject := _SUBJECT.match(question):
        yield f"{value} {subject['rest']}"


def _say_yes(question: str, name: str) -> Iterator[tuple[str, str]]:
    """The question as a statement, with what it says of the thing."""
    if found := _YES_NO.match(question):
        for at in _list_ends(found["rest"], name):
            subject, rest = found["rest"][:at].strip(), found["rest"][at:].strip()
            said = f"{subject} {_inflect(found['aux'].casefold(), rest)}"
            words = rest.split()
            for first in range(len(words)):
                yield said, " ".join(words[first:])


def _list_ends(rest: str, name: str) -> list[int]:
    """Where the subject of a question may end behind the verb: after the name, if it stands first.

    Else after any of its first words.
    """
    at = rest.casefold().find(name.casefold())
    if name and 0 <= at <= len("the "):
        return [at + len(name)]
    words = list(re.finditer(r"\S+", rest))[:_LONGEST_SUBJECT]
    return [m.end() for m in words if m[0].casefold() not in FUNCTION]


def _inflect(aux: str, verb: str) -> str:
    """The verb of a statement: "did study" becomes "studied".

    That of an irregular verb is emphatic: "did win".
    """
    words = verb.split()
    if aux not in ("do", "does", "did") or not words:
        return f"{aux} {verb}"
    if aux == "do":
        return verb
    first, after = words[0], words[1:]
    if aux == "did":
        forms = load_wordnet().irregular.items()
        if any(lemma == first and not form.endswith(("ed", "ing")) for form, lemma in forms):
            return f"did {verb}"
        ending = "d" if first.endswith("e") else "ed"
    else:
        ending = "es" if first.endswith(("s", "x", "z", "ch", "sh", "o")) else "s"
    if first.endswith("y") and first[-2:-1] not in "aeiou":
        first, ending = first[:-1], "ies" if aux == "does" else "ied"
    return " ".join((first + ending, *after))


def _choose_preposition(front: str, asking: str, verb: str, value: str) -> str:
    if front in PREPOSITIONS:
        return front
    last = verb.split()[-1] if verb else ""
    if asking not in ("where", "when") or last in PREPOSITIONS:
        return ""
    return "on" if asking == "when" and _DAY.search(value) else "in"


def _list_names(question: str, asked: QuestionAnalysis) -> list[str]:
    """The names in a question, none that is a part of another one."""
    written = [match[0] for match in _NAME.finditer(question)]
    written = [
        name.partition(" ")[2] if name.split()[0].casefold() in FUNCTION else name
        for name in written
    ]
    linked = [_POSSESSIVE.sub("", name) for name in asked.linked.names]
    names = [name for name in dict.fromkeys((*written, *linked)) if name]
    return [n for n in names if not any(n != other and n in other for other in names)]


def _find_role(question: str, name: str) -> str:
    """What is asked of a thing: "nationality" of "what is the nationality of X".

    Empty where the question says anything else.
    """
    if not name:
        return ""
    front = _FRONT.match(question)
    rest = question
    if front:
        if front["aux"].casefold() not in BE or front["prep"]:
            return ""
        rest, noun = front["rest"], front["noun"].strip()
        if normalise_name(rest) == normalise_name(name) and noun:
            return noun
    for form in (_OWNED, _ROLE_OF):
        found = form.match(rest)
        if found and normalise_name(found["name"]) == normalise_name(name):
            return found["role"].strip()
    return ""


def _list_stems(text: str) -> list[str]:
    return stem_words(list_plain_words(text))


def _finish(said: str) -> str:
    plain = " ".join(said.split())
    return f"{plain[:1].upper()}{plain[1:]}."


MOST_TRIPLES = 10
"""Of one row; a question and its answer say one to three."""
MOST_WORDS = 8
"""Of a relation: it is a verb phrase."""
MOST_ENTITIES = 30
"""Retrieved triples that are shown."""
MAX_TOKENS = 2048
"""The paper's (4.1.2)."""

_SYSTEM = f"""\
You are an expert{{domain}} who extracts general knowledge from a question and its answer to create
knowledge graph triples.
{GUARD}
- The material is a question, its answer, and entities from triples that were retrieved for it.
- Take the answer for right. State what question and answer say together, and nothing besides:
  not what the question supposes, not what you know.
- "head" and "tail": names as the material writes them, one of them from the answer.
- "relation": a verb phrase, so that head, relation and tail make a sentence.
- No triples where the answer is no, or nothing is said.
Reply with JSON only: {{{{"triples": [{{{{"head": "…", "relation": "…", "tail": "…"}}}}]}}}}
"""


class Row(Strict):
    """One triple of the reply."""

    head: str
    relation: str
    tail: str


class Triples(Strict):
    """The reply."""

    triples: tuple[Row, ...]


def write_system(domain: str = "") -> str:
    """The system message."""
    return _SYSTEM.format(domain=f" in {flatten(domain, 100)}" if domain.strip() else "")


def parse(reply: Reply) -> tuple[Row, ...]:
    """The triples.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    return parse_json(reply.content, Triples).triples


def show_row(row: Feedback) -> str:
    """The material."""
    lines = [f"Question: {row.question}", f"Answer: {'; '.join(row.values)}"]
    shown = [flatten(triple.words, 300) for triple in row.triples[:MOST_ENTITIES]]
    return "\n".join([*lines, "Entity:", *(f"- {words}" for words in shown)])


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes statements of rows by a model; each is read as a sentence of the corpus will be."""

    asker: Asker
    reader: Reader
    domain: str = ""

    def state(self, row: Feedback) -> Made:
        """The statements of a row.

        Raises:
            BudgetError, EndpointError: the model may not or cannot be asked; nothing is learnt.
        """
        if row.is_no:
            return Made(reason="it says that something does not hold, not what does")
        request = TASK.request(write_system(self.domain), show_row(row), max_tokens=MAX_TOKENS)
        found = ask_model(self.asker, request, parse)
        if isinstance(found, Failure):
            return Made(reason=f"the model made no triples: {found.kind}: {found.detail}")
        told: list[Statement] = []
        faults: list[str] = []
        for triple in found[:MOST_TRIPLES]:
            fault = find_fault(triple, row)
            text = f"{triple.head} {triple.relation} {triple.tail}"
            if not fault:
                said = " ".join(text.split())
                sentence = f"{said[:1].upper()}{said[1:]}."
                sound = self.reader.find_sound([sentence], triple.head, triple.tail)
                if sound is not None:
                    told.append(sound)
                    continue
                fault = "it is not read as one fact"
            faults.append(f"{flatten(text, 100)!r}: {fault}")
        why = "; ".join(faults) or "it made no triple"
        return Made(tuple(dict.fromkeys(told)), "" if told else why)


def find_fault(triple: Row, row: Feedback) -> str:
    """Why a triple of the model is none of its material; empty for one that is."""
    if not all(part.strip() for part in (triple.head, triple.relation, triple.tail)):
        return "a part of it is empty"
    if len(triple.relation.split()) > MOST_WORDS or not triple.relation.replace(" ", "").isalpha():
        return f"its relation is no phrase of at most {MOST_WORDS} words"
    answer = [list_plain_words(value) for value in row.values]
    entities = [list_plain_words(each.words) for each in row.triples[:MOST_ENTITIES]]
    material = [list_plain_words(row.question), *answer, *entities]
    ends = [list_plain_words(end) for end in (triple.head, triple.tail)]
    for end, name in zip(ends, (triple.head, triple.tail), strict=True):
        if not end or not any(_holds(part, end) for part in material):
            return f"{flatten(name, 60)!r} is not in the question, the answer or the entities"
    if not row.is_yes and not any(_holds(part, end) for part in answer for end in ends):
        return "neither of its ends is in the answer"
    return ""


def _holds(words: Sequence[str], end: Sequence[str]) -> bool:
    """Whether words stand in others as a run."""
    return any(
        list(words[at : at + len(end)]) == list(end) for at in range(len(words) - len(end) + 1)
    )


TASK = Task(
    name="wts_generate",
    version=1,
    stage="learn",
    reply=Triples,
    system=lambda _: write_system(),
    is_asked=lambda settings: settings.llm.provider != "none",
)
