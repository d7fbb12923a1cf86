"""Metrics of answers, wording, meaning and retrieval, over questions and whole sets.

`METRICS` has all that need no model; libraries are loaded at the first score.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from string import punctuation
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from kpyramid.documents.values import agree, find_values, read_value
from kpyramid.documents.words import LETTERS
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.evaluation.questions import VERDICTS, EvalQuestion, Kind
from kpyramid.query.types import Answer, list_places

# Answers and measures of them.

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure of one response to one question.

    `applies`: the questions for which it is defined. `score` is None where it does not apply, which
    no mean counts, and 0 where it applies and there is no answer: silence is not right. `better`:
    which direction is good.
    """

    name: str
    about: str
    applies: Callable[[EvalQuestion], bool]
    score: Callable[[EvalQuestion, Answer], float | None]
    better: Better = "higher"

    def measure(self, question: EvalQuestion, response: Answer) -> float | None:
        """The score, or None where the metric does not apply."""
        return self.score(question, response) if self.applies(question) else None


Pair = tuple[EvalQuestion, Answer]


# When two answers are the same, and when a text names a value.

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_SAME = 0.85
"""Least agreement of dates: a more precise date has it, a year does not agree with a day in it."""
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Thai, Lao, Khmer, Japanese and Chinese: words without spaces between them."""


def fold(text: str) -> str:
    """The text in one form of Unicode, in small letters and single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def fold_value(text: str) -> str:
    """The text as by `fold`, and a plain number in its shortest form: 1.50 is 1.5."""
    folded = fold(text)
    if _NUMBER.fullmatch(folded):
        number = format(Decimal(folded), "f")
        number = number.rstrip("0").rstrip(".") if "." in number else number
        return "0" if number in {"-0", ""} else number
    return folded


def normalise_answer(text: str) -> str:
    """SQuAD's normal form: small letters, no punctuation, no articles, single spaces.

    The same as the official script's (Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine
    Comprehension of Text", EMNLP 2016) for ASCII; here the punctuation of all Unicode is removed. A
    text of nothing else ("A", "?") stays as `fold` leaves it: it would equal every other.
    """
    folded = fold(text)
    plain = "".join(
        c for c in folded if c not in punctuation and not unicodedata.category(c).startswith("P")
    )
    return " ".join(_ARTICLES.sub(" ", plain).split()) or folded


def list_tokens(text: str) -> list[str]:
    """The words of the text in its normal form."""
    return normalise_answer(text).split()


def names_value(text: str, value: str) -> bool:
    """Whether the value stands in the text as a run of whole words, both in normal form.

    A value in a script without spaces counts wherever it stands.
    """
    wanted, words = normalise_answer(value), normalise_answer(text)
    if UNSPACED.search(wanted):
        return wanted in words
    return bool(wanted) and f" {wanted} " in f" {words} "


def state_same(gold: str, answer: str) -> bool:
    """Whether both are a date or a number, and the answer implies the gold one.

    28 November 1953 is 1953-11-28, and 12,000 is 12000. Units of both have to be the same word: 91
    metres are not 91 feet. A value with a unit is no year: 1953 metres are not in 1953.
    """
    wanted, stated = read_value(gold), read_value(answer)
    if wanted is None or stated is None or agree(wanted, stated) < _SAME:
        return False
    left, right = _read_unit(gold), _read_unit(answer)
    return left == right or (isinstance(wanted, Decimal) and not (left and right))


def list_chosen(response: Answer) -> tuple[str, ...]:
    """The single values of the answer; the text of an answer without any."""
    chosen = tuple(c for c in response.choices if c.strip())
    return chosen or ((response.text,) if response.text.strip() else ())


def word_answer(response: Answer) -> str:
    """The answer in words; the values of an answer without text."""
    return response.text if response.text.strip() else "; ".join(list_chosen(response))


def has_gold(*kinds: Kind) -> Callable[[EvalQuestion], bool]:
    """Whether a question is of one of some kinds and has a gold answer."""
    return lambda question: question.kind in kinds and bool(question.answers)


is_open = has_gold("open")
"""Whether a question is answered in words and has a gold answer."""


def list_references(question: EvalQuestion) -> list[str]:
    """The distinct spellings of all right answers."""
    return list(dict.fromkeys(name for value in question.answers for name in value))


def _read_unit(text: str) -> str:
    """The unit after the value that a text consists of."""
    plain = text.strip().strip("\"'")
    return fold(plain[find_values(plain)[0].end :])


# Metrics of choices: options, single values, yes or no.
#
# Precision, recall and F1 are taken per question and averaged, as PolyRAG's Table II does: F1 is
# the mean of the questions' F1, not that of the mean precision and recall (its row of GPT-4 with
# naive RAG has .5032, .5094 and .4651, where the harmonic mean of the first two is .5063).


def score_precision(question: EvalQuestion, response: Answer) -> float:
    """The share of the chosen values that are right; 0 without an answer."""
    chosen, gold = _match(question, response)
    return len(chosen & gold) / len(chosen) if chosen else 0.0


def score_recall(question: EvalQuestion, response: Answer) -> float:
    """The share of the right values that were chosen; 0 without an answer."""
    chosen, gold = _match(question, response)
    return len(chosen & gold) / len(gold)


def score_f1(question: EvalQuestion, response: Answer) -> float:
    """The harmonic mean of precision and recall; 0 without an answer."""
    chosen, gold = _match(question, response)
    return 2 * len(chosen & gold) / (len(chosen) + len(gold))


def score_set(question: EvalQuestion, response: Answer) -> float:
    """1 when the chosen values are exactly the right ones, else 0."""
    chosen, gold = _match(question, response)
    return float(chosen == gold)


def score_accuracy(question: EvalQuestion, response: Answer) -> float:
    """1 for exactly the right options, or the right one of yes, no and maybe; else 0."""
    if question.kind != "yesno":
        return score_set(question, response)
    return float(read_verdict(response) in read_gold_verdicts(question))


def read_verdict(response: Answer) -> str | None:
    """`yes`, `no` or `maybe` at the beginning of the answer; None otherwise."""
    chosen = list_chosen(response)
    if len(chosen) != 1:
        return None
    word = LETTERS.search(fold(chosen[0]))
    return VERDICTS.get(word.group()) if word else None


def read_gold_verdicts(question: EvalQuestion) -> frozenset[str]:
    """The right ones of `yes`, `no` and `maybe`; one as a rule."""
    verdicts = (VERDICTS.get(fold(name)) for value in question.answers for name in value)
    return frozenset(verdict for verdict in verdicts if verdict)


def _match(question: EvalQuestion, response: Answer) -> tuple[Set[str], Set[str]]:
    """The chosen and the right values, each under the first spelling of a right value."""
    form = _write_plainly if question.kind == "choice" else fold_value
    usual = {form(name): form(value[0]) for value in question.answers for name in value}
    usual |= {form(value[0]): form(value[0]) for value in question.answers}
    chosen = {form(name) for name in list_chosen(response)}
    if question.kind == "choice":
        return {usual.get(name, name) for name in chosen}, set(usual.values())
    return {_find_usual(name, usual) for name in chosen}, set(usual.values())


def _find_usual(value: str, usual: Mapping[str, str]) -> str:
    """The first spelling of the right value that equals the chosen one; itself if none does.

    Articles and punctuation of words are ignored: "Glass Orchard" is "The Glass Orchard".
    """
    if value in usual:
        return usual[value]
    plain = "" if any(c.isdigit() for c in value) else normalise_answer(value)
    same = (
        right
        for name, right in usual.items()
        if (plain and normalise_answer(name) == plain) or state_same(name, value)
    )
    return next(same, value)


def _write_plainly(text: str) -> str:
    """An option's text in one form of Unicode."""
    return " ".join(unicodedata.normalize("NFC", text).split())


_has_values = has_gold("choice", "values")


def _is_decided(question: EvalQuestion) -> bool:
    if question.kind == "yesno":
        return bool(read_gold_verdicts(question))
    return _has_values(question)


# Metrics of answers in words against short gold values.

VALUE_WORDS = 10
"""Most words of a gold value; a longer one is an explanation, which no answer names."""


def score_exact(question: EvalQuestion, response: Answer) -> float:
    """1 when the answer is a gold value in any spelling, else 0.

    For open questions in SQuAD's normal form, the best over the references, with dates and numbers
    in any notation; for choice questions HyKGE's EM, exactly the right options (§5.1.5).
    """
    if question.kind == "choice":
        return score_set(question, response)
    words = word_answer(response)
    plain, names = normalise_answer(words), list_references(question)
    return float(any(plain == normalise_answer(n) or state_same(n, words) for n in names))


def score_token_f1(question: EvalQuestion, response: Answer) -> float:
    """F1 of the words as multisets, the best over the references: SQuAD's second measure."""
    tokens = list_tokens(word_answer(response))
    return max(compare_tokens(tokens, list_tokens(name)) for name in list_references(question))


def compare_tokens(tokens: list[str], wanted: list[str]) -> float:
    """2 · shared / (all words of both); 0 when nothing is shared."""
    shared = sum((Counter(tokens) & Counter(wanted)).values())
    return 2 * shared / (len(tokens) + len(wanted)) if shared else 0.0


def score_hit(question: EvalQuestion, response: Answer) -> float:
    """1 when the first value of the answer names a gold value, else 0.

    Hits@1 on WebQuestions as in RoK (§5.1.2), where models answer in sentences.
    """
    return float(_names_any(list_chosen(response)[:1], list_references(question)))


def score_hit_rate(question: EvalQuestion, response: Answer) -> float:
    """The share of the gold entities that the response names: PolyRAG's HitRate (§V-B).

    Gold are the question's key entities; if it has none, its gold values, in any spelling.
    """
    wanted = [(name,) for name in dict.fromkeys(question.entities)] or question.answers
    texts = (response.text, *response.choices)  # each by itself, so that no match spans two of them
    return sum(_names_any(texts, names) for names in wanted) / len(wanted)


def score_right(question: EvalQuestion, response: Answer) -> float | None:
    """1 when the answer is right, else 0, for the measures that need a verdict.

    Chosen values must be exactly the right ones; an answer in words must name a gold value. None
    where the gold answers are explanations.
    """
    if question.kind != "open":
        return score_accuracy(question, response)
    if all(len(list_tokens(name)) > VALUE_WORDS for name in list_references(question)):
        return None
    return score_hit(question, response)


def has_verdict(question: EvalQuestion) -> bool:
    """Whether `score_right` is defined for the question."""
    return question.kind != "retrieval" and bool(question.answers)


def _names_any(texts: Iterable[str], names: Iterable[str]) -> bool:
    """Whether any of some texts names a value by any of its names."""
    return any(names_value(t, n) or state_same(n, t) for n in names for t in texts)


_is_named = has_gold("open", "values")


def _has_named(question: EvalQuestion) -> bool:
    return question.kind in {"open", "values"} and bool(question.answers or question.entities)


# Metrics of the way to an answer: layers, confidence, calls, tokens, cost, time.

LAYERS = ("ontology", "graph", "text", "model")
CONFIDENT = 0.5
"""Confidence from which an answer claims to be more likely right than not."""


def score_wrong_confident(question: EvalQuestion, response: Answer) -> float | None:
    """1 for a wrong answer whose confidence is `CONFIDENT` or more, else 0.

    The mean is a share of all questions, not of the answered ones. None without a verdict.
    """
    right = score_right(question, response)
    if right is None:
        return None
    return float(response.answered and right < 1 and response.confidence >= CONFIDENT)


def count_words(_question: EvalQuestion, response: Answer) -> float:
    """Number of words in the reader's context."""
    return float(sum(len(item.text.split()) for item in response.context))


def _is_answer(question: EvalQuestion) -> bool:
    return question.kind != "retrieval"


# Metrics of shared words and runs of words: BLEU and ROUGE recall. Neither PolyRAG nor HyKGE names
# an implementation,
# a tokeniser or a smoothing, so figures compare within one table here, not with theirs.

ORDERS = (2, 4)
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[^\W_]+")


def score_bleu(answer: str, references: Sequence[str], order: int) -> float:
    """Sentence BLEU with runs of up to `order` words, in [0, 1]; 0 for an empty answer.

    Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL 2002, by
    sacrebleu (Post, WMT 2018): tokeniser 13a, or zh where a reference is Chinese; case kept;
    exponential smoothing, and of an answer of fewer than `order` words only the runs it can have.
    """
    if not answer.strip():
        return 0.0
    chinese = any(_CHINESE.search(reference) for reference in references)
    bleu = _open_bleu(order, "zh" if chinese else "13a")
    score = float(bleu.sentence_score(answer, list(references)).score) / 100
    return min(score, 1.0)  # rounding may pass 1


def score_rouge(answer: str, reference: str) -> float:
    """The share of the reference's words in the answer: ROUGE-1 recall.

    Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004, by rouge-score, without
    stemming. Words are runs of letters and digits of all Unicode (rouge-score's own tokeniser drops
    what is not ASCII), single characters in scripts without spaces.
    """
    return float(_open_rouge().score(reference, answer)["rouge1"].recall)


def score_rouge_recall(question: EvalQuestion, response: Answer) -> float:
    """ROUGE-1 recall, the best over the references: HyKGE's ROUGE-R for open answers (§5.1.5).

    The paper does not say which ROUGE; it speaks of coverage, which single words measure.
    """
    answer = word_answer(response)
    return max(score_rouge(answer, reference) for reference in list_references(question))


class RougeTokens:
    """The tokeniser for rouge-score."""

    def tokenize(self, text: str) -> list[str]:
        """The words in small letters."""
        return _WORD.findall(UNSPACED.sub(r" \g<0> ", fold(text)))


@cache
def _open_bleu(order: int, tokeniser: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    # Of an answer of fewer words than `order` only the runs count that it can have.
    return BLEU(
        max_ngram_order=order, tokenize=tokeniser, smooth_method="exp", effective_order=True
    )


@cache
def _open_rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rouge1"], tokenizer=RougeTokens())


# Metrics of likeness in meaning, by an embedding model that runs here.

_CACHED = 4096
"""Texts whose vectors are cached: the gold answers of a set, with which every arm is compared."""


def build_similarity(embedder: Embedder) -> Metric:
    """The cosine of answer and gold answer, the best over the references.

    PolyRAG's "BERT similarity, calculated based on MiniLM embeddings" (§V-B), by the embedder
    given. 0 without an answer.
    """

    @lru_cache(maxsize=_CACHED)
    def embed(text: str) -> Matrix:
        return np.asarray(embedder.embed([text])[0])

    def score(question: EvalQuestion, response: Answer) -> float:
        answer = word_answer(response)
        if not answer.strip():
            return 0.0
        vector = embed(answer)
        best = max(float(vector @ embed(name)) for name in list_references(question))
        return min(max(best, -1.0), 1.0)  # unit lengths are rounded

    return Metric("similarity", f"cosine of answer and gold by {embedder.name}", is_open, score)


# Metrics of the ranked documents that an answer's context comes from.
#
# A document counts once, at its best rank, whatever the number of its retrieved chunks and facts.

RANKS = (2, 5, 8, 10)


def score_ranking(gold: Sequence[str], documents: Sequence[str], measure: str) -> float:
    """A measure of ir_measures by name, such as "nDCG@10", by trec_eval; 0 without gold."""
    import ir_measures

    ranked = rank_documents(gold, documents)
    if not gold or not ranked:
        return 0.0
    relevant = {"q": dict.fromkeys(gold, 1)}
    run = {"q": {name: float(-rank) for rank, name in enumerate(ranked)}}
    parsed = ir_measures.parse_measure(measure)
    return float(ir_measures.calc_aggregate([parsed], relevant, run)[parsed])


def score_full_recall(gold: Sequence[str], documents: Sequence[str], measure: str) -> float:
    """1 when all gold documents are among the first, so that `measure`, a recall, is 1, else 0."""
    return float(score_ranking(gold, documents, measure) == 1)


def list_sources(response: Answer) -> list[str]:
    """The source documents of an answer's context, best first."""
    return [place.source for place in list_places(response.context)]


def rank_documents(gold: Sequence[str], documents: Sequence[str]) -> list[str]:
    """The distinct documents at their best rank, gold ones under their names in `gold`."""
    wanted = set(gold)
    return list(dict.fromkeys(_name_document(source, wanted) for source in documents))


def _name_document(source: str, wanted: set[str]) -> str:
    """The gold name of a source: the source itself, or its part after a '#'."""
    name = source
    while name not in wanted:
        _, mark, name = name.partition("#")
        if not mark:
            return source
    return name


# Metrics of all responses together that are no mean over questions.

BINS = 10


def band_confidence(pairs: Sequence[Pair]) -> Mapping[int, Sequence[tuple[float, float]]]:
    """Pairs of confidence and rightness, by which of `BINS` equal ranges the confidence is in."""
    bands: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for question, response in pairs:
        right = score_right(question, response) if has_verdict(question) else None
        if right is not None and response.answered:
            index = min(max(int(response.confidence * BINS), 0), BINS - 1)
            bands[index].append((response.confidence, right))
    return {index: sorted(band) for index, band in sorted(bands.items())}


# All metrics by name.


def _bleu(order: int) -> Metric:
    def score(question: EvalQuestion, response: Answer) -> float:
        return score_bleu(word_answer(response), list_references(question), order)

    return Metric(f"bleu_{order}", f"sentence BLEU-{order}", is_open, score)


def _rank(
    name: str, about: str, measure: str, score: Callable[..., float] = score_ranking
) -> Metric:
    def rate(question: EvalQuestion, response: Answer) -> float:
        return score(question.gold_documents, list_sources(response), measure)

    return Metric(name, about, lambda q: bool(q.gold_documents), rate)


def _count_answered(name: str, about: str, *layers: str) -> Metric:
    """A metric: 1 for answers from some layers, or from any without `layers`."""

    def score(_question: EvalQuestion, response: Answer) -> float:
        return float(response.answered and (not layers or response.layer in layers))

    return Metric(name, about, _is_answer, score, "neither")


RETRIEVAL_METRICS = (
    *(_rank(f"recall_at_{k}", f"share of the gold in the top {k}", f"R@{k}") for k in RANKS),
    *(
        _rank(f"all_gold_at_{k}", f"all gold documents in the top {k}", f"R@{k}", score_full_recall)
        for k in RANKS
    ),
    _rank("ndcg_at_10", "discounted gain of the top 10, binary", "nDCG@10"),
    _rank("mrr", "1 / rank of the first gold document", "RR"),
)
_RIGHT = "the answer is a gold value, or exactly the right options"
_NAMED = "share of the gold entities named (PolyRAG)"
_WRONG = f"wrong with a confidence of {CONFIDENT} or more"
_LISTED = (
    Metric("precision", "share of the chosen values that are right", _has_values, score_precision),
    Metric("recall", "share of the right values that are chosen", _has_values, score_recall),
    Metric("f1", "harmonic mean of the two, per question", _has_values, score_f1),
    Metric(
        "accuracy", "exactly the right values, or the right verdict", _is_decided, score_accuracy
    ),
    Metric("exact_match", _RIGHT, has_gold("open", "choice"), score_exact),
    Metric("token_f1", "F1 of the words of answer and gold value (SQuAD)", is_open, score_token_f1),
    Metric("hits_at_1", "the first value of the answer names a gold value", _is_named, score_hit),
    Metric("hit_rate", _NAMED, _has_named, score_hit_rate),
    Metric("right", "share of all questions answered rightly", has_verdict, score_right),
    *map(_bleu, ORDERS),
    Metric("rouge_r", "ROUGE-1 recall of the gold answer", is_open, score_rouge_recall),
    *RETRIEVAL_METRICS,
    _count_answered("answered", "share of the questions with an answer"),
    _count_answered(
        "above_text", "share answered by the ontology or the graph", "ontology", "graph"
    ),
    Metric("context_words", "words that the reader was given", _is_answer, count_words, "neither"),
    Metric("wrong_confident", _WRONG, has_verdict, score_wrong_confident, "lower"),
    *(_count_answered(f"layer_{n}", f"share answered at the {n} layer", n) for n in LAYERS),
)
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _LISTED})
"""The metrics of a response that need no model; deterministic."""
