"""What a build would compute and pay, found without writing anything or asking anybody."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from kpyramid.extraction.text.passages import cut_passages
from kpyramid.fingerprints import describe_model_part, fingerprint_stage, key_result
from kpyramid.forecast import Forecast, Outlook
from kpyramid.keys import JsonValue
from kpyramid.llm.estimates import Estimate, Range
from kpyramid.pipeline import PIPELINE
from kpyramid.ports import Silence, open_extractor, open_splitter, require_ontology
from kpyramid.settings import Settings
from kpyramid.sources.corpus import list_corpus
from kpyramid.warehouse.layout import Warehouse
from kpyramid.warehouse.results import TableFile, find_result

Row = dict[str, JsonValue]

_FREE: Mapping[str, JsonValue] = {
    "calls": 0,
    "tokens": 0,
    "cost": {"low": 0.0, "expected": 0.0, "high": 0.0},
}
_UNPRICED: JsonValue = {"low": None, "expected": None, "high": None}


def plan_build(
    corpus: Path,
    warehouse: Warehouse,
    settings: Settings,
    *,
    keep: bool = False,
    workers: int = 1,
) -> list[Row]:
    """One row per stage: its rows, how many of them are known already, and what it would pay.

    A stage after the first that has something to compute depends on what that makes: its rows
    are null, and it will be computed unless its input comes out the same. `calls`, `tokens` are
    what is expected; a stage that asks a language model says more under `model`. The cost is
    null where the model has no price. Nothing is written, unless a build follows that is to
    `keep` what the rules found on the way.

    Raises:
        InputError: there is no such corpus.
        SettingsError: a model or an ontology that the settings name is not there.
    """
    require_ontology(settings)
    listing = list_corpus(corpus, leave_out=warehouse.folders)
    made: dict[str, list[JsonValue]] = {}
    files: dict[str, list[TableFile]] = {}
    rows: dict[str, int] = {}
    plan: list[Row] = []
    known = True
    forecast = Forecast(warehouse, settings, listing, files, keep=keep, workers=workers)
    for stage in PIPELINE:
        inputs: dict[str, JsonValue] = {table: made.get(table, []) for table in stage.reads}
        if "corpus" in stage.ports:
            inputs["corpus"] = listing.fingerprint
        key = key_result(fingerprint_stage(stage, settings), inputs)
        result = find_result(warehouse, stage.name, key) if known and stage.writes else None
        if result is not None:
            for name, file in result.tables.items():
                made.setdefault(name, []).append(file.sha256)
                files.setdefault(name, []).append(file)
            count = sum(f.rows for name, f in result.tables.items() if name != "rejects")
            plan.append({"stage": stage.name, "rows": count, "cached": count, **_FREE})
            continue
        if known:
            rows, known = _count_rows(forecast, warehouse, settings), False
        total, cached = rows.get(stage.name), rows.get(f"{stage.name} cached")
        row: Row = {"stage": stage.name, "rows": total, "cached": cached, **_FREE}
        outlooks = []
        # A recording costs nothing.
        if settings.llm.provider == "openai" and describe_model_part(stage.name, settings):
            outlooks.append(forecast.look_ahead(stage.name))
        if settings.embed.provider == "openai" and "embedder" in stage.ports:
            outlooks.append(forecast.look_ahead_of_vectors(stage.name))
        if outlooks:
            row.update(_describe_outlooks(outlooks, settings))
        plan.append(row)
    if all(row["cached"] is not None for row in plan[:-1]):
        plan[-1].update(rows=1, cached=1)
    return plan


def _describe_outlooks(outlooks: Sequence[Outlook], settings: Settings) -> Row:
    total = sum((outlook.estimate for outlook in outlooks), Estimate())
    ranges: Row = {
        name: {bound: round(amount) for bound, amount in asdict(getattr(total, name)).items()}
        for name in ("calls", "tokens", "prompt", "completion")
    }
    return {
        "calls": round(total.calls.expected),
        "tokens": round(total.tokens.expected),
        "cost": _price(outlooks, settings, batch=False),
        "model": {
            "asked": sum(outlook.asked for outlook in outlooks),
            "hits": sum(outlook.hits for outlook in outlooks),
            "failed": sum(outlook.failed for outlook in outlooks),
            "waiting": sum(outlook.waiting for outlook in outlooks),
            **ranges,
            "batch_cost": _price(outlooks, settings, batch=True),
            "unpriced": sorted({outlook.model for outlook in outlooks} - set(settings.llm.prices)),
            "learned_from": sum(outlook.learned_from for outlook in outlooks),
        },
    }


def _price(outlooks: Sequence[Outlook], settings: Settings, *, batch: bool) -> JsonValue:
    """Dollars of all; null when a model has no price. Vectors are not asked for in batches."""
    cost = Range()
    for outlook in outlooks:
        price = settings.llm.prices.get(outlook.model)
        if price is None:
            return _UNPRICED
        cost += outlook.estimate.price(price, batch=batch and outlook.in_batches)
    return asdict(cost)


def _count_rows(forecast: Forecast, warehouse: Warehouse, settings: Settings) -> dict[str, int]:
    """Rows of the stages whose input follows from the corpus alone, and how many are cached."""
    documents = forecast.documents
    texts = sorted(set(documents["text"].to_pylist()))
    passages = sorted({text[s.start : s.end] for text in texts for s in cut_passages(text)})
    splitter = open_splitter(warehouse, settings, Silence())
    extractor = open_extractor(warehouse, settings, 1, Silence())
    return {
        "ingest": documents.num_rows,
        "ingest cached": 0,
        "chunk": len(texts),
        "chunk cached": len(texts) - splitter.count_missing(texts),
        "extract": len(passages),
        "extract cached": len(passages) - extractor.count_missing(passages),
    }
