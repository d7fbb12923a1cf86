"""What a text does not state as a fact is marked, and does not reach the graph.

`golden/stance.jsonl` has invented sentences, most of which deny, suppose, hedge or tell something,
each with patterns of head, relation and tail: what is published must match every one of `must` and
none of `not`. Those of the half `second` were written after the rules for the others.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kpyramid.documents.words import MODALS
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.types import Fact, Titled
from kpyramid.settings import ExtractSettings
from kpyramid.storage.layout import Warehouse
from tests.corpora import build_corpus, read_snapshot
from tests.rows import each_row, read_bodies, read_rows

NOT_STATED = read_bodies("stance.not_stated")
UNTRUE = {*read_rows("stance.untrue")}
"""Heads and tails that only the sentences above join."""


@pytest.mark.usefixtures("quick_models")
def test_what_is_not_stated_stays_out_of_the_graph(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    for name, text in NOT_STATED.items():
        (tmp_path / "corpus" / f"{name}.txt").write_text(text, "utf-8")
    (tmp_path / "corpus" / "true.txt").write_text("John Rennie designed the Harlow Bridge.")
    warehouse = Warehouse(tmp_path / "w")

    tables = read_snapshot(warehouse, build_corpus(tmp_path / "corpus", warehouse).snapshot)

    names = {row["entity_id"]: row["name"].lower() for row in tables["entities"].to_pylist()}
    joined = {
        (names[row["head_id"]], names.get(row["tail_id"], ""))
        for row in tables["triples"].to_pylist()
        if not row["negated"]
    }
    assert ("john rennie", "harlow bridge") in joined
    assert not joined & UNTRUE
    reasons = set(tables["rejects"]["reason"].to_pylist())
    assert {"not_asserted", "attributed"} <= reasons
    assert any(tables["triples"]["negated"].to_pylist())


ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden" / "stance.jsonl").read_text("utf-8").splitlines()
]
KNOWN = {"The takeover of Pine Media by Quill Holdings collapsed before regulators approved it."}
"""Sentences that are still read as their contrary: what comes after "before" may not have come."""


def test_no_sentence_is_published_as_its_contrary() -> None:
    extractor = DependencyExtractor(ExtractSettings().parser)
    found = extractor.extract_all(Titled(row["text"]) for row in ROWS)
    contrary, present = set(), []
    for row, extraction in zip(ROWS, found, strict=True):
        facts = [*filter(is_published, extraction.facts)]
        if any(fits(pattern, fact) for pattern in row.get("not", ()) for fact in facts):
            contrary.add(row["text"])
        present += [any(fits(p, fact) for fact in facts) for p in row.get("must", ())]

    assert len(ROWS) > 200 and contrary <= KNOWN
    assert sum(present) >= 0.9 * len(present)


def is_published(fact: Fact) -> bool:
    modal = fact.relation.partition(" ")[0] if fact.modality in MODALS else None
    return not fact.negated and fact.attribution is None and fact.modality == modal


def fits(pattern: list[str], fact: Fact) -> bool:
    words = (fact.head, fact.relation, fact.tail)
    return all(re.search(*pair, re.IGNORECASE) for pair in zip(pattern, words, strict=True))


def test_quotations_end_with_their_paragraph_and_need_a_speaker() -> None:
    """A mark that is never closed, inches, terms and doubled marks make no speech."""
    extractor = DependencyExtractor(ExtractSettings().parser)
    text = (
        'Ida said: "Lund owns Graz.\n\nOrm Bank owns three mines. The pipe is 12" wide.\n\n'
        'Boats called ""skiffs"" carry oil. The slogan "Zim adds life" helped Zim Ltd.\n\n'
        '"Kem sells tea," wrote Jan Roth. "Kem owns Lipa." Jan Roth lives in Bern.'
    )

    found = extractor.extract(text)

    told = {(f.head, f.tail): f.attribution for f in found.facts}
    assert told["Orm Bank", "three mines"] is None and told["Jan Roth", "Bern"] is None
    assert told["Kem", "tea"] == told["Kem", "Lipa"] == "Jan Roth"


@each_row("text, is_tale", "stance.stories_and_reports")
def test_a_report_that_quotes_questions_is_no_made_story(text: str, is_tale: bool) -> None:
    facts = DependencyExtractor(ExtractSettings().parser).extract(text).facts
    assert facts and {fact.modality == "told" for fact in facts if not fact.attribution} == {
        is_tale
    }
