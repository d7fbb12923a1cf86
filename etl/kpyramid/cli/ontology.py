"""`kpyramid ontology`: import, bootstrap, check and show."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    QuietOption,
    SnapshotOption,
    WarehouseOption,
    command,
    name_first,
    print_found,
)
from kpyramid.errors import GateError, InputError
from kpyramid.storage.declarations import locate_declarations, locate_ontology
from kpyramid.storage.writing import write_durably

app = typer.Typer(
    name="ontology",
    no_args_is_help=True,
    help="Bring your own ontology, start one from a word, check one, look at what it found.",
)

# `kpyramid ontology import`: an ontology from outside, made ready for a build and for review.

_EXAMPLES = 3
_CHARACTERS = 300


@command(app, "import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(help="Turtle, N-Triples, or OWL in RDF/XML; packed by gzip or not."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="Turtle file to write, not there yet.", show_default="NAME.ttl, here"),
    ] = None,
) -> None:
    """Make an ontology from elsewhere one that a build can use, and say what was changed for it.

    A build wants a label for each class and property, one domain and one range for each property,
    and datatypes whose values can be checked. What is missing is added, what is unclear is
    settled, and every change is listed (all of them with --json): read the list, look at the
    Turtle, and name it under induce.ontology in your settings. What contradicts itself is
    refused, with the statements that do.

    Nothing is fetched: owl:imports are listed, and classes known only from there are declared as
    stubs. The file is parsed in a process of its own, within limits of time and memory.

    Lay beside the Turtle what helps a build, under the same name: NAME.examples.jsonl (sentences
    with their values), NAME.shapes.ttl (SHACL), NAME.questions.toml (competency questions).
    """
    from kpyramid.cli.console import shorten
    from kpyramid.ontology.importing.conversion import group_changes, import_ontology
    from kpyramid.ontology.importing.files import read_outside
    from kpyramid.ontology.schema import write_schema
    from kpyramid.ontology.validation.consistency import judge_consistency
    from kpyramid.settings import PublishSettings

    name = file.name.removesuffix(".gz").rpartition(".")[0] or file.name
    target = choose_target(output, name)
    read = read_outside(file)
    imported = import_ontology(read, name=name, source=str(file))
    turtle = write_schema(imported.schema)
    verdict = judge_consistency(turtle, "", seconds=PublishSettings().reasoner_seconds)
    if verdict.startswith("fail"):
        raise InputError(
            f"{file}: {verdict.removeprefix('fail: ')}. Nothing was written, as no build "
            "could publish it; remove one of these statements"
        )
    write_target(target, turtle)
    schema = imported.schema
    bare = sum(not prop.alt_labels for prop in schema.properties)
    found = {
        "output": str(target),
        "form": imported.form,
        "classes": len(schema.classes),
        "properties": len(schema.properties),
        "properties_without_phrase": bare,
        "axioms": len(schema.axioms),
        "individuals": imported.individuals,
        "consistent": verdict,
        "changes": [asdict(change) for change in imported.changes],
    }
    lines = [
        f"{target}: {len(schema.classes)} classes, {len(schema.properties)} properties, "
        f"{len(schema.axioms)} further statements, from {imported.form}"
    ]
    if imported.individuals:
        lines.append(
            f"{imported.individuals} of its individuals stay among these statements; "
            "a build finds its own in the text"
        )
    lines.append(f"consistent: {verdict}")
    for kind, changes in group_changes(imported.changes).items():
        named = [
            f"{shorten(change.subject, _CHARACTERS)} {shorten(change.detail, _CHARACTERS)}"
            for change in changes
        ]
        lines += [f"{kind}: {len(changes)}", *name_first(named, _EXAMPLES)]
    if bare:
        lines.append(
            f"{bare} of {len(schema.properties)} properties have no phrase (skos:altLabel): by "
            "rules they are found by their label only; add phrases, or sentences with their "
            f"values in {target.stem}.examples.jsonl"
        )
    lines.append(f"Review {target}, then set induce.ontology to its path.")
    print_found(found, lines)


def choose_target(output: Path | None, name: str) -> Path:
    """The Turtle file to write: a file that is there may have been reviewed, and is kept.

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
    """Writes a file, with its folder.

    Raises:
        InputError: it cannot be written; then it is not there.
    """
    try:
        write_durably(target, text.encode())
    except OSError as e:
        raise InputError(f"{target} cannot be written: {e}; choose another --output") from e


# `kpyramid ontology bootstrap`: a first ontology of a field, cut from WordNet and ConceptNet.


@command(app)
def bootstrap(
    domain: Annotated[
        str, typer.Option(help='The noun at the top, such as lake, disease or "body of water".')
    ],
    depth: Annotated[int, typer.Option(min=1, max=20, help="Levels below it.")] = 3,
    sense: Annotated[
        int, typer.Option(min=1, help="Which meaning of the word; 1 is the most frequent.")
    ] = 1,
    wordnet: Annotated[
        Path, typer.Option(help="Folder of WordNet's database files, data.noun and index.noun.")
    ] = Path("/usr/share/wordnet"),
    conceptnet: Annotated[
        Path | None,
        typer.Option(
            help="ConceptNet 5's assertions, a .csv or .csv.gz you have, to be merged in."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Turtle file to write, not there yet.", show_default="DOMAIN.ttl, here"),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Cut a first ontology of a field from WordNet, offline, for a person to review.

    Classes are the meanings below the word, with labels, synonyms and definitions; properties are
    what WordNet links them by, such as part of. A word has several meanings: they are listed, and
    --sense chooses. Single things that WordNet knows (Lake Erie) are left: a build finds its own
    in your text. WordNet's licence stands in the output, as it demands.

    Then review: remove classes you do not need, and add the properties your questions are about,
    each with a domain, a range, and the phrases by which a text states it (skos:altLabel).
    """
    from kpyramid.cli.console import show_count
    from kpyramid.ontology.bootstrapping import (
        WordNet,
        build_schema,
        cut_wordnet,
        merge_conceptnet,
    )
    from kpyramid.ontology.schema import write_schema

    target = choose_target(output, "-".join(domain.lower().split()).replace("/", "-"))
    net = WordNet(wordnet)
    senses = net.find_senses(domain)
    if sense > len(senses):
        listed = "".join(f"\n  {i}: {s.gloss}" for i, s in enumerate(senses, 1))
        raise InputError(f"{domain!r} has {len(senses)} meanings, no number {sense}:{listed}")
    cut = cut_wordnet(net, senses[sense - 1], depth=depth)
    watch = partial(show_count, label="assertions read", quiet=quiet)
    added = (
        merge_conceptnet(cut, conceptnet, depth=depth, watch=watch) if conceptnet is not None else 0
    )
    schema = build_schema(cut, title=domain)
    write_target(target, write_schema(schema))
    found = {
        "output": str(target),
        "sense": sense,
        "senses": [s.gloss for s in senses],
        "classes": len(schema.classes),
        "from_conceptnet": added,
        "properties": [p.label for p in schema.properties],
        "instances_left": cut.instances,
        "deeper_left": cut.deeper,
    }
    lines = [
        f"{'taken' if number == sense else f'--sense {number}'}: {', '.join(s.words)}: {s.gloss}"
        for number, s in enumerate(senses, 1)
    ]
    named = ", ".join(p.label for p in schema.properties) or "none that WordNet knows"
    lines.append(f"{target}: {len(schema.classes)} classes; properties: {named}")
    if conceptnet is not None:
        lines.append(f"{added} of the classes are from ConceptNet")
    if cut.instances:
        lines.append(f"left: {cut.instances} single things, which are no classes")
    if cut.deeper:
        lines.append(f"left: {cut.deeper} meanings below these; --depth {depth + 1} takes more")
    lines.append(f"Review {target}, then set induce.ontology to its path.")
    print_found(found, lines)


# `kpyramid ontology check`: what HermiT, SHACL, checks and questions say of an ontology.

_JUDGED = ("ontology/schema.ttl", "ontology/instances.nt", "ontology/provenance.nt")


@command(app)
def check(
    ontology: Annotated[
        str, typer.Argument(help="The name of a seed, or a Turtle file; companions lie beside it.")
    ],
    snapshot: Annotated[
        str | None,
        typer.Option(help="Judge it with the instances of the snapshot that a ref or an id names."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="A question without the rows it must give fails as well."),
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=1, max=86_400, help="For HermiT, and for SHACL.")
    ] = 120.0,
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    *,
    scope: "Scope",
) -> None:
    """Judge an ontology, alone or with a snapshot: consistency, shapes, checks, questions.

    Each gate says pass, fail or not run, and why. Exit code 4 when one fails. Of a snapshot that is
    judged what documents without labels say, or what --access and --everything let be seen.
    """
    from kpyramid.cli.console import print_judgement

    opened = None
    if snapshot is not None:
        from kpyramid.snapshot.snapshot import open_snapshot

        opened = open_snapshot(snapshot, warehouse, scope=scope)
    judged = _judge(ontology, opened, seconds=seconds, strict=strict)
    print_found(judged, lambda: print_judgement(judged))
    failed = [name for name, verdict in judged["gates"].items() if verdict.startswith("fail")]
    if failed:
        advice = "correct it, or what beside it judges it, and check it again"
        raise GateError(f"{ontology}: failed {', '.join(failed)}; {advice}", judged)


def _read_seen(opened: "Snapshot") -> dict[str, str]:
    """The ontology files of a snapshot; where a document is hidden, what is seen and no sources."""
    if opened.describe_scope():
        return dict(zip(_JUDGED, (*opened._view.read_ontology(), ""), strict=True))
    paths = {name: opened.folder / name for name in _JUDGED}
    return {name: path.read_text("utf-8-sig") for name, path in paths.items() if path.is_file()}


def _judge(
    ontology: str, opened: "Snapshot | None", *, seconds: float, strict: bool
) -> dict[str, Any]:
    from kpyramid.ontology.schema import parse_schema, write_schema
    from kpyramid.ontology.store import OntologyStore
    from kpyramid.ontology.validation.checks import label_rows
    from kpyramid.pipeline.gates import judge_texts

    files = locate_ontology(ontology)
    if files is None:
        raise InputError(
            f"no ontology {ontology!r}: name a Turtle file, or one of "
            f"{', '.join(locate_declarations('ontology'))}"
        )
    texts = dict.fromkeys(_JUDGED, "")
    if opened is None:
        stated = files.turtle.read_text("utf-8-sig")
        texts[_JUDGED[0]] = write_schema(parse_schema(stated, source=str(files.turtle)))
    else:
        texts.update(_read_seen(opened))
    judged = judge_texts(files, texts, seconds=seconds, strict=strict)
    store = OntologyStore(*(texts[name] for name in _JUDGED[:2]))
    return {
        "ontology": str(files.turtle),
        "snapshot": opened.id if opened else None,
        "gates": judged.gates,
        "seconds": judged.seconds,
        "checks": [
            {"text": c.text, "rows": c.count, "first": list(c.rows), "problem": c.problem}
            for c in judged.checks
        ],
        "questions": [
            {
                "text": q.text,
                "least": q.least,
                "rows": a.count,
                "first": label_rows(a.rows, store),
                "problem": a.problem,
            }
            for q, a in judged.questions
        ],
    }


# `kpyramid ontology show`: an individual with its values, each with the sentence it came from.

if TYPE_CHECKING:
    from kpyramid.snapshot.individuals import Individual, Individuals, Members, Sentence, Statement
    from kpyramid.snapshot.snapshot import Snapshot
    from kpyramid.snapshot.view import Scope

_SENTENCES = 3
"""Sentences shown of a statement; --json has all."""
_FIRST = 20

NameArgument = Annotated[
    str,
    typer.Argument(
        help="An individual by name, id or IRI; or a class or property, for a list of what it has."
    ),
]


@command(app)
def show(
    name: NameArgument,
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    ref: SnapshotOption = "main",
    *,
    scope: "Scope",
) -> None:
    """Show what the ontology says of an individual, and the sentences that say so.

    A name that several individuals bear is answered with all of them; ask again with an id. What
    only documents with labels say is shown with --access or --everything.
    """
    from kpyramid.query import open_snapshot
    from kpyramid.snapshot.individuals import Individuals

    individuals = Individuals(open_snapshot(ref, warehouse, scope=scope))
    found, members = _find(name, individuals)
    lines = [_list(members)] if members else []
    if len(found) == 1:
        lines.append(_describe(found[0]))
    for individual in found if len(found) > 1 else ():
        kinds = ", ".join(statement.label for statement in individual.classes) or "no class"
        count = len(individual.values) + len(individual.value_of)
        lines.append(f"{individual.entity_id}  {individual.name}: {kinds}; {count} value(s)")
    listed = asdict(members) if members else None
    print_found(
        {"individuals": [asdict(individual) for individual in found], "members": listed}, lines
    )


def _find(name: str, individuals: "Individuals") -> tuple[list["Individual"], "Members | None"]:
    members = individuals.list_members(name, _FIRST)
    try:
        ids = individuals.find(name)
    except InputError:
        if members is None:
            raise
        ids = []
    return [individuals.describe(key) for key in ids], members


def _describe(individual: "Individual") -> str:
    lines = [f"{individual.name}  {individual.iri}"]
    others = [form for form in individual.surface_forms if form != individual.name]
    if others:
        lines.append(f"  also written {', '.join(others)}")
    for statement in (*individual.classes, *individual.values, *individual.value_of):
        lines += _show_statement(statement)
    return "\n".join(lines)


def _show_statement(statement: "Statement") -> list[str]:
    if statement.value is None:
        words = f"class: {statement.label}"
    elif statement.of is None:
        words = f"{statement.label}: {statement.value}"
    else:
        verb = "" if statement.label.startswith("has ") else "has "
        words = f"{statement.of} {verb}{statement.label}: {statement.value}"
    by = "" if statement.producer == "rules" else f", found by {statement.producer}"
    lines = [f"  {words}  ({statement.confidence:.2f}{by})"]
    for sentence in statement.sentences[:_SENTENCES]:
        lines.append(f"    {sentence.source}, characters {sentence.start}-{sentence.end}:")
        lines.append(f"      {_mark(sentence)}")
    left = len(statement.sentences) - _SENTENCES
    if left > 0:
        lines.append(f"    and {left} more")
    return lines


def _mark(sentence: "Sentence") -> str:
    """The sentence on one line, with brackets around the words that name the two ends."""
    from kpyramid.cli.console import shorten

    text, shown, at = sentence.text, "", 0
    for start, end in sentence.marked:
        if start < at:  # one name within the other
            continue
        shown += f"{text[at:start]}[{text[start:end]}]"
        at = end
    return shorten(shown + text[at:])


def _list(members: "Members") -> str:
    kind = "individual" if members.kind == "class" else "value"
    lines = [f"{members.kind} {members.label}  {members.iri}: {members.count} {kind}(s)"]
    lines += [f"  {text}" for text in members.first]
    if members.count > len(members.first):
        lines.append(f"  and {members.count - len(members.first)} more")
    return "\n".join(lines)
