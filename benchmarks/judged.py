"""What share of a pyramid's facts is right, by a reader's verdicts on four kinds of text.

`benchmarks/judged/` holds triples and instance statements, each with the sentence that it was read
from, a verdict (right, vague, wrong) and a fault class; its README says how they were drawn and
judged. The figures are shares by kind of text and half, `auc` is the chance that a right triple is
surer than another one.

`--warehouse` compares new builds: the folder that `--build` filled, or with `--kind` one
warehouse. Each judged row is looked up among the facts that the build read from the same sentence:
`same` has the same words in the same places, `fuller` has all its words and more, `gone` is
neither. `right_lost` counts right facts that are gone, `wrong_gone` wrong ones that are, `mended`
changed rows for which the build has all the words of the triple that the reader would have. `auc`
is then of the build's confidence, over the facts that are left. Rows of the half `unseen` are
counted and never printed.

`--build DIR` writes the four corpora and builds their pyramids. `--draw N` writes N triples and
0.4 N instance statements of each build into sheets without their confidence, `--record SHEETS`
turns judged sheets into rows of the form of `--data`.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from convert_set import read_set
from options import BENCH, explain_faults, print_figures, read_options, refuse, report
from sklearn.metrics import roc_auc_score

import kpyramid
from kpyramid.documents.sentences import split_sentences
from kpyramid.documents.words import ARTICLES, AUXILIARIES, BE, WORD, lemmatise

KINDS = {
    # Kind of text: benchmark set, texts drawn (None: all), seed ontology.
    "encyclopaedia": ("musique100", None, "general"),
    "essays": ("mine_public", 52, "general"),
    "abstracts": ("pubmedqa_cv500", 150, "medical"),
    "posts": ("fiqa_dev", 120, "finance"),
}
UNSHIPPED = frozenset({"posts"})
"""Kinds whose texts may not be copied: words are written as places in them."""
HALVES = ("dev", "unseen")
VERDICTS = ("right", "vague", "wrong")
SORTS = ("triples", "instances")
STATES = ("same", "fuller", "gone")
COLUMNS = (
    *("row", "half", "document", "start", "end", "title", "sentence", "head", "relation", "tail"),
    *("verdict", "fault", "right", "remark", "confidence"),
)
SHEET = (*COLUMNS[:6], "before", *COLUMNS[6:-1], "key")
"""Of a sheet to be judged: the text before the sentence too, and the fact's id, no confidence."""
WORDED = ("head", "relation", "tail", "right")
INSTANCES_PER_TRIPLE = 0.4
BEFORE = 300
"""Characters before the sentence that a sheet shows."""
MENDED = 0.6
"""Of the words of a triple that has all the reader's words, the share that are his at least."""
_PLACE = re.compile(r"@(\d+):(\d+)")

Row = dict[str, str]
Shape = tuple[str, str, str]
Tables = dict[str, dict[str, dict[str, Any]]]
"""Rows by table and key."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A published fact, where it was read, and its words: as published first, then as stated."""

    key: str
    document: str
    start: int
    end: int
    shapes: tuple[Shape, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Build:
    """The facts of one pyramid, and its texts and titles by the corpus's own ids."""

    texts: Mapping[str, str]
    titles: Mapping[str, str]
    facts: Mapping[str, Sequence[Fact]]


def read_build(warehouse: Path) -> Build:
    snapshot = kpyramid.open_snapshot("main", warehouse)
    tables: Tables = {
        name: {row[key]: row for row in snapshot.table(name).to_pylist()}
        for name, key in {
            "documents": "document_id",
            "chunks": "chunk_id",
            "claims": "claim_id",
            "raw_triples": "raw_triple_id",
            "entities": "entity_id",
            "relations": "relation_id",
            "triples": "triple_id",
            "instances": "instance_id",
        }.items()
    }
    own = {key: row["source"].rpartition("#")[2] for key, row in tables["documents"].items()}
    return Build(
        {own[key]: row["text"] for key, row in tables["documents"].items()},
        {own[key]: row["title"] or "" for key, row in tables["documents"].items()},
        {
            "triples": list(_list_triples(tables, own)),
            "instances": list(_list_instances(tables, own)),
        },
    )


def _list_triples(tables: Tables, own: Mapping[str, str]) -> Iterator[Fact]:
    for row in tables["triples"].values():
        head, tail = tables["entities"][row["head_id"]], row["tail_id"]
        published = (
            head["name"],
            tables["relations"][row["relation_id"]]["name"],
            tables["entities"][tail]["name"] if tail else row["literal"],
        )
        for raw in (tables["raw_triples"][key] for key in row["raw_triple_ids"]):
            spans = tables["claims"][raw["claim_id"]]["spans"]
            place = raw["relation_span"] or max(spans, key=lambda span: span["start"])
            document = tables["chunks"][raw["chunk_id"]]["document_id"]
            start, end = find_sentence(tables["documents"][document]["text"], place["start"])
            stated = (raw["head"], raw["relation"], raw["tail"])
            key, sure = row["triple_id"], row["confidence"]
            yield Fact(key, own[document], start, end, (published, stated), sure)


def _list_instances(tables: Tables, own: Mapping[str, str]) -> Iterator[Fact]:
    for row in tables["instances"].values():
        subject, value = tables["entities"][row["subject_id"]]["name"], row["object_id"]
        if row["property_iri"] is None:
            shape = (subject, "is a", name_iri(row["class_iri"]))
        else:
            stated = tables["entities"][value]["name"] if value else row["literal"]
            shape = (subject, name_iri(row["property_iri"]), stated)
        key, sure = row["instance_id"], row["confidence"]
        for place in row["places"] or [row]:
            document = own[tables["chunks"][place["chunk_id"]]["document_id"]]
            yield Fact(key, document, place["start"], place["end"], (shape,), sure)


def name_iri(iri: str) -> str:
    return re.split(r"[#/]", iri)[-1]


def find_sentence(text: str, at: int) -> tuple[int, int]:
    (span,) = (span for span in list_sentences(text) if span[0] <= at < span[1])
    return span


@cache
def list_sentences(text: str) -> tuple[tuple[int, int], ...]:
    return tuple((span.start, span.end) for span in split_sentences(text))


def choose_half(kind: str, document: str) -> str:
    return HALVES[hashlib.sha256(f"{kind}-{document}".encode()).digest()[0] % 2]


# What is read and written


def read_rows(folder: Path, kind: str, sort: str) -> list[Row]:
    path = folder / f"{kind}.{sort}.tsv"
    if not path.is_file():
        return []
    header, *lines = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    return [dict(zip(header, line, strict=True)) for line in lines]


def write_rows(folder: Path, kind: str, sort: str, rows: Iterable[Mapping[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(rows)
    columns = SHEET if rows and "key" in rows[0] else COLUMNS
    lines = ("\t".join(" ".join(str(row[c]).split()) for c in columns) for row in rows)
    text = "".join(f"{line}\n" for line in ("\t".join(columns), *lines))
    (folder / f"{kind}.{sort}.tsv").write_text(text, "utf-8")


def encode(words: str, text: str, start: int, end: int) -> str:
    """Each word as its place in the text, in the same case where it can be, near the sentence."""
    return " ".join(_find_place(word, text, start, end) or word for word in words.split())


def _find_place(word: str, text: str, start: int, end: int) -> str:
    if not WORD.search(word):
        return ""
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    places = [match.start() for match in pattern.finditer(text)]
    if not places:
        return ""
    of_case = [at for at in places if text[at : at + len(word)] == word] or places
    nearest = min(of_case, key=lambda at: (not start <= at < end, abs(at - start)))
    return f"@{nearest}:{len(word)}"


def decode(words: str, text: str) -> str:
    return _PLACE.sub(lambda m: text[int(m[1]) : int(m[1]) + int(m[2])], words)


def draw_rows(build: Build, kind: str, count: int, seed: int) -> dict[str, list[Row]]:
    """Rows of a sheet by sort, each of another fact; of its statements one is drawn."""
    drawn = {}
    for sort in SORTS:
        stated: dict[str, list[Fact]] = defaultdict(list)
        for fact in build.facts[sort]:
            stated[fact.key].append(fact)
        size = count if sort == "triples" else round(count * INSTANCES_PER_TRIPLE)
        rng = np.random.default_rng(seed)
        keys = rng.choice(sorted(stated), min(size, len(stated)), replace=False).tolist()
        drawn[sort] = [
            _make_row(build, kind, stated[key][int(rng.integers(len(stated[key])))])
            | {"row": f"{kind}-{sort[0]}{number}"}
            for number, key in enumerate(keys, 1)
        ]
    return drawn


def _make_row(build: Build, kind: str, fact: Fact) -> Row:
    text = build.texts[fact.document]
    return dict.fromkeys(SHEET, "") | {
        "half": choose_half(kind, fact.document),
        "document": fact.document,
        "start": str(fact.start),
        "end": str(fact.end),
        "title": build.titles[fact.document],
        "before": text[max(0, fact.start - BEFORE) : fact.start],
        "sentence": text[fact.start : fact.end],
        **{name: part for name, part in zip(WORDED, fact.shapes[0], strict=False)},
        "key": fact.key,
    }


def record_rows(build: Build, kind: str, sort: str, rows: Sequence[Row]) -> list[Row]:
    """Judged rows of a sheet as they are kept, with the confidence of their facts."""
    confidence = {fact.key: fact.confidence for fact in build.facts[sort]}
    kept = []
    for row in rows:
        if row["verdict"] not in VERDICTS:
            refuse(f"{row['row']}: the verdict is {row['verdict']!r}; give one of {VERDICTS}")
        half = choose_half(kind, row["document"])
        new = row | {"half": half, "confidence": f"{confidence[row['key']]:.4f}"}
        if kind in UNSHIPPED:
            text, start, end = build.texts[row["document"]], int(row["start"]), int(row["end"])
            new |= {name: encode(row[name], text, start, end) for name in WORDED}
            new["sentence"] = ""
        kept.append({name: new[name] for name in COLUMNS})
    return kept


def build_all(folder: Path, seed: int) -> None:
    """Writes the corpora and builds the pyramids that are not there."""
    bench = os.environ.get(BENCH) or refuse(f"no texts: set {BENCH} to the folder that holds them")
    for kind, (name, count, ontology) in KINDS.items():
        report(f"building {kind}")
        corpus = folder / kind / "corpus" / "corpus.jsonl"
        rows = sorted(read_set(Path(bench) / name).corpus, key=lambda row: row["id"])
        if count is not None:
            chosen = np.random.default_rng(seed).choice(len(rows), count, replace=False)
            rows = [rows[at] for at in sorted(chosen.tolist())]
        corpus.parent.mkdir(parents=True, exist_ok=True)
        corpus.write_text("".join(f"{json.dumps(r, ensure_ascii=False)}\n" for r in rows), "utf-8")
        command = [sys.executable, "-m", "kpyramid", "build", str(corpus.parent), "-q", "--json"]
        subprocess.run(
            [*command, "--warehouse", str(folder / kind / "warehouse")],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "KPYRAMID_INDUCE__ONTOLOGY": ontology},
        )


# What is measured


def measure_verdicts(rows: Sequence[Row]) -> dict[str, Any]:
    verdicts = [row["verdict"] for row in rows]
    shares = {v: round(verdicts.count(v) / len(rows), 3) for v in VERDICTS}
    return {"rows": len(rows), **shares, "auc": rank_rows(rows, "confidence")}


def rank_rows(rows: Sequence[Row], column: str) -> float | None:
    """The area under the ROC curve of right against the rest; none without both, with a number."""
    known = [row for row in rows if row[column]]
    right = [row["verdict"] == "right" for row in known]
    if len(set(right)) < 2:
        return None
    return round(float(roc_auc_score(right, [float(row[column]) for row in known])), 3)


def list_words(text: str) -> frozenset[str]:
    """Lemmas of the words that say something; all words where none does."""
    words = WORD.findall(text.casefold())
    content = {lemmatise(w) for w in words if w not in ARTICLES | AUXILIARIES}
    return frozenset(content or words)


def compare_words(judged: Sequence[str], fact: Fact) -> str:
    """`same`, `fuller` or `gone`."""
    parts = list(zip(*fact.shapes, strict=True))
    if all(
        any(normalise(part) == normalise(other) for other in others)
        for part, others in zip(judged, parts, strict=True)
    ):
        return "same"
    words = [list_words(part) for part in judged]
    head, relation, tail = (frozenset[str]().union(*map(list_words, part)) for part in parts)
    # A qualifier may have moved from the relation to the tail or back.
    whole = words[0] <= head and words[1] | words[2] <= relation | tail and words[2] & tail
    voices = {is_passive(relation) for relation in parts[1]}
    return "fuller" if whole and is_passive(judged[1]) in voices else "gone"


def is_passive(relation: str) -> bool:
    words = WORD.findall(relation.casefold())
    return any(
        word in BE
        and any(lemmatise(w) != w and not w.endswith("ing") for w in words[at + 1 : at + 3])
        for at, word in enumerate(words)
    )


def normalise(text: str) -> str:
    return " ".join(w for w in WORD.findall(text.casefold()) if w not in ARTICLES)


def is_mended(right: str, fact: Fact) -> bool:
    """Whether the fact is the one that the reader would have, however it is divided."""
    wanted = [list_words(part) for part in right.split(" | ")]
    whole = frozenset[str]().union(*wanted)
    for shape in fact.shapes:
        found = [list_words(part) for part in shape]
        words = frozenset[str]().union(*found)
        if wanted[0] & found[0] and whole <= words and len(whole) >= MENDED * len(words):
            return True
    return False


def compare_row(row: Row, build: Build, facts: Sequence[Fact]) -> Row:
    """The row with its state in a build; `unknown` where the build has another text."""
    text = build.texts.get(row["document"], "")
    start, end = int(row["start"]), int(row["end"])
    here = " ".join(text[start:end].split())
    if not here or row["sentence"] not in {"", here}:
        return row | {"state": "unknown", "mended": "", "now": "", "sure": ""}
    plain = {name: decode(row[name], text) for name in WORDED}
    judged = [plain[name] for name in WORDED[:3]]
    near = [fact for fact in facts if fact.start < end and start < fact.end]
    matches = {compare_words(judged, fact): fact for fact in near}
    state = min(matches, key=STATES.index, default="gone")
    match = None if state == "gone" else matches[state]
    mended = plain["right"] and state != "same" and any(is_mended(plain["right"], f) for f in near)
    found = {
        "sentence": here,
        "state": state,
        "mended": "yes" if mended else "",
        "now": " · ".join(" | ".join(f.shapes[0]) for f in ([match] if match else near)),
        "sure": str(match.confidence) if match else "",
    }
    return row | plain | found


def compare_rows(rows: Sequence[Row], build: Build, sort: str) -> Iterator[Row]:
    by_document: dict[str, list[Fact]] = defaultdict(list)
    for fact in build.facts[sort]:
        by_document[fact.document].append(fact)
    for row in rows:
        yield compare_row(row, build, by_document[row["document"]])


def count_states(rows: Sequence[Row]) -> dict[str, Any]:
    """Rows of each verdict by their state, and the ranking of those that are left."""
    counts: Counter[tuple[str, str]] = Counter((row["verdict"], row["state"]) for row in rows)
    return {
        "rows": len(rows),
        **{f"right_{s}": counts["right", s] for s in STATES[:2]},
        "right_lost": counts["right", "gone"],
        **{f"{v}_{s}": counts[v, s] for v in VERDICTS[1:] for s in STATES},
        "mended": sum(row["mended"] == "yes" for row in rows),
        "unknown": sum(row["state"] == "unknown" for row in rows),
        "auc": rank_rows(rows, "sure"),
    }


def list_rows(rows: Iterable[Row]) -> dict[str, list[dict[str, str]]]:
    """Right facts that are lost, faults that are left and changed, of the half that may be read."""
    seen = [row for row in rows if row["half"] == "dev"]
    fields = ("row", *WORDED[:3], "verdict", "fault", "right", "now", "sentence")
    lost = [r for r in seen if r["verdict"] == "right" and r["state"] == "gone"]
    faulty = [r for r in seen if r["verdict"] != "right" and r["state"] != "unknown"]
    left = [r for r in faulty if r["state"] != "gone" and not r["mended"]]
    changed = [r for r in faulty if r not in left]
    chosen = {"lost": lost, "left": left, "changed": changed}
    return {name: [{f: r[f] for f in fields} for r in group] for name, group in chosen.items()}


def measure(data: Path, limit: int | None) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    of = {(sort, kind): read_rows(data, kind, sort)[:limit] for sort in SORTS for kind in KINDS}
    if not any(of.values()):
        refuse(f"{data}: no judged rows; name a folder of files KIND.triples.tsv")
    for sort in SORTS:
        table = {}
        for kind in (*KINDS, "all"):
            rows = [r for k in KINDS if kind in {k, "all"} for r in of[sort, k]]
            for half in (*HALVES, "both"):
                part = [row for row in rows if half in {row["half"], "both"}]
                if part:
                    table[f"{kind} {half}"] = measure_verdicts(part)
        figures[sort] = table
    whole = figures["triples"].get("all both", {})
    faults = Counter(
        (row["fault"], kind)
        for (_, kind), rows in of.items()
        for row in rows
        if row["fault"] and row["half"] == "dev"
    )
    names = sorted({f for f, _ in faults}, key=lambda f: (-sum(faults[f, k] for k in KINDS), f))
    return {
        **{name: whole.get(name) for name in (*VERDICTS, "auc")},
        "instances_right": figures["instances"].get("all both", {}).get("right"),
        **figures,
        "faults_dev": {f: {kind: faults[f, kind] for kind in KINDS} for f in names},
    }


def measure_builds(data: Path, builds: Mapping[str, Build], half: str) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {}
    for sort in SORTS:
        compared: dict[str, list[Row]] = {}
        for kind, build in builds.items():
            rows = [r for r in read_rows(data, kind, sort) if half in {r["half"], "all"}]
            compared[kind] = list(compare_rows(rows, build, sort))
            for name, group in list_rows(compared[kind]).items():
                lists.setdefault(f"{sort}_{name}", []).extend(group)
        compared["all"] = [row for rows in compared.values() for row in rows]
        figures[sort] = {kind: count_states(rows) for kind, rows in compared.items()}
    whole = figures["triples"]["all"]
    return {name: whole[name] for name in ("right_lost", "wrong_gone", "mended")} | figures | lists


def find_warehouses(given: str, kind: str | None) -> dict[str, Path]:
    if kind is not None and kind not in KINDS:
        refuse(f"no kind {kind!r}; give one of {', '.join(KINDS)}")
    folder = Path(given)
    found = {kind: folder} if kind else {k: folder / k / "warehouse" for k in KINDS}
    found = {k: path for k, path in found.items() if path.is_dir()}
    if not found:
        refuse(f"{folder}: no warehouse; fill it with --build {folder}, or name one with --kind")
    return found


def print_lists(figures: Mapping[str, Any]) -> None:
    for name, rows in figures.items():
        print(f"\n{name}: {len(rows)}")
        for row in rows:
            print(f"  {row['row']} {row['verdict']} {row['fault']}: "
                  f"{row['head']} | {row['relation']} | {row['tail']}")  # fmt: skip
            for field in ("right", "now", "sentence"):
                if row[field]:
                    print(f"      {field}: {row[field]}")


def main() -> None:
    options = read_options(
        __doc__,
        data=Path(__file__).parent / "judged",
        limit="the first N rows of each file only",
        seed="of the texts and of the draw",
        values={
            "--build": "a folder for the corpora and pyramids of the four kinds",
            "--warehouse": "such a folder, or with --kind a warehouse",
            "--kind": f"of the warehouse: {', '.join(KINDS)}",
            "--half": "whose rows are compared: dev (by default), unseen or all",
            "--draw": "how many triples to draw of each build, into sheets in --out",
            "--record": "a folder of judged sheets, whose rows are written into --out",
            "--out": "the folder that --draw and --record write",
        },
    )
    if options.build:
        build_all(Path(options.build), options.seed)
        return
    if not options.warehouse:
        with explain_faults(options.data, "benchmarks/judged"):
            figures = measure(options.data, options.limit)
        print_figures(figures, options.json)
        return
    if (options.draw or options.record) and not options.out:
        refuse("nowhere to write; name a folder with --out")
    warehouses = find_warehouses(options.warehouse, options.kind)
    builds = {kind: read_build(path) for kind, path in warehouses.items()}
    for kind, build in builds.items() if options.draw or options.record else ():
        for sort in SORTS:
            if options.draw:
                rows = draw_rows(build, kind, int(options.draw), options.seed)[sort]
            else:
                sheet = read_rows(Path(options.record), kind, sort)
                rows = record_rows(build, kind, sort, sheet)
            write_rows(Path(options.out), kind, sort, rows)
    if options.draw or options.record:
        return
    figures = measure_builds(options.data, builds, options.half or "dev")
    if options.json:
        print_figures(figures, as_json=True)
        return
    lists = {name: rows for name, rows in figures.items() if isinstance(rows, list)}
    print_figures({n: v for n, v in figures.items() if n not in lists}, as_json=False)
    print_lists(lists)


if __name__ == "__main__":
    main()
