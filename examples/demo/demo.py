"""The main job on 200 passages of Wikipedia: build, publish, verify, ask. Run by `make demo`."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
QUESTIONS = (
    ("When was Franc Rode born?", "a value that the ontology holds"),
    ("What is the elevation of Greencreek?", "a fact that only the graph holds"),
    ("Where did Hayek acquire his doctorates?", "left to the text"),
)


def run(*arguments: str) -> None:
    """Shows a command as a reader would type it, runs it, and stops the demo if it fails."""
    shown = " ".join(f'"{a}"' if " " in a else a for a in arguments)
    print(f"\n$ kpyramid {shown}", flush=True)
    done = subprocess.run([sys.executable, "-m", "kpyramid", *arguments], check=False)
    if done.returncode:
        sys.exit(done.returncode)


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
    print("\n3. Ask it. Each answer names the layer that gave it and the characters it rests on.")
    for question, layer in QUESTIONS:
        print(f"\n   {question} ({layer})")
        run("ask", question, "--warehouse", warehouse)
    head = sorted((Path(warehouse) / "refs" / "main").glob("[0-9]*.json"))[-1]
    entry = json.loads(head.read_text())
    snapshot = Path(warehouse) / "snapshots" / entry["snapshot"]
    report = Path(warehouse) / "runs" / entry["run"] / "report.html"
    print(f"""
Where things lie
  {snapshot}/tables/    Parquet: documents > chunks > claims > raw_triples > triples > condensed
  {snapshot}/ontology/  schema.ttl and instances.nt
  {report}  what was made, what was refused and why

The build took {built:.0f} s, all of it {time.monotonic() - started:.0f} s.
Run it again: nothing is computed twice.
Your own text: kpyramid build FOLDER, then kpyramid ask "QUESTION".""")


if __name__ == "__main__":
    main()
