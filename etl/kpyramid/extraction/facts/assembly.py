"""From candidate facts to an extraction: mentions, claims, each fact once."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace

from kpyramid.documents.qualifiers import SECTION
from kpyramid.documents.sentences import Span
from kpyramid.documents.validity import ENDING, is_pointed
from kpyramid.documents.words import MODALS, STOP, name_owner
from kpyramid.extraction.facts.candidates import (
    PERSONAL,
    WORDS,
    Candidate,
    Findings,
    find_fault,
    is_bare_definite,
    is_bare_half,
    is_deictic,
    is_empty,
    is_location,
    is_personal_text,
    is_respective,
    is_speaking,
    is_unplaced,
)
from kpyramid.extraction.facts.propositions import (
    collect_clause,
    is_connective,
    list_fronted,
    state_clause,
    write_words,
)
from kpyramid.extraction.facts.scoring import list_traits, score_candidate
from kpyramid.extraction.syntax.clauses import CONNECTIVES, list_led
from kpyramid.extraction.syntax.polarity import WORDS as POLARITY
from kpyramid.extraction.syntax.polarity import is_denied, is_excluded
from kpyramid.extraction.syntax.predicates import (
    RELATIVES,
    SUBJECTS,
    TIMES,
    Frame,
    Part,
    is_parted,
    list_clocks,
)
from kpyramid.extraction.syntax.stance import MAX_CIRCUMSTANCE, Stance
from kpyramid.extraction.syntax.tree import (
    LITERALS,
    MAX_WORDS,
    PLACES,
    Node,
    Phrase,
    Tree,
    build_phrase,
    count_brackets,
    find_close_name,
    find_first,
    find_phrase,
    is_counted,
    is_nominal,
    list_ancestors,
    list_conjuncts,
)
from kpyramid.extraction.types import Argument, Claim, Extraction, Fact, Mention

# Mentions: named entities first, then noun chunks (`f_ent`).

_CHUNK_HEADS = frozenset("nsubj nsubjpass dobj pobj pcomp dative attr appos oprd ROOT".split())


def list_phrases(tree: Tree) -> list[Phrase]:
    """Return the entities of the text, split at commas unless a comma belongs to a date."""
    phrases: dict[Span, Phrase] = {}
    for start, last in tree.list_entities():
        first = start
        literal = tree[start].entity in {"DATE", "MONEY", "QUANTITY", "CARDINAL", "TIME"}
        for i in range(start, last + 2):
            if i == last + 1 or (tree[i].text == "," and not literal):
                phrase = build_phrase(tree, first, i - 1, i - 1) if i > first else None
                if phrase is not None:
                    phrases.setdefault(phrase.span, phrase)
                first = i + 1
    covered = {i for p in phrases.values() for i in range(p.first, p.last + 1)}
    for node in tree.nodes:
        if node.pos not in {"NOUN", "PROPN"} or node.i in covered:
            continue
        if find_first(node).dep not in _CHUNK_HEADS:
            continue
        phrase = find_phrase(node)
        if phrase is not None and phrase.literal and "," not in phrase.text:
            phrases.setdefault(phrase.span, phrase)
    return sorted(phrases.values(), key=lambda p: (p.span.start, p.span.end))


def assign_mentions(
    phrases: list[Phrase], claims: tuple[Claim, ...], arguments: dict[Span, Phrase]
) -> tuple[Mention, ...]:
    """Return one mention per entity and claim whose spans contain it, arguments included."""
    pool = {p.span: p for p in phrases}
    for span, phrase in arguments.items():
        if "," not in phrase.text:
            pool.setdefault(span, phrase)
    ordered = sorted(pool.values(), key=lambda p: (p.span.start, p.span.end))
    starts = [phrase.span.start for phrase in ordered]
    mentions: list[Mention] = []
    for number, claim in enumerate(claims):
        inside: set[int] = set()
        for span in claim.spans:
            index = bisect_left(starts, span.start)
            while index < len(ordered) and starts[index] < span.end:
                if ordered[index].span.end <= span.end:
                    inside.add(index)
                index += 1
        for phrase in (ordered[index] for index in sorted(inside)):
            label = "NOUN" if phrase.label == "MISC" else phrase.label
            mentions.append(Mention(number, phrase.text, label, phrase.span))
    return tuple(mentions)


# Claims: short statements without pronouns, one per clause that yields a fact (`f_par`).

_MAX_WORDS = 60
_EMPTY_BRACKETS = re.compile(r"\s*\([\s,;:]*\)|(?<=,)\s*,")
_TRAILING = re.compile(r"[\s,;]+(and|or|but)$")


def write_clause_claim(verb: Node, head: Phrase, findings: Findings) -> Claim:
    """The proposition of a clause in plain order, its subject and its pronouns spelled out."""
    frame = findings.frames[verb.i]
    clause = (*frame.chain, verb)
    subject = next((c for v in clause for c in v.children if c.dep in SUBJECTS | {"expl"}), None)
    spans = {_cover(frame, subject)}
    rename = _spell_pronouns(findings, spans)
    named = None
    alone = subject is not None and not any(c.dep == "conj" for c in subject.children)
    if subject is None or subject.tag in RELATIVES or (head.resolved and alone):
        spans.add(head.span)
        named = Argument("subject", head.text, head.span if head.literal else None)
    predicate, arguments = state_clause(frame, findings.frames, named, rename)
    rest = sorted(arguments[1:], key=lambda argument: argument.role != "receiver")
    words = [arguments[0].text, predicate, *map(_lower_lead, rest)]
    if subject is not None and any(c.word == "neither" for c in subject.children):
        words[0] = f"Neither {words[0]}"
    if frame.way == "existential":
        words = ["There", predicate, _lower_lead(arguments[0]), *words[2:]]
    return Claim(_tidy_statement(words), tuple(sorted(spans)), predicate, arguments)


def _spell_pronouns(findings: Findings, spans: set[Span]) -> Callable[[Node], str | None]:
    """A function that replaces pronouns by antecedents, whose spans it adds to `spans`."""

    def rename(token: Node) -> str | None:
        antecedent = findings.antecedents.resolve(token) if token.tag in PERSONAL else None
        if antecedent is None:
            return None
        spans.add(antecedent.span)
        return name_owner(antecedent.text) if token.tag == "PRP$" else antecedent.text

    return rename


_LEADS = frozenset(word.capitalize() for word in STOP - MODALS)


def _lower_lead(argument: Argument) -> str:
    """The text of an argument as written within a sentence, without an initial capital."""
    text = argument.text
    first = text.partition(" ")[0]
    led = argument.role == "circumstance" or text.lower().startswith(f"{argument.role} ")
    small = led or (argument.role == "adverb" and first.endswith("ly")) or first in _LEADS
    return text[0].lower() + text[1:] if small and not first[1:].isupper() else text


def _tidy_statement(words: list[str]) -> str:
    text = " ".join(" ".join(words[:_MAX_WORDS]).split())
    if text.count("(") != text.count(")"):
        text = text.replace("(", "").replace(")", "")
    text = _TRAILING.sub("", _EMPTY_BRACKETS.sub("", text)).strip(" ,;:.-\u2013")
    return f"{text}."


def write_phrase_claim(candidate: Candidate) -> Claim:
    """Return the claim of a fact stated inside a noun phrase."""
    head, tail = candidate.head, candidate.tail
    text = f"{head.text} {candidate.relation} {tail.text}."
    spans = {head.span, tail.span}
    if not head.resolved and not tail.resolved:
        spans = {Span(min(head.span.start, tail.span.start), max(head.span.end, tail.span.end))}
    arguments = tuple(
        Argument(role, phrase.text, phrase.span if phrase.literal else None)
        for role, phrase in (("subject", head), ("object", tail))
    )
    return Claim(text, tuple(sorted(spans)), candidate.relation, arguments)


def _cover(frame: Frame, subject: Node | None) -> Span:
    """The span from the first to the last word of a clause and its arguments."""
    verbs = [*frame.chain, frame.verb]
    phrases = [part.root for part in frame.parts if part.gap is None]
    phrases += [subject] if subject is not None else []
    links = [node for part in frame.parts if part.gap is None for node in part.link]
    nodes = [*verbs, *links, *(n for root in phrases for n in (root.left_edge, root.right_edge))]
    last = max(nodes, key=lambda node: node.i)
    return Span(min(node.idx for node in nodes), last.end)


def _list_advice(findings: Findings) -> list[Node]:
    """The clauses addressed to the reader that are not part of another such clause."""
    verbs = {verb.i for verb in findings.advice}
    return [v for v in findings.advice if all(a.i not in verbs for a in list_ancestors(v))]


def _write_advice(verb: Node, findings: Findings) -> Claim:
    """The claim of a clause addressed to the reader, in its own words with its conditions."""
    span = Span(verb.left_edge.idx, verb.right_edge.end)
    frame = findings.frames[verb.i]
    subject = None if frame.subjects else Argument("subject", "you", None)
    predicate, arguments = state_clause(frame, findings.frames, subject, None)
    words = findings.tree.text[span.start : span.end].split()
    return Claim(_tidy_statement(words), (span,), predicate, arguments)


# The extraction: candidates filtered and scored, each fact once, with its claim.


_DATING = frozenset("in on at during of for".split())
"""Prepositions before a time that add nothing to it."""
_LIMITED = frozenset("after before with without".split())
"""Prepositions that an adverb before them limits, and not what they lead to."""
_MAX_MANNER = 5
"""Tokens of a manner: "once every four years"."""
_MAX_COMMON = 5
"""Words of a head that the section may place: longer ones name their thing by themselves."""
_EACH = frozenset("a an every each".split())
_WORDED_ONLY = frozenset({"possessive", "place"})
"""Constructions whose "has" and "is in" are no triples."""


_Judged = tuple[Candidate, str | None, float]
"""An accepted candidate, the source if the text attributes it, and its confidence."""


def assemble_extraction(findings: Findings) -> Extraction:
    """The accepted facts in text order, with their claims and mentions."""
    best: dict[tuple[object, ...], _Judged] = {}
    for candidate in _list_standing(findings):
        source = _name_source(candidate, findings)
        words = (candidate.head.text, candidate.relation, candidate.tail.text)
        key = (*words, candidate.negated, candidate.modality, source)
        fact = (candidate, source, score_candidate(candidate, findings, source is not None))
        # Candidates of clauses are preferred, since they have qualifiers, then the most confident.
        best[key] = max(
            best.get(key, fact), fact, key=lambda each: (each[0].clause is not None, each[2])
        )
    ordered = sorted(best.values(), key=lambda fact: _place(fact[0]))
    claims, numbers = _number_claims([candidate for candidate, _, _ in ordered], findings)
    claims += tuple(_write_advice(verb, findings) for verb in _list_advice(findings))
    facts = tuple(
        _write_fact(fact, claim, findings) for fact, claim in zip(ordered, numbers, strict=True)
    )
    arguments = {p.span: p for each, _, _ in ordered for p in (each.head, each.tail) if p.literal}
    mentions = assign_mentions(list_phrases(findings.tree), claims, arguments)
    dropped = sorted(set(findings.dropped), key=lambda d: (d.span.start, d.span.end, d.reason))
    return Extraction(claims, mentions, facts, tuple(dropped))


def draft_facts(findings: Findings) -> Iterator[tuple[tuple[str, str, str], dict[str, float]]]:
    """Head, relation and tail of each accepted candidate, with its traits."""
    for candidate in _list_standing(findings):
        attributed = _name_source(candidate, findings) is not None
        words = (candidate.head.text, _fit_relation(candidate), candidate.tail.text)
        yield words, list_traits(candidate, findings, attributed)


def _list_standing(findings: Findings) -> Iterator[Candidate]:
    """The candidates without a fault; the others are dropped with their reason."""
    depths = count_brackets(findings.tree)
    spoken = is_personal_text(findings)
    for original in findings.candidates:
        if original.construction in _WORDED_ONLY:
            continue
        candidate = _drop_repeated_owner(original)
        noun = candidate.tail.text.removeprefix("own ")
        repeated = candidate.relation.endswith(f" {noun}")  # "has its own fares"
        reason = "empty_argument" if repeated else find_fault(candidate, findings.tree)
        reason = reason or _find_bracket(candidate, depths) or _find_opening(candidate, findings)
        ends = (candidate.head, candidate.tail)
        if (
            spoken
            and not candidate.construction
            and any(is_bare_definite(end, findings.tree) for end in ends)
        ):
            reason = reason or "unplaced_argument"
        if reason is None:
            stance = _find_reported_stance(candidate, findings)
            mood = candidate.modality or (stance.mood if stance is not None else None)
            yield replace(candidate, modality=mood)
            continue
        first = min(candidate.tail.first, *candidate.tokens, candidate.tail.last)
        findings.drop(reason, first, candidate.tail.last)


def _find_bracket(candidate: Candidate, depths: list[int]) -> str | None:
    """The fault of a candidate with an argument in brackets in its clause: "(p = 0.002)"."""
    if candidate.clause is None:
        return None
    ends = (candidate.head, candidate.tail)
    inside = any(not end.resolved and depths[end.root] > depths[candidate.clause] for end in ends)
    return "in_brackets" if inside else None


def _find_opening(candidate: Candidate, findings: Findings) -> str | None:
    """The fault of a tail before the subject: "in conclusion", "from my view".

    It qualifies the whole clause; only dates and names of places are facts.
    """
    frame = findings.frames.get(-1 if candidate.clause is None else candidate.clause)
    tail = candidate.tail
    if frame is None or frame.top.dep == "relcl" or tail.resolved or not frame.subjects:
        return None
    first = frame.subjects[0].left_edge.i
    opens = tail.root < first < frame.verb.i and tail.label not in {*PLACES, *TIMES}
    return "opening" if opens else None


def _drop_repeated_owner(candidate: Candidate) -> Candidate:
    """The candidate without the head's name in its tail: "degree" for "her degree"."""
    head, tail = candidate.head.text, candidate.tail.text
    if candidate.tail.is_named and candidate.tail.literal:
        return candidate  # "Macy founded Macy's Department Store"
    for mark in ("'s ", "' "):
        owner, separator, owned = tail.partition(mark)
        if separator and (head == owner or head in owner.split(" and ")):
            return replace(candidate, tail=replace(candidate.tail, text=owned, literal=False))
    return candidate


def _name_source(candidate: Candidate, findings: Findings) -> str | None:
    """The source of an attributed candidate, pronouns resolved; None if the text states it."""
    clause = -1 if candidate.clause is None else candidate.clause
    stances = (findings.stances.get(clause), _find_reported_stance(candidate, findings))
    source = next((s.source for s in stances if s is not None and s.source is not None), None)
    if source is None:
        return None
    phrase = findings.antecedents.resolve(source)
    phrase = phrase or (find_phrase(source) if is_nominal(source) else None)
    return phrase.text if phrase is not None else source.text


def _find_reported_stance(candidate: Candidate, findings: Findings) -> Stance | None:
    """The stance of the surrounding quotation or plot; None for abbreviations and locations."""
    real = candidate.clause is None and candidate.construction not in {"apposition", "relation"}
    return None if real else findings.reported.get(_anchor(candidate))


def _anchor(candidate: Candidate) -> int:
    """The token that gives the position of a candidate."""
    return candidate.tail.first if candidate.clause is None else candidate.clause


def _place(candidate: Candidate) -> tuple[int, int, int, str]:
    head, tail = candidate.head, candidate.tail
    return _anchor(candidate), tail.span.start, head.span.start, candidate.relation


def _number_claims(
    candidates: list[Candidate], findings: Findings
) -> tuple[tuple[Claim, ...], list[int]]:
    claims: dict[int | Claim, Claim] = {}
    keys: list[int | Claim] = []
    for candidate in candidates:
        if candidate.clause is None:
            claim = write_phrase_claim(candidate)
            keys.append(claim)
            claims.setdefault(claim, claim)
            continue
        keys.append(candidate.clause)
        if candidate.clause not in claims:
            head = findings.claim_heads.get(candidate.clause, candidate.head)
            verb = findings.tree[candidate.clause]
            claims[candidate.clause] = write_clause_claim(verb, head, findings)
    numbers = {key: number for number, key in enumerate(claims)}
    return tuple(claims.values()), [numbers[key] for key in keys]


def _write_fact(fact: _Judged, claim: int, findings: Findings) -> Fact:
    candidate, source, confidence = fact
    frame = findings.frames[candidate.clause] if candidate.clause is not None else None
    return Fact(
        claim=claim,
        head=candidate.head.text,
        relation=_fit_relation(candidate),
        tail=candidate.tail.text,
        head_span=candidate.head.span if candidate.head.literal else None,
        relation_span=_find_relation_span(candidate, findings.tree),
        tail_span=candidate.tail.span if candidate.tail.literal else None,
        negated=candidate.negated,
        modality=candidate.modality,
        attribution=source,
        qualifiers=(
            _list_qualifiers(frame, candidate, findings) | _name_section(candidate, findings)
            if frame is not None
            else {}
        ),
        confidence=confidence,
    )


def _name_section(candidate: Candidate, findings: Findings) -> dict[str, str]:
    """The heading above a fact of common nouns: "the pump", "new fittings", "half the losses"."""
    head, tail, tree = candidate.head, candidate.tail, findings.tree
    nodes = tree.nodes[head.first : head.last + 1]
    common = head.label in {"NOUN", *LITERALS} and head.words <= _MAX_COMMON and not head.resolved
    common = common and not any(node.pos == "PROPN" for node in nodes)
    heading = findings.antecedents.find_heading(tree[_anchor(candidate)])
    known = {end.text.casefold() for end in (head, tail)}
    placed = common or _is_definite(tail, tree)
    return {SECTION: heading} if heading and placed and heading.casefold() not in known else {}


def _is_definite(phrase: Phrase, tree: Tree) -> bool:
    """Whether "the" and at most an adjective identify a common noun."""
    short = phrase.label == "NOUN" and phrase.words <= 2 and not phrase.resolved
    return short and any(c.word == "the" for c in tree[phrase.root].children)


def _list_opening(frame: Frame, findings: Findings) -> list[Part]:
    """The opening parts of the first of coordinated clauses that also qualify this one.

    A clause with an opening or a time of its own, or in contrast to the first, does not share it.
    """
    verb, start = frame.verb, frame.subjects[0].left_edge.i if frame.subjects else 0
    turned = any(c.word == "but" for c in verb.head.children if c.i < verb.i)
    if turned or any(verb.head.i < part.place < start for part in frame.parts):
        return []
    dated = any(part.role == "time" for part in frame.parts)
    opening = list_fronted(frame, findings.frames, shared=False)
    return [part for part in opening if not (dated and part.role == "time")]


def _word_manner(part: Part, candidate: Candidate) -> str | None:
    """An adverb or rate that is not in the triple: "often", "more easily", "twice a year"."""
    root, tree = part.root, part.root.tree
    nodes = tree.nodes[root.left_edge.i : root.right_edge.i + 1]
    rate = part.role == "manner" and any(n.word in _EACH and n.dep == "det" for n in nodes)
    linking = root.word in WORDS["linking"] | POLARITY["limiting"]
    linking = linking or is_connective(root) or is_deictic(root.word)
    if not (rate or (part.role == "adverb" and root.pos == "ADV")) or part.link or linking:
        return None
    words = write_words(tree, [n.i for n in nodes])[0].lower()
    repeated = root.i in candidate.tokens or words.replace(" ", "_") in CONNECTIVES
    long = len(nodes) > _MAX_MANNER or not all(n.word.isalnum() for n in nodes)
    denied = any(n.word in {"no", "not"} for n in nodes)  # "no longer"
    return None if repeated or long or denied else words


def _word_clause(verb: Node, findings: Findings) -> str | None:
    """The words of a short clause, pronouns resolved; None where one is for writer or reader."""
    tokens, rename = collect_clause(verb), _spell_pronouns(findings, set())
    nodes = [findings.tree[i] for i in tokens]
    text, _ = write_words(findings.tree, tokens, rename)
    long = len(nodes) > MAX_CIRCUMSTANCE or text.count("(") != text.count(")")
    spoken = any(n.tag in PERSONAL and rename(n) is None and is_speaking(n) for n in nodes)
    return None if long or spoken else text


def _word_exception(part: Part) -> str:
    """What an exception leaves out, "during the first months"; "" where it is long."""
    tree, first = part.root.tree, part.link[0].i + 1
    first += tree[first].word in {"than", "for", "of"}  # "other than when it leaves"
    first += tree[first].word == "the"
    ahead = range(first + 1, part.root.right_edge.i + 1)
    last = next((i for i in ahead if tree[i].text == ","), ahead.stop)
    tokens = list(range(first, last))
    return write_words(tree, tokens)[0] if 0 < len(tokens) <= MAX_CIRCUMSTANCE else ""


_STOPS = frozenset("; : ( ) . ! ? -- – —".split())
_BOUNDS = ({"at", "least"}, {"at", "most"}, {"up", "to"})
_RESTRICTING = frozenset("never no not only".split())
_FINITE = frozenset("MD VBD VBP VBZ".split())


def _word_sequel(frame: Frame, tail: Phrase) -> dict[str, str]:
    """What restricts or names a clause's tail behind it: "but only in June", "two halls: A and B".

    The roles are `but` and `namely`.
    """
    tree, verb = frame.verb.tree, frame.verb
    first, end = max(verb.i, tail.last) + 1, tree.sentences[verb.sentence][1]
    mark = next((i for i in range(first, end) if tree[i].text == ":" or tree[i].word == "but"), end)
    named = mark == first < end and tree[mark].text == ":" and not tail.is_named
    ahead = range(mark + 1, end)
    stops = _STOPS if named else _STOPS | {","}
    last = next((i for i in ahead if tree[i].text in stops or tree[i].tag in {"WDT", "WP"}), end)
    last -= tree[last - 1].tag == "IN"  # "38 answers, of which"
    tokens = range(mark + 1, last - (tree[last - 1].text == ","))
    lead = [tree[i] for i in tokens[:2]]
    words = {node.word for node in lead}
    restricts = named or words in _BOUNDS or not words.isdisjoint(_RESTRICTING)
    verbs = any(node.pos == "VERB" for node in (*tree.nodes[first:mark], *lead[:1]))
    clause = verbs or any(tree[i].tag in _FINITE for i in tokens)
    parted = named and last < end and tree[last].text == "("  # the first of several
    if clause or parted or not restricts or not 0 < len(tokens) <= MAX_CIRCUMSTANCE:
        return {}
    return {"namely" if named else "but": write_words(tree, list(tokens))[0]}


def _fit_relation(candidate: Candidate) -> str:
    """Return the relation, with "is in" spelled as the location it states."""
    words = candidate.relation.split()
    placed = is_location(words) and candidate.tail.label not in TIMES
    return f"{words[0]} located {words[1]}" if placed else candidate.relation


def _find_relation_span(candidate: Candidate, tree: Tree) -> Span | None:
    tokens = sorted(set(candidate.tokens))
    if not tokens or tokens[-1] - tokens[0] + 1 != len(tokens):
        return None
    return Span(tree[tokens[0]].idx, tree[tokens[-1]].end)


def _list_starts(frame: Frame) -> list[Part]:
    """The times in a clause from which something holds: "from April to September"."""
    times = (part for part in frame.parts if part.role == "time" and part.link)
    return [part for part in times if part.link[-1].word == "from"]


def _is_of_other(time: Node, tail: Phrase, frame: Frame) -> bool:
    """Whether a time belongs to another value: "at 17:00, on Sundays at 15:00", "to 4 in June"."""
    tree = time.tree
    root, within = tree[tail.root], tree.nodes[tail.first : tail.last + 1]
    dated = any(n.dep == "prep" and any(c.entity == "DATE" for c in n.children) for n in within)
    if dated and (root.pos == "NUM" or is_counted(root)):
        return True
    clocks = list_clocks(frame)
    if len(clocks) < 2 or root not in clocks:
        return False
    first, last = sorted((time.i, tail.root))
    between = tree.nodes[first + 1 : last]
    return time in clocks or any(n.text == "," or n.dep == "cc" or n in clocks for n in between)


def _list_qualifiers(frame: Frame, candidate: Candidate, findings: Findings) -> dict[str, str]:
    """The parts of the clause that the triple omits, by role: time, place or their preposition.

    The role of an adverb, "often", is manner, that of an adverbial clause its conjunction. The
    first of several parts with the same role is used.
    """
    tail = candidate.tail
    roles: dict[str, str] = {}
    manners: list[str] = []
    for node in (frame.verb.tree[i] for i in candidate.tokens):
        for child in node.children:
            measured = child.dep == "npadvmod" and child.entity not in TIMES
            measured = measured and any(c.dep == "nummod" for c in child.children)
            phrase = find_phrase(child) if measured and node.pos in {"ADV", "ADP"} else None
            if phrase is not None and not tail.first <= child.i <= tail.last:
                roles["distance"] = phrase.text
    qualities = [part.root for part in frame.parts if part.role == "quality"]
    led = [p for quality in qualities for p in list_led(quality)]
    graded = [c for quality in qualities for c in quality.children if c.word.endswith("ly")]
    led += [Part("adverb", adverb) for adverb in graded if adverb.dep == "advmod"]
    for part in (*frame.parts, *led, *_list_opening(frame, findings)):
        if part.link and part.link[0].word == "except":
            words = _word_exception(part) if part.root.i != tail.root else ""
            roles |= {"except": words} if words else {}
            continue
        clause = _word_clause(part.root, findings) if part.root.pos in {"VERB", "AUX"} else None
        if part.role == "circumstance" and clause is not None:
            mark, _, rest = clause.partition(" ")
            if mark.lower() in WORDS["circumstantial"]:
                roles.setdefault(mark.lower(), rest)
        if clause is not None and part.link and part.link[0].word == "provided":
            roles.setdefault("provided", clause)
            continue
        if (manner := _word_manner(part, candidate)) is not None:
            manners.append(manner)
        named = find_close_name(part.root) or part.root
        compared = findings.name_compared(part.root)
        phrase = compared or find_phrase(named, full=named.pos == "NOUN")
        placed = part.gap is None and (compared or part.root.tag not in {"PRP", "DT"})
        if phrase is None or not placed or is_unplaced(phrase, frame.verb.tree):
            continue
        dated = part.role == "time" and (candidate.negated or is_pointed(phrase.text))
        if is_deictic(phrase.text) and not dated:
            continue  # but "not for two buyers on the same day"
        listed = [each.i for each in list_conjuncts(part.root)]
        if any(tail.first <= i <= tail.last for i in listed):
            continue
        if len(listed) > 1:  # "in 1990, 1994 and 1998"
            end = find_phrase(frame.verb.tree[listed[-1]]) or phrase
            whole = build_phrase(frame.verb.tree, phrase.first, end.last, part.root.i)
            if is_respective(frame.verb) or whole is None or whole.words > MAX_WORDS:
                continue
            phrase = whole
        if any(node.i in candidate.tokens for node in (part.root, *part.link)):
            continue
        if is_parted(part, max(tail.last, frame.verb.i)):
            continue
        words = " ".join(node.word for node in part.link)
        denied = part.role == "time" and any(node.dep == "neg" for node in part.link)
        if denied and part.link[-1].word not in {"until", "before"}:
            continue  # "in 2029, not in 2028"
        if is_denied(part.root):  # "with no harm"
            words = "without" if words == "with" else ""
        if is_bare_half(words, phrase.text) or is_empty(phrase.text) or (part.link and not words):
            continue
        dated = part.role == "time" or part.root.pos == "NUM"
        ends = words in ENDING and dated
        if ends and len(_list_starts(frame)) > 1:
            continue  # "from April to September and not from November to February"
        if ends and roles.get("time", "").startswith("from "):
            until = phrase.text.rpartition(" to ")[2]
            roles["time"] = f"{roles['time'].partition(' to ')[0]} to {until}"
        elif part.role == "time":
            if _is_of_other(part.root, tail, frame):
                continue
            dated = not part.link or part.link[0].word in _DATING
            dated = dated and not part.limit and len(part.link) < 3  # "a week before the first day"
            words = f"{part.limit} {words}".lstrip()
            lead = "" if dated or phrase.text.lower().startswith(words) else f"{words} "
            mark = "not " if not part.link and is_excluded(part.root) else ""
            roles.setdefault("time", f"{mark}{lead}{phrase.text}")
        elif part.role == "receiver" and not candidate.relation.endswith(" to"):
            roles.setdefault("to", (findings.antecedents.resolve(part.root) or phrase).text)
        elif part.role == "manner" and part.link:
            roles.setdefault("manner", f"{part.limit} {words} {phrase.text}".lstrip())
        elif part.role == "preposition" and part.link[0].word != "according":
            is_place = part.root.entity in PLACES and words in {"in", "at"}
            text = clause or phrase.text
            if part.limit and (words in _LIMITED or part.limit not in POLARITY["limiting"]):
                words = f"{part.limit} {words}"  # "only after two notices", "mainly in"
            else:
                text = f"{part.limit} {text}".lstrip()
            roles.setdefault("place" if is_place else words, text)
    for prep in frame.verb.tree[tail.root].children:
        for place in (
            prep.children if prep.dep == "prep" and tail.literal and prep.i > tail.last else ()
        ):
            phrase = find_phrase(place)
            alone = place.entity in PLACES and not any(c.dep == "cc" for c in place.children)
            if alone and prep.word in {"in", "at"} and phrase is not None:
                roles.setdefault("place", phrase.text)
    for role, text in _word_sequel(frame, tail).items():
        if text.split()[-1] not in " ".join(roles.values()).split():
            roles[role] = text
    stance = findings.stances.get(frame.verb.i)
    if candidate.negated and tail.label in TIMES and not (stance and stance.negated):
        roles.pop("time", None)  # what ends in 2029, not in 2028
    if manners:
        roles["manner"] = ", ".join([*([roles["manner"]] if "manner" in roles else []), *manners])
    # A slash between blanks separates united values.
    return {role: text.replace(" / ", "/") for role, text in sorted(roles.items())}
