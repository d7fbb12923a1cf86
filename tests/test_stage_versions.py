"""Every change of a stage's code is a decision about its version."""

import json

import pytest

from tests.stage_versions import RECORD, describe_versions


@pytest.mark.parametrize("name", sorted(describe_versions()))
def test_code_is_the_code_that_the_version_stands_for(name: str) -> None:
    now = describe_versions()[name]
    recorded = json.loads(RECORD.read_text("utf-8")).get(name)
    assert recorded == now, (
        f"the code behind {name!r} is not what its version {now['version']} was recorded with. "
        "If it now returns something else for some input, raise the version in pipeline.py "
        "(stored results would be used again otherwise). Then run `make versions`."
    )
