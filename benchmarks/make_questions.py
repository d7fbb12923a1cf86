"""Questions made from a snapshot's own facts, and rows to tune a model with: no measurement.

They measure how well a snapshot answers from what it knows, and inherit its mistakes. By default
choice questions with eight options; `--structure` asks what no passage answers; with
`--instructions QUESTIONS` it writes the rows of Knowledge Solver's Algorithm 2 to a folder.
`--snapshot` is a ref, an id or a folder of `--warehouse`. Facts of documents with access labels
are left out.
"""

from pathlib import Path

from making.facts import list_instance_facts
from making.instructions import encode_rows, make_instructions
from making.questions import make_questions
from making.structure import make_structure_questions
from options import make_parser, name_count, print_figures
from sets.files import write_questions

from kpyramid.evaluation.questions import EvalQuestion, read_questions
from kpyramid.query import Snapshot, open_snapshot

LEAST = 0.8
"""Facts of a lower confidence are not asked about."""
OPTIONS = 8


def main() -> None:
    parser = make_parser(__doc__, "draws facts, wordings and options; same seed, same file")
    parser.add_argument("--snapshot", default="main")
    parser.add_argument("--warehouse", default=None)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=name_count(1), default=500, help="at most so many")
    parser.add_argument("--structure", action="store_true")
    parser.add_argument("--instructions", type=Path, help="questions with their answers")
    parser.add_argument("--prompt", choices=("paper", "ask"), default="paper")
    options = parser.parse_args()
    snapshot = open_snapshot(options.snapshot, options.warehouse)
    if options.instructions:
        asked = read_questions(options.instructions)
        rows = make_instructions(asked, snapshot, seed=options.seed, prompt=options.prompt)
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "train.jsonl").write_bytes(encode_rows(rows.train))
        (options.out / "test.jsonl").write_bytes(encode_rows(rows.test))
        walks = {"train": len(rows.train), "test": len(rows.test)}
        print_figures({**walks, "left_out": dict(rows.left_out)}, options.json)
        return
    questions, left_out = ask_about(snapshot, options.count, options.seed, options.structure)
    options.out.write_text(write_questions(questions), "utf-8")
    print_figures({"questions": len(questions), "left_out": left_out}, options.json)


def ask_about(
    snapshot: Snapshot, count: int, seed: int, structure: bool
) -> tuple[list[EvalQuestion], dict[str, int]]:
    """Questions about a snapshot's own facts, and how many there are none of, by the reason."""
    facts = list_instance_facts(snapshot)
    if structure:
        typed = make_structure_questions(facts, count=count, seed=seed, least=LEAST)
        return [one.question for one in typed.questions], dict(typed.left_out)
    made = make_questions(facts, count=count, seed=seed, options=OPTIONS, least=LEAST)
    return list(made.questions), dict(made.left_out)


if __name__ == "__main__":
    main()
