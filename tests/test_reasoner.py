"""HermiT finds contradictions and says why; nothing an ontology holds reaches it or us as code."""

import os
import sys
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from kpyramid.ontology.sandbox import run_limited
from kpyramid.ontology.store import InstanceStatement, Quotation, write_instances, write_provenance
from kpyramid.ontology.validation import consistency
from kpyramid.ontology.validation.consistency import (
    NotJudgedError,
    Part,
    Reasoner,
    ReasonerText,
    judge_consistency,
    key_parts,
    part_facts,
    read_theory,
    shrink,
)
from tests.corpora import require_java
from tests.processes import is_running, wait_until
from tests.rows import read_rows, read_turtle

E = "https://example.org/o#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
XSD = "http://www.w3.org/2001/XMLSchema#"
SCHEMA = read_turtle("reasoner")


@pytest.fixture(autouse=True)
def _java() -> None:
    """Without Java the test is a named skip, in CI a failure."""
    require_java()


def fact(subject: str, name: str, value: str) -> str:
    """One line of N-Triples; a value with a quote is a literal."""
    written = value if value.startswith('"') else f"<{E}{value}>"
    predicate = RDF_TYPE if name == "a" else f"<{E}{name}>"
    return f"<{E}{subject}> {predicate} {written} .\n"


def judge(schema: str = SCHEMA, *facts: str, seconds: float = 60) -> str:
    return judge_consistency(schema, "".join(facts), seconds=seconds)


GOOD = (*read_rows("reasoner.good"),)


def test_what_is_in_order_passes() -> None:
    assert judge(SCHEMA, *GOOD) == "pass"


class Kept(dict[str, bytes]):
    """What passed, as the row cache of a warehouse keeps it."""

    def load(self, keys: Collection[str]) -> dict[str, bytes]:
        return {key: self[key] for key in keys if key in self}

    store = dict.update


@pytest.mark.slow
def test_what_passed_under_other_names_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    passed, others = Kept(), "".join(GOOD).replace("02-28", "03-01")
    for name, other in (("ada", "eve"), ("ben", "dan"), ("oslo", "bonn")):
        others = others.replace(f"#{name}>", f"#{other}>")
    texts = "".join(GOOD), "".join(GOOD) + others
    assert judge_consistency(SCHEMA, texts[0], seconds=60, passed=passed) == "pass"
    assert len(passed) == 2  # the schema, and the kind of part
    monkeypatch.setattr(Reasoner, "_run", None)
    assert judge_consistency(SCHEMA, texts[1], seconds=60, passed=passed) == "pass"
    monkeypatch.undo()
    bad = texts[1] + fact("eve", "bornOn", f'"1990-03-02"^^<{XSD}date>')
    assert judge_consistency(SCHEMA, bad, seconds=60, passed=passed).startswith("fail")
    assert len(passed) == 2


OTHERS = ":Ship a owl:Class . :sails a owl:ObjectProperty . :rows a owl:ObjectProperty .\n"
BEARING = dict(read_rows("reasoner.bearing"))
"""Axioms by whether they bear on what the facts use."""


def test_only_axioms_on_what_facts_use_make_them_judged_again() -> None:
    def list_keys(schema: str) -> set[str]:
        theory = read_theory(schema, "".join(GOOD))
        return {*key_parts(theory, schema, part_facts(theory))}

    before = list_keys(SCHEMA + OTHERS)
    for axioms, bears in BEARING.items():
        after = list_keys(SCHEMA + OTHERS + axioms)
        assert len(after - before) == 1 + bears, axioms  # all axioms bear on the schema itself


@pytest.mark.slow
def test_what_passed_under_another_schema_has_the_verdict_of_all_axioms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consistency, "_explain", lambda *_: "")
    passed = Kept()
    assert judge_consistency(SCHEMA + OTHERS, "".join(GOOD), seconds=60, passed=passed) == "pass"
    for axioms, bears in BEARING.items():
        given = SCHEMA + OTHERS + axioms, "".join(GOOD)
        verdict = judge_consistency(*given, seconds=60, passed=Kept(passed))
        assert verdict.startswith("fail" if bears else "pass"), axioms
    plain = f"{SCHEMA}{OTHERS}:Ship owl:disjointWith :Person .", fact("ada", "a", "Ship")
    assert judge_consistency(plain[0], GOOD[0] + plain[1], seconds=60, passed=passed) != "pass"


@pytest.mark.slow
def test_the_words_of_a_text_count_where_a_datatype_has_some_texts_only() -> None:
    passed, schema = Kept(), SCHEMA + f":code a owl:DatatypeProperty ; rdfs:range <{XSD}token> .\n"
    for text, verdict in (("a b", "pass"), ("a  b", "fail")):
        given = fact("ada", "code", f'"{text}"')
        said = judge_consistency(schema, given, seconds=60, passed=passed)
        assert said.startswith(verdict), text


@pytest.mark.slow
def test_many_facts_are_judged_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consistency, "_MOST_FACTS", 1)
    texts = (fact("a", "bornOn", f'"1990-03-0{n}"^^<{XSD}date>') for n in (1, 2))
    good = GOOD[0] + fact("bonn", "height", f'"1"^^<{XSD}integer>')
    assert judge_consistency(SCHEMA, good, seconds=60) == "pass"
    assert "at most one value" in judge_consistency(SCHEMA, good + "".join(texts), seconds=60)


def test_facts_are_parted_where_no_axiom_joins_them() -> None:
    ann = (fact("ann", "a", "Person"), fact("ann", "bornOn", f'"1990-03-01"^^<{XSD}date>'))
    both = "".join((*GOOD, *ann, *(line.replace("ann", "bob") for line in ann)))
    parts = part_facts(read_theory(SCHEMA, both))
    assert sorted(map(len, parts.values())) == [0, 2, len(GOOD)]
    again = part_facts(read_theory(SCHEMA, both.replace("oslo", "aa").replace("ada", "zz")))
    assert again.keys() == parts.keys()
    twice = ann[1] + ann[1].replace("03-01", "03-02")
    assert len(part_facts(read_theory(SCHEMA, twice + ann[1].replace("ann", "bob")))) == 3
    joined = SCHEMA + ":Place owl:equivalentClass [ a owl:Class ; owl:oneOf ( :oslo :bonn ) ] .\n"
    whole = part_facts(read_theory(joined, both))
    assert [len(part) for part in whole.values()] == [0, len(GOOD) + 4]


def test_what_hermit_finds_is_told_by_the_part_it_is_in() -> None:
    """Several parts are judged in one start of Java; the first that is wrong is named."""
    theory = read_theory(SCHEMA, "".join(GOOD) + fact("ada", "a", "City"))
    good, all_facts = theory.facts[:-1], theory.facts
    with Reasoner(theory, seconds=60) as hermit:
        parts = [(theory.axioms, good), (theory.axioms, good[:2]), (theory.axioms, all_facts)]
        assert hermit.find_inconsistent(parts) == 2


def test_a_planted_contradiction_is_found() -> None:
    """Neither gYear nor date is a datatype that HermiT knows, and no entity is said to differ."""
    planted = [
        fact("cy", "bornIn", "ada"),  # of another class
        fact("ada", "bornIn", "bergen"),  # a second value of a functional property
        fact("oslo", "a", "Work"),  # two of a list of disjoint classes
        fact("ada", "bornOn", f'"1991-01-01"^^<{XSD}date>'),
        fact("ada", "bornOn", '"soon"'),
        fact("ada", "bornOn", f'"1990"^^<{XSD}gYear>'),
    ]
    theory = read_theory(SCHEMA, "".join([*GOOD, *planted]))
    good = theory.facts[: len(GOOD)]
    with Reasoner(theory, seconds=60) as hermit:
        for said, wrong in zip(planted, theory.facts[len(GOOD) :], strict=True):
            parts = [(theory.axioms, good), (theory.axioms, [*good, wrong])]
            assert hermit.find_inconsistent(parts) == 1, said


@pytest.mark.slow
def test_a_contradiction_is_explained_by_a_smallest_set_in_words() -> None:
    verdict = judge(SCHEMA, *GOOD, fact("ada", "a", "City"))

    head, _, told = verdict.partition("inconsistent: ")
    assert head == "fail: "
    assert {"“ada” is a city", "“ada” is a singer", "every city is a place"} < {*told.split("; ")}
    assert told.count("; ") == 4
    for words in ("knows", "height", "born"):
        assert words not in told


def test_shrinking_leaves_what_is_needed_and_asks_seldom() -> None:
    """Of 4,000 facts three contradict each other; a stand-in answers for HermiT and counts."""
    facts = read_theory(SCHEMA, "".join(fact(f"p{i}", "knows", "x") for i in range(4000))).facts
    needed = {facts[7], facts[2500], facts[3999]}

    class Oracle:
        calls = 0

        def find_inconsistent(self, parts: Iterable[Part]) -> int | None:
            self.calls += 1
            return next((i for i, (_, own) in enumerate(parts) if needed <= {*own}), None)

    oracle = Oracle()
    assert {*shrink(facts, oracle.find_inconsistent)} == needed
    assert oracle.calls <= 3 * 3 + 1


def test_what_nothing_declares_fails() -> None:
    verdict = judge(SCHEMA, fact("ada", "a", "Ghost"), fact("ada", "haunts", "oslo"))
    assert f"<{E}Ghost>, <{E}haunts>" in verdict


@pytest.mark.slow
def test_a_contradiction_only_a_reasoner_sees_is_found_and_explained() -> None:
    """No two statements clash: a chain of restrictions and an inverse have to be followed."""
    schema = SCHEMA + (
        ":Orphan a owl:Class ; rdfs:label 'orphan' ; rdfs:subClassOf\n"
        "    [ a owl:Restriction ; owl:onProperty :childOf ; owl:maxCardinality 0 ] .\n"
        ":childOf a owl:ObjectProperty ; rdfs:label 'child of' ;\n"
        "    rdfs:domain :Person ; rdfs:range :Person ; owl:inverseOf :parentOf .\n"
        ":parentOf a owl:ObjectProperty ; rdfs:label 'parent of' ;\n"
        "    rdfs:domain :Person ; rdfs:range :Person .\n"
    )
    verdict = judge(schema, *GOOD, fact("ada", "a", "Orphan"), fact("ben", "parentOf", "ada"))
    assert verdict.startswith("fail: inconsistent: ")
    for words in ("“ada” is an orphan", "“ben” has parent of “ada”", "maxCardinality 0"):
        assert words in verdict
    assert "disjoint" not in verdict


@pytest.mark.slow
def test_contradictory_ranges_make_a_property_useless_and_are_explained() -> None:
    schema = SCHEMA + ":bornIn rdfs:range :Work .\n"
    verdict = judge(schema, *GOOD)
    assert "a value of “born in” is a work" in verdict
    assert "a value of “born in” is a place" in verdict


@pytest.mark.slow
def test_a_fact_of_the_explanation_shows_its_sentence() -> None:
    place = Quotation("doc 1", 120, 250, "Ada was born in Bergen.", "a.txt")
    rows = [
        InstanceStatement(
            E + "ada", E + "bornIn", E + "Person", E + "bergen", None, None, "Ada",
            places=(place,), instance_id="instance-1",
        )
    ]  # fmt: skip
    instances = write_instances(rows) + "".join(GOOD)
    verdict = judge_consistency(SCHEMA, instances, seconds=60, provenance_nt=write_provenance(rows))
    assert "“Ada” has born in “bergen” [doc%201#char=120,250]" in verdict


@pytest.mark.slow
def test_a_place_is_found_for_a_text_with_foreign_ends_of_lines() -> None:
    """N-Triples leaves U+2028 and U+0085 as they are."""
    value = "soon\u2028or\u0085late"
    row = InstanceStatement(
        E + "ada", E + "bornOn", E + "Person", None, value, XSD + "date", "Ada",
        places=(Quotation("doc", 1, 9, value, "a.txt"),), instance_id="instance-1",
    )  # fmt: skip
    written = write_instances([row]), write_provenance([row])
    second = fact("ada", "bornOn", f'"1850-01-01"^^<{XSD}date>')
    instances = written[0] + second
    verdict = judge_consistency(SCHEMA, instances, seconds=60, provenance_nt=written[1])
    assert "[doc#char=1,9]" in verdict


@pytest.mark.slow
def test_a_file_that_hermit_cannot_read_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """HermiT's command ends with 0 then; what it quotes of the file names no class."""
    theory = read_theory(SCHEMA, "".join(GOOD))
    good, bad = (theory.axioms, theory.facts), (theory.axioms, ())
    write = ReasonerText.write

    def spoil(text: ReasonerText, axioms: Any, facts: Any) -> str:
        return write(text, axioms, facts) if facts else "<urn:x:1> <urn:x:2\n"

    monkeypatch.setattr(ReasonerText, "write", spoil)
    with Reasoner(theory, seconds=60) as hermit:
        with pytest.raises(NotJudgedError, match=r"HermiT failed: .*Problem parsing"):
            hermit.find_unsatisfiable(bad)
        with pytest.raises(NotJudgedError, match=r"HermiT failed: .*Problem parsing"):
            hermit.find_inconsistent([good, bad])
    monkeypatch.setattr(ReasonerText, "write", lambda *_: "<urn:x:1> <urn:x:2\n")
    assert judge(SCHEMA, *GOOD).startswith("not run: HermiT failed: ")


# --- limits --------------------------------------------------------------------------------


def test_without_java_the_gate_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert judge(SCHEMA, *GOOD).startswith("not run: no Java on PATH; install one")


def test_a_reasoner_that_takes_too_long_is_stopped_and_leaves_no_process() -> None:
    verdict = judge(SCHEMA, *GOOD, seconds=0.1)
    assert verdict.startswith("not run: HermiT was stopped after 0.1 seconds")
    assert not [c for c in _list_commands() if "HermiT" in c and f"--of={os.getpid()}" in c]


def _list_commands() -> list[str]:
    return [
        path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.exists()
    ]


@pytest.mark.slow
def test_a_reasoner_that_wants_more_memory_says_so() -> None:
    theory = read_theory(
        SCHEMA, "".join(fact(f"p{i}", "knows", f"p{i + 1}") for i in range(60_000))
    )
    with (
        Reasoner(theory, seconds=60, heap=16) as small,
        pytest.raises(NotJudgedError, match="more than 16 MiB of memory"),
    ):
        small.find_inconsistent([(theory.axioms, theory.facts)])


def test_a_stopped_command_takes_what_it_started_along(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys, time; child = subprocess.Popen(['sleep', '60']); "
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid)); time.sleep(60)"
    )
    with pytest.raises(TimeoutError):
        run_limited([sys.executable, "-c", code], seconds=1.5)
    grandchild = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(grandchild), 5)


def test_a_group_that_may_not_be_ended_does_not_hide_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refuse)
    assert run_limited([sys.executable, "-c", "print(7)"], seconds=20) == (0, b"7\n")
    with pytest.raises(TimeoutError):
        run_limited([sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.5)


# --- what must not happen (fault catalogue, row 29) ----------------------------------------


def test_python_module_and_imports_never_reach_the_reasoner(tmp_path: Path) -> None:
    """With owlready2's own loader the first would run code, and both are stated in the schema."""
    evil = tmp_path / "evil_module.py"
    evil.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').write('ran')")
    owlready = "http://www.lesfleursdunormal.fr/static/_downloads/owlready_ontology.owl#"
    schema = SCHEMA + (
        f"<https://example.org/o> <{owlready}python_module> 'evil_module' ;\n"
        f"    owl:imports <{tmp_path.as_uri()}/other.owl>, <http://192.0.2.1/o> .\n"
        f":Person <{owlready}python_name> 'Evil' .\n"
    )
    environment = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(tmp_path)
    try:
        started = time.monotonic()
        assert judge(schema, *GOOD) == "pass"
        assert time.process_time() - started < 100
    finally:
        os.environ.pop("PYTHONPATH")
        if environment is not None:
            os.environ["PYTHONPATH"] = environment
    assert not (tmp_path / "ran").exists()
    theory = read_theory(schema, "".join(GOOD))
    written = ReasonerText(theory).write(theory.axioms, theory.facts)
    for word in ("evil", "python", "imports", "192.0.2.1", str(tmp_path), "example.org"):
        assert word not in written


def test_a_storm_of_shared_blank_nodes_is_refused_at_once() -> None:
    members = "( " + ":Person " * 2000 + ")"
    heads = "".join(f":C{i} a owl:Class ; owl:unionOf _:l .\n" for i in range(2000))
    storm = f"{SCHEMA}{heads}_:l owl:members {members} .\n"
    started = time.process_time()
    assert "share their unnamed nodes" in judge(storm)
    assert time.process_time() - started < 10


def test_labels_and_texts_of_any_kind_do_not_break_the_reasoner() -> None:
    schema = SCHEMA + ":said a owl:DatatypeProperty ; rdfs:label 'said' ; rdfs:range xsd:string .\n"
    lines = [
        fact("ada", "said", text)
        for text in ('"北京 😀"', '"a \\"quote\\" \\\\ \\n line"', '"\\u0001"', '"<?xml {1}"')
    ]
    awkward = f"<{E}%E2%80%A8/&amp;> <{E}knows> <{E}ümlaut-北> .\n"
    assert judge(schema, *lines, awkward) == "pass"


@pytest.mark.slow
def test_ten_thousand_classes_are_judged() -> None:
    tree = "".join(
        f":C{i} a owl:Class ; rdfs:label 'c {i}' ; rdfs:subClassOf :C{(i - 1) // 10} .\n"
        for i in range(1, 10_000)
    )
    schema = SCHEMA + ":C0 a owl:Class ; rdfs:label 'c 0' .\n" + tree
    broken = schema + ":C5 owl:disjointWith :C6 . :C9999 rdfs:subClassOf :C5, :C6 .\n"
    verdict = judge(broken, seconds=120)
    assert verdict.startswith("fail: 1 classes can have no instance (c 9999): ")
    for words in ("every c 9999 is a c 5", "every c 9999 is a c 6", "no c 5 is a c 6"):
        assert words in verdict
