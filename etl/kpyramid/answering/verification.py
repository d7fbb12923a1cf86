"""Answer verification: the parts of a question that the citations of an answer do not support."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from kpyramid.answering.lexicon import ADJECTIVES
from kpyramid.answering.meanings import read_wording, read_words, says_role
from kpyramid.answering.related import MEASURED, SIZES
from kpyramid.answering.sets import SetQuestion, read_kind, read_set
from kpyramid.documents.qualifiers import DOCUMENT
from kpyramid.documents.sentences import split_sentences
from kpyramid.documents.values import NUMBER_WORDS, agree, find_values, read_value
from kpyramid.documents.words import (
    ARTICLES,
    AUXILIARIES,
    BE,
    DO,
    HAVE,
    STOP,
    Name,
    Place,
    Word,
    find_name,
    is_akin,
    lemmatise,
    read_name,
    split_words,
)
from kpyramid.query.analysis import KIND_TYPES, NOUNS, NUMERIC, QuestionAnalysis, link_text
from kpyramid.query.decisions import NO_ANSWER, SUPPORTED, Verification
from kpyramid.query.facts import STATED, is_mere_year
from kpyramid.query.paths import STEP
from kpyramid.query.types import Item
from kpyramid.query.wording import LIGHT, list_behind
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.snapshot import Snapshot

_DETERMINERS = ARTICLES | frozenset("its his her their".split())
_NOUN_FOLLOWS = frozenset("has have had of as by".split())
_WHO = frozenset("who what which".split())
_ASKED = _WHO | {"whom"}
_PRONOUN = re.compile(r"\b(?:he|she|it|they|him|her|them|his|its|their)\b", re.IGNORECASE)
_REACH = 4
"""Words between a verb and its auxiliary, or between "of" and the end of the name after it."""

Span = tuple[int, int]


# What is asked of the names of a question.

_ROLES = {"capital"} | {
    noun for noun, types in NOUNS.items() if types in ({"PERSON"}, {"ORG"}) and noun not in LIGHT
}
"""Nouns of those that say what one thing is to another."""
_KIND = re.compile(
    r"\b(?:what|which)\s+((?:\w+\s+){1,4}?)(?:is|are|was|were|do|does|did|has|have|had|will|can)\b"
    r"|\b(?:what|which)\s+(?!is\b|are\b|was\b|were\b|do|of\b)(\w+)",
    re.IGNORECASE,
)
"""The noun that says what kind of thing is asked for."""


def find_wanted(asked: QuestionAnalysis) -> tuple[Word, ...]:
    """The content words that say what is asked of its names: its relation.

    Left out are words that the form of the answer says (`which city`, `how many people`) and
    verbs that say nothing, and the noun after which or what where anything else is left.
    """
    said = [w for w in asked.content if w.plain not in NOUNS and lemmatise(w.plain) not in LIGHT]
    start, end = _find_kind(asked)
    left = tuple(word for word in said if not start <= word.start < end)
    return left or tuple(said)


def _find_kind(asked: QuestionAnalysis) -> Span:
    """Where the noun after which or what stands: "band" of "which band"."""
    match = _KIND.search(asked.text)
    return match.span(match.lastindex or 1) if match else (0, 0)


def _find_owned(asked: QuestionAnalysis) -> list[Word]:
    """The roles that it asks of a name, and not only for: "X's daughter", "the capital of X".

    They relate two things as verbs do; `find_wanted` leaves them out for the form of the answer.
    """
    words, wanted, found = asked.words, find_wanted(asked), []
    for at, word in enumerate(words):
        is_owned = at > 1 and words[at - 1].plain == "s"
        is_owned |= bool(words[at + 1 :]) and words[at + 1].plain == "of"
        if is_owned and lemmatise(word.plain) in _ROLES and word not in wanted:
            found.append(word)
    return found


def _find_role_of_another(asked: QuestionAnalysis, lines: Sequence[str]) -> str:
    """The role that it asks of a name and that lines say of others only; empty if there is none.

    "The capital of Reunion, a region of France" is not that of France.
    """
    for role in _find_owned(asked):
        own = []
        for line in lines:
            words = split_words(line)
            named = [place for name in asked.names for place in find_name(name, words, ())]
            own += [_says_of(words, at, named) for at, w in enumerate(words) if _is_same(role, w)]
        if False in own and True not in own:
            return role.plain
    return ""


def list_said(asked: QuestionAnalysis) -> frozenset[str]:
    """The stems of all words of a question that name or say something."""
    return asked.named | {word.stem for word in asked.content}


_AGENT_NOUN = re.compile(r"\w{3,}(?:er|or)s?")
_BEFORE_NOUN = _DETERMINERS | BE | HAVE | {"its", "their", "his", "her", "s"}
"""What stands before a noun, and before no verb that has its form: "the operator"."""


def wants_doer(words: Sequence[Word], verb: int) -> bool | None:
    """Whether a question asks who does what its word `verb` says, or to whom it is done.

    "Who bought X" and "by whom was X bought" ask for the doer, "what did X buy" and "what was
    bought by X" for the other; None when it is not that kind of question, or no verb.
    """
    before = [word.plain for word in words[:verb]]
    after = [word.plain for word in words[verb + 1 :]]
    if set(before[-1:]) & (_DETERMINERS | _NOUN_FOLLOWS):
        return None
    if before[-1:] in (["what"], ["which"]) and set(after[:1]) & AUXILIARIES:
        return None  # a noun: "which rivers are"
    if BE & set(before[-_REACH:]) and not DO & set(before):
        if before[0] == "by" or after[-1:] == ["by"]:
            return True
        return bool(set(after[1:2]) & _ASKED) if after[:1] == ["by"] else None
    if DO & set(before):
        return False if set(before) & {"who", "whom", "what", "which"} else None
    return True if before and before[0] in _WHO and len(before) <= _REACH else None


def is_doer(words: Sequence[Word], verb: int, value: Span) -> bool | None:
    """Whether a value does what a sentence's word `verb` says, or it is done to it."""
    plain = [word.plain for word in words]
    if _AGENT_NOUN.fullmatch(plain[verb]) and set(plain[max(verb - 1, 0) : verb]) & _BEFORE_NOUN:
        # "has operator V", "V is the operator of X": the value beside it does it.
        between = plain[value[1] : verb] if value[1] <= verb else plain[verb + 1 : value[0]]
        return True if set(between) <= _DETERMINERS | BE else None
    by = plain[verb + 1 : verb + 2] == ["by"]
    passive = by or bool(BE & set(plain[max(verb - 2, 0) : verb]))
    if passive:
        if by and verb + 2 <= value[0] <= verb + 2 + _REACH:
            return True
        return False if value[1] <= verb else None
    between = plain[value[1] : verb] if value[1] <= verb else plain[verb + 1 : value[0]]
    if len(between) > 1 or not set(between) <= _DETERMINERS:
        return None
    return value[1] <= verb


def turns_doer(asked: QuestionAnalysis, text: str) -> bool:
    """Whether a text has a verb of "Did A direct B?" done by B, to A, or by another."""
    words = split_words(asked.text)
    if words[0].plain not in DO:
        return False
    said, values = split_words(text), find_values(text)
    for verb in find_wanted(asked):
        at = words.index(verb)
        verbs = [place for place, word in enumerate(said) if _is_same(verb, word)]
        for name in asked.names:
            own = find_name(name, words, ())
            does = any(place.last <= at for place in own)
            spans = [(place.first, place.last) for place in find_name(name, said, values)]
            found = {is_doer(said, place, span) for place in verbs for span in spans}
            if (not does) in found and does not in found:
                return True
            by_another = does and verbs and all(_is_done_by(said, place) for place in verbs)
            if by_another and spans and True not in found:
                return True
    return False


def _is_done_by(words: Sequence[Word], verb: int) -> bool:
    return [word.plain for word in words[verb + 1 : verb + 2]] == ["by"]


def wants_whole(words: Sequence[Word], noun: int) -> bool | None:
    """Whether a question asks of what something is the noun, or what is the noun of something.

    "What is X a tributary of" and "X is a tributary of what" ask for the whole, "the tributaries
    of X" for its part.
    """
    plain = [word.plain for word in words]
    if plain[-1] == "of" or plain[0] == "of":
        return True
    if plain[noun + 1 : noun + 2] != ["of"]:
        return None
    return bool(set(plain[noun + 2 : noun + 3]) & _ASKED)


def _says_of(words: Sequence[Word], noun: int, places: Sequence[Place]) -> bool | None:
    """Whether a sentence says its word `noun` of what it names at one of the places.

    False: of something else; None: of nothing. "The capital of the province of Ostrana" is said of
    Ostrana.
    """
    start = noun + 2
    if [word.plain for word in words[noun + 1 : start]] != ["of"]:
        return None
    while start < len(words) and words[start].plain in _DETERMINERS:
        start += 1
    if start >= len(words):
        return None
    further = None if words[start].large else _says_of(words, start, places)
    if further is not None:
        return further
    return any(place.first <= start < place.last for place in places)


# What is cited for an answer: the sentences that say it, and what stands before them.


@dataclass(frozen=True, slots=True)
class Citation:
    """What is cited, and what its passage says before it, its title first.

    The text has a line for the place and one for each fact that was read from it.
    """

    text: str
    before: str = ""


def list_citations(
    places: Sequence[Evidence], context: Sequence[Item], snapshot: Snapshot
) -> list[Citation]:
    """The cited sentences with what stands before them, and the facts read from them in words."""
    titles = snapshot.titles({place.document_id for place in places})
    cited, citations = set(places), []
    # A path says more than is cited of it where the answer rests on another one.
    whole = {item.key for item in context if cited.issuperset(item.evidence)}
    for place in places:
        before = titles.get(place.document_id, "")
        for passage in snapshot.evidence(place.chunk_id):
            before += "\n" + passage.text[: max(place.start - passage.start, 0)]
        own = (i for i in context if i.layer != "text" and place in i.evidence and i.key in whole)
        facts = [drop_document(item) for item in own]
        said = [" ".join(place.text.split()), *dict.fromkeys(facts)]
        citations.append(Citation("\n".join(said), before))
    return citations


def state_steps(text: str) -> list[str]:
    """The steps of a path, each in the direction of its fact; a statement as it is."""
    parts = STEP.split(text)
    steps = zip(parts[::2], parts[1::2], parts[2::2], strict=False)
    told = [
        f"{near} {arrow[2:-2]} {far}" if arrow[0] == "–" else f"{far} {arrow[2:-2]} {near}"
        for near, arrow, far in steps
    ]
    return told or [text]


def drop_document(item: Item) -> str:
    """A fact in words without the title of its document, whose words say nothing of the fact."""
    last = item.qualifiers[-1] if item.qualifiers else ""
    own = last.startswith(f"{DOCUMENT}: ")
    return item.text.removesuffix(f"{last})").rstrip(" (;") if own else item.text


def add_fact(citation: Citation, fact: str) -> Citation:
    """What is cited, with one more fact that was read from it."""
    return Citation(f"{citation.text}\n{fact}", citation.before)


def choose_citations(
    asked: QuestionAnalysis, value: str, citations: Sequence[Citation]
) -> list[Citation]:
    """What of some places says a value, and those that lead to it by a name that both say.

    All of them when none says the value in these words.
    """
    narrowed = [_narrow(citation, value) for citation in citations]
    saying = [citation for citation in narrowed if citation]
    bridges = {word for citation in saying for word in _list_large(citation.text)}
    bridges -= asked.named | {word.stem for word in split_words(value)} | STOP
    leading = [
        citation
        for citation, found in zip(citations, narrowed, strict=True)
        if not found and bridges & _list_large(citation.text)
    ]
    return [*saying, *leading] if saying else list(citations)


def _list_large(text: str) -> set[str]:
    return {word.stem for word in split_words(text) if word.large and word.start}


def _narrow(citation: Citation, value: str) -> Citation | None:
    """The sentences and facts of a place that say a value; none if none does.

    With them what begins with a pronoun: "She was born in Leeds", of which a fact says who she is.
    """
    name = read_name(value)
    before, said, meant = citation.before, [], []
    for sentence in citation.text.split("\n"):
        for span in split_sentences(sentence):
            part = sentence[span.start : span.end]
            words = split_words(part)
            if find_name(name, words, find_values(part)):
                said.append(part)
            elif words and words[0].plain in _PERSONAL | _PRONOUNS:
                meant.append(part)
            elif not said:
                before += f"\n{part}"
    return Citation("\n".join([*said, *meant]), before) if said else None


# The upper bound of an answer's confidence, by what its citations leave unsaid.

STRANGE, UNSAID = 0.1, 0.3
"""Bounds: nothing found mentions a name or year of the question; what is cited does not say what
is asked of it; it is not of the form of an answer. Set by hand, all below one half."""
_PERSONAL = frozenset("he she his her him they their both".split())
_PRONOUNS = frozenset("it its this these which".split())
NUMBERS = frozenset(NUMBER_WORDS)
_UNDONE = re.compile(
    r"\b(?:not|never|no|neither|nor|n't|planned|wanted|hoped|intended|tried|refused|declined"
    r"|rejected|cancelled|canceled|stopped|abandoned|turned (?:\w+ )?down|failed|unfinished"
    r"|would have|proposed|considered)\b",
    re.IGNORECASE,
)
_NAMED = frozenset({"PERSON", "ORG", "NORP", "GPE", "LOC", "FAC"})
_LARGE = re.compile(r"\b[A-Z][\w'’-]*(?: [A-Z][\w.'’-]*){2,4}")
"""A name in three words or more: somebody with the second of his names."""
_LIFE = re.compile(r"\([^()]*[12][0-9]{3}\s*[-–—]\s*[^()]*\)")
"""Dates in brackets after a name: of birth, of death."""
_YES_NO_SAID = frozenset({"yes", "no", "maybe"})
_REASON = re.compile(r"^\W*(?:why|how come|for what reason)\b|\bwhat (?:is|was) the reason\b", re.I)
_BECAME = re.compile(r"^(?:when|in (?:what|which) year) did .+ become\b", re.IGNORECASE)
_BEGUN = r"\b(?:became\b.* (?:in|on)|since|from|as of|beginning in) "
"""What stands before the time from which somebody was something."""
_FUTURE = re.compile(r"\b(?:will|shall|going to|is to be|are to be)\b")


def verify_places(
    asked: QuestionAnalysis,
    choices: Sequence[str],
    places: Sequence[Evidence],
    context: Sequence[Item],
) -> Verification:
    """The lowest bound that citations set for the values that answer a question."""
    snapshot = asked.snapshot
    citations = list_citations(places, context, snapshot)
    kind = read_kind(asked)
    is_list = kind is not None and kind.act == "list"
    if kind and is_list and all(_says_kind(c, kind.kind, citations) for c in choices):
        return SUPPORTED
    members = None if asked.candidates else read_set(asked)
    named = members.conditions if members else ()
    if len(choices) < 2 > len(named) and not (members and members.beside):
        named = tuple(c for c in named if c.anchor[-1:].isdigit())
        # One thing by one name is verified as any other; a time is said in many words.
    if members and named and all(_names_both(choice, members, citations) for choice in choices):
        return SUPPORTED  # the chance of a list is that of its members
    texts = [f"{g.before} {g.text}" for g in citations] + [item.text for item in context]
    cited = set(places)
    above = [item for item in context if item.layer != "text" and cited & {*item.evidence}]
    stated = {c: [i.standard or i.text for i in above if c in i.text] for c in choices}
    verified = [
        verify_value(asked, choice, citations, texts, snapshot, asked.candidates, stated[choice])
        for choice in choices
    ]
    lowest = min(verified, key=lambda one: one.bound)
    if members and members.act in {"most", "extreme"}:  # no sentence says that it is the first
        lowest = replace(lowest, least=0.0)
    # An option is not taken away: its bound stays above what is too improbable to give.
    bound = max(lowest.bound, UNSAID) if asked.candidates else lowest.bound
    return replace(lowest, bound=bound)


def _says_kind(value: str, kind: Sequence[str], citations: Sequence[Citation]) -> bool:
    """Whether what is cited for a value says its kind."""
    said = (g for g in citations if find_name(read_name(value), split_words(g.text), ()))
    return any(kind[-1] in {lemmatise(word.plain) for word in split_words(g.text)} for g in said)


def _names_both(value: str, asked: SetQuestion, citations: Sequence[Citation]) -> bool:
    """Whether what is cited for a member names it and all that it is asked by."""
    names = [read_name(condition.anchor) for condition in asked.conditions]
    said = [g.text for g in citations if value in f"{g.before} {g.text}"]
    return all(
        any(find_name(name, split_words(text), find_values(text)) for text in said)
        for name in names
    )


def verify_value(
    asked: QuestionAnalysis,
    value: str,
    citations: Sequence[Citation],
    context: Sequence[str],
    snapshot: Snapshot,
    candidates: Collection[str] = (),
    stated: Sequence[str] = (),
) -> Verification:
    """The bound that citations set for a value as the answer of a question, and why.

    `stated`: what the layers above the text say by the citations, in their own relations.
    """
    form = _verify_form(asked, value, candidates, context)
    if form.reason:
        return form
    if value.strip().casefold() in _YES_NO_SAID:
        return (
            SUPPORTED if asked.is_yes_no else Verification(UNSAID, f"{value!r} is no answer to it")
        )
    citations = choose_citations(asked, value, citations)
    if asked.is_definition and not _is_defined(value, citations):
        return Verification(UNSAID, "what is cited does not say that it is that")
    unsupported = find_unsupported(asked, citations, context, snapshot, value, stated)
    if unsupported.reason:
        return unsupported
    if candidates:
        return SUPPORTED
    lines = [step for g in citations for line in g.text.split("\n") for step in state_steps(line)]
    if role := _find_role_of_another(asked, lines):
        return Verification(UNSAID, f"what is cited says {role} of something else")
    right, wrong = _compare_ends(asked, value, lines)
    became = bool(_BECAME.match(asked.text))
    if became:
        right = any(re.search(rf"{_BEGUN}{re.escape(value)}", line) for line in lines)
        wrong = not right
    if wrong and not right:
        return Verification(UNSAID, "what is cited says it the other way round")
    if not is_undone(asked.text) and all(is_undone(g.text) for g in citations):
        return Verification(UNSAID, "what is cited denies it, or only plans it")
    if _FUTURE.search(asked.text) and not any(_FUTURE.search(g.text) for g in citations):
        return Verification(UNSAID, "what is cited says nothing of the future")
    is_said = right and (became or not _find_owned(asked))
    is_said = is_said and any(_says_all(asked, value, line) for line in lines)
    return Verification(least=STATED) if is_said else SUPPORTED


def _is_defined(value: str, citations: Sequence[Citation]) -> bool:
    """Whether a value says what something is: it is no name, or a sentence says that it is it."""
    is_name = all(word.large or word.plain in STOP for word in split_words(value))
    saying = re.compile(rf"\b(?:is|was)\s+(?:the\s+|an?\s+)?{re.escape(value)}")
    return not is_name or any(saying.search(given.text) for given in citations)


def _says_all(asked: QuestionAnalysis, value: str, line: str) -> bool:
    """Whether a sentence says a value, each name of a question and each word of its relation."""
    words, values = split_words(line), find_values(line)
    if not find_name(read_name(value), words, values) or is_undone(line):
        return False
    if not find_wanted(asked) and not _BECAME.match(asked.text):
        return False
    own = frozenset(word.stem for word in split_words(value))
    names = all(_says_name(name, line, asked.snapshot) for name in asked.names)
    return bool(asked.names) and names and not _find_unsaid(asked, own, words)


def is_undone(text: str) -> bool:
    """Whether a text denies something, or only plans it."""
    return bool(_UNDONE.search(text))


def find_unsupported(
    asked: QuestionAnalysis,
    citations: Sequence[Citation],
    context: Sequence[str],
    snapshot: Snapshot,
    value: str = "",
    stated: Sequence[str] = (),
) -> Verification:
    """The bound that follows from names and words of a question that citations do not say."""
    own = frozenset(word.stem for word in split_words(value))
    names = [name for name in asked.names if not _is_within(name, own)]
    for name in names:
        if not any(_says_name(name, text, snapshot) for text in context):
            return Verification(STRANGE, f"nothing that was found mentions {name.text}")
    for name in names:
        if not any(_speaks_of(name, citation, snapshot) for citation in citations):
            return Verification(UNSAID, f"what is cited does not speak of {name.text}")
    words = [word for g in citations for word in split_words(g.text + _tell_life(g.text, value))]
    words += [word for text in stated for word in split_words(text)]
    missing = _find_unsaid(asked, own, words)
    if missing:
        return Verification(UNSAID, f"what is cited does not say {', '.join(missing)}")
    return SUPPORTED


def is_about_nothing(asked: QuestionAnalysis) -> bool:
    """Whether a question names nothing and says only "she" or "it", or nothing at all."""
    return not asked.names and (not find_wanted(asked) or bool(_PRONOUN.search(asked.text)))


def _is_cause(value: str, context: Sequence[str]) -> bool:
    """Whether a text says that something came of a value: "died of", "caused by"."""
    cause = re.compile(rf"\b(?:died of|because of|due to|caused by)\W+{re.escape(value)}", re.I)
    return any(cause.search(text) for text in context)


def _comes_back(value: str, context: Sequence[str]) -> bool:
    """Whether the first of some texts that is a path leaves a value and comes back to it.

    The wife of X's husband is X, who stands in the question.
    """
    lines = (line for text in context for line in text.splitlines())
    path = next((line for line in lines if " → " in line or " ← " in line), "")
    leaves = path.startswith((f"{value} – ", f"{value} ← "))
    return leaves and path.endswith((f" → {value}", f" – {value}"))


def _verify_form(
    asked: QuestionAnalysis, value: str, candidates: Collection[str], context: Sequence[str]
) -> Verification:
    if is_about_nothing(asked):
        return Verification(UNSAID, "the question names nothing that it asks about")
    if not candidates:
        if asked.is_yes_no and value.casefold() not in _YES_NO_SAID:
            return Verification(
                NO_ANSWER, "the question wants yes or no, and what was found is neither"
            )
        if _REASON.search(asked.text) and not _is_cause(value, context):
            return Verification(
                NO_ANSWER, "the question wants a reason, and what was found is none"
            )
    words = split_words(value)
    kind = lemmatise(asked.text[slice(*_find_kind(asked))].rpartition(" ")[2].casefold())
    wants_name = bool(asked.types) and asked.types <= _NAMED
    wants_name = wants_name and not (candidates or asked.is_definition)
    values = find_values(value)
    inside = {at for at, w in enumerate(words) if any(v.start <= w.start < v.end for v in values)}
    is_name = any(word.large for at, word in enumerate(words) if at not in inside)
    if words and wants_name and not is_name:
        return Verification(UNSAID, "what was found is no name as the question wants")
    if not candidates and asked.types and asked.types <= NUMERIC:
        counted = values or NUMBERS & {word.plain for word in words}
        if is_mere_year(value, asked.types):
            return Verification(UNSAID, "what was found is a year and not the amount asked for")
        if not counted and (is_name or not asked.types & KIND_TYPES["when"]):
            return Verification(UNSAID, "what was found is no number or date as the question wants")
    elif not candidates and kind in LIGHT and len(inside) == len(words):
        return Verification(UNSAID, f"what was found is a number or a date, and no {kind}")
    known, behind = list_said(asked), list_behind(asked)
    named = sum(all(word.stem in known for word in split_words(option)) for option in candidates)
    own = [w.stem in known and w.plain not in behind for w in words]
    echoes = words and all(said or w.plain in STOP for said, w in zip(own, words, strict=True))
    if named < 2 and echoes and not _comes_back(value, context):
        return Verification(
            UNSAID if candidates else NO_ANSWER, "what was found stands in the question"
        )
    return SUPPORTED


def _is_within(name: Name, own: frozenset[str]) -> bool:
    return all(word.stem in own or word.plain in STOP for word in split_words(name.text))


def _forms(name: Name, snapshot: Snapshot) -> tuple[Name, ...]:
    """A name with all that the pyramid calls what it names."""
    linked = link_text(name.text, snapshot)
    whole = linked.entities if [*linked.names] and len(linked.names[0]) + 5 > len(name.text) else ()
    spelt = snapshot.surface_forms(whole)
    return (name, *(read_name(form) for forms in spelt.values() for form in forms))


def _says_name(name: Name, text: str, snapshot: Snapshot) -> bool:
    return _says(_forms(name, snapshot), text)


@lru_cache(maxsize=4096)
def _says(forms: tuple[Name, ...], text: str) -> bool:
    """Whether a text says a name in one of its forms, the first its own, or all of its words."""
    words, values = split_words(text), find_values(text)
    if any(find_name(form, words, values) for form in forms):
        return True
    parts = {word.stem for word in split_words(forms[0].text) if word.plain not in STOP}
    if len(parts) > 3:
        return parts <= {word.stem for word in words}
    runs = [split_words(run) for run in _LARGE.findall(text)] if len(parts) > 1 else []
    return any(parts <= {word.stem for word in run} for run in runs)


def _speaks_of(name: Name, citation: Citation, snapshot: Snapshot) -> bool:
    """Whether a place says a name, or part of it or a pronoun for what was named before."""
    if _says_name(name, citation.text, snapshot):
        return True
    if not _says_name(name, citation.before, snapshot):
        return False
    parts = {w.stem for w in split_words(name.text) if w.large and w.plain not in STOP}
    words = split_words(citation.text)
    shared = [at for at, word in enumerate(words) if word.large and word.stem in parts]
    if shared:
        return any(_stands_alone(at, words, parts) for at in shared)
    if any(word.plain in _PERSONAL for word in words):
        return True
    nouns = {word.plain for word in split_words(citation.before) if not word.large}
    return any(
        word.plain in _PRONOUNS
        or (word.plain == "the" and (not after.large or after.plain in nouns))
        for word, after in pairwise(words)
    )


def _stands_alone(at: int, words: Sequence[Word], parts: Collection[str]) -> bool:
    """Whether a word that is part of a name is no part of another: not the lake of "Lake Umm"."""
    beside = (*words[max(at - 1, 0) : at], *words[at + 1 : at + 2])
    others = [word for word in beside if word.plain not in STOP and word.stem not in parts]
    return not any(word.large for word in others)


def _find_unsaid(asked: QuestionAnalysis, own: frozenset[str], words: Sequence[Word]) -> list[str]:
    """The words of a question that no word of its answer's places says."""
    wanted = [w for w in find_wanted(asked) if w.stem not in own and w.plain != "else"]
    other = [w for w in words if w.plain not in STOP]
    roles = [w for w in _find_owned(asked) if not _says_role(w, words)]
    missing = [w for w in (*wanted, *roles) if not any(_is_same(w, o) for o in other)]
    missing = [w for w in missing if w in roles or not _says_verb(w, words)]
    return [w.plain for w in missing if not _is_measured(w, other)]


def _says_role(role: Word, words: Sequence[Word]) -> bool:
    """Whether a verb says what a role is: who married somebody is his wife."""
    means = read_words((lemmatise(role.plain),))
    said = _list_wordings(words)
    said |= {f"was {wording}" for wording in said}
    return any(says_role(means, read_wording(one)) for one in sorted(said))


def _says_verb(verb: Word, words: Sequence[Word]) -> bool:
    """Whether other words say what a verb does: who was awarded a medal won it."""
    means = {name for name, _ in read_wording(verb.plain)}
    return any(name in means for one in _list_wordings(words) for name, _ in read_wording(one))


def _list_wordings(words: Sequence[Word]) -> set[str]:
    return {word.plain for word in words} | {f"{a.plain} {b.plain}" for a, b in pairwise(words)}


def _does_same(verb: Word, other: Word) -> bool:
    """Whether a word is of the root of a verb, or means the same of the same ends."""
    return _is_same(verb, other) or not read_wording(verb.plain).isdisjoint(
        read_wording(other.plain)
    )


def _tell_life(text: str, value: str) -> str:
    """What a date in brackets after a name says without words: birth, or death."""
    date = read_value(value)
    if date is None:
        return ""
    for match in _LIFE.finditer(text):
        found = [v.value for v in find_values(match.group())]
        if len(found) == 2 and (agree(date, found[0]) or agree(date, found[1])):
            return " born birth" if agree(date, found[0]) else " died death"
    return ""


def _compare_ends(asked: QuestionAnalysis, value: str, lines: Sequence[str]) -> tuple[bool, bool]:
    """Whether some line says the relation with the value at the right end, and at the wrong one.

    What a question asks "of" must be said of the value; nothing else makes it a whole.
    """
    words = split_words(asked.text)
    right = wrong = False
    for word in find_wanted(asked):
        at = words.index(word)
        doer, whole = wants_doer(words, at), wants_whole(words, at)
        for line in lines:
            said = split_words(line)
            places = find_name(read_name(value), said, find_values(line))
            verbs = [i for i, other in enumerate(said) if _does_same(word, other)]
            if doer is not None:
                found = [is_doer(said, verb, (p.first, p.last)) for verb in verbs for p in places]
                right |= doer in found
                wrong |= (not doer) in found
            if whole is not None and verbs and places:
                wholes = [_says_of(said, noun, places) for noun in verbs]
                is_so = True in wholes
                is_part = not is_so and False in wholes
                right |= is_so if whole else is_part
                wrong |= whole is not is_so and (whole or is_so) and not value[:1].isdigit()
    return right, wrong


def _is_same(word: Word, other: Word) -> bool:
    """Whether two words are of one root, or forms of one irregular verb: buy and bought."""
    return is_akin(word, other) or lemmatise(word.plain) == lemmatise(other.plain)


def _is_measured(word: Word, others: Sequence[Word]) -> bool:
    """Whether words say the noun or a unit of what an adjective of "how" asks for."""
    nouns, _ = ADJECTIVES.get(word.plain, ((), 0))
    kinds = {MEASURED.get(noun) for noun in nouns}
    said = {*nouns, *(unit for unit, (kind, _) in SIZES.items() if kind in kinds)}
    return any(other.plain in said or lemmatise(other.plain) in said for other in others)
