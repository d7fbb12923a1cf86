"""Text2KGBench's scores (Mihindukulasooriya et al., ISWC 2023), as its own evaluation takes them.

Figures are means over the sentences of an ontology. Triples whose relation the sentence's gold
does not have are left out before precision, recall and F1: the official filter.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from kpyramid.evaluation.porter import stem_word

Triple = tuple[str, str, str]

_BLANKS = re.compile(r"(_|\s+)")
# A tokenizer of the Penn Treebank's kind, as far as it moves the borders of words to be stemmed.
_OPENING_QUOTE = re.compile(r'(?:(?<=^)|(?<=[\s(\[{<]))"|^"')
_TOKEN_RULES = (
    (re.compile(r"([^\w\s'.,_-]|[«»“”‘’])"), r" \1 "),
    (re.compile(r"([:,])([^\d])"), r" \1 \2"),
    (re.compile(r"([:,])$"), r" \1 "),
    (re.compile(r"\.\.\."), r" ... "),
    (re.compile(r"([^.])(\.)([\])}>\"'»”’ ]*)\s*$"), r"\1 \2 \3 "),
    (re.compile(r"([^' ])('[sSmMdD]|'ll|'LL|'re|'RE|'ve|'VE|n't|N'T|')(?=\s|$)"), r"\1 \2 "),
    (re.compile(r"--"), r" -- "),
)


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over sentences; `precision_unfiltered`: the share of all stated triples in the gold."""

    precision: float
    recall: float
    f1: float
    conformance: float
    subject_hallucination: float
    relation_hallucination: float
    object_hallucination: float
    precision_unfiltered: float
    triples: float


@dataclass(frozen=True, slots=True)
class GoldSentence:
    """A sentence with the triples that it states."""

    text: str
    triples: tuple[Triple, ...]


def score_ontology(
    gold: Mapping[str, GoldSentence],
    stated: Mapping[str, Sequence[Triple]],
    relations: Iterable[str],
    concepts: Iterable[str],
) -> Scores:
    """The scores of what a system stated, sentence by sentence, both under the sentences' ids.

    `relations` and `concepts` are the ontology's labels. A sentence without an entry in `stated`
    counts zero in all figures; one with an empty entry conforms.

    Raises:
        ValueError: there is no gold.
    """
    if not gold:
        raise ValueError("no gold sentence to score on")
    known = {relation.replace(" ", "_") for relation in relations}
    concept_words = " ".join(concepts)
    sums = dict.fromkeys((f.name for f in fields(Scores)), 0.0)
    right = total = 0
    for key, sentence in gold.items():
        if key not in stated:
            continue
        triples = stated[key]
        wanted = {join_triple(t) for t in sentence.triples}
        allowed = {relation.replace(" ", "_") for _, relation, _ in sentence.triples}
        kept = {join_triple(t) for t in triples if t[1] in allowed}
        everything = {join_triple(t) for t in triples}
        right += len(everything & wanted)
        total += len(everything)
        hits = len(kept & wanted)
        sums["precision"] += hits / len(kept) if kept else 0.0
        sums["recall"] += hits / len(wanted) if kept else 0.0
        sums["f1"] += 2 * hits / (len(kept) + len(wanted)) if kept else 0.0
        sums["triples"] += len(everything)
        if not triples:
            sums["conformance"] += 1.0
            continue
        conform = sum(t[1] in known for t in triples) / len(triples)
        sums["conformance"] += conform
        sums["relation_hallucination"] += 1 - conform
        words = stem_text(sentence.text + concept_words)
        for name, place in (("subject", 0), ("object", 2)):
            absent = sum(_stem_end(t[place]) not in words for t in triples)
            sums[f"{name}_hallucination"] += absent / len(triples)
    means = {name: value / len(gold) for name, value in sums.items()}
    return Scores(**means | {"precision_unfiltered": right / total if total else 0.0})


def join_triple(triple: Triple) -> str:
    """The form in which two triples are compared: small letters, no blanks, no underscores."""
    return "".join(_BLANKS.sub("", part).lower() for part in triple)


def stem_text(text: str) -> str:
    """The stems of a text's words, run together."""
    return _BLANKS.sub("", "".join(stem_word(word) for word in split_tokens(text))).lower()


def _stem_end(text: str) -> str:
    # The official scorer forgives that a year is given as its first day.
    return stem_text(text).replace("01januari", "")


def split_tokens(text: str) -> list[str]:
    """The words and marks of a text."""
    text = _OPENING_QUOTE.sub(" `` ", text)
    for pattern, form in _TOKEN_RULES:
        text = pattern.sub(form, text)
    return text.replace(' " ', " '' ").split()
