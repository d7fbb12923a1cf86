"""What facts of offices' folders are right, vague and wrong, by readers of the documents.

`--data` is a folder of folders, each with the documents of an office and `verdicts.tsv`: the facts
that pyramids of them had, with the verdict of a reader who knew the documents and neither the rules
nor the confidence, by the rubric of `judged/README.md`. Ten organisations that do not exist lie
in `judged/offices/`: a laboratory, a software firm, a town's water works, a theatre, a maker of
instruments, a housing association, a bus company, a mountain rescue team, a fish market, a group of
veterinary surgeons. Rules were made with all but the seventh before them, and the confidence is
fitted to the first six.

A folder is built as it is; a judged fact counts where the pyramid still has it: the same head,
relation, tail, polarity, modality and qualifiers in the same document. `open` are facts that nobody
has judged. Prose and tables apart; `contrary` are wrong ones that say the contrary of the text.
`--open FILE` writes the open ones, with their sentences, as rows to be judged.
"""

import csv
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from options import explain_faults, print_figures, read_options, report

from kpyramid.documents.qualifiers import SECTION
from kpyramid.pipeline.build import build
from kpyramid.settings import Settings, load_settings
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import EVERYTHING
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.layout import open_warehouse

FOLDER = Path(__file__).parent / "judged" / "offices"
KEY = ("source", "head", "relation", "tail", "negated", "modality", "qualifiers")
VERDICTS = ("right", "vague", "wrong")
Row = dict[str, str]


def list_facts(snapshot: Snapshot) -> Iterator[Row]:
    """The statements that a snapshot's triples rest on, in the form of `verdicts.tsv`."""
    names = {row["entity_id"]: row["name"] for row in snapshot.table("entities").to_pylist()}
    relations = {row["relation_id"]: row["name"] for row in snapshot.table("relations").to_pylist()}
    documents = {row["document_id"]: row for row in snapshot.table("documents").to_pylist()}
    chunks = {r["chunk_id"]: r["document_id"] for r in snapshot.table("chunks").to_pylist()}
    claims = {row["claim_id"]: row["spans"] for row in snapshot.table("claims").to_pylist()}
    raw = {row["raw_triple_id"]: row for row in snapshot.table("raw_triples").to_pylist()}
    for triple in snapshot.table("triples").to_pylist():
        for statement in (raw[each] for each in triple["raw_triple_ids"]):
            document = documents[chunks[statement["chunk_id"]]]
            spans = sorted((span["start"], span["end"]) for span in claims[statement["claim_id"]])
            text = " … ".join(document["text"][start:end] for start, end in spans)
            qualifiers = dict(statement["qualifiers"])
            yield {
                "source": document["source"],
                "head": names[triple["head_id"]],
                "relation": relations[triple["relation_id"]],
                "tail": names.get(triple["tail_id"]) or triple["literal"],
                "negated": str(triple["negated"]).lower(),
                "modality": triple["modality"],
                "qualifiers": json.dumps(qualifiers, ensure_ascii=False, sort_keys=True),
                "statement": " | ".join(statement[part] for part in ("head", "relation", "tail")),
                "sentence": " ".join(text.split()),
                "is_table": str(len(spans) > 1 and statement["relation_span"] is None).lower(),
            }


def read_settings(folder: Path) -> Settings:
    """The settings of a folder, which may say whose documents it has; else the defaults."""
    path = folder / "settings.toml"
    return load_settings(path, {}) if path.exists() else Settings()


def build_folder(folder: Path) -> list[Row]:
    """The facts of a pyramid of the documents of a folder, sorted."""
    with tempfile.TemporaryDirectory() as place:
        warehouse = open_warehouse(f"{place}/warehouse")
        made = build(folder / "documents", warehouse, read_settings(folder))
        opened = Snapshot(locate_snapshot(warehouse, made.snapshot), scope=EVERYTHING)
        return sorted(list_facts(opened), key=lambda row: [row[name] for name in KEY])


def name_key(row: Row) -> tuple[str, ...]:
    """What a verdict is of: the fact with its qualifiers, except the heading above it."""
    held = {k: v for k, v in json.loads(row["qualifiers"]).items() if k != SECTION}
    return (*(row[name] for name in KEY[:-1]), json.dumps(held, ensure_ascii=False, sort_keys=True))


def judge(judged: list[Row], facts: list[Row]) -> tuple[dict[str, Any], list[Row]]:
    """The counts of what the readers said of the facts, and the facts that they did not see."""
    said = {name_key(row): row for row in judged}
    counts: dict[str, Any] = {}
    for kind, is_table in (("prose", "false"), ("tables", "true")):
        known = [said[name_key(row)] for row in facts if name_key(row) in said]
        known = [row for row in known if row["is_table"] == is_table]
        verdicts = Counter(row["verdict"] for row in known)
        counts[kind] = {verdict: verdicts[verdict] for verdict in VERDICTS}
        counts[kind]["contrary"] = sum(row["fault"] == "contrary" for row in known)
    unseen = [row for row in facts if name_key(row) not in said]
    return counts | {"open": len(unseen)}, unseen


def read_verdicts(folder: Path) -> list[Row]:
    with (folder / "verdicts.tsv").open(encoding="utf-8", newline="") as stream:
        return [*csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)]


def measure(data: Path, limit: int | None, opened: str | None) -> dict[str, Any]:
    """The counts of all folders together and of each."""
    folders, waiting = {}, []
    for folder in sorted(path for path in data.iterdir() if path.is_dir())[:limit]:
        report(folder.name)
        counts, unseen = judge(read_verdicts(folder), build_folder(folder))
        folders[folder.name] = counts
        waiting += [{"folder": folder.name, **row} for row in unseen]
    if opened:
        rows = (json.dumps(row, ensure_ascii=False) for row in waiting)
        Path(opened).write_text("\n".join(rows) + "\n", encoding="utf-8")
    total: dict[str, Any] = {}
    for kind in ("prose", "tables"):
        sums = Counter({n: sum(f[kind][n] for f in folders.values()) for n in VERDICTS})
        seen = max(sum(sums.values()), 1)
        total[kind] = {n: round(sums[n] / seen, 3) for n in VERDICTS} | {
            "contrary": sum(f[kind]["contrary"] for f in folders.values()),
            "judged": sum(sums.values()),
        }
    return total | {"open": sum(f["open"] for f in folders.values()), "folders": folders}


def main() -> None:
    options = read_options(
        __doc__,
        data=FOLDER,
        limit="folders that are built",
        values={"--open": "a file for the facts that nobody has judged"},
    )
    with explain_faults(options.data, "benchmarks/judged/offices"):
        figures = measure(options.data, options.limit, options.open)
    print_figures(figures, options.json)


if __name__ == "__main__":
    main()
