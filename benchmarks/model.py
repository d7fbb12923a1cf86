"""What the model's path takes and makes: a build from recorded replies of a strong model.

`calls`, `prompt_tokens`, `reply_tokens` are those of extraction and instances, the probe apart, as
the server counts them; `reply_share` is the reply's tokens over the text's. `refused_share`: rows
of the replies that the checks refused. `kinds`: memberships that the same replies gave, with none
asked for. `plan_calls`, `plan_tokens`, `plan_dollars`: what the plan foresaw over what was spent,
at gpt-4o-mini's list price; before any experience, as on a user's first day.
"""

import json
import sys
import tempfile
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


def measure(data: Path, limit: int | None) -> dict[str, float]:
    sys.path.insert(0, str(ROOT))  # tests/ is no part of the package
    from tests.corpora import read_snapshot
    from tests.loopback import answer_by_schema, serve
    from tests.loopback_replies import count_tokens

    passages = read_lines(data / "passages.jsonl")[:limit]
    replies = {row["id"]: row["reply"] for row in read_lines(data / "replies.jsonl")}
    by_words = {" ".join(row["text"].split())[-60:]: replies[row["id"]] for row in passages}

    def answer(body: dict[str, Any]) -> str:
        if body["response_format"]["json_schema"]["name"] != "merged":
            return answer_by_schema(body)
        lines = body["messages"][-1]["content"].splitlines()[1:-1]
        text = " ".join(line.partition("| ")[2] for line in lines if line.split("|")[0].isdigit())
        return str(by_words[text[-60:]])

    with tempfile.TemporaryDirectory() as folder, serve(answer) as server:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        rows = [{name: row[name] for name in ("id", "title", "text")} for row in passages]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (corpus / "passages.jsonl").write_text(lines, "utf-8")
        settings = Settings(
            cascade=CascadeSettings(paraphrase="llm", entities="llm", relations="llm"),
            llm=LLMSettings(
                provider="openai", model="m", base_url=server.base_url, prices={"m": PRICE}
            ),
        )
        warehouse = open_warehouse(str(Path(folder) / "warehouse"))
        plan = next(r for r in plan_build(corpus, warehouse, settings) if r["stage"] == "extract")
        outcome = build(corpus, warehouse, settings)
        asked = [entry for entry in server.log if entry["schema"] == "merged"]
        tables = read_snapshot(warehouse, outcome.snapshot)
    prompt = sum(entry["prompt_tokens"] for entry in asked)
    reply = sum(entry["completion_tokens"] for entry in asked)
    text = sum(count_tokens(row["text"]) for row in passages)
    stated = sum(len(json.loads(replies[row["id"]])["facts"]) for row in passages)
    facts = tables["raw_triples"].num_rows
    kinds = [r for r in tables["instances"].to_pylist() if r["property_iri"] is None]
    dollars = (prompt * PRICE.input + reply * PRICE.output) / 1e6
    cost: Any = plan["cost"]
    tokens: Any = plan["tokens"]
    return {
        "passages": len(passages),
        "calls": len(asked),
        "prompt_tokens": prompt,
        "reply_tokens": reply,
        "reply_share": round(reply / text, 3),
        "facts": facts,
        "refused_share": round(1 - facts / stated, 4),
        "kinds": sum(1 for row in kinds if row["producer"] == "m"),
        "plan_calls": round(float(str(plan["calls"])) / len(asked), 3),
        "plan_tokens": round(tokens / (prompt + reply), 3),
        "plan_dollars": round(cost["expected"] / dollars, 3),
    }


def main() -> None:
    options = read_options(__doc__, limit="the first N passages only", data=DATA)
    print_figures(measure(options.data, options.limit), options.json)


if __name__ == "__main__":
    main()
