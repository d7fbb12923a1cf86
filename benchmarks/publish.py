"""What a snapshot costs to publish, verify, open, compare and export, beside the plain tools.

No published system is reproduced. The snapshot is that of `query.py`: tables of `synthetic.py`, a
condensed fact per triple, an index. Each ratio is of two wall times in one run, files warm:
`publish_over_copy` writes the snapshot and moves a ref, over a copy of the same files with a flush
of each to the disk; `verify_over_sha256` is `kpyramid verify`, all it does, over `sha256sum -c`,
and `bytes_over_sha256` its check of the bytes alone. `open_seconds` is the median wall time of a
fresh process that opens the ref and retrieves once, its modules compiled as an installed package's
are, and `open_busy` its processor time. `diff_seconds` and `peak_mb` are of a fresh
process that runs `kpyramid diff --json --table facts` against a snapshot in which one fact and one
document in a hundred are gone, and one fact in a hundred is changed. `export_over_write` is, for
each form, the wall time of an export that is on the disk over that of writing the same bytes with
a flush of each file; `import_seconds` takes the folder and the tarball into another warehouse with
all checks, and `same_id` is 1 if both have the id that was exported. `flips_found` of `flips`
single bits turned in a snapshot of 2,000 triples, half drawn from all its bytes and half from all
its files, are told by the check of the bytes, by the file's name.

`--keep FOLDER` keeps the warehouse there, or measures the one that is there already.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from flips import turn_bits
from options import make_parser, name_count, print_figures, report
from query import UNCOMPILED, make_warehouse

from kpyramid.snapshot.export import FORMS, export
from kpyramid.snapshot.graph import READS, write_graph
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.store import GRAPH, VECTORS
from kpyramid.snapshot.view import EVERYTHING
from kpyramid.storage.archive import import_snapshot
from kpyramid.storage.contracts import encode_table, load_contracts, read_table
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.publication import commit, write_snapshot
from kpyramid.storage.refs import resolve_ref
from kpyramid.storage.snapshots import read_manifest
from kpyramid.storage.verification import check_bytes
from kpyramid.storage.writing import sync_folder

FRESH = 3
SHARE = 100
FLIPS = 1_000
QUESTION = "Where was Aria 12 born?"
RETRIEVE = f"""import kpyramid, sys
kpyramid.retrieve({QUESTION!r}, kpyramid.open_snapshot("main", sys.argv[1]))"""
MEASURED = """import sys
from kpyramid.cli.app import app
try:
    app(sys.argv[1:])
finally:
    peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    print(peak[0].split()[1], file=sys.stderr)"""
"""ru_maxrss would be that of this process, where that is larger."""


def take_time(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def run(
    *command: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=True)


def count_busy() -> float:
    """The processor seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def copy_synced(source: Path, target: Path) -> None:
    """A copy whose every file is on the disk."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            sync_folder(copy)


def list_files(folder: Path) -> dict[str, bytes | Path]:
    named: Any = read_manifest(folder)["files"]
    return {name: folder / name for name in named}


def change_some(folder: Path) -> dict[str, bytes]:
    """Documents and facts of the snapshot in a folder, one in a hundred gone, or changed."""
    contracts, changed = load_contracts(), {}
    for name in ("documents", "condensed"):
        path = folder / "tables" / f"{name}.parquet"
        table = read_table(path, contracts[name])
        left = [row for row in range(table.num_rows) if row % SHARE]
        table = table.take(pa.array(left))
        if name == "condensed":
            place = table.column_names.index("standard_relation")
            words = [
                "changed" if row % SHARE == 1 else word
                for row, word in enumerate(table["standard_relation"].to_pylist())
            ]
            table = table.set_column(place, table.schema.field(place), pa.array(words))
        changed[f"tables/{name}.parquet"] = encode_table(contracts[name].finish(table))
    return changed


def complete(warehouse: Warehouse) -> None:
    """Publishes what `main` is at with its graph and all tables: those not made stay empty."""
    made = warehouse.snapshots / resolve_ref(warehouse, "main")
    files = list_files(made)
    for name, contract in load_contracts().items():
        if name != VECTORS and (file := f"tables/{name}.parquet") not in files:
            files[file] = encode_table(contract.build([]))
    files[GRAPH] = warehouse.root / GRAPH
    write_graph({name: made / f"tables/{name}.parquet" for name in READS}, warehouse.root / GRAPH)
    facts = {k: v for k, v in read_manifest(made).items() if k != "files"}
    whole = write_snapshot(warehouse, files, facts)
    commit(warehouse, "main", snapshot=whole, order="1", run="whole", at="now")


def measure_exports(folder: Path, scratch: Path) -> dict[str, Any]:
    """Each form over writing its bytes, and the way back."""
    snapshot, found = Snapshot(folder, scope=EVERYTHING), {}
    import lancedb  # noqa: F401 - three seconds of their own

    seconds: dict[str, float] = {}
    sizes: dict[str, int] = {}
    for form in FORMS:
        report(f"exporting to {form}")
        path, copy = scratch / form, scratch / "bytes"
        seconds[form] = take_time(partial(export, snapshot, form, path))
        source = path if path.is_dir() else scratch / "one"
        if not path.is_dir():
            source.mkdir()
            path.rename(source / form)
        written = take_time(partial(copy_synced, source, copy))
        found[form] = round(seconds[form] / written, 2)
        sizes[form] = sum(p.stat().st_size for p in copy.rglob("*") if p.is_file()) >> 20
        shutil.rmtree(copy)
        if path.is_dir() and form != "folder":
            shutil.rmtree(path)
        elif source.name == "one":
            if form == "tar":
                (source / form).rename(path)
            shutil.rmtree(source)
    imported, same = {}, []
    for form in ("folder", "tar"):
        report(f"importing the {form}")
        other = Warehouse(scratch / f"imported-{form}")
        started = time.perf_counter()
        same.append(import_snapshot(other, scratch / form)[0] == snapshot.id)
        imported[form] = round(time.perf_counter() - started, 2)
        shutil.rmtree(other.root)
    return {
        "export_over_write": found,
        "export_seconds": {form: round(took, 2) for form, took in seconds.items()},
        "export_megabytes": sizes,
        "import_seconds": imported,
        "same_id": int(all(same)),
    }


def count_found(seed: int, flips: int) -> int:
    """Of so many turned bits, those that are found."""
    with tempfile.TemporaryDirectory() as folder:
        make_warehouse(Path(folder), 2_000, seed)
        small = Warehouse(Path(folder))
        snapshot = small.snapshots / resolve_ref(small, "main")
        return sum(flip.is_found for flip in turn_bits(snapshot, flips, seed))


def measure(place: Path, triples: int, seed: int, flips: int) -> dict[str, Any]:
    """All figures, of the warehouse in a folder, made first where there is none."""
    warehouse = Warehouse(place)
    if not warehouse.refs.is_dir():
        make_warehouse(place, triples, seed)
        complete(warehouse)
    first = warehouse.snapshots / resolve_ref(warehouse, "main")
    scratch = place / "measured"
    shutil.rmtree(scratch, ignore_errors=True)
    size = sum(path.stat().st_size for path in first.rglob("*") if path.is_file())
    facts = {k: v for k, v in read_manifest(first).items() if k != "files"}
    report(f"copying and publishing {size / 2**20:.0f} MB")
    copied = take_time(lambda: copy_synced(first, scratch / "copy"))
    other = Warehouse(scratch / "warehouse")

    def publish() -> None:
        made = write_snapshot(other, list_files(first), {**facts, "measured": 1})
        commit(other, "main", snapshot=made, order="1", run="measured", at="now")

    published = take_time(publish)
    report("verifying")
    sums = take_time(lambda: run("sha256sum", "--quiet", "-c", "SHA256SUMS", cwd=first))
    checked = take_time(lambda: check_bytes(first))
    command = (sys.executable, "-m", "kpyramid", "verify", "--warehouse", str(place), "--json")
    verified = take_time(lambda: subprocess.run(command, capture_output=True, check=False))
    report("turning bits")
    found = count_found(seed, flips)
    report("opening")
    compiled = {name: value for name, value in os.environ.items() if name != UNCOMPILED}
    run(sys.executable, "-c", RETRIEVE, str(place), env=compiled)
    before = count_busy()
    opened = [
        take_time(lambda: run(sys.executable, "-c", RETRIEVE, str(place), env=compiled))
        for _ in range(FRESH)
    ]
    busy = count_busy() - before
    report("comparing")
    again = {**list_files(first), **change_some(first)}
    later = write_snapshot(warehouse, again, {**facts, "measured": 2})
    options = ("--warehouse", str(place), "--everything", "--json", "--table", "facts")
    comparing = (sys.executable, "-c", MEASURED, "diff", "main", later, *options)
    started = time.perf_counter()
    done = run(*comparing)
    seconds = time.perf_counter() - started
    exported = measure_exports(first, scratch)
    shutil.rmtree(scratch)
    return {
        "publish_over_copy": round(published / copied, 2),
        "verify_over_sha256": round(verified / sums, 2),
        "bytes_over_sha256": round(checked / sums, 2),
        "open_seconds": round(statistics.median(opened), 2),
        "open_busy": round(busy / FRESH, 2),
        "diff_seconds": round(seconds, 2),
        "peak_mb": round(int(done.stderr.split()[-1]) / 1024),
        "flips": flips,
        "flips_found": found,
        "copy_seconds": round(copied, 2),
        "sha256_seconds": round(sums, 2),
        "megabytes": round(size / 2**20),
        **exported,
        "triples": triples,
        "processors": os.cpu_count(),
    }


def main() -> None:
    parser = make_parser(__doc__, "draws the facts")
    parser.add_argument("--triples", type=name_count(1000), default=100_000, help="of the graph")
    parser.add_argument("--keep", type=Path, help="a folder for the warehouse that is measured")
    parser.add_argument("--limit", type=name_count(1), default=FLIPS, help="bits turned")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = options.keep or Path(folder)
        figures = measure(place, options.triples, options.seed, options.limit)
        print_figures(figures, options.json)


if __name__ == "__main__":
    main()
