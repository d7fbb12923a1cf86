"""`kpyramid ontology check`: what HermiT, SHACL, checks and questions say of an ontology."""

from typing import Annotated, Any

import typer

from kpyramid.commands.options import (
    DEFAULT_WAREHOUSE,
    JsonOption,
    VerboseOption,
    WarehouseOption,
    print_json,
    run_command,
)
from kpyramid.declared import locate_declarations, locate_ontology
from kpyramid.errors import GateError, InputError


def register(app: typer.Typer) -> None:
    """Adds the command to `kpyramid ontology`."""
    app.command()(check)


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
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Judge an ontology, alone or with a snapshot: consistency, shapes, checks, questions.

    Each gate says pass, fail or not run, and why. Exit code 4 when one fails.
    """

    def act() -> None:
        from kpyramid.console import print_judgement

        judged = _judge(ontology, snapshot, warehouse, seconds=seconds, strict=strict)
        if as_json:
            print_json(judged)
        else:
            print_judgement(judged)
        failed = [name for name, said in judged["gates"].items() if said.startswith("fail")]
        if failed:
            advice = "correct it, or what beside it judges it, and check it again"
            raise GateError(f"{ontology}: failed {', '.join(failed)}; {advice}", judged)

    run_command(act, verbose=verbose, as_json=as_json)


def _judge(
    ontology: str, ref: str | None, warehouse: str, *, seconds: float, strict: bool
) -> dict[str, Any]:
    from kpyramid.ontology.judging.checks import label_rows
    from kpyramid.ontology.judging.gates import judge_ontology
    from kpyramid.ontology.schema import parse_schema, write_schema
    from kpyramid.ontology.store import OntologyStore

    files = locate_ontology(ontology)
    if files is None:
        raise InputError(
            f"no ontology {ontology!r}: name a Turtle file, or one of "
            f"{', '.join(locate_declarations('ontology'))}"
        )
    texts = {"schema.ttl": "", "instances.nt": "", "provenance.nt": ""}
    identifier = None
    if ref is None:
        stated = files.turtle.read_text("utf-8-sig")
        texts["schema.ttl"] = write_schema(parse_schema(stated, source=str(files.turtle)))
    else:
        from kpyramid.query.pyramid.snapshot import open_snapshot

        opened = open_snapshot(ref, warehouse)
        identifier = opened.id
        for name in texts:
            path = opened.folder / "ontology" / name
            texts[name] = path.read_text("utf-8-sig") if path.is_file() else ""
    judged = judge_ontology(
        files,
        texts["schema.ttl"],
        texts["instances.nt"],
        provenance_nt=texts["provenance.nt"],
        seconds=seconds,
        strict=strict,
    )
    store = OntologyStore(texts["schema.ttl"], texts["instances.nt"])
    return {
        "ontology": str(files.turtle),
        "snapshot": identifier,
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
