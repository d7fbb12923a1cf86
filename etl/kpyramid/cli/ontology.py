"""`kpyramid ontology`: import, bootstrap, check and show."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kpyramid.cli.console import show_count
from kpyramid.cli.options import Count
from kpyramid.cli.render import Result, describe, name_values
from kpyramid.errors import GateError, InputError
from kpyramid.storage.declarations import locate_declarations, locate_ontology
from kpyramid.storage.writing import write_durably

if TYPE_CHECKING:
    from kpyramid.ontology.schema import Schema
    from kpyramid.snapshot.snapshot import Snapshot
    from kpyramid.snapshot.view import Scope

_NEXT = "Review {}, then set induce.ontology to its path."


def import_(file: Path, /, *, output: Path | None = None) -> Result:
    """Convert an external ontology into one that a build can use, and list the changes.

    A build needs a label for each class and property, one domain and one range for each property,
    and datatypes whose values can be checked. The import adds missing parts, settles ambiguous
    ones, leaves out terms that are deprecated or cannot have instances, and lists every change
    (all of them with --json). Read the list, review the Turtle, and name it under
    induce.ontology in your settings. A self-contradictory ontology is refused, with the
    contradicting statements.

    Nothing is fetched: owl:imports are listed, and classes known only from there are declared as
    stubs. The file is parsed in a separate process, within limits of time and memory.

    What the file says of individuals goes into NAME.individuals.nq beside the Turtle, to be put
    into the corpus if they are to be facts; unions in domains and ranges, enumerated values and
    limits of values go into NAME.shapes.ttl as SHACL.

    Optional files beside the Turtle help a build: NAME.examples.jsonl (sentences with their
    values), NAME.shapes.ttl (SHACL), NAME.questions.toml (competency questions).

    `file`: Turtle, N-Triples, or OWL in RDF/XML, optionally compressed by gzip.
    `output`: new Turtle file to write; by default NAME.ttl in the working folder.
    """
    from kpyramid.graph.synonyms.words import load_nouns
    from kpyramid.ontology.importing.conversion import Change, import_ontology, leave_out_empty
    from kpyramid.ontology.importing.data import write_individuals
    from kpyramid.ontology.importing.files import read_outside
    from kpyramid.ontology.population.kinds import infer_entity_types
    from kpyramid.ontology.schema import write_schema
    from kpyramid.ontology.validation.consistency import judge_schema
    from kpyramid.settings import PublishSettings

    name = file.name.removesuffix(".gz").rpartition(".")[0] or file.name
    target = choose_target(output, name)
    read = read_outside(file)
    imported = import_ontology(read, name=name, source=str(file))
    verdict, empty = judge_schema(
        write_schema(imported.schema), seconds=PublishSettings().reasoner_seconds
    )
    if empty:
        imported = leave_out_empty(imported, empty, source=str(file))
    schema, reasons = infer_entity_types(imported.schema, lambda noun: load_nouns().get(noun, ""))
    typed = [Change("entity types added", f"<{iri}>", why) for iri, why in reasons.items()]
    turtle = write_schema(schema)
    if verdict.startswith("fail"):
        raise InputError(
            f"{file}: {verdict.removeprefix('fail: ')}. Nothing was written, as no build "
            "could publish it; remove one of these statements"
        )
    stated, individuals = write_individuals(read.triples, schema)
    beside = {".shapes.ttl": imported.shapes, ".individuals.nq": stated if individuals else ""}
    files = {target.with_suffix(suffix): text for suffix, text in beside.items() if text}
    for path in files:
        if path.exists():
            raise InputError(f"{path} is there already; remove it, or choose another --output")
    for path, text in {target: turtle, **files}.items():
        write_target(path, text)
    bare = sum(not prop.alt_labels for prop in schema.properties)
    size = f"{len(schema.classes)} classes, {len(schema.properties)} properties"
    notes = [_NEXT.format(f"{target} ({size})")]
    if individuals:
        data = target.with_suffix(".individuals.nq")
        notes.append(
            f"{individuals} individuals are in {data}: put it into the corpus to have them as facts"
        )
    if bare:
        notes.insert(
            0,
            f"{bare} of {len(schema.properties)} properties have no phrase (skos:altLabel): by "
            "rules they are found by their label only; add phrases, or sentences with their "
            f"values in {target.stem}.examples.jsonl",
        )
    return name_values(
        output=str(target),
        form=imported.form,
        classes=len(schema.classes),
        properties=len(schema.properties),
        properties_without_phrase=bare,
        axioms=len(schema.axioms),
        individuals=individuals,
        consistent=verdict,
        warnings=_warn_of_blind(schema),
        changes=[*imported.changes, *typed],
        notes=notes,
    )


_MOST_NAMED = 8


def _warn_of_blind(schema: "Schema") -> list[str]:
    """Warns of classes and properties that hardly any text will fill, with advice."""
    from kpyramid.graph.synonyms.words import load_nouns
    from kpyramid.ontology.population.kinds import infer_entity_types, list_blind

    typed, reasons = infer_entity_types(schema, lambda noun: load_nouns().get(noun, ""))
    classes, properties = list_blind(typed)
    advice = {
        "classes without kp:entityType, the kinds of names that they have; `kpyramid ontology "
        "import` writes what their words tell": [
            f"{schema.class_by_iri[iri].label} ({why})" for iri, why in sorted(reasons.items())
        ],
        "classes whose names tell nobody what they are; add kp:entityType, a superclass that "
        "has one, or kp:commonNouns": classes,
        "properties between such classes, which will find next to no value": properties,
    }
    return [
        f"{len(labels)} {what}: {', '.join(labels[:_MOST_NAMED])}"
        + (f" and {len(labels) - _MOST_NAMED} more" if len(labels) > _MOST_NAMED else "")
        for what, labels in advice.items()
        if labels
    ]


def choose_target(output: Path | None, name: str) -> Path:
    """The Turtle file to write; an existing one may have been reviewed, and stays.

    Raises:
        InputError: it is there already, or its name cannot be an ontology's.
    """
    # `NAME.shapes.ttl` is no ontology but a companion, so a name has no dot.
    target = output or Path(name.replace(".", "-") + ".ttl")
    if target.suffix != ".ttl" or "." in target.stem:
        raise InputError(f"{target}: name the output NAME.ttl, without another dot")
    if target.exists():
        raise InputError(
            f"{target} is there already, and may have been reviewed; remove it, or choose another "
            "--output"
        )
    return target


def write_target(target: Path, text: str) -> None:
    """Writes a file, and its folder if needed.

    Raises:
        InputError: it cannot be written; then it is not there.
    """
    try:
        write_durably(target, text.encode())
    except OSError as e:
        raise InputError(f"{target} cannot be written: {e}; choose another --output") from e


def bootstrap(
    *,
    domain: str,
    depth: Annotated[int, typer.Option(min=1, max=20)] = 3,
    sense: Count = 1,
    wordnet: Path = Path("/usr/share/wordnet"),
    conceptnet: Path | None = None,
    output: Path | None = None,
    quiet: bool,
) -> Result:
    """Make a first ontology of a field from WordNet, offline, for a person to review.

    Classes are the meanings below the word, with labels, synonyms and definitions; properties are
    WordNet's links between them, such as part of. If the word has several meanings, they are
    listed, and --sense chooses. Individual things in WordNet (Lake Erie) are left out: a build
    finds those of your text. The output includes WordNet's licence, as the licence requires.

    Then review: remove classes you do not need, and add the properties your questions are about,
    each with a domain, a range, and the phrases by which a text states it (skos:altLabel).

    `domain`: the noun at the top, such as lake, disease or "body of water".
    `depth`: number of levels below it.
    `sense`: number of the word's meaning; 1 is the most frequent.
    `wordnet`: folder of WordNet's database files, data.noun and index.noun.
    `conceptnet`: file with ConceptNet 5's assertions, .csv or .csv.gz, to be merged in.
    `output`: new Turtle file to write; by default DOMAIN.ttl in the working folder.
    """
    from kpyramid.ontology.bootstrapping import WordNet, build_schema, cut_wordnet, merge_conceptnet
    from kpyramid.ontology.schema import write_schema

    target = choose_target(output, "-".join(domain.lower().split()).replace("/", "-"))
    net = WordNet(wordnet)
    senses = net.find_senses(domain)
    if sense > len(senses):
        listed = "".join(f"\n  {i}: {s.gloss}" for i, s in enumerate(senses, 1))
        raise InputError(f"{domain!r} has {len(senses)} meanings, no number {sense}:{listed}")
    cut = cut_wordnet(net, senses[sense - 1], depth=depth)
    watch = partial(show_count, label="assertions read", quiet=quiet)
    added = merge_conceptnet(cut, conceptnet, depth=depth, watch=watch) if conceptnet else 0
    schema = build_schema(cut, title=domain)
    write_target(target, write_schema(schema))
    made: dict[str, Any] = {
        "output": str(target),
        "classes": len(schema.classes),
        "from_conceptnet": added,
        "properties": [p.label for p in schema.properties],
        "instances_left": cut.instances,
        "deeper_left": cut.deeper,
    }
    choices = [
        f"Sense {n} ({'taken' if n == sense else f'--sense {n} takes it'}): {each.gloss}"
        for n, each in enumerate(senses, 1)
    ]
    return name_values(
        sense=sense,
        senses=[each.gloss for each in senses],
        **made,
        words=[*choices, *describe(made)],
        notes=[_NEXT.format(target)],
    )


_JUDGED = ("ontology/schema.ttl", "ontology/instances.nt", "ontology/provenance.nt")


def check(
    ontology: str,
    /,
    *,
    snapshot: str | None = None,
    strict: bool = False,
    seconds: Annotated[float, typer.Option(min=1, max=86_400)] = 120.0,
    warehouse: str,
    scope: "Scope",
) -> Result:
    """Judge an ontology, alone or with a snapshot: consistency, shapes, checks, questions.

    Each gate reports pass, fail or not run, with the reason. Exit code 4 if one fails. Of a
    snapshot only documents without labels are judged, or those that --access and --everything show.

    `ontology`: the name of a seed, or a Turtle file with its companion files beside it.
    `snapshot`: judge it with the instances of the snapshot that a ref or an id names.
    `strict`: also fail if a question returns fewer rows than it must.
    `seconds`: time limit for HermiT, and for SHACL.
    """
    from kpyramid.ontology.schema import parse_schema, write_schema
    from kpyramid.ontology.store import OntologyStore
    from kpyramid.ontology.validation.checks import label_rows
    from kpyramid.pipeline.gates import judge_ontology
    from kpyramid.snapshot.snapshot import open_snapshot

    opened = open_snapshot(snapshot, warehouse, scope=scope) if snapshot else None
    files = locate_ontology(ontology)
    if files is None:
        raise InputError(
            f"no ontology {ontology!r}: name a Turtle file, or one of "
            f"{', '.join(locate_declarations('ontology'))}"
        )
    if opened is None:
        stated = files.turtle.read_text("utf-8-sig")
        turtle = write_schema(parse_schema(stated, source=str(files.turtle)))
        texts = dict(zip(_JUDGED, (turtle, "", ""), strict=True))
    else:
        texts = _read_seen(opened)
    judged = judge_ontology(files, texts, seconds=seconds, strict=strict)
    store = OntologyStore(*(texts[name] for name in _JUDGED[:2]))
    failed = [name for name, verdict in judged.gates.items() if verdict.startswith("fail")]
    advice = "correct it, or what beside it judges it, and check it again"
    schema = parse_schema(texts[_JUDGED[0]], source=str(files.turtle))
    return name_values(
        json_only=("checks",),
        ontology=str(files.turtle),
        warnings=_warn_of_blind(schema),
        snapshot=opened.id if opened else None,
        gates=judged.gates,
        checks=[
            {"text": c.text, "rows": c.count, "first": list(c.rows), "problem": c.problem}
            for c in judged.checks
        ],
        questions=[
            {
                "text": q.text,
                "least": q.least,
                "rows": a.count,
                "first": label_rows(a.rows, store),
                "problem": a.problem,
            }
            for q, a in judged.questions
        ],
        fault=GateError(f"{ontology}: failed {', '.join(failed)}; {advice}") if failed else None,
    )


def _read_seen(opened: "Snapshot") -> dict[str, str]:
    """The ontology files of a snapshot; without sources if a document is hidden."""
    if opened.describe_scope():
        return dict(zip(_JUDGED, (*opened._view.read_ontology(), ""), strict=True))
    paths = {name: opened.folder / name for name in _JUDGED}
    return {n: path.read_text("utf-8-sig") if path.is_file() else "" for n, path in paths.items()}


_FIRST = 20


def show(name: str, /, *, opened: "Snapshot") -> Result:
    """Show the ontology's statements about an individual, with their sentences.

    If several individuals have the name, all are shown; ask again with an id. Statements that
    only documents with labels make are shown with --access or --everything.

    `name`: an individual by name, id or IRI; or a class or property, to list its instances.
    """
    from kpyramid.snapshot.individuals import describe_individual, find_individuals, list_members

    members = list_members(name, opened, _FIRST)
    try:
        ids = find_individuals(name, opened)
    except InputError:
        if members is None:
            raise
        ids = []
    return name_values(
        members=members, individuals=[describe_individual(key, opened) for key in ids]
    )
