"""The main job on 200 passages of Wikipedia: build, publish, verify, ask. Run by `make demo`."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SHOWN = 3
QUESTIONS = (
    ("When was Franc Rode born?", "a value that the ontology holds"),
    ("What is the elevation of Greencreek?", "a fact that only the graph holds"),
    ("When was The Sensory Order published?", "left to the text"),
)


def run(*arguments: str) -> None:
    """Shows a command as a reader would type it, runs it, and stops the demo if it fails."""
    shown = " ".join(f'"{a}"' if " " in a else a for a in arguments)
    print(f"\n$ kpyramid {shown}", flush=True)
    done = subprocess.run([sys.executable, "-m", "kpyramid", *arguments], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def tell_account(report: dict[str, Any]) -> Iterator[str]:
    """What was proposed for the ontology and what was merged, in a few lines."""
    completion, condensation = report["completion"], report["condensation"]
    counts = completion["counts"]
    yield "   Proposed: " + ", ".join(f"{number} {state}" for state, number in counts.items())
    for state in ("accepted", "open"):
        for row in completion["proposals"][state][:SHOWN]:
            ends = (
                f"{row['domain']} -> {row['range']}" if row["range"] else f"under {row['domain']}"
            )
            yield f"     {state}: {row['label']} ({ends}), {row['support']} facts"
    yield f"   Merged: {condensation['triples']} triples are {condensation['condensed']} facts"
    for merge in condensation["merges"][:SHOWN]:
        said = " = ".join(" | ".join(part["fact"]) for part in merge["from"])
        yield f"     {said}"
    yield f"   Contradictions reported: {condensation['contradictions']}"


def find_head(warehouse: str) -> tuple[Path, Path]:
    """Folders of the snapshot that `main` points to, and of its run."""
    root = Path(warehouse)
    head = sorted((root / "refs" / "main").glob("[0-9]*.json"))[-1]
    entry = json.loads(head.read_text())
    return root / "snapshots" / entry["snapshot"], root / "runs" / entry["run"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warehouse", default="warehouse/data", help="where the pyramid goes")
    warehouse = parser.parse_args().warehouse
    corpus = HERE / "corpus"
    started = time.monotonic()
    print("1. Build a pyramid from 200 passages: no key, no network, no GPU. A minute or so.")
    run("build", str(corpus), "--warehouse", warehouse)
    built = time.monotonic() - started
    print("\n2. Verify it: every byte, contract, reference and span.")
    run("verify", "--warehouse", warehouse)
    snapshot, run_folder = find_head(warehouse)
    report = json.loads((run_folder / "report.json").read_text())
    print("\n3. See what the ontology lacked and what was merged.")
    print("\n".join(tell_account(report)))
    print(f"   With sentences and a figure of both layers: {run_folder / 'report.html'}")
    print("   To decide on a proposal: kpyramid proposals --help")
    print("\n4. Ask it. Each answer names the layer that gave it and the characters it rests on.")
    for question, layer in QUESTIONS:
        print(f"\n   {question} ({layer})")
        run("ask", question, "--warehouse", warehouse)
    print(f"""
Where things lie
  {snapshot}/tables/    Parquet: documents > chunks > claims > raw_triples > triples > condensed
  {snapshot}/ontology/  schema.ttl and instances.nt
  {run_folder / "report.html"}  what was made, refused, proposed and merged, and why

The build took {built:.0f} s, all of it {time.monotonic() - started:.0f} s.
Run it again: nothing is computed twice.
Your own text: kpyramid build FOLDER, then kpyramid ask "QUESTION".""")


if __name__ == "__main__":
    main()
