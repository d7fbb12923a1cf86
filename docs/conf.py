"""How Sphinx makes a static site of the manual: `make site`, offline."""

from typing import Any

project = "Knowledge Pyramid"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = [
    *(
        "*.md",
        "docs/*.md",
        "docs/decisions/*.md",
        "*/README.md",
        "benchmarks/*.md",
        "benchmarks/*/*.md",
    ),
    *("examples/*/README.md", "examples/*/ATTRIBUTION.md"),
]
exclude_patterns = ["benchmarks/conflicts"]
suppress_warnings = ["toc.not_included"]
html_use_index = False
myst_heading_anchors = 4
html_theme = "alabaster"
html_theme_options = {"description": "Corpus to checked knowledge pyramid", "page_width": "70rem"}
html_copy_source = False
_CONTENTS = """
```{toctree}
:hidden:
:glob:

docs/tutorial
docs/*
dags/README
ontology/README
DECISIONS
CHANGELOG
CONTRIBUTING
SECURITY
```
"""


def setup(app: Any) -> None:
    """Adds the list of pages to the first one, whose text GitHub shows as well."""

    def add(_: Any, name: str, source: list[str]) -> None:
        source[0] += _CONTENTS if name == root_doc else ""

    app.connect("source-read", add)
