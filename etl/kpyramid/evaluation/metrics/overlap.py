"""Metrics of wording (ROUGE, BLEU, n-grams) and of meaning (embeddings, BERTScore)."""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kpyramid.embeddings.onnx import OnnxEmbedder
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.evaluation.metrics.types import (
    UNSPACED,
    Metric,
    Pair,
    Response,
    SetMetric,
    fold,
    is_open,
    list_references,
    word_answer,
)
from kpyramid.evaluation.questions import EvalQuestion

# --------------------
# Measures of shared words and runs of words: BLEU and ROUGE recall.
#
# Both libraries are loaded at the first score. Neither PolyRAG nor HyKGE names an implementation,
# a tokeniser or a smoothing, so figures compare within one table here, not with theirs.

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


# --------------------
# Measures of likeness in meaning, by an embedding model that runs here.

_KEPT = 4096
"""Texts whose vectors are kept: the gold answers of a set, which every arm is compared with."""


class TokenEncoder(Protocol):
    """A pure function from a text to the vectors of its tokens in their context."""

    name: str

    def encode_tokens(self, text: str) -> Matrix:
        """One row of length 1 per word piece, shape (pieces, size), float32."""
        ...


class OnnxTokenEncoder(OnnxEmbedder):
    """The last hidden states of the model that `OnnxEmbedder` averages.

    The marks of beginning and end are left out, as bert-score gives them no weight; of a text of
    more than 256 word pieces the rest is not seen.
    """

    def __init__(self, name: str, model: Path, tokenizer: Path) -> None:
        super().__init__(name, model, tokenizer)

    def encode_tokens(self, text: str) -> Matrix:
        """See `TokenEncoder.encode_tokens`."""
        encoding = self._tokenizer.encode(text)
        ids = np.array([encoding.ids], dtype=np.int64)
        feed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        output = self._session.run(None, {k: v for k, v in feed.items() if k in self._inputs})
        inner = np.flatnonzero(np.array(encoding.special_tokens_mask) == 0)
        rows = output[0][0][inner].astype(np.float64)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def match_tokens(answer: Matrix, reference: Matrix) -> tuple[float, float, float]:
    """BERTScore's precision, recall and F1 of token vectors of length 1.

    Zhang et al., "BERTScore: Evaluating Text Generation with BERT", ICLR 2020, §3: each token is
    matched with the most similar of the other text; recall averages over the reference's tokens,
    precision over the answer's. No weights by rarity, no rescaling. All 0 when either is empty.
    """
    if not len(answer) or not len(reference):
        return 0.0, 0.0, 0.0
    cosines = np.clip(answer.astype(np.float64) @ reference.astype(np.float64).T, -1.0, 1.0)
    precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total > 0 else 0.0


def build_similarity(embedder: Embedder) -> Metric:
    """The cosine of answer and gold answer, the best over the references.

    PolyRAG's "BERT similarity, calculated based on MiniLM embeddings" (§V-B), by the embedder
    given. 0 without an answer.
    """

    @lru_cache(maxsize=_KEPT)
    def embed(text: str) -> Matrix:
        return np.asarray(embedder.embed([text])[0])

    def score(question: EvalQuestion, response: Response) -> float:
        answer = word_answer(response)
        if not answer.strip():
            return 0.0
        said = embed(answer)
        best = max(float(said @ embed(name)) for name in list_references(question))
        return min(max(best, -1.0), 1.0)  # unit lengths are rounded

    return Metric("similarity", f"cosine of answer and gold by {embedder.name}", is_open, score)


def build_bert_score(encoder: TokenEncoder) -> tuple[Metric, Metric, Metric]:
    """BERTScore's precision, recall and F1 against the reference with the best F1.

    The model is the encoder given and stands in `about`; published figures are by other models
    (RoK names none, WTS takes bert-base-uncased), so they are not comparable. 0 without an answer.
    """

    @lru_cache(maxsize=_KEPT)
    def encode(text: str) -> Matrix:
        return encoder.encode_tokens(text)

    @lru_cache(maxsize=_KEPT)
    def compare(text: str, references: tuple[str, ...]) -> tuple[float, float, float]:
        if not text.strip():
            return 0.0, 0.0, 0.0
        scores = [match_tokens(encode(text), encode(name)) for name in references]
        return max(scores, key=lambda score: score[2])

    def build(at: int, name: str) -> Metric:
        def score(question: EvalQuestion, response: Response) -> float:
            return compare(word_answer(response), tuple(list_references(question)))[at]

        about = f"{name} of matched token vectors by {encoder.name}"
        return Metric(f"bert_{name}", about, is_open, score)

    return build(0, "precision"), build(1, "recall"), build(2, "f1")
