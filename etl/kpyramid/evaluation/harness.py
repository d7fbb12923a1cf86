"""The harness: arms answer questions over one snapshot, each answer is scored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kpyramid.embeddings.onnx import OnnxEmbedder
from kpyramid.errors import BudgetError, EndpointError, InputError, IntegrityError, PyramidError
from kpyramid.evaluation.metrics import METRICS, Metric, build_similarity
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.llm.caller import Caller
from kpyramid.query import STRATEGIES, answer
from kpyramid.query.answering import check_options, parse_options
from kpyramid.query.types import RULES, Answer, Backends
from kpyramid.settings import EmbedSettings
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.storage.identity import identify_embedding

# All measures of answers, with those that the installed embedding model makes.


def open_measures() -> Mapping[str, Metric]:
    """Every metric by name, with similarity by the MiniLM of the package.

    The same model for all snapshots: their figures can be compared, and no endpoint is paid.

    Raises:
        SettingsError: the model is not installed.
    """
    identity = identify_embedding(EmbedSettings())
    files = identity.files
    embedder = OnnxEmbedder(identity.name, files["model.onnx"], files["tokenizer.json"])
    similarity = build_similarity(embedder)
    return {**METRICS, similarity.name: similarity}


# The harness: arms answer questions over one snapshot, and each answer is scored.


@dataclass(frozen=True, slots=True)
class Arm:
    """A configuration under test: a strategy, its options, and the backends of its decisions.

    `reader` names who takes the decisions of `backends`.
    """

    strategy: str
    options: tuple[tuple[str, object], ...] = ()
    reader: str = "rules"
    backends: Backends = field(default=RULES, compare=False)

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise InputError(f"unknown strategy {self.strategy!r}; there are {known}")
        check_options(self.strategy, STRATEGIES[self.strategy], dict(self.options))
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    @property
    def name(self) -> str:
        """The arm on one line: strategy, changed options, reader."""
        switched = [_say_option(name, value) for name, value in self.options]
        label = f"{self.strategy} ({', '.join(switched)})" if switched else self.strategy
        return label if self.reader == "rules" else f"{label} by {self.reader}"


@dataclass(frozen=True, slots=True)
class Row:
    """One arm's answer to one question; `failure`: why there is none.

    A failed question scores as an empty answer.
    """

    question: EvalQuestion
    arm: Arm
    answer: Answer
    failure: str | None
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Answers:
    """All rows, by arm and question, with what was missing.

    `missing`: gold documents that the corpus does not have; `stopped`: the error that ended the run
    early, with the answers until then kept.
    """

    questions: tuple[EvalQuestion, ...]
    arms: tuple[Arm, ...]
    rows: tuple[Row, ...]
    missing: tuple[str, ...] = ()
    stopped: PyramidError | None = None

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rows without an answer because the strategy failed."""
        return tuple(row for row in self.rows if row.failure is not None)


def parse_arm(text: str, reader: str = "rules", backends: Backends = RULES) -> Arm:
    """The arm of `strategy:option=value,option=value`; true, false and numbers are read as such.

    Raises:
        InputError: the strategy or an option is unknown, or an option has no value or a wrong one.
    """
    name, _, rest = text.partition(":")
    try:
        options = parse_options(part for part in rest.split(",") if part.strip())
    except InputError as e:
        raise InputError(f"strategy {text!r}: write NAME:OPTION=VALUE,OPTION=VALUE ({e})") from None
    return Arm(name.strip(), tuple(options.items()), reader, backends)


def answer_all(
    questions: Sequence[EvalQuestion],
    snapshot: Snapshot,
    arms: Sequence[Arm],
    *,
    metrics: Mapping[str, Metric] = METRICS,
    advance: Callable[[], None] = lambda: None,
) -> Answers:
    """Every arm's answer to every question, scored.

    If a strategy fails on a question, the failure is counted, and the run goes on. It stops when a
    model may not or cannot be asked, or the snapshot is damaged: the answers so far are returned
    with the error in `stopped`.

    Raises:
        InputError: no question or arm, an id or an arm twice, or not one question was answered.
    """
    _check_plan(questions, arms)
    asked, missing = resolve_documents(questions, snapshot)
    rows: list[Row] = []
    stopped: PyramidError | None = None
    try:
        for arm in arms:
            for question in asked:
                row = _ask(question, arm, snapshot)
                rows.append(replace(row, scores=score_row(row, metrics)))
                advance()
    except (BudgetError, EndpointError, IntegrityError) as e:
        stopped = e
    if rows and all(row.failure is not None for row in rows):
        raise InputError(
            f"not one of {len(rows)} questions could be answered; the first: {rows[0].failure}"
        )
    return Answers(tuple(asked), tuple(arms), tuple(rows), missing, stopped)


def score_row(row: Row, metrics: Mapping[str, Metric]) -> dict[str, float]:
    """The answer's score by each metric that applies to the question."""
    scores = {name: metric.measure(row.question, row.answer) for name, metric in metrics.items()}
    return {name: float(score) for name, score in scores.items() if score is not None}


def resolve_documents(
    questions: Sequence[EvalQuestion], snapshot: Snapshot
) -> tuple[list[EvalQuestion], tuple[str, ...]]:
    """The questions with their gold titles as documents, and the gold that the corpus lacks.

    A missing gold document stays gold, and counts as not retrieved.
    """
    wanted = {t for q in questions for t in (*q.gold_documents, *q.gold_titles)}
    if not wanted:
        return list(questions), ()
    table = snapshot.table("documents").select(["source", "title"]).to_pylist()
    known = {name for row in table for name in (row["source"], row["source"].rpartition("#")[2])}
    by_title: dict[str, list[str]] = {}
    for row in table:
        by_title.setdefault(row["title"] or "", []).append(row["source"])
    missing: dict[str, None] = {}
    resolved = []
    for question in questions:
        gold = list(question.gold_documents)
        missing |= dict.fromkeys(name for name in gold if name not in known)
        for title in question.gold_titles if not gold else ():
            gold += by_title.get(title) or [title]
            if title not in by_title:
                missing[title] = None
        resolved.append(replace(question, gold_documents=tuple(gold)))
    return resolved, tuple(missing)


def _check_plan(questions: Sequence[EvalQuestion], arms: Sequence[Arm]) -> None:
    if not questions:
        raise InputError("there is no question to ask; the file is empty")
    if not arms:
        raise InputError("there is nothing to compare: name a strategy")
    for kind, names in (
        ("question id", [question.id for question in questions]),
        ("arm", [arm.name for arm in arms]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"{kind} {twice[0]!r} stands there twice; give each its own")


def _ask(question: EvalQuestion, arm: Arm, snapshot: Snapshot) -> Row:
    """The row of an answer, or of a failure that concerns this question only.

    Raises:
        BudgetError, EndpointError, IntegrityError: no question could be answered.
    """
    options: Mapping[str, Any] = dict(arm.options)
    before = _read_taken(arm)
    try:
        response = answer(
            question.text,
            snapshot,
            arm.strategy,
            candidates=question.candidates,
            backends=arm.backends,
            **options,
        )
    except (BudgetError, EndpointError, IntegrityError):
        raise
    except Exception as e:  # noqa: BLE001 - one question's defect must not lose the others
        failure = str(e) if isinstance(e, PyramidError) else f"{type(e).__name__}: {e}"
        return Row(question, arm, Answer(), failure, {})
    calls, tokens = (now - then for now, then in zip(_read_taken(arm), before, strict=True))
    return Row(question, arm, replace(response, calls=calls, tokens=tokens), None, {})


def _read_taken(arm: Arm) -> tuple[int, int]:
    """The calls and tokens of this thread's answers so far, paid now or stored before.

    So an evaluation has the same figures when it is repeated with all replies in the cache.
    """
    asker = arm.backends.asker
    return (asker.taken.calls, asker.taken.tokens) if isinstance(asker, Caller) else (0, 0)


def _say_option(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name if value else f"no {name}"
    return f"{name} {value}"
