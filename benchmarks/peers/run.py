"""Drives one tool through one step; run by `peers.py` with the Python of the tool's environment.

python run.py TOOL JOB.json: the job names the documents, what changed since the last step and words
to look for. The last line printed is JSON: `held`, those words that the tool's graph or texts have.
"""

import json
import sys
from pathlib import Path
from typing import Any

Job = dict[str, Any]


def read_documents(job: Job) -> dict[str, str]:
    """The text of each document by its file's name."""
    return {path.name: path.read_text("utf-8") for path in sorted(Path(job["documents"]).iterdir())}


def find_words(job: Job, *texts: str) -> list[str]:
    return [word for word in job["words"] if any(word.casefold() in t.casefold() for t in texts)]


def run_title_graph(job: Job) -> list[str]:
    """Vectors of the documents, and which names the title of which."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from embedding import open_embedder
    from making.bridges import link_titles

    texts = read_documents(job)
    embedder = open_embedder()
    for text in texts.values():
        embedder.embed([text])
    link_titles([{"title": text.partition("\n")[0], "text": text} for text in texts.values()])
    return []


RUNNERS = {"title graph": run_title_graph}


def main() -> None:
    tool, path = sys.argv[1:]
    held = RUNNERS[tool](json.loads(Path(path).read_text("utf-8")))
    print(json.dumps({"held": held}))


if __name__ == "__main__":
    main()
