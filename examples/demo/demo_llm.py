"""The demo with a language model's answers, replayed from a recording. Run by `make demo-llm`.

No key, no network, no cost: `recorded_gpt35.jsonl` holds what GPT-3.5 once found in the 200
passages, and provider `replay` answers from it. With a key, or a server of your own, the same
commands ask a live model: see the settings that the demo writes.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
SETTINGS = """\
[cascade]
mode = "merged"
paraphrase = "llm"
entities = "llm"
relations = "llm"

[llm]
provider = "replay"
model = "gpt-3.5-turbo-1106"
recording = {recording}
# A live model instead: provider = "openai", the model's name, for a server of your own its
# base_url, and the key in the variable OPENAI_API_KEY. `kpyramid plan` then shows the price.
"""


def run(*arguments: str, output: int | None = None) -> str:
    """Shows a command as a reader would type it, runs it, and stops the demo if it fails."""
    print(f"\n$ kpyramid {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "kpyramid", *arguments]
    done = subprocess.run(command, check=False, stdout=output, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""


def show_counts(built: dict[str, object]) -> None:
    """What was made, by table, and what was given up, by reason."""
    rows, rejects = built["rows"], built["rejects"]
    assert isinstance(rows, dict)
    assert isinstance(rejects, dict)
    names = ("documents", "chunks", "claims", "mentions", "raw_triples", "entities", "triples")
    print("\nMade: " + ", ".join(f"{rows.get(name, 0):,} {name}" for name in names))
    reasons: Counter[str] = Counter()
    for stage, counts in rejects.items():
        if isinstance(counts, dict):
            reasons.update(counts)
        else:
            reasons[stage] += counts
    most = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common(8))
    print(f"Given up, each with its reason: {most}")
    print(f"Calls {built['calls']}, tokens {built['tokens']}, cost {built['cost']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warehouse", default="warehouse/data/demo-llm", help="where it goes")
    warehouse = Path(parser.parse_args().warehouse)
    warehouse.mkdir(parents=True, exist_ok=True)
    settings = warehouse / "demo_llm.toml"
    recording = json.dumps(str(HERE / "recorded_gpt35.jsonl"))
    settings.write_text(SETTINGS.format(recording=recording), "utf-8")
    places = ("--warehouse", str(warehouse), "--settings", str(settings))
    started = time.monotonic()
    print("1. The plan: what a build would ask, and what it would cost.")
    run("plan", str(HERE / "corpus"), *places)
    print("\n2. Build from the recorded answers: every quotation is looked up in its passage.")
    built = json.loads(
        run("build", str(HERE / "corpus"), *places, "--json", output=subprocess.PIPE)
    )
    show_counts(built)
    print("\n3. Verify it: every byte, contract, reference and span.")
    run("verify", "--warehouse", str(warehouse))
    print("\n4. Ask it.")
    run("ask", "Who is the head of the Catholic Church?", "--warehouse", str(warehouse))
    print(f"\nAll of it took {time.monotonic() - started:.0f} s. Settings: {settings}")


if __name__ == "__main__":
    main()
