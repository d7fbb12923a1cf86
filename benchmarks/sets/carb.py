"""CaRB (Bhardwaj, Aggarwal, Mausam, EMNLP 2019): how well extracted facts cover gold facts.

Tuples are compared word by word and slot by slot: predicate with predicate, first argument with
first, all other arguments with all others. A gold tuple's recall is that of the extraction that
covers it best, so that one extraction may cover several; precision pairs each extraction with at
most one gold tuple, the most precise pair first, and an extraction left over has none.

As a set of questions, each gold tuple asks for its subject: CaRB writes a predicate in full, so
that what follows "Who or what" does so. `find_constructions` tells scores apart by grammar.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from making.facts import fold_words, holds_run

from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.extraction.syntax.tree import Node, Tree
from sets.files import QuestionSet, read_licence

_FORMS_OF_BE = ("be", "is", "am", "are", "was", "were", "been", "being")
# The speaker may stand on either side of these: CaRB tries both.
_SAYING = ("said", "told", "added", "adds", "says")


@dataclass(frozen=True, slots=True)
class OpenTuple:
    """A predicate and its arguments, subject first, words parted by spaces."""

    predicate: str
    arguments: tuple[str, ...]
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class CarbScore:
    """The point of the best F1, the area under the curve, and the curve itself.

    `threshold` is the least confidence kept at the best point. `curve` holds (confidence,
    precision, recall), confidence rising.
    """

    precision: float
    recall: float
    f1: float
    auc: float
    threshold: float
    curve: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over a sentence, or several: what precision and recall are made of."""

    precise: float = 0.0
    predicted: int = 0
    recalled: float = 0.0
    gold: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.precise + other.precise,
            self.predicted + other.predicted,
            self.recalled + other.recalled,
            self.gold + other.gold,
        )

    @property
    def precision(self) -> float:
        """1 where nothing was predicted: CaRB's convention."""
        return self.precise / self.predicted if self.predicted else 1.0

    @property
    def recall(self) -> float:
        return self.recalled / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True, slots=True)
class _Words:
    predicate: Counter[str]
    slots: tuple[Counter[str], ...]
    said: bool


def score_extractions(
    gold: Mapping[str, Sequence[OpenTuple]], predicted: Mapping[str, Sequence[OpenTuple]]
) -> CarbScore:
    """Score what was extracted from the sentences of `gold`; other sentences are not looked at.

    The curve has a point for each confidence and one of precision 1 at recall 0; its area is
    taken by trapezoids. Without any extraction all figures are 0.
    """
    size = sum(len(tuples) for tuples in gold.values())
    steps: defaultdict[float, list[tuple[float, int, float]]] = defaultdict(list)
    for sentence, tuples in gold.items():
        before = Tally()
        for confidence, tally in _tally_prefixes(tuples, predicted.get(sentence, ())):
            steps[confidence].append(
                (
                    tally.precise - before.precise,
                    tally.predicted - before.predicted,
                    tally.recalled - before.recalled,
                )
            )
            before = tally
    curve = []
    total = Tally(gold=size)
    for confidence in sorted(steps, reverse=True):
        for precise, count, recalled in steps[confidence]:
            total += Tally(precise, count, recalled)
        curve.append((confidence, total))
    if not curve:
        return CarbScore(0.0, 0.0, 0.0, 0.0, 0.0, ())
    best_confidence, best = max(curve, key=lambda point: (point[1].f1, -point[0]))
    points = [(0.0, 1.0), *((tally.recall, tally.precision) for _, tally in curve)]
    area = sum((right - left) * (low + high) / 2 for (left, low), (right, high) in pairwise(points))
    return CarbScore(
        best.precision,
        best.recall,
        best.f1,
        area,
        best_confidence,
        tuple((c, tally.precision, tally.recall) for c, tally in reversed(curve)),
    )


def tally_sentences(
    gold: Mapping[str, Sequence[OpenTuple]],
    predicted: Mapping[str, Sequence[OpenTuple]],
    threshold: float,
) -> dict[str, Tally]:
    """The tally of each sentence of `gold`, of extractions at `threshold` or surer."""
    return {
        sentence: tally_tuples(
            tuples, [p for p in predicted.get(sentence, ()) if p.confidence >= threshold]
        )
        for sentence, tuples in gold.items()
    }


def tally_tuples(gold: Sequence[OpenTuple], predicted: Sequence[OpenTuple]) -> Tally:
    """The tally of one sentence, of all its extractions."""
    return _tally_matches(match_tuples(gold, predicted), range(len(predicted)))


def match_tuples(
    gold: Sequence[OpenTuple], predicted: Sequence[OpenTuple]
) -> list[list[tuple[float, float]]]:
    """Precision and recall of each pair: one row per gold tuple, one column per extraction."""
    columns = [_count_words(each) for each in predicted]
    return [[_match(row, column) for column in columns] for row in map(_count_words, gold)]


def read_tuples(path: Path) -> dict[str, list[OpenTuple]]:
    """Gold tuples by sentence from lines of sentence, predicate, arg1, arg2 … parted by tabs.

    Empty last fields are no arguments, as in CaRB's own reader.
    """
    found: defaultdict[str, list[OpenTuple]] = defaultdict(list)
    for number, line in enumerate(path.read_text("utf-8").split("\n"), start=1):
        fields = line.strip().split("\t")
        if fields == [""]:
            continue
        if len(fields) < 3:
            raise InputError(
                f"{path}, line {number}: a sentence, a predicate and at least one argument, "
                "parted by tabs, are expected"
            )
        found[fields[0]].append(OpenTuple(fields[1], tuple(fields[2:])))
    return dict(found)


def _count_words(each: OpenTuple) -> _Words:
    arguments = each.arguments
    if len(arguments) > 2:
        arguments = (arguments[0], " ".join(arguments[1:]))
    return _Words(
        Counter(each.predicate.split()),
        tuple(Counter(argument.split()) for argument in arguments),
        any(verb in each.predicate for verb in _SAYING),
    )


def _match(gold: _Words, predicted: _Words) -> tuple[float, float]:
    straight = _match_slots(gold, predicted, predicted.slots)
    if not gold.said:
        return straight
    return max(straight, _match_slots(gold, predicted, predicted.slots[::-1]))


def _match_slots(
    gold: _Words, predicted: _Words, slots: tuple[Counter[str], ...]
) -> tuple[float, float]:
    # A missing second slot matches nothing; one that gold lacks is not held against precision.
    if len(slots) < len(gold.slots):
        return 0.0, 0.0
    shared = _count_shared(gold.predicate, predicted.predicate)
    # One "be" left over stands for any of its forms.
    if predicted.predicate["be"] > gold.predicate["be"] and any(
        form in gold.predicate for form in _FORMS_OF_BE
    ):
        shared += 1
    if not shared:
        return 0.0, 0.0
    said = predicted.predicate.total()
    wanted = gold.predicate.total()
    for slot, words in zip(gold.slots, slots, strict=False):
        shared += _count_shared(slot, words)
        said += words.total()
        wanted += slot.total()
    return shared / said if said else 0.0, shared / wanted if wanted else 0.0


def _count_shared(left: Counter[str], right: Counter[str]) -> int:
    return sum(min(count, right[word]) for word, count in left.items() if word in right)


def _tally_prefixes(
    gold: Sequence[OpenTuple], predicted: Sequence[OpenTuple]
) -> Iterable[tuple[float, Tally]]:
    """The tally of the surest extractions, for each confidence of the sentence, falling."""
    scores = match_tuples(gold, predicted)
    for threshold in sorted({each.confidence for each in predicted}, reverse=True):
        kept = [at for at, each in enumerate(predicted) if each.confidence >= threshold]
        yield threshold, _tally_matches(scores, kept)


def _tally_matches(scores: Sequence[Sequence[tuple[float, float]]], kept: Sequence[int]) -> Tally:
    """The tally of the extractions `kept`."""
    # Equal precisions are taken in the order of gold, then of the extractions, as CaRB does.
    pairs = sorted(((-row[at][0], number, at) for number, row in enumerate(scores) for at in kept))
    rows: set[int] = set()
    columns: set[int] = set()
    precise = 0.0
    for loss, number, at in pairs:
        if number not in rows and at not in columns:
            rows.add(number)
            columns.add(at)
            precise -= loss
    recalled = sum(max((row[at][1] for at in kept), default=0.0) for row in scores)
    return Tally(precise, len(kept), recalled, len(scores))


_VERBS = frozenset({"VERB", "AUX"})
_PARTICIPLES = frozenset({"VBN", "VBG"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass", "expl"})
_QUOTES = frozenset({'"', "``", "''", "“", "”"})
_OF_EDGE = {
    "relcl": "relative clause",
    "appos": "apposition",
    "nsubjpass": "passive",
    "csubjpass": "passive",
    "auxpass": "passive",
    "dative": "ditransitive",
    "poss": "possessive",
    "ccomp": "complement clause",
    "neg": "negation",
    "expl": "existential",
    "nummod": "quantity",
}


def find_constructions(tree: Tree) -> frozenset[str]:
    """The names of the constructions that occur, as the parser sees them; "plain" for none."""
    found = {name for node in tree.nodes for name in _name_constructions(node)}
    return frozenset(found or {"plain"})


def _name_constructions(node: Node) -> Iterable[str]:
    if node.dep in _OF_EDGE:
        yield _OF_EDGE[node.dep]
    if node.dep == "conj":
        yield "verb coordination" if node.pos in _VERBS else "noun coordination"
    elif node.dep == "xcomp":
        yield "control or raising"
    elif node.dep == "acl" and node.tag in _PARTICIPLES:
        yield "participial clause"
    elif node.dep == "acl":
        yield "infinitive of a noun"
    elif node.dep == "advcl":
        bare = node.tag in _PARTICIPLES and not _has_child(node, _SUBJECTS)
        yield "participial clause" if bare else "adverbial clause"
    elif node.dep == "ROOT" and node.pos not in _VERBS:
        yield "verbless"
    if node.lemma == "be" and _has_child(node, {"attr", "acomp"}):
        yield "copula"
    if node.tag == "MD":
        yield "modality"
    if node.text in _QUOTES:
        yield "quotation"
    elif node.text == "?":
        yield "question"
    elif node.text in {"(", "-LRB-"}:
        yield "parenthesis"


def _has_child(node: Node, labels: Iterable[str]) -> bool:
    return any(child.dep in labels for child in node.children)


_PRONOUNS = frozenset(
    "i you he she it we they him her them this that these those who which what one there".split()
)
_NOT_FINITE = re.compile(r"(?:to|not|by|of|in|on|at|for|from|with|as|and|or)\b|\S+ing\b|\S+ly\b")
_FEWEST_WORDS, _MOST_WORDS = 3, 25
"""Words after "Who or what": fewer fit any sentence, more repeat it."""
_QUOTE_FORMS = str.maketrans({"`": '"'})


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when there are no gold tuples."""
    paths = sorted(folder.glob("**/gold/*.tsv"))
    if not paths:
        return None
    path = paths[0]
    corpus: dict[str, str] = {}
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    left_out: Counter[str] = Counter()
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) < 3:
            raise InputError(f"{path}, line {number}: fewer than three fields")
        sentence, predicate, subject, *rest = fields
        key = corpus.setdefault(sentence, f"s{len(corpus):04}")
        said = " ".join((predicate, *rest))
        reason = _find_fault(predicate, subject, said)
        if reason:
            left_out[reason] += 1
        else:
            answers[f"Who or what {_join_tokens(said)}?"].setdefault(subject, key)
    questions: list[EvalQuestion] = []
    for text, found in answers.items():
        if len(found) > 1:
            left_out["several tuples differ in their subject only"] += 1
            continue
        ((subject, key),) = found.items()
        questions.append(
            EvalQuestion(
                id=f"{key}-{len(questions)}",
                text=text,
                kind="open",
                answers=((_join_tokens(subject),),),
                gold_documents=(key,),
            )
        )
    return QuestionSet(
        folder.name,
        tuple({"id": key, "text": sentence} for sentence, key in corpus.items()),
        tuple(questions),
        read_licence(folder),
        "open questions made from the gold tuples, each for the subject of its predicate",
        dict(left_out),
    )


def _find_fault(predicate: str, subject: str, said: str) -> str:
    """Why a tuple makes no question; empty when it does."""
    if not subject or subject.split()[0].lower() in _PRONOUNS:
        return "its subject is a pronoun"
    if _NOT_FINITE.match(predicate) or not predicate[:1].islower():
        return "its predicate has no finite verb in front"
    if predicate in ("is", "are", "was", "were", "be"):
        return "its predicate says nothing"
    if not _FEWEST_WORDS <= len(said.split()) <= _MOST_WORDS:
        return "it is too short to be found, or repeats the sentence"
    if holds_run(fold_words(said), fold_words(subject)):
        return "the question names the answer"
    return ""


def _join_tokens(text: str) -> str:
    """Words and signs that a tokenizer has parted, together again."""
    plain = text.translate(_QUOTE_FORMS).replace('""', '"').replace("''", '"')
    plain = re.sub(r"\s+(?=[,.;:?!%)]|'\w|n't)", "", plain)
    return re.sub(r"(?<=[$(])\s+", "", plain)
