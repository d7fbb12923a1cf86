"""`kpyramid ontology`: bring an ontology of one's own, or cut a first one from a word net."""

import typer

from kpyramid.commands import bootstrapping, checking, importing, individuals

app = typer.Typer(
    name="ontology",
    no_args_is_help=True,
    help="Bring your own ontology, start one from a word, check one, look at what it found.",
)


@app.callback()
def _group() -> None:
    """Keeps the group a group."""


checking.register(app)
importing.register(app)
bootstrapping.register(app)
individuals.register(app)
