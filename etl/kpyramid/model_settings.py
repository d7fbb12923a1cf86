"""Settings of the parts that a language model may do, and of the endpoint that serves it."""

from dataclasses import field
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**32)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Price = Annotated[float, Field(ge=0, le=10_000)]
Maker = Literal["rules", "llm"]


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

    `paraphrase`, `entities`, `relations`, `disambiguation`: who does f_par, f_ent, f_rel, f_dis.
    `mode`: `merged` asks once per chunk for claims, entities and triples, and disambiguates near
    duplicates in batches; `paper` asks once per step and chunk.
    `domain`, `language`, `examples`: what the prompts say; without examples the built-in one.
    """

    paraphrase: Maker = "rules"
    entities: Maker = "rules"
    relations: Maker = "rules"
    disambiguation: Maker = "rules"
    mode: Literal["merged", "paper"] = "merged"
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
        """Whether a model is asked about chunks, in stage extract."""
        steps = (self.paraphrase, self.entities, self.relations)
        return "llm" in steps or (self.mode == "paper" and self.disambiguation == "llm")

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


@dataclass(frozen=True, config=STRICT)
class LLMSettings:
    """The language model: an endpoint that speaks OpenAI's API, a recording, or none.

    `provider`: `openai` for any endpoint of that API, `replay` for a recording. `model`: its name
    at the endpoint. `seed`: sent with every request. `concurrency`: requests at a time.
    `timeout`: seconds that one request may take.
    `base_url`: by default OpenAI's; `api_key_env`: variable that holds the key.
    `temperature`: "default" leaves it out, for models that take no other.
    `max_tokens`: of one reply, reasoning included; doubled once when a reply is cut off.
    `requests_per_minute`, `tokens_per_minute`: shared by all processes on the warehouse; 0: none.
    `max_wait`: seconds that a call waits for a busy endpoint before it is left for the next run.
    `budget`: US dollars from one finished build of a ref to the next.
    `budget_tokens`: tokens, over the same time.
    `cache`: where replies are kept; by default in the warehouse, else a folder or `s3://` URL.
    `recording`: file that provider `replay` answers from.
    `prices`: a table per model: dollars per million tokens of `input`, `output`, `cached_input`,
    and the share of them that the Batch API charges, `batch`.
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


@dataclass(frozen=True, config=STRICT)
class QuerySettings:
    """How questions are answered; no part of any snapshot, and options of `ask` override it.

    `strategy`: where context comes from. `mode`: of polyrag, `paper` is its Algorithm 1 to the
    letter, `best` is ours. `triples`, `chunks`: most facts and passages that one is read from.
    `sparql`, `sufficiency`, `reader`: who writes the query of the ontology, says whether facts are
    enough, and words the answer from the context: rules, or the model of [llm].
    """

    strategy: Literal["direct", "naive", "kaping", "exact", "polyrag"] = "polyrag"
    mode: Literal["best", "paper"] = "best"
    triples: Annotated[int, Field(strict=True, ge=1, le=1000)] = 10
    chunks: Annotated[int, Field(strict=True, ge=1, le=1000)] = 5
    sparql: Maker = "rules"
    sufficiency: Maker = "rules"
    reader: Maker = "rules"

    @property
    def asks_model(self) -> bool:
        """Whether any decision about a question is the model's."""
        return "llm" in (self.sparql, self.sufficiency, self.reader)


@dataclass(frozen=True, config=STRICT)
class EvaluateSettings:
    """Questions that a snapshot must answer well enough to become HEAD; no part of any snapshot.

    `questions`: file of questions with their answers, as `kpyramid evaluate` reads it; a relative
    path is one below the working folder. `strategy`: how they are asked, by rules, such as
    "polyrag" or "polyrag:mode=paper". `floor`: metrics and the least mean that each must have; of
    one of which less is better, the most.
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
