"""What a warehouse holds: its snapshots, and the refs that point to them."""

from kpyramid.keys import JsonValue
from kpyramid.warehouse.layout import Warehouse
from kpyramid.warehouse.refs import list_entries, list_refs
from kpyramid.warehouse.snapshots import list_folders, read_manifest


def list_snapshots(warehouse: Warehouse) -> list[dict[str, JsonValue]]:
    """One row per snapshot, newest commit first: id, refs at it, when committed, rows per table.

    `created` is null for a snapshot that no ref was ever moved to. What is neither snapshot nor
    ref is left aside with a warning.
    """
    heads: dict[str, list[str]] = {}
    committed: dict[str, str] = {}
    for ref in list_refs(warehouse):
        entries = list_entries(warehouse, ref)
        heads.setdefault(entries[-1].snapshot, []).append(ref)
        for entry in entries:
            committed[entry.snapshot] = max(committed.get(entry.snapshot, ""), entry.at)
    rows: list[dict[str, JsonValue]] = []
    for folder in sorted(
        list_folders(warehouse), key=lambda f: committed.get(f.name, ""), reverse=True
    ):
        tables = read_manifest(folder).get("tables")
        counts = tables if isinstance(tables, dict) else {}
        rows.append(
            {
                "id": folder.name,
                "refs": heads.get(folder.name, []),
                "created": committed.get(folder.name),
                "rows": {name: entry["rows"] for name, entry in counts.items()},
            }
        )
    return rows
