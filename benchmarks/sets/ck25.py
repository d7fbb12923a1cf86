"""CK25 (eccenca, 2025): questions over an RDF graph with SPARQL, as in the TEXT2SPARQL challenge.

An answer is right when it has the same values as the gold query's, as sets over all variables:
an F1 of 1 in the challenge's own measure (`text2sparql evaluate`, set_F of pytrec_eval).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from making.facts import read_number, say_value

from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.ontology.store import OntologyStore
from sets.files import QuestionSet, read_licence


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question in English with the query that answers it."""

    id: str
    text: str
    sparql: str


def read_questions(path: Path) -> list[GoldQuestion]:
    """The questions of a YAML file: a list of `id`, `question.en` and `query.sparql`.

    Raises:
        InputError: it cannot be read, PyYAML is missing, or a question lacks one of the three.
    """
    try:
        import yaml
    except ImportError as e:
        raise InputError(f"{path}: YAML needs PyYAML; run `pip install 'kpyramid[dev]'`") from e
    try:
        data: object = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise InputError(f"{path}: {e}; give the questions as a YAML file") from e
    rows = data.get("questions") if isinstance(data, Mapping) else data
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{path}: no questions; give a list of id, question.en and query.sparql")
    return [_read_question(row, f"{path}, question {n}") for n, row in enumerate(rows, 1)]


def _read_question(row: object, where: str) -> GoldQuestion:
    identifier = _pick(row, "id")
    if not isinstance(identifier, str | int):
        raise InputError(f"{where}: no id")
    texts = {name: _pick(row, *name.split(".")) for name in ("question.en", "query.sparql")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InputError(f"{where} (id {identifier}): no text as {name}; give one, in quotes")
    return GoldQuestion(str(identifier), str(texts["question.en"]), str(texts["query.sparql"]))


def _pick(value: object, *path: str) -> object:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def collect_values(rows: Iterable[Mapping[str, str]]) -> frozenset[str]:
    """All values of all variables of a result; of an ASK, its truth."""
    return frozenset(value for row in rows for value in row.values())


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
