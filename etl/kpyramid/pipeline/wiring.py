"""Wiring of stages: the ports of each, and the table of what runs each stage."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pydantic import TypeAdapter
from threadpoolctl import threadpool_limits

from kpyramid.completion.corrections import Corrections, load_corrections
from kpyramid.completion.decisions import Decisions, load_decisions
from kpyramid.completion.naming import Namer
from kpyramid.condensation.condenser import Condenser
from kpyramid.condensation.statements import Summariser
from kpyramid.documents.conversion import Convert
from kpyramid.documents.corpus import Corpus, SourceFile, list_corpus
from kpyramid.documents.sentences import Piece, split_text
from kpyramid.embeddings.port import Embedder
from kpyramid.errors import InputError, SettingsError
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.cascade.windows import NO_VOCABULARY
from kpyramid.extraction.syntax.tree import Tree, unpack_tree
from kpyramid.extraction.types import ExtractFunction, Extraction, Titled
from kpyramid.graph.duplicates import Disambiguator
from kpyramid.keys import JsonValue
from kpyramid.llm.caller import Asker
from kpyramid.ontology.constraints import Constraint, read_constraints
from kpyramid.ontology.population.examples import Value, read_examples
from kpyramid.ontology.population.inducer import (
    TASKS,
    Inducer,
    Question,
    group_properties,
    list_pairs,
    write_vocabulary,
)
from kpyramid.ontology.population.reader import Matcher, Reader, fold_label
from kpyramid.ontology.schema import Schema, parse_schema, write_schema
from kpyramid.ontology.validation.checks import check_queries
from kpyramid.ontology.validation.consistency import judge_consistency
from kpyramid.pipeline.cache import CachedEmbedder, CachedFunction, Context, open_converter
from kpyramid.pipeline.fingerprints import locate_files
from kpyramid.pipeline.models import Looker, Model, Opener, open_collector
from kpyramid.pipeline.stage import Progress, Stage
from kpyramid.pipeline.tasks import list_tasks
from kpyramid.pipeline.workers import load_extractor, load_parser, share_out
from kpyramid.settings import AUTO, ColumnSettings, Settings
from kpyramid.storage.copies import bring_corpus
from kpyramid.storage.declarations import locate_declarations
from kpyramid.storage.erasure import Erased, load_erased
from kpyramid.storage.layout import Warehouse, is_address

_EXTRACTION = TypeAdapter(Extraction)
_PIECES = TypeAdapter(tuple[Piece, ...])

Tables = Mapping[str, pa.Table]
"""The tables that a stage reads, in the declared order."""
R = TypeVar("R", str, Titled)
T = TypeVar("T")


def open_splitter(context: Context) -> CachedFunction[Titled, tuple[Piece, ...]]:
    """A cached function that cuts texts into chunks."""

    def compute(texts: Sequence[Titled]) -> Iterator[bytes]:
        for text, _, headings in texts:
            yield _PIECES.dump_json(tuple(split_text(text, context.settings.chunk, headings)))

    return CachedFunction("splitter", context, compute, _PIECES.validate_json)


def open_extractor(context: Context) -> CachedFunction[Titled, Extraction]:
    """A cached function that extracts facts from texts, on several processes if it is worth it."""
    extract = context.settings.extract
    chosen = (extract.parser, extract.language, extract.author)
    compute = partial(share_out, workers=context.workers, load=load_extractor, chosen=chosen)
    return CachedFunction("extractor", context, compute, _EXTRACTION.validate_json)


def open_annotator(context: Context) -> CachedFunction[str, str]:
    """A cached function that parses texts; `unpack_tree` reads a packed parse with its text."""
    chosen = (context.settings.extract.parser,)
    compute = partial(share_out, workers=context.workers, load=load_parser, chosen=chosen)
    return CachedFunction("annotator", context, compute, bytes.decode)


@dataclass(eq=False)
class ExampleReader:
    """A reader that learns from an ontology's examples when it reads the first text."""

    schema: Schema
    examples: Path
    annotate: Callable[[Sequence[str]], Sequence[str]]

    def read(self, tree: Tree) -> Sequence[Value]:
        """The values that a text states.

        Raises:
            InputError: an example is none; says which.
        """
        return self._reader.read(tree)

    @cached_property
    def _reader(self) -> Reader:
        examples = read_examples(self.examples)
        texts = [example.text for example in examples]
        trees = [unpack_tree(*both) for both in zip(texts, self.annotate(texts), strict=True)]
        return Reader(self.schema, examples, trees)


class Ports:
    """The ports of the stages of a build, each opened at first use.

    `opener` opens the models that are asked over a network, where the settings name one.
    `corpus`: the files for the stage that reads them.

    Raises:
        SettingsError: at first use; a model or an ontology that the settings name is not there.
    """

    def __init__(self, context: Context, stage: Stage, opener: Opener | Looker) -> None:
        self.settings = context.settings
        self.corpus: Iterable[SourceFile] = ()
        self.former = context.former
        self._context = context
        self._stage = stage
        self._opener = opener
        self._functions: list[CachedFunction[Any, Any]] = []

    @cached_property
    def schema(self) -> Schema:
        """The seed ontology."""
        return load_schema(self.settings)

    @cached_property
    def shapes(self) -> Sequence[Constraint]:
        """The constraints on single values in the shapes beside the ontology."""
        return load_constraints(self.settings)

    @cached_property
    def decisions(self) -> Decisions:
        """A person's decisions about proposals."""
        return load_decisions(self.settings.complete)

    @cached_property
    def drafting(self) -> Decisions | None:
        """A person's decisions about proposals if the corpus makes the ontology; else None."""
        return self.decisions if self.settings.induce.ontology == AUTO else None

    @cached_property
    def corrections(self) -> Corrections:
        """A person's corrections of the graph."""
        return load_corrections(self.settings.publish.corrections, self.schema)

    @property
    def min_confidence(self) -> float:
        """Confidence below which facts of the graph are rejects."""
        return self.settings.publish.min_confidence

    @cached_property
    def converter(self) -> Convert | None:
        """Converts files that are not text; None without its extra."""
        return open_converter(self._context)

    @cached_property
    def erased(self) -> Erased:
        """The erased documents, which builds leave out."""
        return load_erased(self._context.warehouse)

    @cached_property
    def splitter(self) -> CachedFunction[Titled, tuple[Piece, ...]]:
        """Cuts texts into chunks."""
        return self._note(open_splitter(self._context))

    @cached_property
    def extractor(self) -> ExtractFunction:
        """Extracts facts from texts by rules."""
        return self._note(open_extractor(self._context)).stream

    @cached_property
    def annotator(self) -> CachedFunction[str, str]:
        """Parses texts."""
        return self._note(open_annotator(self._context))

    @cached_property
    def embedder(self) -> Embedder:
        """The embedding model."""
        embedder = CachedEmbedder(self._context, self._opener.connect, self._stage.name)
        self._note(embedder.function)
        return embedder

    @cached_property
    def reader(self) -> ExampleReader | None:
        """Reads values as the ontology's examples do; None without any, or where a model reads."""
        examples = locate_files(self.settings).examples
        if examples is None or self.settings.induce.mode != "rules":
            return None
        return ExampleReader(self.schema, examples, self.annotator)

    @cached_property
    def model(self) -> Model | None:
        """The language model; None if the stage has no task for one."""
        return self._opener.open_model() if list_tasks(self._stage.name, self.settings) else None

    @cached_property
    def cascade(self) -> Cascade | None:
        """f_par, f_ent and f_rel by a language model; a later stage reads the same replies again.

        A later stage does not ask again for replies that are missing.
        """
        windows = self.settings.cascade.reads_windows
        model = self.model if self._stage.name == "extract" else None
        settings = self.settings.cascade
        if self._stage.name != "extract":
            settings = replace(settings, glean=0, check_share=0.0)  # classes are of the first look
            if windows:
                model = open_collector(self._context.warehouse, self.settings, read_only=True)
        if model is None:
            return None
        return Cascade(
            model.caller,
            settings,
            vocabulary=write_vocabulary(load_schema(self.settings)) if windows else NO_VOCABULARY,
            model=self.settings.llm.name,
            max_tokens=self.settings.llm.max_tokens,
            concurrency=self.settings.llm.concurrency,
            progress=self._context.progress,
            seed=self.settings.llm.seed,
        )

    @cached_property
    def disambiguator(self) -> Disambiguator | None:
        """f_dis by a language model, batch by batch of near duplicates."""
        return Disambiguator(self.model.caller, *self._batching) if self.model else None

    @cached_property
    def inducer(self) -> Inducer | None:
        """f_ins by a language model, chunk by chunk; None if windows are read."""
        if self.model is None:
            return None
        return open_inducer(self.settings, self.model.caller, self._context.progress)

    @cached_property
    def namer(self) -> Namer | None:
        """Names of proposals by a language model, batch by batch."""
        if self.model is None:
            return None
        return Namer(self.model.caller, *self._batching, self.settings.llm.name, self._foresees)

    @cached_property
    def condenser(self) -> Condenser | None:
        """f_con by a language model, batch by batch of wordings that the rules left apart."""
        if self.model is None or self.settings.condense.mode != "llm":
            return None
        return Condenser(self.model.caller, *self._batching)

    @cached_property
    def summariser(self) -> Summariser | None:
        """Statements by a language model, batch by batch of facts of one subject and anchor."""
        if self.model is None or self.settings.condense.summarise != "llm":
            return None
        return Summariser(self.model.caller, *self._batching, self._foresees)

    def run(self, tables: Tables) -> dict[str, pa.Table]:
        """The output of the stage for the tables that it reads, with its declared ports.

        The stage's module is imported here: a build with stored results loads none. It has one
        thread: BLAS sums in another order on another number of cores.
        """
        module = import_module(f"kpyramid.pipeline.stages.{self._stage.name}")
        given = {name: getattr(self, name) for name in self._stage.ports}
        if "settings" in given:  # a stage sees its own section
            given["settings"] = getattr(self.settings, self._stage.name)
        with threadpool_limits(1):
            made: dict[str, pa.Table] = module.run(*tables.values(), **given)
        return made

    def describe_model(self) -> dict[str, JsonValue]:
        """The requests to a language model, for a stage's mark; empty without one."""
        return self.model.describe() if self.model else {}

    def count_computed(self) -> int:
        """The number of rows that no cache had."""
        return sum(function.computed for function in self._functions)

    @property
    def _foresees(self) -> bool:
        return isinstance(self._opener, Looker)

    @property
    def _batching(self) -> tuple[str, str, int, int]:
        """What batches are asked with."""
        llm, cascade = self.settings.llm, self.settings.cascade
        return cascade.domain, cascade.language, llm.max_tokens, llm.concurrency

    def _note(self, function: CachedFunction[R, T]) -> CachedFunction[R, T]:
        self._functions.append(function)
        return function


def open_inducer(settings: Settings, asker: Asker, progress: Progress) -> Inducer:
    """f_ins by a language model, chunk by chunk."""
    schema, examples = load_schema(settings), locate_files(settings).examples
    llm, mode = settings.llm, settings.induce.mode
    groups = list_pairs(schema) if mode == "exhaustive" else group_properties(schema)
    shown = read_examples(examples) if examples else ()
    questions = [Question(group, schema, shown) for group in groups]
    limits = llm.max_tokens, llm.concurrency
    return Inducer(asker, questions, TASKS[mode], llm.name, *limits, progress)


@contextmanager
def open_corpus(place: str, warehouse: Warehouse) -> Iterator[Corpus]:
    """The files of a corpus in a folder or in a bucket; valid until the context ends.

    Raises:
        InputError: there is no such corpus.
        EndpointError: its bucket cannot be read, or changed meanwhile.
    """
    if not is_address(place):
        yield list_corpus(Path(place), leave_out=warehouse.folders)
        return
    with bring_corpus(warehouse, place) as copy:
        yield list_corpus(copy)


def require_ontology(settings: Settings) -> None:
    """Passes when the ontology, what lies beside it, decisions and corrections can be read.

    All problems are reported before any work.

    Raises:
        SettingsError: there is none of that name, or it lacks what columns of tables are to mean.
        InputError: one of the files is wrong; names it.
    """
    files, decisions = locate_files(settings), load_decisions(settings.complete)
    schema = load_schema(settings)
    accepted = decisions.list_accepted(schema) if decisions.entries else []
    load_corrections(settings.publish.corrections, schema)
    if settings.ingest.columns is not None:
        _require_columns(settings.ingest.columns, schema, accepted)
    if settings.induce.ontology in locate_declarations("ontology"):
        return  # it comes with the package, tested; reading it would cost each build half a second
    known = schema.term_by_iri.keys()
    used = {iri for c in load_constraints(settings) for iri in (c.target, c.property_iri) if iri}
    if strange := sorted(iri for iri in used - known if iri.startswith(schema.base)):
        raise InputError(f"{files.shapes}: <{strange[0]}> is not in {files.turtle}; correct it")
    if files.examples:
        taught = {triple[1] for e in read_examples(files.examples) for triple in e.triples}
        find_place = Matcher(schema).find_place
        if unknown := sorted(name for name in taught if find_place(name) is None):
            raise InputError(
                f"{files.examples}: {unknown[0]!r} is no property of {files.turtle}; use its label"
            )
    check_queries(files)
    verdict = judge_consistency(write_schema(schema), "", seconds=settings.publish.reasoner_seconds)
    if verdict.startswith("fail"):
        raise InputError(f"{files.turtle}: {verdict.removeprefix('fail: ')}")


def _require_columns(
    columns: ColumnSettings, schema: Schema, accepted: Sequence[Mapping[str, Any]]
) -> None:
    """Passes when columns have labels of the ontology or of accepted proposals."""
    properties = {f"properties.{name}": label for name, label in columns.properties.items()}
    problems = []
    for kind, entries, given in (
        ("class", schema.classes, {"class": columns.class_label}),
        ("property", schema.properties, properties),
    ):
        labels = {label for entry in entries for label in (entry.label, *entry.alt_labels)}
        for row in accepted:
            labels |= {row["label"], *row["phrases"]} if row["kind"] == kind else set()
        known = {*map(fold_label, labels)}
        for key, label in given.items():
            if label is not None and fold_label(label) not in known:
                near = get_close_matches(label, sorted(labels), n=_NEAREST, cutoff=0.0)
                problems.append(
                    f"ingest.columns.{key}: {label!r} is no label of a {kind} of the ontology; "
                    f"nearest: {', '.join(near) or 'none'}"
                )
    if problems:
        raise SettingsError("; ".join(problems) + ". Mend it, or name another induce.ontology")


_NEAREST = 5


def load_constraints(settings: Settings) -> tuple[Constraint, ...]:
    """The constraints on single values in the shapes beside the ontology.

    Raises:
        InputError: they are no Turtle.
    """
    path = locate_files(settings).shapes
    return read_constraints(path.read_text("utf-8-sig"), source=str(path)) if path else ()


def load_schema(settings: Settings) -> Schema:
    """The seed ontology that the settings name.

    Raises:
        SettingsError: there is none of that name.
        InputError: it is no valid ontology.
    """
    path = locate_files(settings).turtle
    return _parse_once(path.read_text("utf-8-sig"), str(path))


@lru_cache(maxsize=4)
def _parse_once(turtle: str, source: str) -> Schema:
    """The schema, cached: it is frozen, and most stages of a build ask for the same one."""
    return parse_schema(turtle, source=source)
