"""What a serving process loads: nothing that only a build needs, whichever way it answers."""

import json
from pathlib import Path

import pytest

from kpyramid.query import STRATEGIES
from tests.processes import run_python
from tests.tiny_pyramid import open_tiny

pytestmark = [
    pytest.mark.slow,  # each starts a process
    pytest.mark.usefixtures("passing_gates"),
]

HEAVY = set("openai spacy sklearn owlready2 airflow kmedoids duckdb torch thinc".split())
PROGRAM = """
import json, sys
import kpyramid.query as query
loaded = {"import": sorted(set(sys.modules))}
snapshot = query.open_snapshot("main", sys.argv[1])
questions = ("Where was Ada Lovelace born?", "Which path did pilgrims take?", "Who is Zog?")
for strategy in sys.argv[2:]:
    for question in questions:
        query.answer(question, snapshot, strategy)
    loaded[strategy] = sorted(set(sys.modules))
print(json.dumps({step: [m for m in part if "." not in m] for step, part in loaded.items()}))
"""


@pytest.fixture(scope="module")
def warehouse() -> Path:
    return open_tiny().folder.parent.parent


def test_neither_import_nor_answer_loads_what_builds_need(warehouse: Path) -> None:
    """One strategy after the other: what one loads, those after it have too."""
    strategies = sorted(set(STRATEGIES) - {"direct", "tools"})
    printed = run_python(PROGRAM, warehouse, *strategies)
    imported, *answered = (set(part) for part in json.loads(printed).values())
    assert not imported & {*HEAVY, "faiss", "onnxruntime", "bm25s", "scipy"}
    for strategy, loaded in zip(strategies, answered, strict=True):
        assert not loaded & {*HEAVY, "faiss", "bm25s"}, strategy
        assert "onnxruntime" in loaded  # the program did answer


BY_MODEL = """
import json, sys
from kpyramid import Backends, answer, open_snapshot, retrieve

class Asker:
    def ask(self, request, parse):
        reply = {"says": True, "cites": [1], "answer": "London", "choices": [], "confidence": 0.9}
        return parse(json.dumps(reply))

snapshot = open_snapshot("main", sys.argv[1])
assert retrieve("Where was Ada Lovelace born?", snapshot).facts
backends = Backends(reader="llm", asker=Asker())
found = answer("Where was Ada Lovelace born?", snapshot, "naive", backends=backends)
assert found.text == "London", found
files = {n: m.__file__ for n, m in sys.modules.items() if n.startswith("kpyramid") and m.__file__}
print(json.dumps([sorted(files), sum(len(open(path).readlines()) for path in files.values())]))
"""
MOST_LINES = 10_700
"""Lines of the package in a process that retrieves and lets a model read."""


def test_a_model_that_reads_passages_loads_no_other_strategy(warehouse: Path) -> None:
    loaded, lines = json.loads(run_python(BY_MODEL, warehouse))
    assert not [m for m in loaded if m.startswith(("kpyramid.graph", "kpyramid.extraction"))]
    assert "kpyramid.query.baselines" in loaded and "kpyramid.query.polyrag" not in loaded
    assert lines <= MOST_LINES
