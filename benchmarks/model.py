"""What the model's path takes and makes: a build from recorded replies of a strong model.

`calls`, `prompt_tokens`, `reply_tokens` are those of extraction and instances, the probe apart, as
the server counts them; `reply_share` is the reply's tokens over the text's. `refused_share`: rows
of the replies that the checks refused. `kinds`: memberships that the same replies gave, with none
asked for. `plan_calls`, `plan_tokens`, `plan_dollars`: what the plan foresaw over what was spent,
at gpt-4o-mini's list price; before any experience, as on a user's first day.

`second_...` and `check_...`: the passages that are `reviewed` once more, with a second look and a
fifth of the facts checked: calls, tokens, the facts gained, what the model says of those drawn.
Verdicts are recorded by fact; what is drawn and not recorded stays without one (`check_unknown`).
"""

import json
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from options import print_figures, read_options

from kpyramid.pipeline.build import build
from kpyramid.pipeline.plan import plan_build
from kpyramid.settings import CascadeSettings, LLMSettings, ModelPrice, Settings
from kpyramid.storage.layout import open_warehouse

ROOT = Path(__file__).resolve().parent.parent
PRICE = ModelPrice(input=0.15, output=0.60)


DATA = Path(__file__).with_name("model")


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


LISTED = re.compile(r"^F(\d+)\| (.*) \| [\d, ]+$", re.MULTILINE)
SHARE = 0.2


class Recorded:
    """What the model replied: to windows by their last words, to facts by their words."""

    def __init__(self, data: Path, passages: list[dict[str, Any]]) -> None:
        replies = {row["id"]: row["reply"] for row in read_lines(data / "replies.jsonl")}
        self.stated = sum(len(json.loads(replies[row["id"]])["facts"]) for row in passages)
        self.windows = {" ".join(r["text"].split())[-60:]: replies[r["id"]] for r in passages}
        known = data / "reviews.jsonl"
        reviews = read_lines(known) if known.exists() else []
        self.second = {r["title"]: row["reply"] for r in passages for row in reviews
                       if row["id"] == r["id"] and row["task"] == "second"}  # fmt: skip
        self.verdicts = {row["fact"]: row for row in reviews if row["task"] == "check"}
        self.unknown = 0

    def answer(self, body: dict[str, Any]) -> str:
        from tests.loopback import answer_by_schema

        task = body["response_format"]["json_schema"]["name"]
        lines = body["messages"][-1]["content"].splitlines()[1:-1]
        if task == "merged":
            words = (line.partition("| ")[2] for line in lines if line.split("|")[0].isdigit())
            return str(self.windows[" ".join(words)[-60:]])
        if task == "second":
            title = lines[0].removeprefix("Title: ")
            return str(self.second.get(title, '{"entities":[],"facts":[]}'))
        if task == "check":
            asked = LISTED.findall("\n".join(lines))
            known = [(int(n), self.verdicts[fact]) for n, fact in asked if fact in self.verdicts]
            self.unknown += len(asked) - len(known)
            rows = [[number, row["evidence"], row["verdict"]] for number, row in known]
            return json.dumps({"verdicts": rows}, ensure_ascii=False, separators=(",", ":"))
        return answer_by_schema(body)


def measure(data: Path, limit: int | None) -> dict[str, float]:
    sys.path.insert(0, str(ROOT))  # tests/ is no part of the package
    from tests.corpora import read_snapshot
    from tests.loopback import serve
    from tests.loopback_replies import count_tokens

    passages = read_lines(data / "passages.jsonl")[:limit]
    recorded = Recorded(data, passages)
    with tempfile.TemporaryDirectory() as folder, serve(recorded.answer) as server:
        settings = Settings(
            cascade=CascadeSettings(paraphrase="llm", entities="llm", relations="llm"),
            llm=LLMSettings(
                provider="openai", model="m", base_url=server.base_url, prices={"m": PRICE}
            ),
        )
        warehouse = open_warehouse(str(Path(folder) / "warehouse"))

        def take(name: str, rows: list[dict[str, Any]], settings: Settings) -> dict[str, Any]:
            """A build of some passages: its plan, what was asked in it, its tables and report."""
            corpus = write_corpus(Path(folder) / name, rows)
            plan = plan_build(corpus, warehouse, settings, ref=name)
            before = len(server.log)
            outcome = build(corpus, warehouse, settings, ref=name)
            return {
                "plan": next(row for row in plan if row["stage"] == "extract"),
                "log": server.log[before:],
                "tables": read_snapshot(warehouse, outcome.snapshot),
                "checked": outcome.report["checked"] or {},
            }

        first = take("first", passages, settings)
        again = [row for row in passages if row.get("reviewed")]
        plain = take("plain", again, settings) if again else first
        review = replace(settings.cascade, glean=1, check_share=SHARE)
        second = take("second", again, replace(settings, cascade=review)) if again else first
    prompt, reply = count_asked(first["log"], "merged")[1:]
    text = sum(count_tokens(row["text"]) for row in passages)
    facts = first["tables"]["raw_triples"].num_rows
    kinds = [r for r in first["tables"]["instances"].to_pylist() if r["property_iri"] is None]
    dollars = (prompt * PRICE.input + reply * PRICE.output) / 1e6
    plan = first["plan"]
    calls = count_asked(first["log"], "merged")[0]
    figures: dict[str, float] = {
        "passages": len(passages),
        "calls": calls,
        "prompt_tokens": prompt,
        "reply_tokens": reply,
        "reply_share": round(reply / text, 3),
        "facts": facts,
        "refused_share": round(1 - facts / recorded.stated, 4),
        "kinds": sum(1 for row in kinds if row["producer"] == "m"),
        "plan_calls": round(float(str(plan["calls"])) / calls, 3),
        "plan_tokens": round(plan["tokens"] / (prompt + reply), 3),
        "plan_dollars": round(plan["cost"]["expected"] / dollars, 3),
    }
    if again:
        text = sum(count_tokens(row["text"]) for row in again)
        kept = second["tables"]["raw_triples"].num_rows + second["checked"].get("not_stated", 0)
        figures["second_facts"] = kept - plain["tables"]["raw_triples"].num_rows
        for name in ("second", "check"):
            asked, prompt, reply = count_asked(second["log"], name)
            figures[f"{name}_calls"] = asked
            figures[f"{name}_prompt_tokens"] = prompt
            figures[f"{name}_reply_share"] = round(reply / text, 3)
        for name in ("checked", "precision", "low", "high", "not_stated"):
            figures[f"check_{name}".replace("check_checked", "checked")] = second["checked"][name]
        figures["check_unknown"] = recorded.unknown
    return figures


def count_asked(log: list[Any], name: str) -> tuple[int, int, int]:
    """Calls of a task, their prompts' tokens and their replies'."""
    asked = [entry for entry in log if entry["schema"] == name]
    prompt = sum(entry["prompt_tokens"] for entry in asked)
    return len(asked), prompt, sum(entry["completion_tokens"] for entry in asked)


def write_corpus(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    lines = [json.dumps({name: row[name] for name in ("id", "title", "text")}) for row in rows]
    (folder / "passages.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return folder


def main() -> None:
    options = read_options(__doc__, limit="the first N passages only", data=DATA)
    print_figures(measure(options.data, options.limit), options.json)


if __name__ == "__main__":
    main()
