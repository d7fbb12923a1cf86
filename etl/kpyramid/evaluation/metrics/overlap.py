"""Measures of shared words and runs of words: BLEU and ROUGE recall.

Both libraries are loaded at the first score. Neither PolyRAG nor HyKGE names an implementation,
a tokeniser or a smoothing, so figures compare within one table here, not with theirs.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from kpyramid.evaluation.metrics.types import Metric, Pair, Response, SetMetric
from kpyramid.evaluation.metrics.words import UNSPACED, fold, is_open, list_references, word_answer
from kpyramid.evaluation.questions import EvalQuestion

ORDERS = (1, 2, 4)
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
    bleu = _open_bleu(order, _choose_tokeniser(references), True)
    return _read_score(bleu.sentence_score(answer, list(references)))


def score_corpus_bleu(pairs: Sequence[Pair], order: int) -> float | None:
    """BLEU of all open answers as one text, in [0, 1]: counts are summed, not scores.

    An unanswered question adds its reference's length and no match. None without open questions,
    and where no reference or no answer has a run of `order` words: there is nothing to compare.
    """
    kept = [(q, r) for q, r in pairs if is_open(q)]
    if not kept:
        return None
    references = [list_references(question) for question, _ in kept]
    most = max(map(len, references))
    columns = [[row[at] if at < len(row) else None for row in references] for at in range(most)]
    every = [reference for row in references for reference in row]
    bleu = _open_bleu(order, _choose_tokeniser(every), False)
    if all(len(bleu.tokenizer(reference).split()) < order for reference in every):
        return None
    found = bleu.corpus_score([word_answer(r) for _, r in kept], columns)
    # Silence is wrong; answers that are all shorter than a run can be neither right nor wrong.
    return None if found.sys_len and not found.totals[-1] else _read_score(found)


def score_rouge(answer: str, reference: str, kind: str) -> float:
    """The share of the reference's words, or of its longest common subsequence, in the answer.

    ROUGE-1 (`rouge1`) or ROUGE-L (`rougeL`) recall, Lin, "ROUGE: A Package for Automatic
    Evaluation of Summaries", 2004, by rouge-score, without stemming. Words are runs of letters and
    digits of all Unicode (rouge-score's own tokeniser drops what is not ASCII), single characters
    in scripts without spaces.
    """
    return float(_open_rouge(kind).score(reference, answer)[kind].recall)


def score_rouge_recall(question: EvalQuestion, response: Response) -> float:
    """ROUGE-1 recall, the best over the references: HyKGE's ROUGE-R for open answers (§5.1.5).

    The paper does not say which ROUGE; it speaks of coverage, which single words measure.
    """
    return _score_best(question, response, "rouge1")


def score_rouge_l_recall(question: EvalQuestion, response: Response) -> float:
    """ROUGE-L recall, the best over the references."""
    return _score_best(question, response, "rougeL")


def score_context_coverage(_question: EvalQuestion, response: Response) -> float | None:
    """ROUGE-1 recall of the context by the answer: HyKGE's ROUGE-R of retrieved knowledge.

    "ROUGE-R measures the extent to which the LLMs' responses cover the retrieved knowledge"
    (§5.1.5). None where nothing was retrieved.
    """
    if not any(piece.strip() for piece in response.context):
        return None
    return score_rouge(word_answer(response), "\n".join(response.context), "rouge1")


class RougeTokens:
    """The tokeniser that rouge-score is given."""

    def tokenize(self, text: str) -> list[str]:
        """The words in small letters."""
        return _WORD.findall(UNSPACED.sub(r" \g<0> ", fold(text)))


def _score_best(question: EvalQuestion, response: Response, kind: str) -> float:
    answer = word_answer(response)
    return max(score_rouge(answer, reference, kind) for reference in list_references(question))


def _read_score(found: Any) -> float:
    """Out of a hundred, where rounding may pass it."""
    return min(float(found.score) / 100, 1.0)


@cache
def _open_bleu(order: int, tokeniser: str, short: bool) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(
        max_ngram_order=order, tokenize=tokeniser, smooth_method="exp", effective_order=short
    )


@cache
def _open_rouge(kind: str) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer([kind], tokenizer=RougeTokens())


def _choose_tokeniser(references: Sequence[str]) -> str:
    return "zh" if any(_CHINESE.search(reference) for reference in references) else "13a"


def _bleu(order: int) -> Callable[[EvalQuestion, Response], float]:
    return lambda q, r: score_bleu(word_answer(r), list_references(q), order)


def _corpus_bleu(order: int) -> Callable[[Sequence[Pair]], float | None]:
    return lambda pairs: score_corpus_bleu(pairs, order)


OVERLAP_METRICS = (
    *(Metric(f"bleu_{order}", f"sentence BLEU-{order}", is_open, _bleu(order)) for order in ORDERS),
    Metric("rouge_r", "ROUGE-1 recall of the gold answer", is_open, score_rouge_recall),
    Metric("rouge_l_r", "ROUGE-L recall of the gold answer", is_open, score_rouge_l_recall),
    Metric(
        "context_rouge_r",
        "ROUGE-1 recall of the retrieved context (HyKGE)",
        is_open,
        score_context_coverage,
        "neither",
    ),
)
CORPUS_BLEUS = tuple(
    SetMetric(f"corpus_bleu_{order}", f"BLEU-{order} of all answers as one", _corpus_bleu(order))
    for order in ORDERS
)
