"""A user's checks: what a snapshot has to hold, one entry each in a TOML file.

`expect` lists them: an `entity`, with its `class`; a `fact`, `head | relation | tail`; a `question`
with its `answer`; a `share`, as `rejects.low_confidence`, that is `below` a number; documents that
are `fresh`, the newest `within` such as "2d". `severity` is "fail" or "warn".
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

import pyarrow.compute as pc
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from kpyramid.completion.corrections import find_class, fold_fact, is_value, split_fact
from kpyramid.completion.decisions import Text, quote, read_entries, read_text
from kpyramid.documents.validity import find_date
from kpyramid.documents.words import normalise_relation
from kpyramid.errors import SettingsError
from kpyramid.ontology.schema import Schema
from kpyramid.query import Snapshot, answer
from kpyramid.settings import STRICT
from kpyramid.snapshot.search import join_words

_KINDS = ("entity", "fact", "question", "share", "fresh")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_WITHIN = re.compile(r"([1-9]\d{0,4})([hdw])")
_SHARES = "rejects."


@dataclass(frozen=True, slots=True, config=STRICT)
class Check:
    """One entry of the file."""

    entity: Text | None = None
    class_: Annotated[Text | None, Field(alias="class")] = None
    fact: Text | None = None
    question: Text | None = None
    answer: Text | None = None
    share: Text | None = None
    below: Annotated[float | None, Field(gt=0, le=1)] = None
    fresh: Literal["documents"] | None = None
    within: Text | None = None
    severity: Literal["fail", "warn"] = "fail"

    @model_validator(mode="after")
    def _can_hold(self) -> "Check":
        if sum(getattr(self, kind) is not None for kind in _KINDS) != 1:
            raise ValueError(f"give one of {', '.join(_KINDS)}")
        beside = {"class_": "entity", "answer": "question", "within": "fresh"}
        beside["below"] = "share"
        for name, kind in beside.items():
            if getattr(self, name) is not None and getattr(self, kind) is None:
                raise ValueError(f"{name.strip('_')} goes with {kind}")
        if (self.question is None) != (self.answer is None):
            raise ValueError("a question goes with its answer")
        if self.fact is not None:
            split_fact(self.fact)
        if self.fresh and not _WITHIN.fullmatch(self.within or ""):
            raise ValueError("within is a number from 1 with h, d or w, such as 2d")
        if self.share is not None:
            if not self.share.startswith(_SHARES):
                raise ValueError(f"{self.share!r} is no share; write {_SHARES}REASON")
            if self.below is None:
                raise ValueError("a share goes with below, from which it does not hold")
        return self

    def __str__(self) -> str:
        given = {k.strip("_"): v for k, v in asdict(self).items() if v is not None}
        given.pop("severity")
        return ", ".join(f"{name} {value}" for name, value in given.items())


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcome of a check: `value` is its number, 1 or 0 where it has none; `why` in words."""

    check: str
    severity: str
    holds: bool
    value: float
    why: str


def load_checks(path: str | None, schema: Schema) -> list[Check]:
    """The checks of the file that the settings name; none without one.

    Raises:
        SettingsError: it is not there.
        InputError: it cannot be read, or a check is wrong or can never hold; names the entry.
    """
    if path is None:
        return []
    if not Path(path).is_file():
        raise SettingsError(f"publish.checks: there is no file {Path(path).absolute()}")
    checks = read_entries(read_text(Path(path)), path, "expect", Check)
    for number, check in enumerate(checks, 1):
        if check.class_:
            find_class(check.class_, schema, f"{path}, entry {number}")
    return checks


def add_check(text: str, check: Mapping[str, str]) -> str:
    """The file's text with one more entry; unchanged if it has that entry.

    Raises:
        InputError: the text is no such file.
    """
    pairs = [f"{name} = {quote(value)}" for name, value in check.items()]
    last = text.rstrip().rfind("]")
    inner = text[:last].rstrip().rstrip(",")
    listed = f"{inner}{'' if inner.endswith('[') else ','}\n    {{ {', '.join(pairs)} }},\n]\n"
    tables = f"{text.rstrip()}\n\n[[expect]]\n{chr(10).join(pairs)}\n".lstrip()
    made = listed if re.search(r"^\s*expect\s*=", text, re.MULTILINE) else tables
    *before, added = read_entries(made, "the checks file", "expect", Check)
    return text if added in before else made


def measure_checks(checks: Sequence[Check], snapshot: Snapshot, order: str) -> list[Measured]:
    """The outcome of each check; `order`: the run's time, from which freshness is measured."""
    return [
        Measured(str(check), check.severity, *_measure(check, snapshot, order)) for check in checks
    ]


def judge_measured(measured: Sequence[Measured]) -> str:
    """The gate's verdict: it fails when a check of severity `fail` does not hold."""
    lost = [check for check in measured if not check.holds]
    failed = [check for check in lost if check.severity == "fail"]
    verdict = f"{len(measured) - len(lost)} of {len(measured)} hold"
    verdict += "".join(f"; {check.check}: {check.why}" for check in failed or lost)
    return f"fail: {verdict}" if failed else f"pass: {verdict}"


def _measure(check: Check, snapshot: Snapshot, order: str) -> tuple[bool, float, str]:
    """Whether a check holds, its number, and the reason."""
    if check.share is not None:
        return _measure_share(check, snapshot)
    if check.within is not None:
        return _measure_age(check.within, snapshot, order)
    if check.question is not None:
        reply = answer(check.question, snapshot)
        wanted = f" {join_words(str(check.answer))} "
        holds = wanted in f" {join_words(reply.text)} "
        return holds, float(holds), f"the answer is {reply.text!r}" if reply.text else "no answer"
    ids = snapshot.entities_by_name().get(
        join_words(check.entity or split_fact(str(check.fact))[0]), ()
    )
    if not ids:
        return False, 0.0, "nothing has that name"
    if check.class_:
        schema = snapshot.schema
        wanted = find_class(check.class_, schema, "the check")
        rows = snapshot.table("instances").select(["subject_id", "class_iri", "property_iri"])
        rows = rows.filter(pc.is_in(rows["subject_id"], value_set=pc.cast(list(ids), "string")))
        classes = {row["class_iri"] for row in rows.to_pylist() if row["property_iri"] is None}
        holds = any(schema.is_subclass(iri, wanted) for iri in classes)
        labels = sorted(schema.class_by_iri[iri].label for iri in classes)
        return holds, float(holds), f"it is of {', '.join(labels) or 'no class'}"
    if check.fact is None:
        return True, 1.0, "it is there"
    values = _list_values(check.fact, ids, snapshot)
    _, _, wanted = split_fact(check.fact)
    holds = any(is_value(wanted, value) for value in values)
    return holds, float(holds), f"stated is {', '.join(values) or 'nothing of that relation'}"


def _list_values(fact: str, ids: Sequence[str], snapshot: Snapshot) -> list[str]:
    """The values that plain facts and denials state for entities and the relation of a fact."""
    _, relation, _ = fold_fact(fact)
    keys = [*snapshot.facts_about(ids), *snapshot.facts_about(ids, denied=True)]
    values = []
    for stated in map(snapshot.read_fact, keys):
        wording, standard = (normalise_relation(r).key for r in (stated.relation, stated.standard))
        names = {wording, standard, *({stated.standard} if not stated.turned else ())}
        if stated.head_id in ids and relation in names:
            values.append(stated.tail)
    return [*dict.fromkeys(values)]


def _measure_share(check: Check, snapshot: Snapshot) -> tuple[bool, float, str]:
    """The share of a reason's rejects among all rejects and triples."""
    reason = str(check.share).removeprefix(_SHARES)
    reasons = snapshot.table("rejects")["reason"].to_pylist()
    count, all_ = reasons.count(reason), len(reasons) + snapshot.table("triples").num_rows
    share = count / all_ if all_ else 0.0
    near = get_close_matches(reason, sorted({*reasons}), 1, 0.7) if not count else ()
    hint = f"; there is none of that reason, nearest: {near[0]}" if near else ""
    holds = not near and check.below is not None and share < check.below
    return holds, round(share, 6), f"it is {share:.4g}: {count:,} of {all_:,}{hint}"


def _measure_age(within: str, snapshot: Snapshot, order: str) -> tuple[bool, float, str]:
    """The days between the newest document's date and the run."""
    try:
        now = datetime.fromisoformat(order)
    except ValueError:
        return False, 0.0, f"the order of the run, {order!r}, is no time to measure from"
    rows = snapshot.table("documents").select(["metadata", "title"]).to_pylist()
    days = [day for row in rows if (day := find_date(dict(row["metadata"]), row["title"]))]
    if not days:
        return False, 0.0, "no document has a date, neither in a field nor in its title"
    match = _WITHIN.fullmatch(within)
    assert match is not None  # the check demands it
    newest = datetime(max(days).year, max(days).month, max(days).day, tzinfo=UTC)
    age = now.replace(tzinfo=now.tzinfo or UTC) - newest
    most = timedelta(**{_UNITS[match[2]]: int(match[1])})
    # A document has a day, and no hour: it is as new as the end of that day.
    holds = age - timedelta(days=1) < most
    return holds, round(age / timedelta(days=1), 3), f"the newest document is of {max(days)}"
