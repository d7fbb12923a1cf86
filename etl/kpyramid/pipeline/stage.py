"""The stages as data, in the order the text flows; imports nothing heavy.

A stage's module `kpyramid.pipeline.stages.<name>` has one public function `run`. Its positional
parameters are the tables in `reads`; its keyword parameters are the ports in `ports`.
"""

from dataclasses import dataclass


class Progress:
    """Receives the progress of long work; this one shows nothing."""

    def begin(self, stage: str) -> None:
        """A stage begins."""

    def expect(self, total: int) -> None:
        """So many more units are expected."""

    def advance(self, count: int) -> None:
        """So many more units are done."""

    def end(self, stage: str) -> None:
        """A stage is done."""


class UnknownError(Exception):
    """A plan needs a vector that is not stored."""


@dataclass(frozen=True, slots=True)
class Function:
    """An expensive pure function from a text to a result, cached text by text.

    `version` goes up whenever its code changes what it returns; it is part of every key.
    `section`: the settings that shape it. `resource`: the model whose files shape it.
    `libraries`: distributions that shape it; their versions are part of every key.
    """

    name: str
    version: int
    section: str
    resource: str | None = None
    libraries: tuple[str, ...] = ()


FUNCTIONS: tuple[Function, ...] = (
    Function("converter", 10, section="ingest", libraries=("kreuzberg", "python-calamine")),
    Function("splitter", 8, section="chunk", libraries=("simplemma",)),
    Function(
        "extractor",
        39,
        section="extract",
        resource="parser",
        libraries=("py3langid", "simplemma", "spacy"),
    ),
    Function("annotator", 26, section="extract", resource="parser", libraries=("spacy",)),
    Function(
        "embedder",
        1,
        section="embed",
        resource="embedding",
        libraries=("onnxruntime", "tokenizers"),
    ),
    Function("reasoner", 3, "publish", libraries=("owlready2", "pyoxigraph", "pyshacl", "rdflib")),
)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage, declared.

    `version` goes up whenever the stage's code changes what it makes; it is part of every key.
    `reads`, `writes`: tables. Several stages may write one table: its rows are their union.
    `ports`: what else `run` is given: `corpus`, `erased` (what is left out of it), `settings` (the
        stage's section), `former` (the ref's last snapshot, whose names go on), `schema` (the seed
        ontology), `shapes` (what its shapes demand of single values), `reader` (of what its
        examples taught, None without any), `decisions` (of a person on proposals), `drafting`
        (the same where the corpus makes the ontology, else None), `corrections`,
        `min_confidence` (that of section publish, below which a fact is a reject), one of
        `FUNCTIONS`, or a language model's part, None where rules do it: `cascade` (f_par, f_ent,
        f_rel), `disambiguator` (f_dis), `inducer` (f_ins), `namer`, `condenser` (f_con).
    `libraries`: distributions that shape the output, besides those of its functions.
    `shards`: tables that may be cut by hash to warm the functions' caches on several machines. With
        `documents` alone each document's rows follow from it alone, and a later run takes them.
    `denials`: whether it is given the facts that the text denies or a person corrected; else it
        reads plain ones only.
    `accounts`: two columns; each value of the first is in the second or the key of a reject.
    """

    name: str
    version: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    ports: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    shards: tuple[str, ...] = ()
    accounts: tuple[str, str] | None = None
    denials: bool = False


PIPELINE: tuple[Stage, ...] = (
    Stage(
        "ingest",
        version=17,
        reads=(),
        writes=("documents", "rejects"),
        ports=("corpus", "converter", "erased", "settings"),
        libraries=(
            *("kreuzberg", "markdown-it-py", "mwparserfromhell"),
            *("pyoxigraph", "python-calamine", "PyYAML", "simplemma"),
        ),
    ),
    Stage(
        "chunk",
        version=2,
        reads=("documents",),
        writes=("chunks", "rejects"),
        ports=("splitter",),
        libraries=("simplemma",),
        shards=("documents",),
        accounts=("documents.document_id", "chunks.document_id"),
    ),
    Stage(
        "extract",
        version=19,
        reads=("documents", "chunks"),
        writes=("claims", "mentions", "raw_triples", "rejects"),
        ports=("extractor", "cascade"),
        libraries=("simplemma",),
        shards=("documents",),
        accounts=("chunks.chunk_id", "raw_triples.chunk_id"),
    ),
    Stage(
        "resolve",
        version=27,
        reads=("documents", "mentions", "raw_triples", "chunks"),
        writes=("entities", "relations", "triples", "rejects"),
        ports=("former", "embedder", "disambiguator", "min_confidence", "corrections"),
        libraries=("anyascii", "numpy", "pyoxigraph", "scikit-learn", "scipy", "simplemma"),
        accounts=("raw_triples.raw_triple_id", "triples.raw_triple_ids"),
        denials=True,
    ),
    Stage(
        "embed",
        version=3,
        reads=("documents", "chunks", "entities", "relations", "triples"),
        writes=("vectors",),
        ports=("embedder",),
        libraries=("numpy", "simplemma"),
        shards=("chunks", "triples"),
        accounts=("triples.triple_id", "vectors.owner_id"),
        denials=True,
    ),
    Stage(
        "induce",
        version=26,
        reads=(
            *("documents", "chunks", "claims", "mentions", "raw_triples"),
            *("entities", "relations", "triples"),
        ),
        writes=("entities", "instances", "proposals", "vectors", "rejects"),
        ports=(
            *("former", "schema", "drafting", "shapes", "embedder", "annotator", "reader"),
            *("cascade", "inducer", "min_confidence", "corrections"),
        ),
        libraries=("anyascii", "numpy", "pyoxigraph", "scikit-learn", "scipy", "simplemma"),
    ),
    Stage(
        "complete",
        version=32,
        reads=(
            *("documents", "chunks", "claims", "raw_triples"),
            *("entities", "relations", "triples", "instances", "proposals"),
        ),
        writes=(
            *("phrases", "priorities", "layers", "proposals"),
            *("instances", "additions", "vectors", "rejects"),
        ),
        ports=("settings", "schema", "shapes", "decisions", "drafting", "embedder", "namer"),
        libraries=("numpy", "scipy", "kmedoids", "pyoxigraph", "simplemma"),
        accounts=("triples.triple_id", "priorities.triple_id"),
    ),
    Stage(
        "condense",
        version=26,
        reads=("entities", "relations", "triples", "proposals", "chunks", "raw_triples"),
        writes=("condensed", "contradictions", "statements", "vectors", "rejects"),
        ports=("former", "settings", "schema", "embedder", "condenser", "summariser"),
        libraries=("anyascii", "faiss-cpu", "numpy", "pyoxigraph", "simplemma"),
        accounts=("triples.triple_id", "condensed.derived_from"),
        denials=True,
    ),
    Stage(
        "publish",
        version=7,
        reads=("documents", "chunks", "entities", "instances", "proposals"),
        writes=(),
        ports=("schema",),
        libraries=("owlready2", "pyoxigraph", "simplemma"),
    ),
)


def find_function(name: str) -> Function:
    """The function of that name.

    Raises:
        KeyError: there is none.
    """
    return {function.name: function for function in FUNCTIONS}[name]


def find_stage(name: str) -> Stage:
    """The stage of that name.

    Raises:
        KeyError: there is none.
    """
    return {stage.name: stage for stage in PIPELINE}[name]
