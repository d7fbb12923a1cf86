"""What two relation wordings mean of each other, against verdicts written by hand.

Pairwise precision, recall and F1 of "the same relation, in the same direction", as in entity
resolution (Menestrina et al., VLDB 2010, without transitive closure: each pair is judged alone);
`false_merges` is the share of the different pairs that are called the same. `--data` is a file
(.tsv, .csv, .jsonl, .json) or a folder of such files; a row has two wordings and a verdict, found
by the names of their fields (see `FIELDS`), or by their place where there is no heading.

Baselines in the same run: `normal_form` calls pairs the same whose lemma form is equal (the rule of
the resolve stage), `cosine` those whose vectors have a cosine of at least 0.85.
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedding import open_embedder
from options import explain_faults, print_figures, read_options

from kpyramid.documents.words import normalise_relation
from kpyramid.graph.relations import spell_skeleton
from kpyramid.graph.synonyms.comparison import Comparer

DATA = Path(__file__).parent.parent / "tests" / "relation_pairs.tsv"
FORM = "tests/relation_pairs.tsv: a row per pair, with fields such as one, other, verdict"
FIELDS = {
    "one": "one left a first phrase1 phrase_1 relation1 relation_1 wording1 wording_1 source text1 "
    "text_1 rel1 rel_1 first_wording wording_a phrase_a relation_a r1 p1 x sentence1 relation",
    "other": "other right b second phrase2 phrase_2 relation2 relation_2 wording2 wording_2 target "
    "text2 text_2 rel2 rel_2 second_wording wording_b phrase_b relation_b r2 p2 y sentence2 "
    "paraphrase",
    "verdict": "verdict label likeness same gold is_same equivalent class answer "
    "judgement judgment is_paraphrase relation_type kind score",
    "turned": "turned direction inverse inverted reversed flipped",
    "head_type": "head_type subject_type one_type type1 domain head",
    "tail_type": "tail_type object_type other_type type2 range tail",
}
"""Names of a row's fields; small letters, words joined by underscores."""
SAME = frozenset("same equivalent equal paraphrase synonym 1 1.0 true yes y t merge".split())
OTHER = frozenset(
    "different narrower broader contrary turned inverse not_same notsame unrelated distinct "
    "related equivalent_turned turned_equivalent equivalent-turned same_turned opposite antonym "
    "hypernym hyponym entails entailed sibling 0 0.0 false no n f keep not_equivalent".split()
)
TURNED = frozenset(
    "turned inverse inverted reversed reverse flipped 1 true yes y t opposite -1".split()
)
COSINE = 0.85
TYPES = frozenset(
    "PERSON ORG GPE LOC FAC DATE TIME NORP EVENT WORK_OF_ART PRODUCT LAW LANGUAGE MONEY QUANTITY "
    "CARDINAL ORDINAL PERCENT NOUN LITERAL".split()
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two wordings and what a person said of them; `verdict` in the words of the file."""

    one: str
    other: str
    verdict: str
    same: bool
    ends: tuple[str, str]


def read_pairs(data: Path) -> list[Pair]:
    """The pairs of a file or of all files in a folder, in order.

    Raises:
        ValueError: a file is of another form; the message says which and why.
    """
    endings = (".tsv", ".csv", ".txt", ".jsonl", ".json")
    paths = sorted(p for p in data.iterdir() if p.suffix in endings) if data.is_dir() else [data]
    pairs = [pair for path in paths for pair in read_file(path)]
    if not pairs:
        raise ValueError("no pair of wordings")
    return pairs


def read_file(path: Path) -> Iterator[Pair]:
    """The pairs of one file."""
    text = path.read_text("utf-8-sig")
    if path.suffix in {".jsonl", ".json"}:
        rows = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else list(map(json.loads, text.splitlines()))
        )
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError(f"{path.name}: a line is no object")
        table = [{name_field(k): str(v) for k, v in row.items()} for row in rows]
    else:
        table = read_table(text, "," if path.suffix == ".csv" else "\t")
    for number, row in enumerate(table, 1):
        yield read_pair(row, f"{path.name}, row {number}")


def read_table(text: str, separator: str) -> list[dict[str, str]]:
    """The rows of a table, under their heading or, without one, under `one other verdict`."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    rows = list(csv.reader(lines, delimiter=separator))
    if not rows:
        return []
    heading = [name_field(cell) for cell in rows[0]]
    if not all(
        find_field(dict.fromkeys(heading, ""), field) for field in ("one", "other", "verdict")
    ):
        heading = ["one", "other", "verdict", "turned", "head_type", "tail_type"]
        return [dict(zip(heading, row, strict=False)) for row in rows]
    return [dict(zip(heading, row, strict=False)) for row in rows[1:]]


def name_field(name: object) -> str:
    return str(name).strip().casefold().replace(" ", "_").replace("-", "_")


def find_field(row: Mapping[str, str], field: str) -> str | None:
    """The name under which a row has a field, or None."""
    return next((name for name in FIELDS[field].split() if name in row), None)


def read_pair(row: Mapping[str, str], place: str) -> Pair:
    """One pair.

    Raises:
        ValueError: a field is missing or the verdict is none.
    """
    found = {field: row.get(find_field(row, field) or "", "").strip() for field in FIELDS}
    for field in ("one", "other", "verdict"):
        if not found[field]:
            raise ValueError(f"{place}: no {field} (one of: {FIELDS[field]}) among {sorted(row)}")
    verdict = found["verdict"].casefold().replace(" ", "_")
    if verdict not in SAME | OTHER:
        raise ValueError(f"{place}: verdict {found['verdict']!r}; give same or different")
    turned = found["turned"].casefold() in TURNED
    head, tail = found["head_type"].upper(), found["tail_type"].upper()
    ends = (head if head in TYPES else "", tail if tail in TYPES else "")
    same = verdict in SAME and not turned
    return Pair(found["one"], found["other"], f"{verdict}{', turned' * turned}", same, ends)


def score(pairs: Sequence[Pair], says_same: Callable[[Pair], bool]) -> dict[str, float]:
    """Precision, recall and F1 of "the same", and the share of different pairs called so."""
    counts = Counter((pair.same, says_same(pair)) for pair in pairs)
    right, wrong, missed = counts[True, True], counts[False, True], counts[True, False]
    different = wrong + counts[False, False]
    return {
        "pairwise_f1": round(2 * right / max(2 * right + wrong + missed, 1), 4),
        "false_merges": round(wrong / max(different, 1), 4),
        "precision": round(right / max(right + wrong, 1), 4),
        "recall": round(right / max(right + missed, 1), 4),
    }


def measure(data: Path, limit: int | None) -> dict[str, Any]:
    """All figures."""
    with explain_faults(data, FORM):
        pairs = read_pairs(data)[:limit]
    embedder = open_embedder()
    comparer = Comparer(embedder)
    verdicts = {pair: comparer.compare(pair.one, pair.other, pair.ends) for pair in pairs}

    def compare(pair: Pair) -> bool:
        return verdicts[pair].likeness == "equivalent" and not verdicts[pair].turned

    def normalise(pair: Pair) -> bool:
        one, other = (spell_skeleton(normalise_relation(p)) for p in (pair.one, pair.other))
        return one == other

    def measure_cosine(pair: Pair) -> bool:
        rows = embedder.embed([pair.one, pair.other])
        return float(rows[0] @ rows[1]) >= COSINE

    by_verdict: dict[str, dict[str, int]] = {}
    for verdict in sorted({pair.verdict for pair in pairs}):
        of_it = [pair for pair in pairs if pair.verdict == verdict]
        by_verdict[verdict] = {"pairs": len(of_it), "called_same": sum(map(compare, of_it))}
    return {
        "pairs": len(pairs),
        "same": sum(pair.same for pair in pairs),
        **score(pairs, compare),
        "baselines": {
            "normal_form": score(pairs, normalise),
            "cosine": score(pairs, measure_cosine),
        },
        "by_verdict": by_verdict,
    }


def main() -> None:
    options = read_options(__doc__, data=DATA, limit="the first N pairs only")
    print_figures(measure(options.data, options.limit), options.json)


if __name__ == "__main__":
    main()
