"""Random triples of a pyramid beside their sentences, to be judged by a reader.

Draws `--limit` triples of the built graph with `--seed` and prints them as a Markdown table, each
with the sentence that its claim rests on; `triples.md` is such a table with a reader's verdicts.
`--json` prints one object with the rows.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from options import print_figures, read_options

import kpyramid
from kpyramid.documents.sentences import split_sentences

DEMO = Path(__file__).parent.parent / "examples" / "demo" / "corpus"
DRAWN = 50


def draw_triples(data: Path, limit: int, seed: int) -> list[dict[str, str]]:
    """Rows of head, relation, tail and sentence, from a pyramid built for the purpose."""
    with tempfile.TemporaryDirectory() as warehouse:
        command = [sys.executable, "-m", "kpyramid", "build", str(data), "--json", "-q"]
        subprocess.run([*command, "--warehouse", warehouse], check=True, stdout=subprocess.DEVNULL)
        snapshot = kpyramid.open_snapshot("main", Path(warehouse))
        tables = {
            name: {row[key]: row for row in snapshot.table(name).to_pylist()}
            for name, key in (
                ("documents", "document_id"),
                ("chunks", "chunk_id"),
                ("claims", "claim_id"),
                ("raw_triples", "raw_triple_id"),
                ("entities", "entity_id"),
                ("relations", "relation_id"),
                ("triples", "triple_id"),
            )
        }
    keys = sorted(tables["triples"])
    chosen = np.random.default_rng(seed).choice(keys, min(limit, len(keys)), replace=False).tolist()
    rows = []
    for triple in (tables["triples"][key] for key in chosen):
        raw = tables["raw_triples"][triple["raw_triple_ids"][0]]
        chunk = tables["chunks"][raw["chunk_id"]]
        text = tables["documents"][chunk["document_id"]]["text"]
        at = max(span["start"] for span in tables["claims"][raw["claim_id"]]["spans"])
        (sentence,) = (s for s in split_sentences(text) if s.start <= at < s.end)
        tail = triple["tail_id"]
        rows.append(
            {
                "head": tables["entities"][triple["head_id"]]["name"],
                "relation": tables["relations"][triple["relation_id"]]["name"],
                "tail": tables["entities"][tail]["name"] if tail else triple["literal"],
                "confidence": f"{triple['confidence']:.2f}",
                "sentence": " ".join(text[sentence.start : sentence.end].split()),
            }
        )
    return rows


def main() -> None:
    options = read_options(
        __doc__, data=DEMO, limit=f"how many to draw, {DRAWN} by default", seed="of the draw"
    )
    rows = draw_triples(options.data, options.limit or DRAWN, options.seed)
    if options.json:
        print_figures({"triples": rows}, as_json=True)
        return
    print("| | head | relation | tail | confidence | sentence |\n|---|---|---|---|---|---|")
    for number, row in enumerate(rows, 1):
        cells = (value.replace("|", "\\|") for value in row.values())
        print(f"| {number} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
