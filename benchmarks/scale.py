"""What a build of many documents costs: seconds and memory of each stage, and where they lead.

No published system is reproduced. The documents are made of all texts below the data folder, which
is that of all sets: fields `text` of JSON, with their `title`, contexts of questions, and sentences
by threes, cut at sentences to some 80 words, each text once, in an order that `--seed` draws.
Each stage runs by itself (`kpyramid stage`, default settings, no model, two processes) on the first
tenth of the documents and then on all of them, which finds rows of the tenth in its caches.
`seconds` are processor seconds of all its processes, with those of the tenth where its rows were
found; `peak_mb` is the largest resident size of the stage's own process; `own_mb` is that of it and
of all that it started, without pages of files, which the system takes back.

`at_100000` are lines: hours of two busy processors by the seconds of a document, and each stage's
`own_mb` by what it grows between both sizes. They are argued, not measured, and say nothing of a
few hundred documents.

A night follows in which one document in a hundred has a sentence more: `edited_share_of_full` is
its processor seconds over those of all documents from nothing.

`--keep FOLDER` keeps the documents and the warehouse there; stages that it holds are not run again.
"""

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from options import explain_faults, print_figures, read_options, read_size, refuse, report

FORM = "all sets, with texts in *.json and *.jsonl"
ROWWISE = {"chunk", "extract", "embed"}
"""Stages that keep what they make of a row."""
STAGES = "ingest chunk extract resolve embed induce complete condense publish".split()
DEMO = Path(__file__).parent.parent / "examples" / "demo" / "corpus"
DOCUMENTS = 1_000
SHARE = 10
GOAL = 100_000
EDITED = 100
"""Of so many documents one is edited for the last night."""
WORDS = 80
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NOT_TEXTS = ("baselines", "openie", "published_kgs", "questions")
"""Parts of names of files that hold what others made of texts, or questions on them."""


def list_texts(data: Path) -> Iterator[tuple[str, str]]:
    """Title and text of all that the sets below a folder hold, file by file."""
    for path in sorted([*data.rglob("*.json"), *data.rglob("*.jsonl")]):
        if any(part in str(path.relative_to(data)) for part in _NOT_TEXTS):
            continue
        text = path.read_text("utf-8")
        rows = map(json.loads, text.splitlines()) if path.suffix == ".jsonl" else [json.loads(text)]
        sentences = []
        for row in walk(rows):
            if isinstance(row.get("text"), str):
                yield str(row.get("title") or ""), row["text"]
            elif isinstance(row.get("CONTEXTS"), list):
                yield "", " ".join(row["CONTEXTS"])
            elif isinstance(row.get("sent"), str):
                sentences.append(row["sent"])
        yield from (("", " ".join(sentences[at : at + 3])) for at in range(0, len(sentences), 3))


def walk(found: Any) -> Iterator[dict[str, Any]]:
    """The objects of JSON that have a text, and none within them."""
    if isinstance(found, dict):
        if {"text", "CONTEXTS", "sent"} & found.keys():
            yield found
        else:
            yield from walk(found.values())
    elif not isinstance(found, str | int | float | None):
        for part in found:
            yield from walk(part)


def cut(text: str) -> Iterator[str]:
    """Pieces of whole sentences, of `WORDS` words or a sentence more."""
    piece: list[str] = []
    for sentence in _SENTENCE.split(" ".join(text.split())):
        piece.append(sentence)
        if sum(part.count(" ") + 1 for part in piece) >= WORDS:
            yield " ".join(piece)
            piece = []
    if piece:
        yield " ".join(piece)


def make_documents(data: Path, count: int | None, seed: int) -> list[dict[str, str]]:
    """That many documents, in a drawn order; `DOCUMENTS` of them if there are so many."""
    made = {piece: title for title, text in list_texts(data) for piece in cut(text) if piece}
    count = count or min(DOCUMENTS, len(made))
    if not SHARE <= count <= len(made):
        refuse(f"{data} gives {len(made)} documents: give more, or a --limit of at most so many")
    drawn = random.Random(seed).sample(sorted(made), count)  # noqa: S311 - draws, guards nothing
    return [{"id": f"{at:06d}", "title": made[text], "text": text} for at, text in enumerate(drawn)]


def run_stage(stage: str, run: str, corpus: Path, warehouse: Path) -> dict[str, float]:
    """The figures of one stage of a run."""
    command = [sys.executable, "-m", "kpyramid", "stage", stage, "--run", run, "--json"]
    command += ["-q", "--warehouse", str(warehouse), "--workers", "2"]
    command += ["--corpus", str(corpus), "--allow-shrink"] if stage == "ingest" else []
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most: dict[str, int] = {}
    thread = threading.Thread(target=_sample, args=(process, most))
    thread.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    thread.join()
    if process.returncode:
        refuse(f"stage {stage} of {run} ended with status {process.returncode}, see above")
    return {
        "wall_seconds": round(time.monotonic() - started, 1),
        "seconds": round(used.ru_utime + used.ru_stime, 1),
        **{name: round(kilobytes / 1024, 1) for name, kilobytes in sorted(most.items())},
    }


def _sample(process: "subprocess.Popen[bytes]", most: dict[str, int]) -> None:
    """Notes the largest resident sizes in kB, of the process and of all that it started."""
    while process.returncode is None:
        pids = list_family(process.pid)
        found = {
            "peak_mb": read_size(process.pid, "VmHWM"),
            "own_mb": sum(read_size(pid, "RssAnon") for pid in pids),
        }
        for name, size in found.items():
            most[name] = max(most.get(name, 0), size)
        time.sleep(0.05)


def list_family(pid: int) -> list[int]:
    """A process and those that it started, and they."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(one) for each in threads for one in (each / "children").read_text().split()]
    except OSError:  # it has ended
        return []
    return [pid, *(one for child in children for one in list_family(child))]


def measure(data: Path, count: int | None, seed: int, folder: Path) -> dict[str, Any]:
    """All figures, with documents, warehouse and figures so far in a folder."""
    documents = make_documents(data, count, seed)
    nights = [documents[: len(documents) // SHARE], documents, edit(documents)]
    found = [run_night(night, folder) for night in nights]
    sizes = [len(night) for night in nights[:2]]
    return summarise(found, sizes, sum(len(row["text"].split()) for row in documents))


def edit(documents: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The documents, of which each hundredth has a fact more."""
    return [
        row if at % EDITED else {**row, "text": f"{row['text']} Carl Orme wrote report {at}."}
        for at, row in enumerate(documents)
    ]


def run_night(documents: Sequence[dict[str, str]], folder: Path) -> dict[str, dict[str, float]]:
    """The figures of each stage for these documents, behind what ran in the folder before."""
    text = "".join(f"{json.dumps(row)}\n" for row in documents)
    name = f"{len(documents)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    corpus, log = folder / "documents.jsonl", folder / f"figures-{name}.json"  # ids name the file
    corpus.write_text(text, "utf-8")
    found: dict[str, dict[str, float]] = json.loads(log.read_text()) if log.exists() else {}
    for stage in STAGES:
        if stage not in found:
            report(f"{stage} of {len(documents)} documents")
            found[stage] = run_stage(stage, f"night-{name}", corpus, folder / "warehouse")
            log.write_text(json.dumps(found))
    return found


def summarise(
    found: Sequence[dict[str, dict[str, float]]], sizes: Sequence[int], words: int
) -> dict[str, Any]:
    """The figures of both sizes, the lines through them, and the share of the edited night."""
    small, large, edited = found
    for stage in ROWWISE:  # the tenth has done some already
        large[stage]["seconds"] = round(large[stage]["seconds"] + small[stage]["seconds"], 1)
    seconds = sum(figures["seconds"] for figures in large.values())
    beyond = (GOAL - sizes[1]) / (sizes[1] - sizes[0])
    own = {
        stage: round(large[stage]["own_mb"] + beyond * (large[stage]["own_mb"] - few["own_mb"]))
        for stage, few in small.items()
    }
    return {
        "documents": sizes[1],
        "words": words,
        "processor_seconds": round(seconds),
        "wall_seconds": round(
            sum(one["wall_seconds"] for part in (small, large) for one in part.values())
        ),
        "edited_share_of_full": round(
            sum(figures["seconds"] for figures in edited.values()) / seconds, 3
        ),
        "at_100000_hours": round(seconds * GOAL / sizes[1] / 2 / 3600, 2),
        "at_100000_own_mb": own,
        **{f"stages of {size}": part for size, part in zip(sizes, (small, large), strict=True)},
        "stages of the edited": edited,
    }


def main() -> None:
    bench = os.environ.get("KPYRAMID_BENCH")
    options = read_options(
        __doc__,
        data=Path(bench) if bench else DEMO,
        limit=f"the number of documents; by default {DOCUMENTS}, or all if there are fewer",
        least=SHARE * 10,
        seed="draws the documents",
        values={"--keep": "keeps documents, warehouse and figures in this folder"},
    )
    with explain_faults(options.data, FORM), tempfile.TemporaryDirectory() as name:
        folder = Path(options.keep or name)
        folder.mkdir(parents=True, exist_ok=True)
        print_figures(measure(options.data, options.limit, options.seed, folder), options.json)


if __name__ == "__main__":
    main()
