"""Every change of a stage's code is a decision about its version."""

import json

from tests.imports import ETL
from tests.stage_versions import DATA, RECORD, describe_versions


def test_code_is_the_code_that_the_version_stands_for() -> None:
    recorded = json.loads(RECORD.read_text("utf-8"))
    changed = [name for name, now in describe_versions().items() if recorded.get(name) != now]
    assert not changed, (
        f"the code behind {changed} is not what their versions were recorded with. "
        "Where it now returns something else for some input, raise the version in "
        "pipeline/stage.py (stored results would be used again otherwise). Then run "
        "`make versions`."
    )


def test_data_that_packages_carry_are_watched() -> None:
    watched = {
        path.name for pattern in DATA for path in (ETL / "kpyramid/graph/synonyms").glob(pattern)
    }

    assert {"lexicon.tsv", "extract.txt.gz"} <= watched
