"""The package beside other tools that have a model make a graph of text: what a night costs.

No published figures are reproduced. Every tool gets the same documents, one file each, and the same
model: a server on this machine that speaks OpenAI's API, answers each tool's prompts in that tool's
own form and takes `LATENCY` seconds for it. Its rule is the same for all: names with capitals that
follow each other in a sentence are joined by the words between them, at most seven. It says nothing
of what the graphs are worth, only of what is asked, how long, and what is left of old text.

A row is a tool and a step. Steps: `first` build, `unchanged` the night after it, `edited` one
sentence of one document, `deleted` one document, `killed` (SIGKILL to a first build elsewhere after
half of its calls, or of its seconds where it makes none) and `resumed` (run again). `calls`,
`prompt_tokens` and `reply_tokens` are those of chat, probes included, as the server counts them,
`embeddings` its requests for vectors, of which this package, with a model of its own, makes none.
`seconds` are those of the whole process, `processor` those of all its processes, `peak_mb` the
largest sum of what they hold (`RssAnon`). `old_gone`: whether what only the old version, or the
deleted document, said is in neither graph nor texts (caches of replies do not count); `new_there`:
whether what the new version says is in them. `paid_twice` is the calls of both runs less those of
`first`. A tool that has no way to do a step says so in `note`.

What a step is, tool by tool: `graphrag index` over the folder as it is, with its cache; in LightRAG
`adelete_by_doc_id` of what changed or is gone, then `ainsert` of all; in nano-graphrag and
fast-graphrag `insert` of all, as they have no deletion; in cognee `update`, `forget`, `add` and
`cognify`. `title-graph` is the baseline of `passages.py`, built only: vectors and named titles.

`--envs FOLDER` holds an environment per tool, made there where it is missing from the package index
(`pip`; tens of minutes and several GB); without it this package runs alone. `--only` names tools.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from incremental import DEMO, copy_documents
from options import explain_faults, print_figures, read_options, read_size, refuse, report
from scale import list_family

from kpyramid.documents.sentences import split_sentences

ROOT = Path(__file__).resolve().parent.parent
RUNNER = Path(__file__).with_name("peers") / "run.py"
DOCUMENTS = 24
LATENCY, CONCURRENCY = 0.2, 4
MOST_SECONDS = 900
"""A step that takes longer is ended and says so."""
OLD_WORD, NEW_WORD, LOST_WORD = "Pelhamworks", "Corvanemill", "Brenholt"
OLD = f"Tamsin Orrick runs {OLD_WORD} in Dunmere."
NEW = f"Tamsin Orrick runs {NEW_WORD} in Dunmere."
LOST = f"Orla Quist founded {LOST_WORD} in Zellwick."
"""Sentences of the edited document before and after, and of the one that is deleted."""
STEPS = ("first", "unchanged", "edited", "deleted", "killed", "resumed")
COLUMNS = (
    *("calls", "prompt_tokens", "reply_tokens", "embeddings", "seconds", "processor", "peak_mb"),
    *("old_gone", "new_there", "paid_twice", "note"),
)
EDITED, DELETED = 1, 2
"""Which documents; at least three are needed."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A peer: what `pip` installs for it, and what its authors' interface cannot do, by step."""

    pins: tuple[str, ...]
    cannot: Mapping[str, str] = field(default_factory=dict)


NO_DELETION = {"deleted": "no deletion: what it said stays"}
PEERS: Mapping[str, Tool] = {
    "graphrag": Tool(("graphrag==3.3.0",)),
    "lightrag": Tool(("lightrag-hku==1.5.7", "openai==3.57.0")),
    "nano-graphrag": Tool(("nano-graphrag==0.0.8.2",), NO_DELETION),
    "fast-graphrag": Tool(("fast-graphrag==0.0.5", "sentencepiece==0.2.0"), NO_DELETION),
    "cognee": Tool(("cognee==1.6.5",)),
}
OURS = ("kpyramid+model", "kpyramid", "title-graph")


# What the model replies.

_NAME = re.compile(r"[A-Z][\w’'-]+(?: (?:(?:of|the|de) )?[A-Z][\w’'-]+)*")


def read_pairs(text: str) -> list[tuple[str, str, str, str]]:
    """Head, relation, tail and sentence by the rule."""
    rows = []
    for span in split_sentences(text):
        sentence = " ".join(text[span.start : span.end].split())
        names = list(_NAME.finditer(sentence))
        for one, other in pairwise(names):
            words = re.sub(r"[^\w ]", "", sentence[one.end() : other.start()]).split()
            if 0 < len(words) <= 7 and one[0] != other[0]:
                rows.append((one[0], " ".join(words), other[0], sentence))
    return rows


def list_names(rows: Sequence[tuple[str, str, str, str]]) -> dict[str, str]:
    """Each name with the first sentence that joins it."""
    names: dict[str, str] = {}
    for head, _, tail, sentence in rows:
        names.setdefault(head, sentence)
        names.setdefault(tail, sentence)
    return names


def answer(body: dict[str, Any]) -> str:
    """The reply to a request of whatever tool, known by words of its prompts."""
    from tests.loopback import answer_by_schema

    text = body["messages"][-1]["content"]
    asked = body.get("response_format") or {}
    schema = asked.get("json_schema") or {}
    if schema.get("name") == "merged":
        return answer_ours(text)
    role = str(body["messages"][0]["content"])
    if '"title": "KnowledgeGraph"' in role:
        return answer_cognee(text)
    if '"title": "SummarizedContent"' in role:
        return json.dumps({"summary": list_first(text), "description": ""})
    if "---Input Text---" in text:
        return answer_lightrag(_cut(text, "---Input Text---", "---Output---"))
    if "-Real Data-" in text:
        return answer_graphrag(_cut(_cut(text, "-Real Data-"), "Text:", "#####"))
    if "<<DOCUMENT_START>>" in text:
        return answer_fast(_cut(text, "**Document**:", "<<DOCUMENT_END>>"))
    if "Facts (id, description)" in text:
        return '{"grouped_facts": []}'
    if "findings" in text:
        return answer_report(text)
    if asked.get("type") == "json_object":
        if "MANY entities" in text:
            return answer_fast("")
        return json.dumps({"status": "done", "description": list_first(text)})
    if any(words in text for words in ("Based on the last extraction", "MANY entities")):
        return "<|COMPLETE|>"  # nothing was missed
    if "may have still been missed" in text:
        return "N"
    return answer_by_schema(body) if schema else list_first(text)


def _cut(text: str, start: str, end: str = "") -> str:
    """What stands behind the last `start`, up to the next `end`."""
    rest = text.rpartition(start)[2]
    return rest.partition(end)[0] if end else rest


def list_first(text: str) -> str:
    """In place of a summary: the last sentence's names, or the sentence itself."""
    last = text.strip().splitlines()[-1] if text.strip() else ""
    return ", ".join(dict.fromkeys(_NAME.findall(text)[-5:])) or last[:200]


def answer_ours(text: str) -> str:
    """Names by number, facts with the numbers of their sentences."""
    numbers: dict[str, int] = {}
    facts = []
    for number, sentence in re.findall(r"^(\d+)\| (.*)$", text, re.MULTILINE):
        for head, relation, tail, _ in read_pairs(sentence):
            ends = [numbers.setdefault(name, len(numbers) + 1) for name in (head, tail)]
            facts.append([ends[0], relation, ends[1], int(number)])
    things = [[number, name, "other: thing"] for name, number in numbers.items()]
    return json.dumps({"entities": things, "facts": facts}, ensure_ascii=False)


def answer_lightrag(text: str) -> str:
    """A line per name and per pair."""
    rows = read_pairs(text)
    lines = [f"entity<|#|>{name}<|#|>other<|#|>{said}" for name, said in list_names(rows).items()]
    lines += [
        f"relation<|#|>{h}<|#|>{t}<|#|>{said}<|#|>{sentence}" for h, said, t, sentence in rows
    ]
    return "\n".join([*lines, "<|COMPLETE|>"])


def answer_graphrag(text: str) -> str:
    """A tuple per name and per pair, as graphrag and nano-graphrag read them."""
    rows = read_pairs(text)
    lines = [f'("entity"<|>{name}<|>event<|>{said})' for name, said in list_names(rows).items()]
    lines += [f'("relationship"<|>{h}<|>{t}<|>{sentence}<|>5)' for h, _, t, sentence in rows]
    return "##\n".join(lines) + "<|COMPLETE|>"


def answer_fast(text: str) -> str:
    """A graph as JSON, as fast-graphrag reads it."""
    rows = read_pairs(text)
    entities = [{"name": n, "type": "other", "desc": said} for n, said in list_names(rows).items()]
    relations = [
        {"source": head, "target": tail, "desc": sentence, "keywords": [said]}
        for head, said, tail, sentence in rows
    ]
    graph = {"entities": entities, "relationships": relations, "other_relationships": []}
    return json.dumps(graph, ensure_ascii=False)


def answer_cognee(text: str) -> str:
    """Nodes and edges as JSON."""
    rows = read_pairs(text)
    nodes = [
        {"id": name, "name": name, "type": "Thing", "description": said}
        for name, said in list_names(rows).items()
    ]
    edges = [
        {"source_node_id": head, "target_node_id": tail, "relationship_name": said}
        for head, said, tail, _ in rows
    ]
    return json.dumps({"nodes": nodes, "edges": edges}, ensure_ascii=False)


def answer_report(text: str) -> str:
    """A report of a community: its first names."""
    names = ", ".join(dict.fromkeys(_NAME.findall(text.rpartition("Text:")[2])[:5]))
    finding = {"summary": names, "explanation": f"Facts join {names}."}
    head = {"title": names, "summary": f"It is about {names}."}
    weight = {"rating": 5.0, "rating_explanation": "It is of middling weight."}
    return json.dumps({**head, **weight, "findings": [finding] * 5})


# What a step costs.


@dataclass(slots=True)
class Place:
    """Where a tool works, and with what."""

    folder: Path
    documents: Path
    server: Any
    environment: Mapping[str, str]


def run_step(
    command: Sequence[str], place: Place, half: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """One process from start to exit, or until half of a build's calls or seconds and SIGKILL.

    Raises:
        RuntimeError: it ended with another status than 0.
    """
    before = len(place.server.log)
    out, err = place.folder / "out.txt", place.folder / "err.txt"
    started = time.monotonic()
    with out.open("w") as said, err.open("w") as complained:
        process = subprocess.Popen(
            command, stdout=said, stderr=complained, cwd=place.folder,
            env={**os.environ, **place.environment}, start_new_session=True,
        )  # fmt: skip
    most, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            family = list_family(process.pid)
            most[0] = max(most[0], sum(read_size(pid, "RssAnon") for pid in family))
            passed = time.monotonic() - started
            enough = half is not None and (
                2 * len(list_chats(place, before)) >= half["calls"]
                if half["calls"]
                else 2 * passed >= half["seconds"]
            )
            if enough or passed > MOST_SECONDS:
                os.killpg(process.pid, signal.SIGKILL)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    over.set()
    thread.join()
    place.server.wait_idle()
    lines = out.read_text("utf-8", "replace").splitlines()
    late, early = seconds > MOST_SECONDS, half is not None and process.returncode == 0
    if process.returncode and not late and half is None:
        raise RuntimeError(err.read_text("utf-8", "replace")[-3000:])
    chats = list_chats(place, before)
    return {
        "calls": len(chats),
        "prompt_tokens": sum(entry["prompt_tokens"] or 0 for entry in chats),
        "reply_tokens": sum(entry["completion_tokens"] or 0 for entry in chats),
        "embeddings": sum(e["path"] == "/embeddings" for e in place.server.log[before:]),
        "seconds": round(seconds, 2),
        "processor": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": round(most[0] / 1024),
        "note": f"ended after {MOST_SECONDS} s" if late else "was done before" if early else "",
        "last": lines[-1] if lines else "",
    }


def list_chats(place: Place, since: int) -> list[dict[str, Any]]:
    """The chat requests that were answered."""
    rows = place.server.log[since:]
    return [entry for entry in rows if entry["path"] == "/chat/completions" and entry["done"]]


# The tools.


def make_command(tool: str, job: Path, place: Place, envs: Path | None) -> list[str]:
    """What a user runs: the package's own command, or the script that drives a peer."""
    if tool.startswith("kpyramid"):
        command = [sys.executable, "-m", "kpyramid", "build", str(place.documents), "--json", "-q"]
        command += ["--warehouse", str(place.folder / "warehouse")]
        return command + (["--model", "loopback"] if tool.endswith("+model") else [])
    python = str(envs / tool / "bin" / "python") if envs and tool in PEERS else sys.executable
    return [python, str(RUNNER), tool, str(job)]


def read_held(tool: str, place: Place, last: str, words: Sequence[str]) -> list[str]:
    """Which of the words a tool's graph or texts have, read after a step."""
    if not tool.startswith("kpyramid"):
        held: list[str] = json.loads(last)["held"]
        return held
    snapshot = place.folder / "warehouse" / "snapshots" / json.loads(last)["snapshot"]
    tables = [str(pq.read_table(path).to_pylist()) for path in snapshot.rglob("*.parquet")]
    return [word for word in words if any(word in table for table in tables)]


def make_place(tool: str, name: str, files: Path, folder: Path, server: Any) -> Place:
    """A folder of a tool's own, with the documents of the first night."""
    own = folder / f"{tool}-{name}"
    own.mkdir()
    shutil.copytree(files, own / "documents")
    environment = {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_BASE": server.base_url,
        "OPENAI_API_KEY": "none",
        "KPYRAMID_LLM__CONCURRENCY": str(CONCURRENCY),
        "CONCURRENT_TASK_LIMIT": str(CONCURRENCY),
        "PYTHONPATH": os.environ.get("PYTHONPATH", "") if tool not in PEERS else "",
    }
    return Place(own, own / "documents", server, environment)


def measure_tool(
    tool: str, files: Path, folder: Path, server: Any, envs: Path | None, steps: Sequence[str]
) -> list[dict[str, Any]]:
    """A row per step."""
    rows: list[dict[str, Any]] = []
    names = sorted(path.name for path in files.iterdir())
    place = make_place(tool, "nights", files, folder, server)
    cannot = PEERS[tool].cannot if tool in PEERS else {}
    done: dict[str, dict[str, Any]] = {}
    for step in steps:
        row: dict[str, Any] = {"tool": tool, "step": step, **dict.fromkeys(COLUMNS, "")}
        rows.append(row)
        if step in cannot:
            row["note"] = cannot[step]
            continue
        changed = gone = ""
        words: list[str] = []
        half = None
        match step:
            case "edited":
                changed, words = names[EDITED], [OLD_WORD, NEW_WORD]
                edited = place.documents / changed
                edited.write_text(edited.read_text("utf-8").replace(OLD, NEW), "utf-8")
            case "deleted":
                gone, words = names[DELETED], [LOST_WORD]
                (place.documents / gone).unlink()
            case "killed":
                place = make_place(tool, "killed", files, folder, server)
                half = done["first"]
        job = {
            "folder": str(place.folder),
            "documents": str(place.documents),
            "base_url": server.base_url,
            "concurrency": CONCURRENCY,
            "changed": changed,
            "gone": gone,
            "words": words,
        }
        path = place.folder / "job.json"
        path.write_text(json.dumps(job), "utf-8")
        report(f"{tool}: {step}")
        try:
            spent = run_step(make_command(tool, path, place, envs), place, half)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            row["note"] = f"failed: {str(error).strip().splitlines()[-1][:100]}"
            if step == "first":
                break
            continue
        last = spent.pop("last")
        row.update(spent)
        if words and not spent["note"]:
            held = read_held(tool, place, last, words)
            row["old_gone"] = "no" if words[0] in held else "yes"
            row["new_there"] = ("yes" if words[1] in held else "no") if words[1:] else ""
        if step == "resumed":
            row["paid_twice"] = done["killed"]["calls"] + row["calls"] - done["first"]["calls"]
        done[step] = row
    return rows


def make_environment(tool: str, envs: Path) -> None:
    """The peer's environment, if it is not there yet."""
    python = envs / tool / "bin" / "python"
    ready = envs / tool / "ready"
    if ready.exists():
        return
    report(f"Installing {', '.join(PEERS[tool].pins)}")
    subprocess.run([sys.executable, "-m", "venv", str(envs / tool)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", *PEERS[tool].pins], check=True)
    ready.touch()


def measure(
    data: Path, limit: int | None, envs: Path | None, only: Sequence[str], steps: Sequence[str]
) -> dict[str, Any]:
    """All rows, from work in a folder that is removed again."""
    sys.path.insert(0, str(ROOT))  # tests/ is no part of the package
    from tests.loopback import serve

    tools = [tool for tool in (*OURS, *(PEERS if envs else ())) if not only or tool in only]
    for tool in tools:
        if tool in PEERS and envs:
            make_environment(tool, envs)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with explain_faults(data, "a corpus"):
            files = copy_documents(data, folder / "documents", limit or DOCUMENTS)
        if len(files) <= DELETED:
            refuse(f"{data}: at least {DELETED + 1} documents are needed")
        for at, sentence in ((EDITED, OLD), (DELETED, LOST)):
            files[at].write_text(f"{files[at].read_text('utf-8')} {sentence}", "utf-8")
        words = sum(len(path.read_text("utf-8").split()) for path in files)
        for tool in tools:
            with serve(answer, latency=LATENCY) as server:
                wanted = steps if tool != "title-graph" else steps[:1]
                rows += measure_tool(tool, folder / "documents", folder, server, envs, wanted)
    versions = {"kpyramid": version("kpyramid")}
    pins = [PEERS[tool].pins[0] for tool in tools if tool in PEERS]
    versions |= dict(pin.split("==") for pin in pins)
    return {"documents": len(files), "words": words, "versions": versions, "rows": rows}


def main() -> None:
    options = read_options(
        __doc__,
        data=DEMO,
        limit=f"the first N documents only, {DOCUMENTS} if not given",
        least=DELETED + 1,
        values={
            "--envs": "the folder of the peers' environments, made where they are missing",
            "--only": f"tools by comma, of {', '.join((*OURS, *PEERS))}",
            "--steps": f"steps by comma, of {', '.join(STEPS)}",
        },
    )
    envs = Path(options.envs).resolve() if options.envs else None
    only = options.only.split(",") if options.only else ()
    steps = options.steps.split(",") if options.steps else STEPS
    print_figures(measure(options.data, options.limit, envs, only, steps), options.json)


if __name__ == "__main__":
    main()
