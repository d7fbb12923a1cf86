"""The measurement of growth: made graphs keep the contracts, exponents and limits are right."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kpyramid.storage.contracts import load_contracts, read_table

ROOT = Path(__file__).parent.parent
FACTS = 2000


@pytest.fixture(scope="module")
def growth() -> ModuleType:
    return __import__("growth")


@pytest.fixture(scope="module")
def synthetic(growth: ModuleType) -> ModuleType:
    return __import__("synthetic")


@pytest.fixture(scope="module")
def tables(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("graph")
    synthetic.write_graph(folder, FACTS, 0)
    return {
        path.stem: read_table(path, load_contracts()[path.stem])
        for path in sorted(folder.glob("*.parquet"))
    }
