"""CESI's canonicalisation sets: which names of open facts mean the same thing.

The gold links each subject to an entity of Freebase; choice questions ask for another name of one
that has several, with names of other entities as wrong options. The sentences are the corpus.
"""

from collections import defaultdict
from pathlib import Path

from kpyramid.evaluation.facts import Fact, Thing
from kpyramid.evaluation.making import make_questions
from kpyramid.evaluation.questions import QuestionSet
from kpyramid.evaluation.sets.files import find_by_fields, read_json_lines, read_licence

_RELATION = "other name"


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when no file links subjects."""
    paths = find_by_fields(folder, "*.jsonl", "triple", "true_link", "src_sentences")
    if not paths:
        return None
    corpus: dict[str, str] = {}
    names: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        for row in read_json_lines(path):
            for number, sentence in enumerate(row["src_sentences"]):
                text = str(sentence).strip()
                key = corpus.setdefault(text, f"{row['_id']}-{number}")
                names[str(row["true_link"]["subject"])][str(row["triple"][0])][key] = text
    facts = [
        Fact(
            Thing(f"{entity} {one}", one),
            _RELATION,
            Thing(f"{entity} {other}", other),
            documents=tuple(sorted({*of[one], *of[other]})),
            evidence=tuple(sorted({*of[one].values(), *of[other].values()})),
        )
        for entity, of in sorted(names.items())
        for one in sorted(of)
        for other in sorted(of)
        if one != other and entity.startswith("/m/")
    ]
    made = make_questions(facts, sides=("object",))
    return QuestionSet(
        folder.name,
        tuple({"id": key, "text": text} for text, key in corpus.items()),
        made.questions,
        read_licence(folder),
        "choice questions made from the gold links: another name of the same thing",
        made.left_out,
    )
