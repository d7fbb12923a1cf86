"""Answers from a pyramid of any size: how fast, how soon in a fresh process, how surely found.

Metrics: the usual percentiles of the wall time of `answer(...)` and of `retrieve(...)` by one warm
process, one question after the other, of an answer's processor time too (`busy`); recall@10 of the
index against the exact cosines (as in ANN benchmarks, Aumüller et al. 2020); the wall time from the
start of a fresh process to its first answer. No published system is reproduced.

The snapshot is made: tables by `synthetic.py`, a condensed fact per triple, an ontology layer with
a value for every tenth fact. It is indexed and written by what publishes; the gates are left out.
Vectors are made of the real model's: it embeds a thousand names and all verbs and nouns of the
wordings, a fact's vector is the weighted sum of those of its head, verb, noun and tail with some
noise of its own, a chunk's the mean of its facts'. Questions are embedded by the real model.
They are drawn with a seed, of eight kinds: about a value of the ontology, a count, one or two
named entities of the graph, no name, a name that nobody has, and things the texts never speak of.

`--keep FOLDER` keeps the warehouse there, or measures the one that is there already.
"""

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from options import make_parser, name_count, print_figures, read_size, refuse, report

ASKED = 400
WARMING = 40
COMPARED = 200
FRESH = 5
NEAREST = 10
UNCOMPILED = "PYTHONDONTWRITEBYTECODE"
"""Left out: an installed package has its bytecode."""
NAMES = 250
"""Names of each type that are embedded; further ones share their vectors, but for the noise."""
NOISE = 0.35
"""Length of what is a fact's own, beside its ends and its verb and noun with .45 each."""
ABOUT = (
    "Where was {person} born?",
    "Where does {person} live?",
    "Who is the employer of {person}?",
    "Who is the spouse of {person}?",
    "Who founded {organisation}?",
    "Where is the headquarters of {organisation}?",
    "How many people were born in {place}?",
    "Which works did {person} write?",
)
STRANGE = (
    "Who founded Atlantis?",
    "When did the Hanseatic League lose its last port?",
    "What is the boiling point of tungsten?",
    "Which of the two rivers is longer, the Danube or the Volga?",
    "Why do cats purr when they are content?",
)
REF = "main"


def make_warehouse(folder: Path, triples: int, seed: int) -> dict[str, Any]:
    """Writes and publishes a snapshot; gives what that took."""
    from synthetic import write_graph

    from kpyramid.pipeline.fingerprints import identify_resource
    from kpyramid.pipeline.stages import publish
    from kpyramid.pipeline.wiring import load_schema
    from kpyramid.settings import Settings
    from kpyramid.snapshot.columns import join_tables
    from kpyramid.snapshot.indexing import READS, build_index, open_vectors, split_vectors
    from kpyramid.storage.contracts import load_contracts, read_table
    from kpyramid.storage.layout import open_warehouse, stage_folder
    from kpyramid.storage.publication import commit, write_snapshot
    from kpyramid.storage.snapshots import FORMAT

    warehouse, settings, contracts = open_warehouse(folder), Settings(), load_contracts()
    with stage_folder(warehouse) as staged:
        report(f"making a graph of {triples} facts")
        write_graph(staged, triples, seed)
        _add_tables(staged)
        report("embedding names and wordings, and adding them up")
        _add_vectors(staged, seed)
        tables = {name: read_table(staged / f"{name}.parquet", contracts[name]) for name in READS}
        empty = _make_empty("proposals")
        read = [tables.get(name, empty) for name in ("documents", "chunks", "entities")]
        report("writing the ontology layer")
        texts = publish.run(*read, tables["instances"], empty, schema=load_schema(settings))
        report("building the index")
        started = time.perf_counter()
        columns, hashed = join_tables(tables)
        vectors = open_vectors([staged / "vectors.parquet"], staged)
        made = build_index(staged, columns, hashed, vectors, settings.index)
        seconds = time.perf_counter() - started
        made |= split_vectors(tables, hashed, vectors, staged)
        counts = {name: table.num_rows for name, table in tables.items()}
        del tables, read, vectors
        (staged / "vectors.parquet").unlink()
        files: dict[str, bytes | Path] = {
            f"tables/{path.name}": path for path in sorted(staged.glob("*.parquet"))
        }
        files |= {name: text.encode() for name, text in texts.items()}
        said = {
            "format": FORMAT,
            "resources": {"embedding": identify_resource("embedding", settings).describe()},
            "build": {"seconds": round(seconds, 1), "rows": counts, "peak_mb": peak_mb()},
        }
        identifier = write_snapshot(warehouse, {**files, **made}, said)
    commit(warehouse, REF, snapshot=identifier, order="0", run="made", at="now")
    return said["build"]  # type: ignore[return-value]


def _make_empty(name: str) -> pa.Table:
    from kpyramid.storage.contracts import load_contracts

    return load_contracts()[name].build([])


def _add_tables(folder: Path) -> None:
    """A condensed fact for every triple, and the tables that stay empty."""
    from synthetic import write_table

    from kpyramid.storage.contracts import load_contracts, read_table

    triples = read_table(folder / "triples.parquet", load_contracts()["triples"])
    keys = triples["triple_id"].combine_chunks()
    count = len(keys)
    each = pa.ListArray.from_arrays(pa.array(np.arange(count + 1), pa.int32()), keys)
    kept = pa.array(["kept"]).take(pa.array(np.zeros(count, np.int64)))
    numbers = [f"condensed-{number:010}" for number in range(count)]
    columns = {
        "condensed_id": pa.array(numbers, pa.string()),
        **{name: triples[name] for name in ("head_id", "relation_id")},
        "standard_relation": pa.array([""] * count, pa.string()),
        **{name: triples[name] for name in ("tail_id", "literal", "qualifiers")},
        "derived_from": each,
        "how": pa.ListArray.from_arrays(pa.array(np.arange(count + 1), pa.int32()), kept),
    }
    write_table(folder, "condensed", load_contracts()["condensed"].fill(columns))
    write_table(folder, "statements", _make_empty("statements"))


def _add_vectors(folder: Path, seed: int) -> None:
    """Vectors of chunks, facts and entities, in the space of the real model."""
    from synthetic import NOUNS, TYPES, VERBS, write_table

    from kpyramid.storage.contracts import load_contracts, read_table

    def read(name: str) -> pa.Table:
        return read_table(folder / f"{name}.parquet", load_contracts()[name])

    embedder = _open_embedder()
    facts, names = read("condensed"), read("entities")["name"].to_pylist()
    wordings = read("relations")["name"].to_pylist()
    pool = embedder.embed(names[: NAMES * len(TYPES)])
    verbs, nouns = embedder.embed(VERBS), embedder.embed(NOUNS)
    verb_of, noun_of = (
        np.array([next(known.index(w) for w in words.split() if w in known) for words in wordings])
        for known in (VERBS, NOUNS)
    )
    heads, relations = (
        np.array([int(key[-10:]) for key in facts[n].to_pylist()])
        for n in ("head_id", "relation_id")
    )
    literals = facts["literal"].to_pylist()
    tails = np.array(
        [-1 if key is None else int(key[-10:]) for key in facts["tail_id"].to_pylist()]
    )
    vectors = np.empty((len(heads), pool.shape[1]), np.float32)
    chance = np.random.default_rng(seed)
    for start in range(0, len(heads), 65_536):
        part = slice(start, start + 65_536)
        said = verbs[verb_of[relations[part]]] + nouns[noun_of[relations[part]]]
        block = 0.45 * (pool[heads[part] % len(pool)] + said)
        block += 0.45 * np.where(tails[part, None] < 0, 0, pool[tails[part] % len(pool)])
        own = chance.standard_normal(block.shape, np.float32)
        block += NOISE * own / np.linalg.norm(own, axis=1, keepdims=True)
        vectors[part] = block / np.linalg.norm(block, axis=1, keepdims=True)
    texts = [
        f"{names[h]} {wordings[r]} {names[t] if t >= 0 else value}"
        for h, r, t, value in zip(heads, relations, tails, literals, strict=True)
    ]
    chunks = read("chunks")
    size = -(-len(heads) // len(chunks))
    sums = np.add.reduceat(vectors, np.arange(0, len(heads), size), axis=0)
    sums /= np.linalg.norm(sums, axis=1, keepdims=True)
    parts = [
        _table_vectors("chunks", chunks["chunk_id"], chunks["text"], sums),
        _table_vectors("condensed", facts["condensed_id"], pa.array(texts, pa.string()), vectors),
        _table_vectors(
            "entities",
            read("entities")["entity_id"],
            pa.array(names, pa.string()),
            _name_entities(pool, len(names), chance),
        ),
    ]
    write_table(folder, "vectors", pa.concat_tables(parts))


def _name_entities(
    pool: npt.NDArray[np.float32], count: int, chance: np.random.Generator
) -> npt.NDArray[np.float32]:
    """A vector for each entity: that of the name it shares in `pool`, and what is its own."""
    vectors = np.empty((count, pool.shape[1]), np.float32)
    for start in range(0, count, 65_536):
        part = np.arange(start, min(count, start + 65_536))
        own = chance.standard_normal((len(part), pool.shape[1]), np.float32)
        block = pool[part % len(pool)] + NOISE * own / np.linalg.norm(own, axis=1, keepdims=True)
        vectors[part] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return vectors


def _table_vectors(owner: str, keys: Any, texts: Any, vectors: npt.NDArray[np.float32]) -> pa.Table:
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    same = pa.array(np.zeros(len(vectors), np.int64))
    return pa.table(
        {
            "owner_table": pa.array([owner]).take(same),
            "owner_id": keys,
            "text": texts,
            "model": pa.array(["minilm-int8"]).take(same),
            "vector": flat,
        }
    )


def _open_embedder() -> Any:
    from kpyramid.embeddings.opening import open_embedder
    from kpyramid.settings import EmbedSettings
    from kpyramid.storage.identity import identify_embedding

    found = identify_embedding(EmbedSettings())
    return open_embedder(found.name, found.files)


def draw_questions(snapshot: Any, count: int, seed: int) -> Iterator[str]:
    """Questions of eight kinds in turn, about facts and names that are drawn."""
    chance = random.Random(seed)  # noqa: S311  questions, no secret
    from kpyramid.snapshot.store import Store

    index = Store(snapshot.folder)
    facts, entities = index.rows("condensed"), index.rows("entities")
    names = entities.column("name")
    kinds = {"person": 0, "organisation": 1, "place": 2}
    for number in range(count):
        fact = chance.randrange(len(facts))
        key = facts.keys[fact]
        stated = snapshot.read_fact(key)
        head, relation, tail = stated.head, stated.relation, stated.tail
        drawn = {
            word: names[4 * chance.randrange(len(names) // 4) + kind].as_py()
            for word, kind in kinds.items()
        }
        yield (
            ABOUT[number // 8 % len(ABOUT)].format(**drawn),
            f"Who {relation} {tail}?",
            f"What was it that {head} {relation}?",
            f"What do {head} and {tail} have to do with each other?",
            f"Who {relation} somebody else?",
            f"{head}",
            f"Which person {relation} Nobody {number}?",
            STRANGE[number // 8 % len(STRANGE)],
        )[number % 8]


def measure_answers(folder: Path, seed: int, asked: int) -> dict[str, Any]:
    """The times of warm answers, and the recall of the index; run in a process of its own."""
    from kpyramid.query import answer, open_snapshot, retrieve
    from kpyramid.snapshot.search import rank_exactly
    from kpyramid.snapshot.store import Store

    snapshot = open_snapshot(REF, folder)
    index = Store(snapshot.folder)
    questions = list(draw_questions(snapshot, asked + WARMING, seed + 1))
    for question in questions[:WARMING]:
        answer(question, snapshot)
    layers, seconds, busy, retrieving = [], [], [], []
    for question in questions[WARMING:]:
        started, used = time.perf_counter(), time.process_time()
        layers.append(answer(question, snapshot).layer or "none")
        seconds.append(time.perf_counter() - started)
        busy.append(time.process_time() - used)
    for question in draw_questions(snapshot, asked, seed + 2):
        started = time.perf_counter()
        retrieve(question, snapshot)
        retrieving.append(time.perf_counter() - started)
    answering = peak_mb()
    kinds = {number: seconds[(number - WARMING) % 8 :: 8] for number in range(8)}
    part = index.part("condensed")
    shared = searched = 0.0
    compared = questions[:COMPARED]
    for question in compared:
        vector = snapshot.embed(question)
        started = time.perf_counter()
        near = {row for row, _ in part.nearest(vector, NEAREST)}
        searched += time.perf_counter() - started
        shared += len(near & {row for row, _ in rank_exactly(part.matrix, vector, NEAREST)})
    return {
        "p50_ms": _percentile(seconds, 50),
        "p95_ms": _percentile(seconds, 95),
        "p99_ms": _percentile(seconds, 99),
        "busy_p50_ms": _percentile(busy, 50),
        "busy_p99_ms": _percentile(busy, 99),
        "retrieve_p50_ms": _percentile(retrieving, 50),
        "retrieve_p99_ms": _percentile(retrieving, 99),
        "recall_at_10": round(shared / len(compared) / NEAREST, 4),
        "search_ms": round(searched / len(compared) * 1000, 2),
        "peak_mb": answering,
        "own_mb": _own_mb(),
        "layers": {layer: layers.count(layer) for layer in sorted(set(layers))},
        "kinds_p50_ms": {str(kind): _percentile(times, 50) for kind, times in kinds.items()},
        "search": dict(index.meta["tables"]["condensed"]),
    }


def answer_once(folder: Path, seed: int) -> dict[str, Any]:
    """One answer of a fresh process, with the time of each part."""
    started = time.perf_counter()
    from kpyramid.query import answer, open_snapshot

    imported = time.perf_counter()
    snapshot = open_snapshot(REF, folder)
    (question,) = list(draw_questions(snapshot, 8 + seed, seed))[-1:]
    opened = time.perf_counter()
    found = answer(question, snapshot)
    return {
        "import": round(imported - started, 3),
        "open": round(opened - imported, 3),
        "answer": round(time.perf_counter() - opened, 3),
        "layer": found.layer,
    }


def _percentile(seconds: list[float], percent: int) -> float:
    return round(float(np.percentile(seconds, percent)) * 1000, 1)


def peak_mb() -> float:
    """The largest resident memory so far; pages of mapped files count as long as they are kept."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def _own_mb() -> float | None:
    """Resident memory that is no file's, where the system says so."""
    size = read_size("self", "RssAnon")
    return round(size / 1024, 1) if size else None


def _call(*arguments: str) -> tuple[float, dict[str, Any]]:
    """What this script prints as a process of its own, and the time from start to end."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, "--child", *arguments],
        env={key: value for key, value in os.environ.items() if key != UNCOMPILED},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        refuse(f"{' '.join(arguments)} ended with status {done.returncode}, see above")
    found: dict[str, Any] = json.loads(done.stdout)
    return time.perf_counter() - started, found


def _be_child(task: str, folder: str, number: str, *rest: str) -> None:
    place = Path(folder)
    if task == "make":
        print(json.dumps(make_warehouse(place, int(rest[0]), int(number))))
    elif task == "answers":
        print(json.dumps(measure_answers(place, int(number), int(rest[0]))))
    else:
        print(json.dumps(answer_once(place, int(number))))


def measure(folder: Path, triples: int, seed: int, asked: int) -> dict[str, Any]:
    """All figures for a size."""
    from kpyramid.query import open_snapshot

    if not (folder / "refs").is_dir():
        _call("make", str(folder), str(seed), str(triples))
    snapshot = open_snapshot(REF, folder)
    build: Any = snapshot.manifest["build"]
    report("answers of a warm process")
    _, found = _call("answers", str(folder), str(seed), str(asked))
    report("first answers of fresh processes")
    first = [_call("once", str(folder), str(at)) for at in range(FRESH)]
    size = sum(path.stat().st_size for path in (snapshot.folder / "index").iterdir())
    return {
        "triples": build["rows"]["triples"],
        "instances": build["rows"]["instances"],
        "p50_ms": found.pop("p50_ms"),
        "p99_ms": found.pop("p99_ms"),
        "busy_p50_ms": found.pop("busy_p50_ms"),
        "busy_p99_ms": found.pop("busy_p99_ms"),
        "retrieve_p50_ms": found.pop("retrieve_p50_ms"),
        "retrieve_p99_ms": found.pop("retrieve_p99_ms"),
        "recall_at_10": found.pop("recall_at_10"),
        "cold_seconds": round(statistics.median(seconds for seconds, _ in first), 2),
        "worst_cold_seconds": round(max(seconds for seconds, _ in first), 2),
        "peak_mb": found.pop("peak_mb"),
        "index_mb": round(size / 2**20, 1),
        "build_seconds": build["seconds"],
        "build_peak_mb": build["peak_mb"],
        **found,
        "first": [{"seconds": round(seconds, 2), **parts} for seconds, parts in first],
    }


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        _be_child(*sys.argv[2:])
        return
    parser = make_parser(__doc__, "draws facts and questions")
    parser.add_argument("--triples", type=name_count(1000), default=100_000, help="of the graph")
    parser.add_argument("--keep", type=Path, help="a folder for the warehouse that is measured")
    parser.add_argument("--limit", type=name_count(8), default=ASKED, help="questions asked")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = options.keep or Path(folder)
        print_figures(measure(place, options.triples, options.seed, options.limit), options.json)


if __name__ == "__main__":
    main()
