"""Questions read by rules: over a graph made up for it, over ck25, and what is left alone."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from kpyramid.errors import InputError
from kpyramid.evaluation.ck25 import collect_values, read_questions
from kpyramid.ontology.names import LABEL
from kpyramid.ontology.store import OntologyStore
from kpyramid.query.questions.graphs import read_lexicon
from kpyramid.query.questions.lexicon import Lexicon
from kpyramid.query.questions.reading import Unwritten, Written, read_question
from tests.corpora import ROOT, find_bench
from tests.stage import ANSWERED, BEYOND, REFUSED, TURTLE

CORPORATE = Path(__file__).parent / "corporate.toml"
PREFIXES = (
    "PREFIX pv: <http://ld.company.org/prod-vocab/> "
    "PREFIX pi: <http://ld.company.org/prod-instances/> "
)


def open_graph(turtle: str) -> tuple[OntologyStore, Lexicon]:
    from kpyramid.embeddings.opening import open_embedder
    from kpyramid.identity import identify_embedding
    from kpyramid.query.questions.comparing import PhraseComparer
    from kpyramid.settings import EmbedSettings

    store = OntologyStore(turtle, "")
    model = identify_embedding(EmbedSettings())
    embed = open_embedder(EmbedSettings(), model.name, model.files).embed
    return store, read_lexicon(
        lambda query: store.select_trusted(query, limit=10**6), PhraseComparer(embed).compare
    )


@pytest.fixture(scope="module")
def stage() -> tuple[OntologyStore, Lexicon]:
    return open_graph(TURTLE)


Ask = Callable[[str], set[str] | Unwritten]


@pytest.fixture(scope="module")
def ask(stage: tuple[OntologyStore, Lexicon]) -> Ask:
    """The labels or literals that a question finds, or why it has no query."""
    store, lexicon = stage

    def answer(question: str) -> set[str] | Unwritten:
        read = read_question(question, lexicon)
        if isinstance(read, Unwritten):
            return read
        values = collect_values(store.select_trusted(read.sparql))
        labels = {
            row["s"]: row["l"] for row in store.select_trusted(f"SELECT * {{ ?s <{LABEL}> ?l }}")
        }
        return {labels.get(value, value) for value in values}

    return answer


@pytest.mark.parametrize("question", ANSWERED)
def test_a_question_with_one_reading_is_answered(question: str, ask: Ask) -> None:
    assert ask(question) == ANSWERED[question]


@pytest.mark.parametrize("question", BEYOND)
def test_a_question_that_is_hard_is_not_answered_wrongly(question: str, ask: Ask) -> None:
    found = ask(question)
    assert isinstance(found, Unwritten) or found in (set(), BEYOND[question])


@pytest.mark.parametrize("question", REFUSED)
def test_a_question_that_is_not_understood_is_left_to_the_layers_below(
    question: str, ask: Ask
) -> None:
    found = ask(question)
    assert isinstance(found, Unwritten), found
    assert found.reason


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("Which plays are not staged at Opal Hall?", "negation"),
        ("What percentage of plays are comedies? In %", "share"),
        ("Tell me something nice!", "names nothing"),
        ("Which play has the best reviews?", "'reviews'"),
        ("Who is it?", "names nothing"),
        ("?!", "no word"),
        ("play " * 80, "too long"),
        ("Which play is directed by Ines Calder?; DROP ALL } SELECT", "DROP"),
    ],
)
def test_the_reason_is_told(question: str, reason: str, ask: Ask) -> None:
    found = ask(question)
    assert isinstance(found, Unwritten) and reason in found.reason


def test_two_that_share_the_first_place_are_no_answer() -> None:
    turtle = TURTLE.replace(":seats 420", ":seats 900")
    _, lexicon = open_graph(turtle)
    found = read_question("Which theatre has the most seats?", lexicon)
    assert isinstance(found, Unwritten) and "share the place" in found.reason


def test_part_of_a_name_that_two_people_share_is_no_answer() -> None:
    turtle = TURTLE.replace('"Piet Vos"', '"Otto Vos"')
    _, lexicon = open_graph(turtle)
    found = read_question("What is Otto's e-mail?", lexicon)
    assert isinstance(found, Unwritten) and "fits several" in found.reason


def test_a_number_in_another_unit_than_the_label_states_is_not_compared(
    stage: tuple[OntologyStore, Lexicon],
) -> None:
    read = read_question("Which plays have a running time under 100 kilograms?", stage[1])
    assert isinstance(read, Unwritten)


def test_a_query_is_written_without_a_type_that_its_properties_imply(
    stage: tuple[OntologyStore, Lexicon],
) -> None:
    read = read_question("Which theatre has the most seats?", stage[1])
    assert isinstance(read, Written) and "rdf-syntax-ns#type" not in read.sparql


def test_names_with_quotes_and_backslashes_cannot_leave_their_string() -> None:
    hostile = 'x\\" } INSERT'
    turtle = TURTLE + f':piet :email {json.dumps(hostile)} .\n:A a :Actor ; :email "Qq\\"x" .\n'
    store, lexicon = open_graph(turtle)
    read = read_question('Which actor has the e-mail Qq"x?', lexicon)
    if isinstance(read, Written):
        store.select_trusted(read.sparql)  # it parses


def test_paraphrases_of_corporate_questions_are_answered_or_left_alone() -> None:
    graph = (find_bench("ck25") / "graphs" / "prod-inst.ttl").read_text("utf-8")
    store, lexicon = open_graph(graph)
    rows = tomllib.loads(CORPORATE.read_text("utf-8"))["questions"]
    questions = {row["text"]: row.get("sparql") for row in rows}
    verdicts = []
    for question, gold in questions.items():
        read = read_question(question, lexicon)
        if isinstance(read, Unwritten):
            verdicts.append("unanswered" if gold else "left alone")
        elif gold is None:
            verdicts.append("wrong")
        else:
            values, wanted = (
                collect_values(store.select_trusted(query, limit=10**5))
                for query in (read.sparql, PREFIXES + gold)
            )
            verdicts.append("right" if values == wanted else "wrong")
    asked = sum(gold is not None for gold in questions.values())
    assert verdicts.count("right") >= 0.8 * asked
    assert verdicts.count("wrong") <= 0.05 * len(questions)


def test_the_benchmark_reaches_what_it_must() -> None:
    data = find_bench("ck25")
    done = subprocess.run(
        [sys.executable, "benchmarks/sparql.py", "--data", str(data), "--json"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout)
    assert (figures["questions"], figures["gold_failed"]) == (48, 2)
    assert figures["right"] >= 0.4
    assert figures["wrong_confident"] <= 0.05


def test_questions_are_read_from_yaml_as_the_challenge_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "questions.yml"
    path.write_text(
        "---\ndataset:\n  id: https://x/\nquestions:\n\n  - id: 1\n    question:\n"
        "      en: 'What''s up?'\n      de: Was?\n    query:\n      sparql: |\n"
        "        ASK {\n          ?s ?p ?o\n        }\n\n  - id: 2\n    question:\n"
        "      en: Who?\n    query:\n      sparql: ASK {}\n"
    )
    first, second = read_questions(path)
    assert (first.id, first.text) == ("1", "What's up?")
    assert first.sparql.split() == ["ASK", "{", "?s", "?p", "?o", "}"]
    assert (second.id, second.text, second.sparql) == ("2", "Who?", "ASK {}")


@pytest.mark.parametrize(
    "text",
    [
        'questions:\n- query:\n    sparql: "ASK\\n{}"\n  question: {en: "Who?"}\n  id: q1\n',
        '{"questions": [{"id": "q1", "question": {"en": "Who?"}, "query": {"sparql": "ASK {}"}}]}',
        "-   id: q1 # the first\n    question: {de: 'Wer?', en: 'Who?'}\n    query:\n"
        "        sparql: >-\n          ASK\n          {}\n",
    ],
)
def test_other_ways_to_write_the_same_yaml_are_read_alike(text: str, tmp_path: Path) -> None:
    path = tmp_path / "questions.yml"
    path.write_text(text)
    (found,) = read_questions(path)
    assert (found.id, found.text, found.sparql.split()) == ("q1", "Who?", ["ASK", "{}"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no questions"),
        ("questions: none", "no questions"),
        ("questions:\n  - id: 1\n    question:\n      en: Who?\n", "sparql"),
        ("- id: 1\n  question: {en: yes}\n  query: {sparql: ASK}", "in quotes"),
        ("- question: {en: 'Who?'}", "no id"),
        ("questions: [", "as a YAML file"),
        ("- !!python/object/apply:os.getcwd []", "as a YAML file"),
    ],
)
def test_a_file_that_lacks_something_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "questions.yml"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        read_questions(path)


def test_answers_are_compared_as_sets_over_all_variables() -> None:
    rows = [{"a": "1", "b": "2"}, {"a": "2"}]
    assert collect_values(rows) == {"1", "2"}
