"""The expensive functions of the stages, each behind its cache: what is known is not computed.

A result is a pure function of one text, so neither the number of workers nor the order nor an
earlier crash can change it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from kpyramid.completion.decisions import load_decisions
from kpyramid.completion.naming import Namer
from kpyramid.condensation.condenser import Condenser
from kpyramid.documents.sentences import Piece, split_text
from kpyramid.embeddings.port import Embedder
from kpyramid.errors import InputError
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.syntax.tree import Tree, unpack_tree
from kpyramid.extraction.types import Extraction
from kpyramid.graph.duplicates import Disambiguator
from kpyramid.keys import JsonValue
from kpyramid.llm.caller import Asker
from kpyramid.ontology.constraints import Constraint, read_constraints
from kpyramid.ontology.population.examples import Value, read_examples
from kpyramid.ontology.population.inducer import Inducer, Router
from kpyramid.ontology.population.reader import Matcher, Reader
from kpyramid.ontology.population.task import group_properties, list_pairs
from kpyramid.ontology.schema import Schema, parse_schema, write_schema
from kpyramid.ontology.validation.checks import check_queries
from kpyramid.ontology.validation.consistency import judge_consistency
from kpyramid.pipeline.cache import CachedEmbedder, CachedFunction
from kpyramid.pipeline.cache import Progress as Progress
from kpyramid.pipeline.cache import Silence as Silence
from kpyramid.pipeline.fingerprints import identify_resource
from kpyramid.pipeline.models import Looker, Model, Opener
from kpyramid.pipeline.stage import Stage
from kpyramid.pipeline.workers import extract_all, load_extractor, load_parser, parse_all, share_out
from kpyramid.settings import Settings
from kpyramid.storage.declarations import OntologyFiles, locate_declarations, locate_ontology
from kpyramid.storage.layout import Warehouse

_EXTRACTION = TypeAdapter(Extraction)
_PIECES = TypeAdapter(tuple[Piece, ...])


def open_splitter(
    warehouse: Warehouse, settings: Settings, progress: Progress
) -> CachedFunction[tuple[Piece, ...]]:
    """Cuts texts into chunks."""

    def compute(texts: Sequence[str]) -> Iterator[bytes]:
        for text in texts:
            yield _PIECES.dump_json(tuple(split_text(text, settings.chunk)))

    return CachedFunction("splitter", warehouse, settings, compute, _PIECES.validate_json, progress)


def open_extractor(
    warehouse: Warehouse, settings: Settings, workers: int, progress: Progress
) -> CachedFunction[Extraction]:
    """Finds the facts in texts, on several processes when there is enough to do."""
    chosen = (settings.extract.parser, settings.extract.language)

    def compute(texts: Sequence[str]) -> Iterator[bytes]:
        return share_out(texts, workers, load_extractor, chosen, extract_all)

    return CachedFunction(
        "extractor", warehouse, settings, compute, _EXTRACTION.validate_json, progress
    )


def open_annotator(
    warehouse: Warehouse, settings: Settings, workers: int, progress: Progress
) -> CachedFunction[str]:
    """Parses texts; a parse is packed, and read with its text by `unpack_tree`."""
    chosen = (settings.extract.parser,)

    def compute(texts: Sequence[str]) -> Iterator[bytes]:
        return share_out(texts, workers, load_parser, chosen, parse_all)

    return CachedFunction("annotator", warehouse, settings, compute, bytes.decode, progress)


@dataclass(frozen=True, slots=True)
class Ports:
    """What a stage's `run` gets by keyword, and the cached functions among it."""

    calls: dict[str, object]
    functions: tuple[CachedFunction[Any], ...]
    model: Model | None = None
    inducer: Inducer | None = None

    def describe_model(self) -> dict[str, JsonValue]:
        """What a language model was asked, as a stage's mark says it; empty without one."""
        spared = {"routed_out": self.inducer.left_out} if self.inducer else {}
        return {**self.model.describe(), **spared} if self.model else {}

    def count_computed(self) -> int:
        """The rows that no cache had."""
        return sum(function.computed for function in self.functions)


def open_ports(
    warehouse: Warehouse,
    settings: Settings,
    stage: Stage,
    workers: int,
    progress: Progress,
    opener: Opener | Looker,
    *,
    read_only: bool = False,
) -> Ports:
    """The ports that a stage declares, except the corpus, which is the runner's to read.

    `opener` opens the models that are asked over a network, where the settings name one. With
    `read_only` no vector is stored.

    Raises:
        SettingsError: a model or an ontology that the settings name is not there.
    """
    calls: dict[str, object] = {}
    functions: list[CachedFunction[Any]] = []
    model: Model | None = None
    inducer: Inducer | None = None
    if "settings" in stage.ports:
        calls["settings"] = getattr(settings, stage.name)
    if "schema" in stage.ports:
        calls["schema"] = load_schema(settings)
    if "decisions" in stage.ports:
        calls["decisions"] = load_decisions(settings.complete)
    if "splitter" in stage.ports:
        functions.append(open_splitter(warehouse, settings, progress))
        calls["splitter"] = functions[-1]
    if "extractor" in stage.ports:
        functions.append(open_extractor(warehouse, settings, workers, progress))
        calls["extractor"] = functions[-1]
    if "embedder" in stage.ports:
        place = (warehouse, settings, workers, progress, opener.connect, stage.name)
        embedder = CachedEmbedder(*place, read_only=read_only)
        functions.append(embedder.function)
        calls["embedder"] = embedder
    if "annotator" in stage.ports:
        annotator = open_annotator(warehouse, settings, workers, progress)
        functions.append(annotator)
        calls["annotator"] = annotator
        calls["reader"] = open_reader(settings, annotator)
    if "shapes" in stage.ports:
        calls["shapes"] = load_constraints(settings)
    if "inducer" in stage.ports:
        model = opener.open_model() if settings.induce.mode != "rules" else None
        inducer = open_inducer(settings, model.caller, embedder, progress) if model else None
        calls["inducer"] = inducer
    if "cascade" in stage.ports:
        model = opener.open_model() if settings.cascade.reads_chunks else None
        calls["cascade"] = model and open_cascade(settings, model.caller, progress)
    if "disambiguator" in stage.ports:
        model = opener.open_model() if settings.cascade.confirms_duplicates else None
        calls["disambiguator"] = model and open_disambiguator(settings, model.caller)
    if "namer" in stage.ports:
        model = opener.open_model() if settings.complete.naming == "llm" else None
        foresees = isinstance(opener, Looker)
        calls["namer"] = model and open_namer(settings, model.caller, foresees)
    if "condenser" in stage.ports:
        model = opener.open_model() if settings.condense.mode == "llm" else None
        calls["condenser"] = model and open_condenser(settings, model.caller)
    return Ports(calls, tuple(functions), model, inducer)


def open_cascade(settings: Settings, asker: Asker, progress: Progress) -> Cascade:
    """f_par, f_ent and f_rel by a language model, chunk by chunk."""
    llm = settings.llm
    return Cascade(
        asker,
        settings.cascade,
        model=llm.model or llm.provider,
        max_tokens=llm.max_tokens,
        concurrency=llm.concurrency,
        progress=progress,
    )


def open_disambiguator(settings: Settings, asker: Asker) -> Disambiguator:
    """f_dis by a language model, batch by batch of near duplicates."""
    llm, cascade = settings.llm, settings.cascade
    return Disambiguator(asker, cascade.domain, cascade.language, llm.max_tokens, llm.concurrency)


def open_namer(settings: Settings, asker: Asker, foresees: bool = False) -> Namer:
    """Names of proposals by a language model, batch by batch; `foresees`: for a plan."""
    llm, cascade = settings.llm, settings.cascade
    return Namer(
        asker,
        model=llm.model or llm.provider,
        domain=cascade.domain,
        language=cascade.language,
        max_tokens=llm.max_tokens,
        concurrency=llm.concurrency,
        foresees=foresees,
    )


def open_condenser(settings: Settings, asker: Asker) -> Condenser:
    """f_con by a language model, batch by batch of wordings that the rules left apart."""
    llm, cascade = settings.llm, settings.cascade
    return Condenser(asker, cascade.domain, cascade.language, llm.max_tokens, llm.concurrency)


def open_inducer(
    settings: Settings, asker: Asker, embedder: Embedder | None, progress: Progress
) -> Inducer:
    """f_ins by a language model, chunk by chunk; without an embedder nothing is routed."""
    schema, examples = load_schema(settings), locate_files(settings).examples
    llm, mode = settings.llm, settings.induce.mode
    groups = list_pairs(schema) if mode == "exhaustive" else group_properties(schema)
    router = Router(schema, groups, embedder) if mode == "llm" and embedder else None
    return Inducer(
        asker,
        schema,
        groups,
        router=router,
        mode=mode,
        model=llm.model or llm.provider,
        max_tokens=llm.max_tokens,
        concurrency=llm.concurrency,
        progress=progress,
        examples=read_examples(examples) if examples else (),
    )


class ExampleReader:
    """A reader that learns from an ontology's examples when it reads the first text."""

    def __init__(
        self, schema: Schema, examples: Path, annotate: Callable[[Sequence[str]], Sequence[str]]
    ) -> None:
        self._schema = schema
        self._examples = examples
        self._annotate = annotate

    def read(self, tree: Tree) -> Sequence[Value]:
        """The values that a text states.

        Raises:
            InputError: an example is none; says which.
        """
        return self._reader.read(tree)

    @cached_property
    def _reader(self) -> Reader:
        examples = read_examples(self._examples)
        texts = [example.text for example in examples]
        trees = [unpack_tree(*both) for both in zip(texts, self._annotate(texts), strict=True)]
        return Reader(self._schema, examples, trees)


def open_reader(
    settings: Settings, annotate: Callable[[Sequence[str]], Sequence[str]]
) -> ExampleReader | None:
    """What reads values as the ontology's examples do; None without any, or where a model reads."""
    examples = locate_files(settings).examples
    if examples is None or settings.induce.mode != "rules":
        return None
    return ExampleReader(load_schema(settings), examples, annotate)


def require_ontology(settings: Settings) -> None:
    """Passes when the ontology, what lies beside it and the decisions file can be read.

    All that is wrong with them is told before any work.

    Raises:
        SettingsError: there is none of that name.
        InputError: one of the files is wrong; names it.
    """
    files = locate_files(settings)
    decisions = load_decisions(settings.complete)
    if decisions.entries:
        decisions.list_accepted(load_schema(settings))
    if settings.induce.ontology in locate_declarations("ontology"):
        return  # it comes with the package, tested; reading it would cost each build half a second
    schema = load_schema(settings)
    known = {*schema.class_by_iri, *schema.property_by_iri}
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


def load_constraints(settings: Settings) -> tuple[Constraint, ...]:
    """What the shapes beside the ontology demand of single values.

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
    """A schema is a frozen value, and most stages of a build ask for the same one."""
    return parse_schema(turtle, source=source)


def locate_files(settings: Settings) -> OntologyFiles:
    """The files of the seed ontology that the settings name.

    Raises:
        SettingsError: there is none of that name.
    """
    identify_resource("ontology", settings)
    files = locate_ontology(settings.induce.ontology)
    assert files is not None  # it was identified
    return files
