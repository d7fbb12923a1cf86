"""Facts of tables and of `Key: value` lines, without a parser.

A row's subject is its cell in the first column of names, the header is the relation, the cell the
value; the subject of keys and values is named by the caption, a heading or the title. Doubtful
tables, rows and columns are dropped with their reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import filterfalse, groupby, pairwise
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias, cast

from simplemma import is_known

from kpyramid.documents.blocks import NOTED, STATED, Block
from kpyramid.documents.measures import SIZES
from kpyramid.documents.qualifiers import TABLE, cite_document
from kpyramid.documents.sentences import Dropped, Span, trim
from kpyramid.documents.values import (
    CURRENCIES,
    MONTH,
    NUMBER,
    WEEKDAY,
    YEAR,
    Date,
    find_values,
    read_value,
)
from kpyramid.documents.words import (
    ARTICLES,
    AUXILIARIES,
    FUNCTION_WORDS,
    MODALS,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    is_past,
    lemmatise,
    read_words,
)
from kpyramid.extraction.facts.candidates import WORDS
from kpyramid.extraction.facts.scoring import WEIGHTS
from kpyramid.extraction.syntax.kinds import find_kind_label, find_name_gender, is_person_noun
from kpyramid.extraction.syntax.predicates import AFFECTING, VERBS
from kpyramid.extraction.types import (
    MAX_RELATION_WORDS,
    Argument,
    Claim,
    Extraction,
    Fact,
    Mention,
    Titled,
)


class Cell(NamedTuple):
    """Words and their spans: none for a title, several for a joined name.

    `when`: the time of a header's values.
    """

    text: str
    spans: tuple[Span, ...] = ()
    when: str = ""

    @property
    def span(self) -> Span | None:
        """The span of the words; None where they do not occur literally."""
        return self.spans[0] if len(self.spans) == 1 else None


_Row = Mapping[int, Cell]
_Type = Literal["date", "number", "flag", "text"]


@dataclass(slots=True)
class _Table:
    """Rows of cells by column; `header`: the rows above them, which name the columns."""

    header: list[_Row] = field(default_factory=list)
    rows: list[_Row] = field(default_factory=list)
    subject: tuple[int, ...] = ()
    kind: Cell | None = None
    """The header of the subjects' column, where it is their class."""


def read_tables(given: Titled) -> Extraction:
    """The facts of the cells and pairs of a text, with a claim and a fact per value."""
    findings = _Findings()
    context = [(0, Cell(given.title))]
    for (kind, _), run in groupby(_number_runs(given), key=itemgetter(0, 1)):
        blocks = [block for *_, block in run]
        cells = [Cell(given.text[b.start : b.end], (Span(b.start, b.end),)) for b in blocks]
        if kind in {"heading", "caption"}:
            for block, cell in zip(blocks, cells, strict=True):
                level = block.level if kind == "heading" else _CAPTION
                context = [*(entry for entry in context if entry[0] < level), (level, cell)]
        elif kind == "pair":
            subject = _name_context(context, title=given.title)
            pairs = [_split_pair(part) for cell in cells for part in _part_pairs(cell)]
            plain = [(k, v) for *name, k, v in pairs if not name]
            for record, rest in _cut_records(plain, context[-1][1].text):
                findings.add_pairs(rest, record[1] if record else subject)
                if record and record[0].text.casefold() not in _WORDS["naming"]:
                    findings.add_member(record[1], record[0])
            for name, key, value in (pair for pair in pairs if len(pair) > _PAIR.groups):
                findings.add_pairs([(key, value)], name)
        elif kind == "cell" and STATED[blocks[0].level]:
            for _, row in groupby(zip(blocks, cells, strict=True), key=lambda pair: pair[0].row):
                findings.add_statement(*row)
        elif kind == "cell":
            for table in _list_tables(blocks, cells):
                named = {w for row in table.header for c in row.values() for w in c.text.split()}
                nouns = {lemmatise(word.casefold()) for word in named}
                above = cite_document(context[-1][1].text, "")
                title = given.title if _is_narrow(table) else ""
                level, cell = context[-1]
                subject = _name_context(context, nouns, title)
                measured = cell.text if level or _PARTED_BY.search(cell.text) else ""
                findings.add_table(table, subject, above, measured)
        if kind not in {"heading", "caption"}:
            context = [entry for entry in context if entry[0] != _CAPTION]
    return findings.build()


def _number_runs(given: Titled) -> Iterator[tuple[str, int, Block]]:
    """Each block with its kind and the number of its run: other text ends a run of pairs."""
    number = last = 0
    for block in given.blocks:
        number += block.kind == "pair" and not given.text[last : block.start].isspace()
        last = block.end
        yield block.kind, number, block


_Pair: TypeAlias = tuple[Cell, Cell]


def _cut_records(
    pairs: Sequence[_Pair], above: str
) -> Iterator[tuple[_Pair | None, Sequence[_Pair]]]:
    """Pairs by the thing that they are of: its kind and name come first, as in "Room: B2".

    The kind begins several runs of pairs, or is what the text above them is of ("Lease summary");
    else they are of what that text names, and the first part is None.
    """
    keys = [key.text.casefold() for key, _ in pairs]
    starts = [i for i, key in enumerate(keys) if key == keys[0]]
    names = {pairs[i][1].text for i in starts}
    named = len(names) == len(starts) and all(map(_is_name, names))
    words = keys[0].split() if keys else []
    kind = not any(w in _NO_KINDS or _is_participle(w) for w in words)
    about = [w for w in above.casefold().split() if lemmatise(w) not in _WORDS["parts"]]
    opens = kind and (len(starts) > 1 or about == words)
    runs = [(start, end) for start, end in pairwise([*starts, len(pairs)])]
    if not (named and opens and all(end - start > 1 for start, end in runs)):
        runs = []
        yield None, pairs
    for start, end in runs:
        yield pairs[start], pairs[start + 1 : end]


_CAPTION = 9
"""A level below all headings: a caption only names the next table."""


_FIELD = re.compile(r"\s+[|·•]\s+(?=[A-Z][^:|·•]{0,40}:\s)")
"""What parts the pairs of one line: "Grade: C3 | Hours: 37.5"."""


def _part_pairs(cell: Cell) -> Iterator[Cell]:
    """The pairs of a line, each with its place."""
    start, at = cell.spans[0].start, 0
    for end, after in [*(m.span() for m in _FIELD.finditer(cell.text)), (len(cell.text), 0)]:
        yield Cell(cell.text[at:end], (Span(start + at, start + end),))
        at = after


def _split_pair(cell: Cell) -> list[Cell]:
    """The key and the value of a line, after the thing that they are of where the line names it."""
    start = cell.spans[0].start
    parts = NOTED.fullmatch(cell.text) or _PAIR.match(cell.text)
    assert parts is not None, "a pair has any text"
    spans = (parts.span(group) for group in range(1, parts.re.groups + 1))
    return [Cell(cell.text[s:e], (Span(start + s, start + e),)) for s, e in spans]


_PAIR = re.compile(r"((?:\([^()]*\)|[^:])*):?\s*(.*)", re.DOTALL)
"""The key ends at the first colon outside of brackets."""


def _is_narrow(table: _Table) -> bool:
    """Whether a table has two columns, which may be keys and values as on lines."""
    return max(max(row) for row in (*table.header, *table.rows)) == 1


def _list_tables(blocks: Sequence[Block], cells: Sequence[Cell]) -> list[_Table]:
    """The tables of consecutive cells; consecutive tables with the same header are joined."""
    tables: list[_Table] = []
    last = (0, 0)
    rows: dict[int, dict[int, Cell]] = {}
    levels: dict[int, int] = {}

    subject: tuple[int, ...] = ()
    kind: Cell | None = None

    def close() -> None:
        table = _Table(subject=subject, kind=kind)
        for row, columns in rows.items():
            above = levels[row] and not table.rows
            (table.header if above else table.rows).append(columns)
        words = [[cell.text for cell in row.values()] for row in table.header]
        if tables and words and words == [[c.text for c in r.values()] for r in tables[-1].header]:
            tables[-1].rows += table.rows
        else:
            tables.append(table)

    for block, cell in zip(blocks, cells, strict=True):
        if rows and (block.row, block.column) <= last:
            close()
            rows, levels = {}, {}
        last = (block.row, block.column)
        rows.setdefault(block.row, {})[block.column] = cell
        if block.level > 1:
            subject, kind = (block.column,), cell if block.level > 2 else None
        levels[block.row] = min(levels.get(block.row, 1), block.level)
    close()
    return tables


# What a table is about.

_WORDS = read_words(__file__, "tables.toml")
_NAME_PARTS = (
    re.compile(r"(?:first|given|fore)[ _]?names?", re.I),
    re.compile(r"(?:last|family|sur)[ _]?names?", re.I),
)
_GENERIC = re.compile(r"(?:attribute|detail|field|information|item|key|property|value|)s?", re.I)
_SILENT = re.compile(
    r"(?:(?:no|nr|index|idx|row)?[\W_]*\d*|(?:col|column|field|unnamed|var)[\W_]*\d+)", re.I
)
_TOTAL = re.compile(
    r"(?:grand |sub[- ]?)?totals?|sums?|averages?|means?|medians?|overall|all", re.I
)
_ROLE = re.compile(r".*(?:[eo]r|champion|runner-up|host)s?", re.I)
_EMPTY = re.compile(
    r"[\W_]*|n\.?/?a\.?|tb[ac]|ditto|idem|as above|(?:see|refer to) (?:also )?\S+(?: \S+)?", re.I
)
"""Cells without a value, which refer to another place: "see below"."""
_LONGEST_NAME, _LONGEST_TITLE, _LONGEST_VALUE = 8, 14, 80
"""Words."""


def _name_context(
    context: Sequence[tuple[int, Cell]], nouns: Collection[str] = (), title: str = ""
) -> Cell | None:
    """The nearest of caption, headings and title that names a single thing.

    Its words are capitalised, and its noun is no plural, except in a title. Parts of texts are
    skipped, and headings with one of the `nouns` of the columns: "Population", "Winners". Where
    another heading does not name a single thing, those above it are not used either. A `title`
    names its document in any words, unless it is a deed or question.
    """
    for level, cell in reversed(context):
        is_title = bool(title) and title.casefold().startswith(cell.text.casefold())
        words = cell.text.split()
        last = words[-1] if words else ""
        noun = lemmatise(last.casefold())
        if noun in _WORDS["parts"] or (level and noun in nouns) or _PARTED_BY.search(cell.text):
            continue  # "Technical Data" is that of what stands above
        large = all(w in FUNCTION_WORDS or not w[0].islower() for w in words)
        plural = level and not is_title and noun != last.casefold() and last.endswith("s")
        first = re.split("['’]", words[0].casefold())[0] if words else ""
        stem = first.removesuffix("ing")
        doing = stem != first and not AFFECTING.isdisjoint({stem, f"{stem}e", lemmatise(first)})
        deed = doing or _is_participle(first)
        is_named = is_title or (large and ": " not in cell.text)
        is_name = is_named and not (plural or deed or first in QUESTION_WORDS)
        longest = _LONGEST_TITLE if is_title else _LONGEST_NAME
        short = 0 < len(words) <= longest and cell.text[-1] not in ".:?!,;"
        return cell if is_name and short else None
    return None


def _is_empty(text: str) -> bool:
    return _EMPTY.fullmatch(text) is not None and _classify(text) != "flag"


def _classify(text: str) -> _Type:
    if text.casefold() in _WORDS["affirming"] | _WORDS["denying"]:
        return "flag"
    value = read_value(text) if len(text) <= _LONGEST_NUMBER else None
    dated = isinstance(value, Date) and (value.month or text.isdigit())  # no "1200 kB"
    when = (_RANGE, _PERIOD, _SEASON, _DAY)
    if dated or _DATED.match(text) or any(pattern.fullmatch(text) for pattern in when):
        return "date"
    is_number = value is not None or _MEASURE.fullmatch(text[:_LONGEST_NUMBER])
    return "number" if is_number and len(text) <= _LONGEST_NUMBER else "text"


_LONGEST_NUMBER = 40
"""Characters."""
_PERIOD = re.compile(r"(?:FY|[QH][1-4])[ -]?'?\d{2,4}|[12]\d{3}[ -/]?[QH][1-4]", re.I)
_DAY = re.compile(rf"[0-3]?\d\.? {MONTH}\.?|{WEEKDAY}")
"""A day without its year."""
_SEASON = re.compile(rf"{YEAR}/\d\d")
_RANGE = re.compile(r"[12]\d{3}\s?[-–—]\s?(?:\d{2,4}|present)?")
_DATED = re.compile(rf"(?:\d{{4}}-\d\d-\d\d(?:[T ][\d:.]+Z?$)|{YEAR}(?=\s*[(\[]))")
_MEASURE = re.compile(
    rf"[^\w\s]?\s?(?:[A-Z]{{0,3}}[$€£¥]\s?|[A-Z]{{3}}\s)?{NUMBER}\s?(?:[x×*]\s?10\S*)?(?:[a-zµ°%²³/]\S{{0,9}}\s?){{0,2}}|[^\w]*\d[\W\d]*|[IVXL]+\.?"
)


def _name_columns(header: Sequence[_Row], width: int) -> dict[int, Cell]:
    """The header of each column: the words of all header rows, first those over several columns."""
    named: dict[int, tuple[Cell, ...]] = {}
    for row in header:
        reaching: Cell | None = None
        if len(row) == 1 and len(header) > 1 and width > 1:
            continue  # a title of the whole table
        for column in range(width):
            last = row is header[-1]
            reaching = row.get(column) or (None if last else reaching)
            parts = named.get(column, ())
            if reaching is not None and all(reaching.text != part.text for part in parts):
                named[column] = (*parts, reaching)
    return {column: _join_cells(parts) for column, parts in named.items()}


def _join_cells(cells: Iterable[Cell]) -> Cell:
    parts = list(cells)
    return Cell(" ".join(p.text for p in parts), tuple(s for p in parts for s in p.spans))


def _find_subject(
    names: _Row, rows: Sequence[_Row], types: Mapping[int, Counter[_Type]]
) -> tuple[int, ...]:
    """The first column of distinct names, both columns of names in two parts, or none.

    Identifiers, and columns without a meaningful header, are chosen only where there is no other;
    an identifier in the first column also where the names repeat; descriptions of the rows and
    what is done to them ("assigned to") only where there are none of these.
    """
    headers = {column: cell.text for column, cell in names.items()}
    first = _split_header(headers.get(0, ""))
    if first and first[0] in _ASKING and (len(first) > 1 or first[0] in {"if", "when"}):
        return ()  # "if", "it says", "what happened": no row is a thing
    parts = [[c for c in types if part.fullmatch(headers.get(c, ""))] for part in _NAME_PARTS]
    if all(parts):
        return tuple(columns[0] for columns in parts)
    plain = {" ".join(_split_header(text)).casefold() for text in headers.values()}
    tasks = [c for c, text in headers.items() if text.casefold() in _WORDS["tasks"]]
    if tasks and not _WORDS["assigning"].isdisjoint(plain):
        return (tasks[0],)
    keys = _WORDS["serials"] | _WORDS["identifiers"]
    serial_first = _is_silent(headers.get(0, "")) or not keys.isdisjoint(
        w.strip(".") for w in first
    )
    is_dated = types.get(0, Counter())["date"] >= 0.5 * len(rows)
    chosen: list[tuple[int, int]] = []
    repeated: set[int] = set()
    is_keyed = False  # the first column holds an identifier of each row
    for column, counts in types.items():
        texts = [row[column].text for row in rows if column in row]
        filled = len(texts) >= 0.6 * len(rows)
        short = filled and sum(map(_is_short, texts)) >= _MOST * len(texts)
        count = len({text.casefold() for text in texts})
        distinct = count >= _MOST * len(texts)
        header = headers.get(column, "").casefold().replace("_", " ").replace("(s)", "")
        noun, words = header.rpartition(" ")[2], header.split()
        if column and header == "number":
            continue  # how many there are
        named = counts["text"] >= 0.5 * len(rows) or noun in _NUMBERED
        others = {c.text for row in rows for at, c in row.items() if at != column}
        if column and is_dated and len(others.intersection(texts)) > 0.5 * len({*texts}):
            continue  # who is on duty first, second and third
        if short and distinct and named and not any(column in columns for columns in parts):
            numbered = noun in _NUMBERED and counts["text"] < 0.5 * len(rows)
            of = header.rpartition(" ")[0]  # the number of what another column names
            serial = noun.strip(".") in _WORDS["serials"] and {"name", of, f"{of} name"} & plain
            is_key = numbered or serial or noun in _WORDS["identifiers"]
            weak = is_key or (header and _is_silent(header))
            if count < len(texts):
                repeated.add(column)
            elif column == 0:
                is_keyed = bool(is_key) and count == len(rows)
            asks = len(words) > 1 and (words[0] in QUESTION_WORDS or words[-1] in _LEADING)
            told = _WORDS["describing"] | (_WORDS["tasks"] if column else frozenset())
            says = not told.isdisjoint({*words, *map(lemmatise, words)})
            if says and column and not serial_first:
                continue  # the season has a remark, the remark has no season
            chosen.append((2 * (asks or says) or bool(weak), column))
    if not chosen:
        noun = first[-1] if first else ""
        numbers = [row[0].text for row in rows if 0 in row]
        counted = types.get(0, Counter())["number"] >= _MOST * len(rows)
        called = counted and _is_numbered(noun) and len({*numbers}) == len(rows)
        return (0,) if called else ()
    column = min(chosen)[1]
    names_one = any(_is_name(row[column].text) for row in rows if column in row)
    if is_keyed and (column in repeated or not names_one):
        column = 0  # "4 hours" and "none" are aims of severities, which these numbers name
    # A participant of a year's event, "Winner", is not the subject of the row.
    is_event = types.get(0, Counter())["date"] and _ROLE.fullmatch(headers.get(column, ""))
    return () if is_event and column else (column,)


_ASKING, _VERBAL = QUESTION_WORDS | PRONOUNS | {"if"}, AUXILIARIES | MODALS
_NUMBERED = WORDS["numbered"] | _WORDS["coded"]
_ASKED = frozenset({"owner", "date", *_WORDS["tasks"], *_WORDS["qualities"]})
"""Nouns of headers above columns of words only."""


def _split_header(header: str) -> list[str]:
    """The words of a header in lower case, except capitals: "IT" is not "it"."""
    return [w if w.isupper() else w.casefold() for w in header.replace("_", " ").split()]


def _name_row(cell: Cell, header: Sequence[Cell]) -> Cell:
    """The subject of a row: in a column "Office" the Leeds office, not Leeds; "exit code 5"."""
    above = "".join(cell.text.casefold() for cell in header[:1]).partition(" of ")[0]
    above = above.replace("(s)", "")
    noun = lemmatise(above.rpartition(" ")[2])
    lemmas = {lemmatise(word) for word in cell.text.casefold().split()}
    called = noun in _NUMBERED or (cell.text.isdigit() and _is_numbered(noun))
    if called and cell.text[0].isdigit():
        return _join_cells((header[0]._replace(text=header[0].text.lower()), cell))
    if noun not in _WORDS["named_after"] or noun in lemmas:
        return cell
    coded = " " not in cell.text and any(map(str.isdigit, cell.text))
    words = f"{noun} {cell.text}" if coded else f"{cell.text} {noun}"
    return Cell(words, (*cell.spans, *header[0].spans))


def _is_unnamed(text: str, kind: str) -> bool:
    """Whether a cell names nothing, "vacant", or has its kind in its name: "Lund site"."""
    words, last = text.casefold().split(), kind.casefold().split()
    return words[-len(last) :] == last or words[-1] in _WORDS["unnamed"]


def _find_kind(names: _Row, rows: Sequence[_Row], column: int) -> Cell | None:
    """The header as the kind of its rows, if these have names: below "Supplier" are suppliers."""
    header = names.get(column, Cell(""))
    *before, noun = _split_header(header.text.replace("(s)", "")) or [""]
    noun = lemmatise(noun)
    is_kind = noun in _WORDS["classes"] | _WORDS["named_after"] or find_kind_label(noun) in _KINDS
    called = all(_is_name(row[column].text) for row in rows if column in row)
    plain = all(word.isupper() for word in before)  # "IT system", no "previous employer"
    if not (is_kind and called and plain) or noun == "group":
        return None
    # Two spans: the words of the kind are not those of the header.
    return Cell(" ".join([*before, noun]), 2 * header.spans[:1])


_KINDS = frozenset({"FAC", "GPE", "LOC", "ORG", "PERSON", "PRODUCT", "WORK_OF_ART"})


def _is_numbered(noun: str) -> bool:
    """Whether things of a kind may be called by numbers: in the column "Unit" 201 is a unit."""
    return noun in _WORDS["named_after"] or find_kind_label(noun) is not None


def _is_short(text: str) -> bool:
    """Whether a cell may be a name: "Adobe Inc." is one, "The key is missing." a sentence."""
    words = text.split()
    ended = text[-1] in ".?!" and not words[-1][0].isupper()
    return len(words) <= _LONGEST_NAME and not ended


def _is_clause(text: str) -> bool:
    """Whether a cell is a clause, not a name: "a gate refused"."""
    first, *rest = text.casefold().split()
    opens = first in FUNCTION_WORDS | {"nothing"} and text[1:].islower() and rest
    return _is_empty(text) or bool(opens and (_VERBAL & {*rest} or _is_participle(rest[-1])))


def _find_repeated(rows: Sequence[_Row], types: Mapping[int, Counter[_Type]]) -> tuple[int, ...]:
    """The column after that of times whose few names recur with each of them: places, products."""
    labels = [row[1].text for row in rows if 1 in row]
    few = types.get(1, Counter())["text"] == len(rows) == len(labels) >= 2 * len({*labels})
    few = few and all(label[0].isupper() for label in labels)
    keys = {(row[0].text, row[1].text) for row in rows if 0 in row and 1 in row}
    return (1,) if few and len(keys) == len(rows) and all(map(_is_short, labels)) else ()


_CODE = re.compile(r"[A-Z]{1,4}[-.]?\d{1,4}")
_MOST = 0.8
"""The least share of distinct names among the cells of a column that names the rows."""


def _is_turned(names: _Row, rows: Sequence[_Row]) -> bool | None:
    """Whether the first column is the header; None where the table does not decide it.

    The cells of a header have the same type: where the cells of each row have one type and those
    of the columns do not, the headers belong to the rows.
    """
    if any(cell.text.casefold() in _WORDS["stands"] for column, cell in names.items() if column):
        return False
    inner = [
        {c: _classify(cell.text) for c, cell in row.items() if c and not _is_empty(cell.text)}
        for row in rows
    ]
    by_row = [set(types.values()) for types in inner if types]
    alike = sum(len(kinds) == 1 for kinds in by_row)
    even = alike >= _MOST * len(by_row)
    by_column: dict[int, set[_Type]] = {}
    for types in inner:
        for column, kind in types.items():
            by_column.setdefault(column, set()).add(kind)
    if len(by_column) < 2 or (0 in names and not _GENERIC.fullmatch(names[0].text)):
        mixed = all(len(kinds) > 1 for kinds in by_column.values())
        return len(by_column) > 1 and mixed and even
    if all(len(kinds) < 2 for kinds in by_column.values()):
        if any(len(kinds) > 1 for kinds in by_row):
            return False
        kinds = {kind for kinds in by_column.values() for kind in kinds}
        labels = {row[0].text for row in rows if 0 in row}
        matrix = not labels.isdisjoint(cell.text for cell in names.values())
        return None if matrix or kinds != {"number"} else False
    return even or (None if 2 * alike > len(by_row) else False)


def _opens_with_header(rows: Sequence[_Row]) -> bool:
    """Whether the first row of a table without a header is one: text above a column of values."""
    first, rest = rows[0], rows[1:]
    if len(first) < 2 or {_classify(cell.text) for cell in first.values()} != {"text"}:
        return False
    below = [{_classify(row[column].text) for row in rest if column in row} for column in first]
    valued = any(len(kinds) == 1 and kinds != {"text"} for kinds in below)
    words = [_split_header(cell.text) for cell in first.values()]
    asked = [p for p in words if p and (p[0] in QUESTION_WORDS or p[-1] in _ASKED)]
    return len(rest) > 1 and (valued or (len(asked) > 1 and len(first) > 2))


# Headers as relations.


class _Header(NamedTuple):
    """A header's words, the unit of its values, and their year."""

    words: str
    unit: str
    year: str


def _read_header(text: str) -> _Header:
    text = text.replace("(s)", "")
    words = " ".join(text.replace("_", " ").strip(" :*").split())
    inside = _BRACKET.search(words)
    if inside:
        words = words[: inside.start()]
        if _YEARS.sub("", inside[1]).strip(" ,").casefold() in _WORDS["kinds"]:
            words, inside = f"{inside[1]} {words}", None
    years = [m for part in (inside[1] if inside else "", words) for m in _YEARS.findall(part)]
    suffix = _SUFFIX.search(text)
    numbered = suffix is not None and text[: suffix.start()][-1:].isdigit()  # "Fee 10 %"
    if inside is None and suffix and not numbered and _is_unit(*suffix.groups()):
        is_money = suffix[2].lower() in _WORDS["currencies"]
        named = _read_header(text[: suffix.start()])
        return named._replace(unit=suffix[2].upper() if is_money else suffix[2])
    rest = _YEARS.sub("", words).strip(" ,:-–")
    unit = inside[1] if inside and not _YEARS.search(inside[1]) else ""
    unit = "" if _SCALE.fullmatch(unit) else unit  # "Satisfaction (1-5)"
    return _Header(" ".join(rest.split()), unit, years[0] if len(years) == 1 and rest else "")


_NO_KINDS = FUNCTION_WORDS | {"not"} | _WORDS["qualities"]


def _is_name(text: str) -> bool:
    """Whether a value names a thing: capitalised or with a number, in few words."""
    marked = text[:1].isupper() or any(map(str.isdigit, text))
    return marked and _is_short(text) and _classify(text) == "text" and not _is_participle(text)


def _list_times(names: _Row, types: Mapping[int, Counter[_Type]]) -> list[int]:
    """The columns of numbers whose headers are times, if there are no other numbers."""
    numbers = [c for c, counts in types.items() if counts.most_common(1)[0][0] == "number"]
    times = [c for c in numbers if c in names and _TIME.fullmatch(names[c].text)]
    return times if len(times) == len(numbers) else []


def _read_measure(above: str, noun: str) -> _Header | None:
    """What the values under times are of, for rows named by a noun; None where nothing says it.

    It is in the heading of rows that are things ("Headcount by site (people)"); the label of a row
    of figures is the measure itself, and the value its amount.
    """
    words, unit, _ = _read_header(above)
    parts = _OF.split(words)[0].casefold().split()
    while len(parts) > 1 and lemmatise(parts[-1]) in _FORMS:
        parts.pop()  # "Price list"
    unit = unit.removeprefix("in ") if _MONEY.search(unit) or unit in _WORDS["units"] else ""
    row = _split_header(noun)
    if not row or _GENERIC.fullmatch(noun) or not _WORDS["figures"].isdisjoint(row):
        return _Header(_AMOUNTS, unit, "")
    head = next((i for i, word in enumerate(parts) if word == "of"), len(parts)) - 1
    measures = 0 <= head < _LONGEST_MEASURE and lemmatise(parts[head]) in _MEASURED
    return _Header(" ".join(parts), unit, "") if measures else None


_PARTED_BY = re.compile(r"\b(?:by|per)\b", re.I)
_NO_UNITS = frozenset({"count", "no.", "number"})
"""What a column of units has for things that are counted."""
_MEASURED = _WORDS["measured"] | _WORDS["counted"]
_FORMS = (_WORDS["parts"] | _WORDS["figures"] | {"schedule"}) - _MEASURED
_AMOUNTS, _LONGEST_MEASURE = "amounts to", 3
_OF = re.compile(r"[,:]|\s(?:at|by|per|in|for|[-–—])\s", re.I)
_MONEY = re.compile(rf"\b[kmb]?(?:{CURRENCIES})\b|[$€£¥%]")
_TIME = re.compile(
    rf"""(?:(?:until|since|from|before|after)\ )?
    (?:(?:FY|[QH][1-4]|{MONTH}\.?)(?:[ /-]?'?(?:\d\d){{1,2}})?
    |{YEAR}(?:[ /-]?(?:[QH][1-4]|\d\d))?)|now""",
    re.I | re.X,
)
"""A header that is a time: "2024", "Q1", "Until Mar 2025"."""
_LED_TIME = re.compile(rf"(?=until|since|from|before|after)(?:{_TIME.pattern})", re.I | re.X)


def _is_unit(mark: str, word: str) -> bool:
    """Whether a header ends in its unit: "Weight kg", "area_km2", "Delivery time in days"."""
    spelt = mark == " in " and word.endswith("s") and lemmatise(word.lower()) in SIZES
    return spelt or word.lower() in _WORDS["units"]


_BRACKET = re.compile(r"\s*[(\[]([^()\[\]]{1,40})[)\]]$")
_SUFFIX = re.compile(r"([_,]\s?|\s(?:in\s)?)(\S{1,8})$")
_SCALE = re.compile(r"[\d.,\s–-]+")
_YEARS = re.compile(rf"\b(?:{MONTH} )?(?:1[5-9]|20)\d\d\b")
_QUALITY = re.compile(r"\w+(?:ed|able|ible)|optional|mandatory|active")


def _is_participle(word: str) -> bool:
    """Whether a header's word is a past participle: "Founded", "Built", "Born"."""
    past = word.isalpha() and is_past(word) and not word.endswith("ing")
    return (past and word not in _VERBAL | {"left"}) or word in _WORDS["states"]


def _word_relation(header: str, value: str, kind: _Type) -> str | None:
    """The relation that a header states for a value of such a type; None where it is unclear.

    A noun becomes "has height", as for "the height of X is Y"; a participle, "was founded", gets a
    preposition by the type of the value.
    """
    words = [w if any(map(str.isupper, w[1:])) else w.lower() for w in header.split()]
    plain = [word.casefold() for word in words]
    first, last = plain[0], plain[-1]
    if len(words) >= MAX_RELATION_WORDS or first == "not":
        return None
    if first in QUESTION_WORDS:
        return None if header.endswith("?") or len(words) < 2 else _word_question(words)
    third = first.endswith("s") and lemmatise(first) != first
    does = first in _VERBAL and len(words) > 1 and (plain[1] in _VERBAL or _is_participle(plain[1]))
    if does or (third and last in _LEADING | QUESTION_WORDS):
        return " ".join(words)  # "may be deleted", "fails when"
    core = [word for word in plain if word not in _WORDS["dating"]] if kind == "date" else plain
    if core and _is_participle(core[-1]) and _WORDS["ordering"].issuperset(core[:-1]):
        lemma = lemmatise(core[-1])
        state = "is" if lemma in VERBS["stative"] | _WORDS["states"] else "was"
        passive = [] if lemma in _WORDS["happening"] else [state]
        if kind == "date" or value.count(".") > 1:  # a version
            days = (isinstance(v.value, Date) and v.value.day for v in find_values(value))
            return " ".join([*passive, *core, "on" if any(days) or _DAY.match(value) else "in"])
        if kind == "number":
            return " ".join(["has", *core])
        placed = core[-1] in {"born", "died"} or state == "is"
        return " ".join([*passive, *core, "in"]) if placed else None
    if _is_participle(first) and last in _LEADING and len(words) > 1:
        done = lemmatise(first) in AFFECTING - VERBS["stative"]
        return " ".join(["was" if done else "is", *words])
    led = first in _LEADING and not any(map(str.isdigit, header))  # "Under 26" is a price
    return " ".join(["is" if last == "of" or led else "has", *words])


def _word_property(words: str, value: str, kind: _Type) -> str | None:
    """The relation that a property of data states: its own words where they begin with a verb."""
    first, *others = words.lower().split()
    lemma = lemmatise(first)
    verbal = lemma in _IRREGULAR or is_known(f"{lemma.removesuffix('e')}ed", "en")
    does = first.endswith("s") and first != lemma and verbal and kind != "number"
    if first in AUXILIARIES | MODALS or (does and not is_person_noun(lemma)):
        return words  # "works for", and no "authors"
    fits = len(others) + 1 < MAX_RELATION_WORDS
    return _word_relation(words, value, kind) or (f"has {words}" if fits else None)


_IRREGULAR = {pair.partition(":")[0] for pair in VERBS["pasts"]}
_LEADING = PREPOSITIONS | {"since", "until", "under", "near"}


def _word_question(words: Sequence[str]) -> str | None:
    """The relation of a header that is a question about the row's subject: "What it means".

    None for questions about the reader or another thing: "what to do", "what a build does".
    """
    if words[:3] == ["what", "you", "can"]:
        return " ".join(["lets you", *(word for word in words[3:] if word != "do")])
    if words[0] == "what" and words[1] in {"it", "they"}:
        return "has description" if lemmatise(words[-1]) == "do" else " ".join(words[2:])
    has_subject = not {"i", "we", "you"}.isdisjoint(words) or words[1] in ARTICLES | {"to"}
    return None if has_subject else " ".join(words)


def _is_silent(header: str) -> bool:
    """Whether a header does not describe its column: "#", "No.", "Column 1", "Unnamed: 0"."""
    return bool(_SILENT.fullmatch(header)) or _LINKING.issuperset(_split_header(header))


_OF_TASKS = {"who": "Assigned to", "when": "Due", "by when": "Due", "by": "Due"}
"""What the headers of tasks ask for."""
_LINKING = (FUNCTION_WORDS | {"if", "not", "then"}) - QUESTION_WORDS - _VERBAL - _LEADING


# Claims and facts.


class _Findings:
    """Claims, mentions, facts and what was dropped, in the order of the cells."""

    def __init__(self) -> None:
        self._claims: list[Claim] = []
        self._mentions: list[Mention] = []
        self._facts: list[Fact] = []
        self._dropped: list[Dropped] = []
        self._noted: set[tuple[str, Span]] = set()
        self._above: str | None = None

    def build(self) -> Extraction:
        return Extraction(
            tuple(self._claims), tuple(self._mentions), tuple(self._facts), tuple(self._dropped)
        )

    def _drop(self, reason: str, cells: Iterable[Cell]) -> None:
        """Rejects cells with the reason, their span and their first words."""
        listed = [cell for cell in cells if cell.spans]
        if listed and (reason, listed[0].spans[0]) not in self._noted:
            self._noted.add((reason, listed[0].spans[0]))
            text = " | ".join(cell.text for cell in listed[:_MOST_SHOWN])[:_LONGEST_SHOWN]
            self._dropped.append(Dropped(reason, text, listed[0].spans[0]))

    def add_pairs(
        self, pairs: Sequence[tuple[Cell, Cell]], subject: Cell | None, construction: str = "pair"
    ) -> None:
        """Adds the facts of keys and values, whose subject the text before them names."""
        names = [value for key, value in pairs if key.text.casefold() in _WORDS["naming"]]
        subject = subject or next(iter(names), None)
        if subject is None:
            self._drop("no_subject", [cell for pair in pairs for cell in pair])
            return
        for key, value in pairs:
            if "_".join(key.text.casefold().split()) in _WORDS["attending"]:
                key = key._replace(text="Was attended by")
            called = key.text.lower()
            named = find_name_gender(called) is not None or not is_known(called, "en")
            # "Tomasz: order seeds by May"
            if named and key.text.istitle() and value.text[0].islower():
                self._drop("header_unclear", [key, value])
                continue
            self._add_row(subject, {0: key}, {0: value}, {}, construction)

    def add_table(
        self, table: _Table, context: Cell | None, above: str | None, measured: str = ""
    ) -> None:
        """Adds the facts of a table, read by rows or by columns, or rejects it with the reason.

        `above`: the caption, heading or title, which names the table in the facts' qualifiers.
        `measured`: it, where it may say what the values are of.
        """
        self._above = above
        if not table.header and _opens_with_header(table.rows):
            table.header, table.rows = table.rows[:1], table.rows[1:]
        rows = table.rows
        width = max(max(row) + 1 for row in (*table.header, *rows))
        names = _name_columns(table.header, width)
        shown = [cell for row in (*table.header, *rows[:1]) for cell in row.values()]
        types: dict[int, Counter[_Type]] = {}
        for row in rows:
            for column, cell in row.items():
                types.setdefault(column, Counter())[_classify(cell.text)] += 1
        keys = {row[0].text.casefold() for row in rows if 0 in row}
        dated = types.get(0, Counter())["date"] >= _MOST * len(
            [*filterfalse(_TOTAL.fullmatch, keys)]
        )
        is_keyed = all(_GENERIC.fullmatch(cell.text) for cell in names.values())
        if table.subject and rows:
            self._add_rows(names, rows, table.subject, types, kind=table.kind, above=measured)
        elif width == 2 and (is_keyed or not keys.isdisjoint(_WORDS["naming"])):
            pairs = [(row[0], row[1]) for row in rows if len(row) == 2]
            self.add_pairs(pairs, context, "key")
        elif not rows or width < 2 or not names:
            self._drop("no_header", shown)
        elif not {*types} - {0} <= {*names}:
            # a header may span the next column
            self._drop("header_says_nothing", shown)
        elif 0 not in names and all(_CODE.fullmatch(row[0].text) for row in rows if 0 in row):
            self._add_rows(names, rows, (0,), types, above=measured)
        elif (turned := not _list_times(names, types) and _is_turned(names, rows)) is None:
            self._drop("orientation_unclear", shown)
        elif turned:
            labels = {index: row[0] for index, row in enumerate(rows) if 0 in row}
            for column in sorted({*types} - {0}):
                values = {index: row[column] for index, row in enumerate(rows) if column in row}
                self._add_row(names[column], labels, values, {}, "turned")
        elif keys and dated and (places := _find_repeated(rows, types)):
            self._add_rows(names, rows, places, types, is_timed=True)
        elif subject := _find_subject(names, rows, dict(sorted(types.items()))):
            self._add_rows(names, rows, subject, types, above=measured)
        elif context and keys and dated:
            self._add_rows(names, rows, (0,), types, context)
        elif keys and dated:
            self._add_series(names, rows, types)
        else:
            self._drop("no_subject", shown)

    def _add_series(
        self, names: _Row, rows: Sequence[_Row], types: Mapping[int, Counter[_Type]]
    ) -> None:
        """Adds the facts of rows by time whose numbers are of their headers: "Lead | 3.1 | Q1"."""
        counted = [c for c in names if c and types.get(c, Counter())["number"]]
        if not counted:
            self._drop("no_subject", [cell for row in rows[:1] for cell in row.values()])
        for column in counted:
            name = names[column]
            term = _read_header(name.text)
            if not term.words or _is_silent(term.words):
                self._drop("header_says_nothing", [name])
                continue
            span = name.span if name.text.startswith(term.words) else None
            literal = (Span(span.start, span.start + len(term.words)),) if span else ()
            of = _Header(_AMOUNTS, term.unit, "")
            for row in rows:
                if column in row and 0 in row and not _TIME.fullmatch(row[0].text):
                    self._drop("no_subject", row.values())
                elif column in row and 0 in row:
                    # words that are not there as they are stand at several spans
                    head = Cell(term.words, literal or (*name.spans, *row[0].spans))
                    usual: Mapping[int, _Type] = {column: "number"}
                    self._add_row(head, {column: row[0]}, {column: row[column]}, usual, "cell", of)

    def _add_rows(
        self,
        names: _Row,
        rows: Sequence[_Row],
        keys: Collection[int],
        types: Mapping[int, Counter[_Type]],
        dated: Cell | None = None,
        kind: Cell | None = None,
        above: str = "",
        is_timed: bool = False,
    ) -> None:
        """Adds the facts of rows whose subjects are their keys; with `dated`, keys are times of it.

        `kind`: the class of the subjects. `above`: the heading that may name what is measured.
        `is_timed`: the first column has the time of each row.
        """
        usual = {column: counts.most_common(1)[0][0] for column, counts in types.items()}
        left = {*keys, 0} if is_timed else keys
        header = {column: cell for column, cell in names.items() if column not in left}
        stated = {cell.text for cell in names.values()}
        named = " ".join(names[column].text for column in keys if column in names)
        if not _WORDS["tasks"].isdisjoint(map(lemmatise, _split_header(named))):
            header = {
                column: cell._replace(text=_OF_TASKS.get(cell.text.casefold(), cell.text))
                for column, cell in header.items()
            }
        called = None if kind or len(keys) > 1 else _find_kind(names, rows, min(keys))
        measure = None
        plain = {column: cell.text.casefold() for column, cell in header.items()}
        measured = next((c for c, text in plain.items() if text in _WORDS["measures"]), -1)
        unit_of = next((c for c, text in plain.items() if text in {"unit", "units"}), -1)
        if _list_times(names, types):
            measure = _read_measure(above, named)
            if measured >= 0 or unit_of >= 0:
                header = {c: cell for c, cell in header.items() if c not in {measured, unit_of}}
                measure = _Header("" if measured >= 0 else _AMOUNTS, "", "")
        for row in rows:
            heads = [
                next(_split_values(row[column]), row[column]) for column in keys if column in row
            ]
            if len(heads) < len(keys) or any(_is_clause(head.text) for head in heads):
                self._drop("no_subject", row.values())
            elif _TOTAL.fullmatch(heads[0].text):
                self._drop("total_row", row.values())
            elif not stated.issuperset(cell.text for cell in row.values()):
                head, columns = _join_cells(heads), header
                if len(keys) == 1 and kind is None:
                    head = _name_row(head, [names[column] for column in keys if column in names])
                if kind is not None:
                    self.add_member(head, kind)
                elif called is not None and not _is_unnamed(head.text, called.text):
                    self.add_member(head, called)
                if dated is not None or is_timed:
                    when = row[0] if is_timed else head
                    columns = {
                        column: Cell(cell.text, (*cell.spans, *when.spans), when.text)
                        for column, cell in header.items()
                    }
                of = measure
                unit = row[unit_of].text if unit_of in row else ""
                unit = "" if unit.casefold() in _NO_UNITS else unit
                if of is not None and measured in row:
                    of = _Header(row[measured].text, unit, "")
                elif of is not None and of.words == _AMOUNTS:
                    label = _read_header(head.text)
                    noun = lemmatise(label.words.casefold().rpartition(" ")[2])
                    unit = "" if noun in _WORDS["counted"] else of.unit or unit
                    of = of._replace(unit=label.unit or unit)
                    if label.unit and head.span and head.text.startswith(label.words):
                        start = head.span.start
                        head = Cell(label.words, (Span(start, start + len(label.words)),))
                self._add_row(dated or head, columns, row, usual, "cell", of)

    def add_statement(self, *row: tuple[Block, Cell]) -> None:
        """Adds the fact of a statement of data: subject, relation, and a value of a known kind."""
        blocks, cells = zip(*row, strict=True)
        if len(cells) < 3 or len(cells[2].text.split()) > _LONGEST_VALUE:
            self._drop("long_cell", cells)
            return
        head, named, value = cells
        kind = cast("_Type", STATED[blocks[2].level])
        relation = _word_property(named.text, value.text, kind)
        header = _Header(named.text, "", "")
        self._add_fact(head, named, header, value, kind, "cell", relation)

    def add_member(self, head: Cell, kind: Cell) -> None:
        """Adds the fact that the head is of a kind."""
        verb = "is an" if kind.text[0].lower() in "aeiou" else "is a"
        ends = (head.text, verb, kind.text, head.span, None, kind.span)
        fact = Fact(len(self._claims), *ends, confidence=WEIGHTS["tables"]["cell"])
        self._state(fact, head, kind, kind.spans)

    def _add_row(
        self,
        head: Cell,
        header: _Row,
        row: _Row,
        usual: Mapping[int, _Type],
        construction: str,
        measure: _Header | None = None,
    ) -> None:
        for column, cell in row.items():
            if column not in header:
                continue
            term = _read_header(header[column].text)
            term = term._replace(year=term.year or header[column].when)
            if measure is not None and _TIME.fullmatch(header[column].text):
                term = measure._replace(year=header[column].text)
            is_time = measure is None and _LED_TIME.fullmatch(header[column].text)
            if is_time or _is_silent(term.words):
                self._drop("header_says_nothing", [header[column]])
                continue
            if len(cell.text.split()) > _LONGEST_VALUE:
                self._drop("long_cell", [cell])
                continue
            last, dated = term.words.casefold().split()[-1], _is_participle(term.words.casefold())
            many = lemmatise(last) != last and not _is_participle(last) and last[-3:] != "ing"
            for value in _split_values(cell, dated=dated, many=many):
                kind = _classify(value.text)
                if usual.get(column) == "text" and kind == "number":
                    kind = "text"  # "3M" among names
                elif usual.get(column) == "number" and kind == "date" and value.text.isdigit():
                    kind = "number"  # 1900 people, not the year
                if not _is_empty(value.text):
                    self._add_fact(head, header[column], term, value, kind, construction)

    def _add_fact(
        self,
        head: Cell,
        header: Cell,
        term: _Header,
        value: Cell,
        kind: _Type,
        construction: str,
        relation: str | None = None,
    ) -> None:
        negated, tail = False, value
        relation = relation or _word_relation(term.words, value.text, kind)
        plain = term.words.lower()
        if kind == "flag" and (_QUALITY.fullmatch(plain) or _is_participle(plain)):
            relation = "is"
            tail = Cell(plain, header.spans if plain == header.text else ())
            negated = value.text.casefold() in _WORDS["denying"]
        elif kind == "flag" and value.text.casefold() not in _WORDS["boolean"]:
            relation = None  # a tick may say what the row has, or what the column has
        elif kind == "number" and term.unit and not _UNIT_OF_OWN.search(value.text):
            tail = Cell(_add_unit(value.text, term.unit))
        if relation is None:
            self._drop("header_unclear", [header, value])
            return
        is_literal = term.words == header.text and relation.endswith(header.text)
        is_row = construction in {"cell", "turned"} and self._above != head.text
        roles = {"time": term.year, TABLE: self._above if is_row else None}
        fact = Fact(
            claim=len(self._claims),
            head=head.text,
            relation=relation,
            tail=tail.text,
            head_span=head.span,
            tail_span=tail.span,
            relation_span=header.span if is_literal else None,
            negated=negated,
            qualifiers={role: value for role, value in roles.items() if value},
            confidence=WEIGHTS["tables"][construction],
        )
        self._state(fact, head, tail, (*header.spans, *value.spans), _label_value(tail.text, kind))

    def _state(
        self, fact: Fact, head: Cell, tail: Cell, rests_on: Iterable[Span], label: str = "NOUN"
    ) -> None:
        """Adds a fact with its claim, and the mentions of its ends; `label` is the tail's type."""
        ends = (("subject", head), ("object", tail))
        arguments = tuple(Argument(role, cell.text, cell.span) for role, cell in ends)
        spans = tuple(sorted({*head.spans, *rests_on}))
        for cell, kind in ((head, _UNTYPED), (tail, label)):
            if cell.span is not None:
                self._mentions.append(Mention(fact.claim, cell.text, kind, cell.span))
        self._facts.append(fact)
        stated = f"{head.text} {fact.relation} {tail.text}."
        self._claims.append(Claim(stated, spans, fact.relation, arguments))


def _add_unit(number: str, unit: str) -> str:
    if money := _CURRENCY.fullmatch(unit):
        return " ".join(
            [f"{money[1]}{' ' if money[1].isalpha() else ''}{number}", *money[2].split()]
        )
    if power := _TIMES.fullmatch(unit):
        return f"{number} × {power[1]}"
    return f"{number}{'' if unit in '%°' else ' '}{unit}"


_CURRENCY = re.compile(r"([A-Z]{3}(?= [a-z])|[$€£¥])\s?((?:[a-z]{2,8})?|(?:per|each)\b.*)")
_TIMES = re.compile(r"[x×*]?\s?(10\S*)")
_UNTYPED = "NOUN"
_UNIT_OF_OWN = re.compile(r"[^\W\d_]|[%$£€¥]")
_MOST_SHOWN, _LONGEST_SHOWN = 8, 200


_PARTED = re.compile(r"[;\n•]+")
_LISTED = re.compile(r"[;\n•]+|,? (?:and|&) |, ")
_SERIES = re.compile(
    r"[A-Z].*, .*,? (?:and|&) [A-Z]|[\w.'’-]+( [\w.'’-]+)+(, [A-Z][\w.'’-]*( [\w.'’-]+)+){2,}$"
)
_ASIDE = re.compile(r"(?<=[^\W\d])\s*\([^()]*\)")


_SENTENCE = re.compile(r"\.$|\b[a-z]{2,}\.(?=\s+[\[(])")


def _is_part(text: str) -> bool:
    """Whether a part is no value: longer than a name, a clause, or half of a bracket."""
    words = text.split()
    says = not _CLAUSAL.isdisjoint(words) or words[:1] in (["or"], ["also"])
    return len(words) > _LONGEST_NAME or says or text.count("(") != text.count(")")


_CLAUSAL = _VERBAL | PRONOUNS | QUESTION_WORDS


def _cut(text: str, marks: re.Pattern[str]) -> list[tuple[int, int]]:
    """The start and end of each part of a text between its marks."""
    ends = [match.span() for match in marks.finditer(text)]
    return [*zip([0, *(e for _, e in ends)], [*(s for s, _ in ends), len(text)], strict=True)]


def _split_values(cell: Cell, *, dated: bool = False, many: bool = False) -> Iterator[Cell]:
    """The values of a cell, separated by semicolons or lines unless they are sentences.

    `dated`: the cell may begin with a date, followed by a place. `many`: the header is a plural, so
    that commas and "and" separate values too; in "A, B and C" they always do. What is in brackets
    behind the names of such a list is left out.
    """
    (span,) = cell.spans
    parts, text = _cut(cell.text, _PARTED), cell.text
    plain = _ASIDE.sub(lambda aside: " " * len(aside[0]), text)
    is_list = many or _SERIES.match(_ASIDE.sub("", text))
    listed = _cut(plain, _LISTED) if is_list else []
    if len(listed) > 1 and all(text[s].isupper() or text[s].isdigit() for s, e in listed if s < e):
        parts, text = listed, plain
    if _SENTENCE.search(cell.text) or any(_is_part(text[s:e]) for s, e in parts):
        parts, text = [(0, len(cell.text))], cell.text
    date = next(iter(find_values(cell.text)), None) if dated else None
    if date is not None and date.start == 0 and isinstance(date.value, Date):
        rest = cell.text[date.end :]
        place = "" if re.search(r"\d", rest) else rest.strip(" ,;()\n")
        start = cell.text.find(place, date.end)
        parts = [(0, date.end), *([(start, start + len(place))] if place else [])]
    for part in parts:
        for inner in trim(text, *part):
            words = cell.text[inner.start : inner.end]
            yield Cell(words, (Span(span.start + inner.start, span.start + inner.end),))


def _label_value(text: str, kind: _Type) -> str:
    """The type of a mention: a literal's for dates and numbers."""
    if kind != "number":
        return "DATE" if kind == "date" else _UNTYPED
    if "%" in text or re.search("[$€£¥]", text):
        return "PERCENT" if "%" in text else "MONEY"
    return "QUANTITY" if _UNIT_OF_OWN.search(text) else "CARDINAL"
