"""`kpyramid ontology bootstrap`: a first ontology of a field, cut from WordNet and ConceptNet."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kpyramid.commands.cache import show_count
from kpyramid.commands.importing import choose_target, write_new
from kpyramid.commands.options import (
    JsonOption,
    QuietOption,
    VerboseOption,
    print_json,
    run_command,
    say,
)
from kpyramid.errors import InputError


def register(app: typer.Typer) -> None:
    """Adds the command to `kpyramid ontology`."""
    app.command("bootstrap")(bootstrap)


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
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
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

    def act() -> None:
        from kpyramid.ontology.bootstrapping.bootstrap import build_schema, cut_wordnet
        from kpyramid.ontology.bootstrapping.conceptnet import merge_conceptnet
        from kpyramid.ontology.bootstrapping.wordnet import WordNet
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
            merge_conceptnet(cut, conceptnet, depth=depth, watch=watch)
            if conceptnet is not None
            else 0
        )
        schema = build_schema(cut, title=domain)
        write_new(target, write_schema(schema))
        if as_json:
            print_json(
                {
                    "output": str(target),
                    "sense": sense,
                    "senses": [s.gloss for s in senses],
                    "classes": len(schema.classes),
                    "from_conceptnet": added,
                    "properties": [p.label for p in schema.properties],
                    "instances_left": cut.instances,
                    "deeper_left": cut.deeper,
                }
            )
            return
        for number, found in enumerate(senses, 1):
            mark = "taken" if number == sense else f"--sense {number}"
            say(f"{mark}: {', '.join(found.words)}: {found.gloss}")
        named = ", ".join(p.label for p in schema.properties) or "none that WordNet knows"
        say(f"{target}: {len(schema.classes)} classes; properties: {named}")
        if conceptnet is not None:
            say(f"{added} of the classes are from ConceptNet")
        if cut.instances:
            say(f"left: {cut.instances} single things, which are no classes")
        if cut.deeper:
            say(f"left: {cut.deeper} meanings below these; --depth {depth + 1} takes more")
        say(f"Review {target}, then set induce.ontology to its path.")

    run_command(act, verbose=verbose, as_json=as_json)
