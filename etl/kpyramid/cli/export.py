"""`kpyramid export` and `import`: a snapshot in other forms, and back."""

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.cli.options import SNAPSHOT_HELP
from kpyramid.cli.render import Result, name_values
from kpyramid.snapshot import Form

if TYPE_CHECKING:
    from kpyramid.snapshot.view import Scope
    from kpyramid.storage.layout import Warehouse


def export(
    snapshot: Annotated[
        str, typer.Argument(metavar="SNAPSHOT", help=f"{SNAPSHOT_HELP} Or a folder: ./copy.")
    ],
    path: str,
    /,
    *,
    to: Form,
    warehouse: str,
    scope: "Scope",
) -> Result:
    """Write a snapshot in a form for other programs; it appears whole or not at all.

    An export to an address is made locally first, then sent; of a folder the manifest goes last.

    It includes title, source, licence, attribution and labels of each document, and the evidence of
    facts. Statements that only documents with labels make are left out without --access or
    --everything; folder and tar are the whole snapshot, and need --everything if any document has
    labels.

    Examples: kpyramid export main pyramid.tar.zst --to tar; kpyramid export main
    s3://served/news.ttl --to turtle

    `path`: new file or folder to write, local or at s3://bucket/prefix.
    `to`: folder, tar (.tar.zst): the whole snapshot, for `kpyramid import`. site: the page
    of `kpyramid serve` as a folder that a browser opens without a service or a network.
    turtle, jsonld, nquads: graph and ontology in RDF. graphml. neo4j: CSV files of neo4j-admin.
    jsonl. duckdb: one file of all tables. lance: the vectors.
    """
    from kpyramid.snapshot import export as forms
    from kpyramid.snapshot.snapshot import hold_snapshot, is_path, open_snapshot
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.leases import explain_loss

    place = None if is_path(snapshot) else open_warehouse(warehouse)
    ref = "" if place is None else snapshot.partition("@")[0]  # an id has no log
    is_held = place is not None and os.access(place.root, os.W_OK)
    with ExitStack() as stack:
        if is_held:
            opened = stack.enter_context(hold_snapshot(snapshot, warehouse, scope=scope))
        else:
            opened = open_snapshot(snapshot, warehouse, scope=scope)
            if place is not None:  # one that may only be read takes no lease
                stack.enter_context(explain_loss(place, opened.id))
        made = forms.export(opened, to, path, warehouse=place, ref=ref)
    notes = []
    if seen := opened.describe_scope():
        notes.append(f"{seen}: the others are for readers with labels; --everything exports all.")
    if made.left_out:
        notes.append("Tables about all documents are left out.")
    return name_values(
        snapshot=opened.id,
        to=to,
        path=path,
        bytes=made.bytes,
        files=made.files,
        left_out=made.left_out,
        notes=notes,
    )


def import_(path: str, /, *, place: "Warehouse") -> Result:
    """Add an exported snapshot to the warehouse, after every check of `kpyramid verify`.

    It keeps its id. A snapshot that is altered or incomplete or has extra content is refused, and
    nothing is written. No ref moves: `kpyramid promote` moves one. `gc` removes snapshots without
    a ref.

    Example: kpyramid import pyramid.tar.zst && kpyramid promote main 1f3a0c9b7d2e4a56

    `path`: a snapshot's folder, or its tarball (--to tar), local or at s3://bucket/prefix.
    """
    from kpyramid.storage.archive import import_snapshot

    identifier, is_new = import_snapshot(place, path)
    words = [
        f"Snapshot {identifier} is {'' if is_new else 'already '}in the warehouse, intact.",
        "Its content matches its id; compare the id with the sender's.",
        f"To serve it: kpyramid promote main {identifier}",
    ]
    return name_values(snapshot=identifier, imported=is_new, words=words)
