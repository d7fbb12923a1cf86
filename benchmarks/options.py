"""What the measurements share: their options, reading rows, refusing data, printing figures.

Not a measurement itself: `make bench` leaves it out.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from kpyramid.errors import InputError

BENCH = "KPYRAMID_BENCH"


def read_options(
    doc: str | None,
    *,
    limit: str,
    folder: str = "",
    data: Path | None = None,
    least: int = 1,
    seed: str = "unused: nothing is drawn",
    flags: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
) -> argparse.Namespace:
    """The options of a script; ends it with status 2 and a message when they give no data.

    The data are `folder` below $KPYRAMID_BENCH, or `data`, unless `--data` names others; `limit`,
    `seed` and the values of `flags` and of `values`, options that take a text, are help texts;
    `least` is the smallest limit.
    """
    parser = make_parser(doc, seed)
    bench = os.environ.get(BENCH)
    if folder:
        form = f"a folder of the form of {folder}; found below ${BENCH} by default"
        data = Path(bench) / folder if bench else None
    else:
        form = "any corpus folder or file"
    parser.add_argument("--data", type=Path, default=data, help=form)
    parser.add_argument("--limit", type=name_count(least), help=limit)
    for flag, text in (flags or {}).items():
        parser.add_argument(flag, action="store_true", help=text)
    for option, text in (values or {}).items():
        parser.add_argument(option, help=text)
    options = parser.parse_args()
    advice = f"say --data FOLDER or set {BENCH} to the folder that holds {folder}"
    if options.data is None:
        refuse(f"no data: {advice}")
    if folder and not options.data.is_dir():
        refuse(f"{options.data}: no such folder; {advice}")
    if not options.data.exists():
        refuse(f"{options.data}: no such file or folder; say --data FOLDER")
    return options


def make_parser(doc: str | None, seed: str) -> argparse.ArgumentParser:
    """What every script takes, `--seed` and `--json`; `seed` is a help text."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help=seed)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    return parser


def name_count(least: int) -> Callable[[str], int]:
    """A reader of whole numbers from `least` on."""

    def read_count(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}; give a whole number of at least {least}")
        return int(text)

    return read_count


def read_rows(folder: Path, pattern: str) -> list[dict[str, Any]]:
    """All objects in the folder's files of JSON lines, in the order of the files' names."""
    return [
        json.loads(line)
        for path in sorted(folder.glob(pattern))
        for line in path.read_text("utf-8").splitlines()
    ]


@contextmanager
def explain_faults(data: Path, form: str) -> Iterator[None]:
    """Turns what goes wrong when data of another form are read into a message and status 2."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, OSError) as error:
        reason = f"{type(error).__name__}: {error}"
    except (InputError, ValueError) as error:  # a reader's words, or a line that is no JSON
        reason = str(error)
    else:
        return
    refuse(f"{data}: {reason}; give --data a folder of the form of {form}")


def refuse(message: str) -> NoReturn:
    """Ends the script with a message on stderr and status 2."""
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    raise SystemExit(2)


def report(phase: str) -> None:
    """One line on stderr for work of minutes, so that stdout holds figures only."""
    print(f"{phase} ...", file=sys.stderr, flush=True)


def read_size(pid: int | str, field: str) -> int:
    """A size in kB that the system tells of a process, or of `self`; 0 where it tells none."""
    try:
        said = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(said.split(f"{field}:")[1].split()[0]) if f"{field}:" in said else 0


def print_figures(figures: Mapping[str, Any], as_json: bool) -> None:
    """One JSON object, or a line per figure and a table per group of figures."""
    if as_json:
        print(json.dumps(figures, ensure_ascii=False))
        return
    for name, value in figures.items():
        if isinstance(value, list):
            print_group(name, {str(at): row for at, row in enumerate(value, 1)})
        elif isinstance(value, Mapping):
            print_group(name, value)
        else:
            print(f"{name:26} {value}")


def print_group(name: str, group: Mapping[str, Any]) -> None:
    """A row per member, with the fields of the first row as columns where there are fields."""
    rows = {key: row if isinstance(row, Mapping) else {"": row} for key, row in group.items()}
    columns = {column: max(len(column), 8) for column in next(iter(rows.values()), {})}
    print(f"{name:26} {' '.join(f'{column:{columns[column]}}' for column in columns)}".rstrip())
    for key, row in rows.items():
        cells = (f"{row.get(column, '')!s:{width}}" for column, width in columns.items())
        print(f"  {key:24} {' '.join(cells)}".rstrip())
