"""SQL over a snapshot's tables and views, as its scope lets them be seen, and over no file."""

from typing import Any

from kpyramid.errors import InputError
from kpyramid.snapshot.export import list_views
from kpyramid.snapshot.graph import name_source, open_database
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.store import VECTORS
from kpyramid.storage.contracts import load_contracts


def run_sql(snapshot: Snapshot, query: str) -> list[dict[str, Any]]:
    """The rows of one SELECT by DuckDB, each by the names of its columns.

    The database is in memory, and reads no file but the tables of the snapshot; what the query sets
    or attaches is refused. Tables that cannot be divided by documents, and views over them, are not
    there where the scope hides something. `vectors` is there when the query says that word.

    Raises:
        InputError: the query is none, is more than one SELECT, or does not run; says why.
        IntegrityError: a table of the snapshot is damaged.
    """
    import duckdb

    left_out, paths = [], []
    with open_database() as database:
        for name in load_contracts():
            if name == VECTORS and name not in query.casefold():
                left_out.append(name)
                continue
            try:
                table = snapshot.locate_table(name)
            except InputError:  # it cannot be divided by documents
                left_out.append(name)
                continue
            paths += [str(table)] if not hasattr(table, "schema") else []
            database.execute(f"CREATE VIEW {name} AS FROM {name_source(database, name, table)}")
        database.execute("\n".join(list_views(left_out)))
        database.execute("SET allowed_paths = $paths", {"paths": paths})
        database.execute("SET python_enable_replacements = false")
        database.execute("SET enable_external_access = false; SET lock_configuration = true")
        try:
            statements = database.extract_statements(query)
            if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
                raise InputError("the SQL is not one SELECT; write one, without a word before it")
            rows: list[dict[str, Any]] = database.sql(query).to_arrow_table().to_pylist()
            return rows
        except duckdb.Error as e:
            hidden = ", ".join(name for name in left_out if name != VECTORS)
            why = f" Not here, as the scope hides documents: {hidden}." if hidden else ""
            raise InputError(f"the SQL does not run: {e}.{why}") from e
