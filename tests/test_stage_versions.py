"""Every change of a stage's code is a decision about its version."""

import json

from tests.stage_versions import DATA, ETL, RECORD, SHAPING, describe_versions
from tests.test_layers import STAGES, find_room, map_imports

CARRYING = {"errors", "keys", "llm", "pipeline", "settings", "storage"}
"""What stages import that shapes nothing they make, or is in their keys by itself."""


def test_code_is_the_code_that_the_version_stands_for() -> None:
    recorded = json.loads(RECORD.read_text("utf-8"))
    changed = [name for name, now in describe_versions().items() if recorded.get(name) != now]
    assert not changed, (
        f"the code behind {changed} is not what their versions were recorded with. "
        "Where it now returns something else for some input, raise the version in "
        "pipeline/stage.py (stored results would be used again otherwise). Then run "
        "`make versions`."
    )


def test_every_package_that_stages_import_is_watched() -> None:
    imported = {
        find_room(other)
        for path, others in map_imports().items()
        if path.parent == STAGES
        for other in others
    }
    assert imported - CARRYING == {name for name in SHAPING if name != "pipeline.stages"}


def test_data_that_packages_carry_are_watched() -> None:
    watched = {
        path.name for pattern in DATA for path in (ETL / "kpyramid/graph/synonyms").glob(pattern)
    }

    assert {"lexicon.tsv", "extract.txt.gz"} <= watched
