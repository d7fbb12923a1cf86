"""CK25 (eccenca, 2025): questions over an RDF graph, each with the query that answers it.

The gold values are what the query finds; an individual stands for itself by all its labels. A
question whose query does not run here, or finds nothing, is left out and counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from kpyramid.errors import InputError
from kpyramid.evaluation.ck25 import GoldQuestion, collect_values, read_questions
from kpyramid.evaluation.questions import EvalQuestion, QuestionSet
from kpyramid.evaluation.sets.files import read_licence
from kpyramid.evaluation.values import read_number, say_value
from kpyramid.ontology.store import OntologyStore

_ALL = 10**6
_LABELS = (
    "SELECT ?thing ?label WHERE { ?thing <http://www.w3.org/2000/01/rdf-schema#label> ?label }"
)
_SECONDS = 60.0


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when there are no questions beside graphs."""
    asked = sorted(folder.glob("*.yml")) + sorted(folder.glob("*.yaml"))
    graphs = sorted((folder / "graphs").glob("*.ttl"))
    if not asked or not graphs:
        return None
    gold = read_questions(asked[0])
    turtle = "\n".join(path.read_text("utf-8") for path in graphs)
    store = OntologyStore(turtle, "", seconds=_SECONDS)
    try:
        names: dict[str, list[str]] = {}
        for row in store.select_trusted(_LABELS, limit=_ALL):
            names.setdefault(row["thing"], []).append(row["label"])
        found = [_ask(question, store, names) for question in gold]
    finally:
        store.close()
    left_out = Counter(one for one in found if isinstance(one, str))
    return QuestionSet(
        folder.name,
        (),
        tuple(one for one in found if isinstance(one, EvalQuestion)),
        read_licence(folder),
        "the graph stands in for a corpus: these questions are put to the ontology layer",
        dict(left_out),
    )


def _ask(
    question: GoldQuestion, store: OntologyStore, names: Mapping[str, Sequence[str]]
) -> EvalQuestion | str:
    try:
        rows = store.select_trusted(question.sparql, limit=_ALL)
    except InputError:
        return "its query does not run"
    values = sorted(collect_values(rows)) if any(rows) else []
    if not values:
        return "its query finds nothing"
    if "ASK" in question.sparql.upper().split("WHERE")[0].split() or _is_truth(values):
        truth = "yes" if values == ["true"] else "no"
        return EvalQuestion(
            question.id, question.text, "yesno", ((truth,),), ("yes", "no"), group="ASK"
        )
    answers = tuple(_spell(value, names) for value in values)
    entities = tuple(
        answer[0] for value, answer in zip(values, answers, strict=True) if value in names
    )
    return EvalQuestion(question.id, question.text, "values", answers, entities=entities)


def _is_truth(values: Sequence[str]) -> bool:
    return len(values) == 1 and values[0] in ("true", "false")


def _spell(value: str, names: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """How a value may be written: an individual's labels, a number as it is and rounded."""
    if value in names:
        return tuple(sorted(dict.fromkeys((*names[value], value)), key=lambda n: (n == value, n)))
    said, _ = say_value(value, counts=True)
    number = read_number(value)
    rounded = (f"{number:.2f}",) if number is not None and "." in value else ()
    return tuple(dict.fromkeys((value, said, *rounded)))
