"""Graphs of any size for measurements of growth: tables of made facts, and vectors for them.

Not a measurement itself: `make bench` leaves it out. Everything is made by columns, so that a
million facts take a minute. Nearly every fact has a phrase (head and wording) of its own, the worst
case for completion, and there is a wording for every four facts. Two facts in five share head and
tail with others, one in a thousand all share one pair, and heads are drawn unevenly, as hubs are in
real graphs. One fact in ten ends in a literal. A fifth of the facts with two entities are values of
the ontology layer. A fifth of the wordings belong to twenty planted relations, each from one type
to one type or to literals, which the ontology lacks.
"""

import zlib
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix

from kpyramid.embeddings.port import Matrix
from kpyramid.storage import contracts
from kpyramid.storage.contracts import ARGUMENT, BLOCK, PLACE, SPAN, load_contracts
from kpyramid.storage.memory import allocate_matrix

Numbers = npt.NDArray[np.int64]

PREFIX = "https://w3id.org/kpyramid/general#"
TYPES = ("PERSON", "ORG", "GPE", "WORK_OF_ART")
CLASSES = ("Person", "Organisation", "PopulatedPlace", "Work")
PROPERTIES = (
    *(("birthPlace", 0, 2), ("residence", 0, 2), ("employer", 0, 1), ("educatedAt", 0, 1)),
    *(("spouse", 0, 0), ("wrote", 0, 3), ("headquarters", 1, 2), ("founder", 1, 0)),
    *(("owns", 1, 1), ("published", 1, 3), ("sharesBorderWith", 2, 2), ("leader", 2, 0)),
    *(("author", 3, 0), ("publisher", 3, 1), ("performer", 3, 0), ("basedOn", 3, 3)),
)
"""Properties of the general ontology with the places in `TYPES` of their ends."""
VERBS = """abandoned accepted acquired addressed adopted advertised analysed announced approved
arranged assembled awarded backed borrowed briefed built bought called cancelled carried changed
charted claimed collected commissioned compiled composed copied covered criticised defended
delivered described designed discussed drafted edited endorsed examined exhibited exported filmed
financed finished followed guarded guided handled hosted ignored illustrated imported improved
inherited inspected installed introduced invented leased licensed listed managed mapped mentioned
modelled moved named noted observed offered opened ordered painted planned praised predicted
presented printed promoted proposed purchased recorded refused rejected released renamed repaired
replaced requested restored reviewed sold shipped signed sponsored staged studied supplied tested
translated visited watched withdrew""".split()
NOUNS = """account agenda album archive article asset ballet barrel battery bill boat bond book
border branch brand bridge budget building bulletin camera campaign canal cargo carpet catalogue
ceremony chapel charter church claim clinic coin collection colony column comedy concert contract
copy course court crew crop dataset debt defence degree delegation design diary dinner district
document drama drawing election engine essay estate exhibit expedition factory farm festival film
fleet forest fund gallery garden gift grant guide harbour hospital hotel hymn island journal
laboratory lecture lens letter library licence loan manual map market medal meeting memoir mill
mine mission motion museum novel office opera orchard order paper parade park patent petition plan
play poem policy portrait price prize project proposal protocol quarry race recipe record reform
report review ritual route school sculpture season series service ship shop show song station
statue stock story study survey system tale tax temple theatre title tour tower trade tunnel
vaccine village voyage warehouse winery""".split()
LINKS = "of for with against in from under near without beyond".split()
SHADES = ["", *"first last annual famous former joint large late minor private rare".split()]

DIMENSIONS = 384
_WORD_ROWS = 1 << 13
_PLANTED = 20
_FACTS_PER_DOCUMENT = 20
_BLOCK = 8192


class WordVectors:
    """A text's vector is the mean of its words' made-up vectors, at unit length.

    Texts are alike when they share words, so that wordings of one verb and noun lie together.
    """

    name = f"made-up words, {DIMENSIONS} dimensions"

    def __init__(self, scratch: Path | None = None) -> None:
        self._scratch = scratch
        chance = np.random.default_rng(0)
        self._rows = chance.standard_normal((_WORD_ROWS, DIMENSIONS)).astype(np.float32)

    def embed(self, texts: Sequence[str]) -> Matrix:
        vectors = allocate_matrix(len(texts), DIMENSIONS, self._scratch)
        for start in range(0, len(texts), _BLOCK):
            words = [text.split() or [""] for text in texts[start : start + _BLOCK]]
            places = np.array([self._place(w) for ws in words for w in ws])
            starts = np.array([0, *accumulate(len(ws) for ws in words)])
            shape = (len(words), _WORD_ROWS)
            counts = csr_matrix((np.ones(len(places), np.float32), places, starts), shape)
            block = counts @ self._rows
            block /= np.linalg.norm(block, axis=1, keepdims=True)
            vectors[start : start + len(words)] = block
        return vectors

    def _place(self, word: str) -> int:
        return zlib.crc32(word.encode()) % _WORD_ROWS


def write_graph(folder: Path, facts: int, seed: int) -> None:
    """Writes a Parquet file for each table up to `instances`, with so many facts."""
    chance = np.random.default_rng(seed)
    kinds, heads, tails, wordings = _draw_facts(facts, chance)
    names = [f"{'Aria Brook Cliff Delta'.split()[k]} {i}" for i, k in enumerate(kinds.tolist())]
    phrases = _word_relations(int(wordings.max()) + 1)
    literal = np.arange(facts) % 10 == 9
    said = [
        (names[h], phrases[w], str(1500 + number) if plain else names[t])
        for number, (h, w, t, plain) in enumerate(
            zip(heads.tolist(), wordings.tolist(), tails.tolist(), literal.tolist(), strict=True)
        )
    ]
    ids = _Ids(facts, len(names), len(phrases))
    texts = _state_texts(said, ids)
    texts["mentions"] = _mention_ends(texts["raw_triples"], kinds, heads, tails, literal, ids)
    tables = {
        "entities": {
            "entity_id": ids.entities,
            "name": names,
            "type": [TYPES[k] for k in kinds.tolist()],
            "surface_forms": _list_each(names),
            "mentions": _list_mentions(heads, tails, literal, ids),
        },
        "relations": {
            "relation_id": ids.relations,
            "name": phrases,
            "inverse_of": pa.nulls(len(phrases), pa.string()),
            "surface_forms": _list_each(phrases),
            "support": np.bincount(wordings, minlength=len(phrases)),
        },
        "triples": {
            "triple_id": ids.triples,
            "head_id": ids.entities.take(heads),
            "relation_id": ids.relations.take(wordings),
            "tail_id": _blank(ids.entities.take(tails), literal),
            "literal": _blank(pa.array([tail for _, _, tail in said]), ~literal),
            "qualifiers": pa.array([[]] * facts, pa.map_(pa.string(), pa.string())),
            "confidence": np.full(facts, 0.9),
            "raw_triple_ids": _list_each(ids.raws),
        },
        **texts,
        "instances": _state_values(kinds, heads, tails, literal, ids),
    }
    for name, columns in tables.items():
        write_table(folder, name, pa.table(columns))
    write_table(folder, "proposals", load_contracts()["proposals"].build([]))


def write_table(folder: Path, name: str, table: pa.Table) -> None:
    """Writes one table of a contract, with its defaults and its rows sorted as that demands."""
    contract = load_contracts()[name]
    contracts.write_table(contract.finish(contract.complete(table)), folder / f"{name}.parquet")


class _Ids:
    """Keys of all rows, as arrays."""

    def __init__(self, facts: int, entities: int, relations: int) -> None:
        self.entities = _number("entity", entities)
        self.relations = _number("relation", relations)
        self.triples = _number("triple", facts)
        self.raws = _number("raw", facts)
        self.claims = _number("claim", facts)
        self.mentions = _number("mention", 2 * facts)
        self.documents = _number("doc", -(-facts // _FACTS_PER_DOCUMENT))
        self.chunks = _number("chunk", len(self.documents))


def _draw_facts(
    facts: int, chance: np.random.Generator
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Type of each entity, and head, tail and wording of each fact."""
    kinds = np.arange(facts // 2) % len(TYPES)
    each = len(kinds) // len(TYPES)
    used = -(-facts // len(TYPES))
    numbers = np.arange(facts)
    wordings, head_kinds = numbers % used, numbers // used
    uneven = (each * chance.random(facts) ** 2).astype(np.int64)
    heads = uneven * len(TYPES) + head_kinds
    tails = chance.integers(0, len(kinds), facts)
    shared = numbers % 5 < 2  # each run of four such facts states one pair
    runs = (numbers // 10) * 10
    same = shared & (head_kinds[runs] == head_kinds)
    heads[same], tails[same] = heads[runs][same], tails[runs][same]
    crowd = (numbers % 1000 == 2) & (head_kinds == 0)
    heads[crowd], tails[crowd] = 0, 1
    planted = wordings % 5 == 4
    relation = wordings[planted] // 5 % _PLANTED
    heads[planted] += relation % len(TYPES) - heads[planted] % len(TYPES)
    tails[planted] += relation // len(TYPES) % len(TYPES) - tails[planted] % len(TYPES)
    return kinds, heads, tails, wordings


def _word_relations(count: int) -> list[str]:
    """So many wordings, all different: a fifth planted, of the others half in the perfect tense."""
    wordings = []
    for number in range(count):
        if number % 5 == 4:
            words = _word_planted(*divmod(number // 5, _PLANTED))
        else:
            words = ["has" * (number % 2), *_word_one(number // 2)]
        wordings.append(" ".join(filter(None, words)))
    return wordings


def _word_one(number: int) -> tuple[str, str, str, str]:
    total = len(VERBS) * len(NOUNS) * len(LINKS) * len(SHADES)
    # A prime that is no divisor of the total, so that every wording comes once.
    rest, verb = divmod(number * 1_000_003 % total, len(VERBS))
    rest, noun = divmod(rest, len(NOUNS))
    shade, link = divmod(rest, len(LINKS))
    return VERBS[verb], SHADES[shade], NOUNS[noun], LINKS[link]


def _word_planted(variant: int, relation: int) -> Sequence[str]:
    """Five words of the relation and two of the variant, so that the cosine of two is .7."""
    rest, noun = divmod(variant, len(NOUNS))
    rest, shade = divmod(rest, len(SHADES))
    both = (VERBS[relation], NOUNS[relation], LINKS[relation % 10], VERBS[-1 - relation], "their")
    return (*both, SHADES[shade], NOUNS[-1 - noun], *([VERBS[rest]] if rest else []))


def _state_texts(said: Sequence[tuple[str, str, str]], ids: _Ids) -> dict[str, dict[str, object]]:
    """Documents of some sentences each, in one chunk, with a claim and a raw triple a sentence."""
    sentences = [f"{head} {relation} {tail}." for head, relation, tail in said]
    groups = range(0, len(said), _FACTS_PER_DOCUMENT)
    texts = [" ".join(sentences[at : at + _FACTS_PER_DOCUMENT]) for at in groups]
    lengths = np.array([len(sentence) + 1 for sentence in sentences])
    starts = np.cumsum(lengths) - lengths
    numbers = np.arange(len(said)) // _FACTS_PER_DOCUMENT
    starts -= starts[numbers * _FACTS_PER_DOCUMENT]
    head_ends = starts + np.array([len(head) for head, _, _ in said])
    tail_ends = starts + lengths - 2
    tail_starts = tail_ends - np.array([len(tail) for _, _, tail in said])
    chunk_of = ids.chunks.take(numbers)
    count, size = len(said), len(texts)
    rules = pa.array(["rules"]).take(np.zeros(count, dtype=np.int64))
    return {
        "documents": {
            "document_id": ids.documents,
            "source": [f"{number}.txt" for number in range(size)],
            "title": pa.nulls(size, pa.string()),
            "text": texts,
            "blocks": pa.nulls(size, pa.list_(BLOCK)),
            "language": ["en"] * size,
            "metadata": pa.array([[]] * size, pa.map_(pa.string(), pa.string())),
            "access": _empty_lists(size),
            "licence": pa.nulls(size, pa.string()),
            "sha256": ["0" * 64] * size,
        },
        "chunks": {
            "chunk_id": ids.chunks,
            "document_id": ids.documents,
            "start": np.zeros(size, dtype=np.int64),
            "end": np.array([len(text) for text in texts]),
            "text": texts,
            "tokens": np.array([text.count(" ") + 1 for text in texts]),
        },
        "claims": {
            "claim_id": ids.claims,
            "chunk_id": chunk_of,
            "text": sentences,
            "spans": _list_each(_span(starts, tail_ends + 1)),
            "predicate": pa.nulls(count, pa.string()),
            "arguments": _empty_lists(count, ARGUMENT),
            "producer": rules,
        },
        "raw_triples": {
            "raw_triple_id": ids.raws,
            "claim_id": ids.claims,
            "chunk_id": chunk_of,
            "head": [head for head, _, _ in said],
            "relation": [relation for _, relation, _ in said],
            "tail": [tail for _, _, tail in said],
            "head_span": _span(starts, head_ends),
            "relation_span": _span(head_ends + 1, tail_starts - 1),
            "tail_span": _span(tail_starts, tail_ends),
            "negated": np.zeros(count, dtype=bool),
            "modality": pa.nulls(count, pa.string()),
            "attribution": pa.nulls(count, pa.string()),
            "qualifiers": pa.array([[]] * count, pa.map_(pa.string(), pa.string())),
            "confidence": np.full(count, 0.9),
            "producer": rules,
        },
    }


def _mention_ends(
    raw: dict[str, object],
    kinds: Numbers,
    heads: Numbers,
    tails: Numbers,
    literal: npt.NDArray[np.bool_],
    ids: _Ids,
) -> dict[str, object]:
    """The head of each fact, then its tail, with their types; literals are dates."""
    types = pa.array([*TYPES, "DATE"])
    ends = np.where(literal, len(TYPES), kinds[tails])
    spans = [raw[f"{end}_span"] for end in ("head", "tail")]
    places = {
        part: np.concatenate([pc.struct_field(span, part) for span in spans])
        for part in ("start", "end")
    }
    return {
        "mention_id": ids.mentions,
        **{key: pa.concat_arrays([raw[key], raw[key]]) for key in ("claim_id", "chunk_id")},
        "text": [*raw["head"], *raw["tail"]],  # type: ignore[misc]
        "type": types.take(pa.array(np.concatenate([kinds[heads], ends]))),
        **places,
    }


def _list_mentions(
    heads: Numbers, tails: Numbers, literal: npt.NDArray[np.bool_], ids: _Ids
) -> pa.Array:
    """The mentions of each entity."""
    named = np.concatenate([heads, np.where(literal, len(ids.entities), tails)])
    order = np.argsort(named, kind="stable")
    sizes = np.bincount(named, minlength=len(ids.entities))[: len(ids.entities)]
    offsets = np.cumsum([0, *sizes]).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, ids.mentions.take(pa.array(order[: offsets[-1]])))


def _state_values(
    kinds: Numbers, heads: Numbers, tails: Numbers, literal: npt.NDArray[np.bool_], ids: _Ids
) -> dict[str, object]:
    """A fifth of the facts as values of the property whose ends they fit, each statement once."""
    fitting = {(head, tail): number for number, (_, head, tail) in enumerate(PROPERTIES)}
    table = np.full((len(TYPES), len(TYPES)), -1)
    for (head, tail), number in fitting.items():
        table[head, tail] = number
    properties = table[kinds[heads], kinds[tails]]
    properties[literal | (np.arange(len(heads)) % 5 != 0)] = -1
    places = np.flatnonzero(properties >= 0)
    stated = np.stack([properties[places], heads[places], tails[places]])
    places = places[np.sort(np.unique(stated, axis=1, return_index=True)[1])]
    count = len(places)
    chosen = properties[places]
    iris = pa.array([PREFIX + label for label, *_ in PROPERTIES])
    classes = pa.array([PREFIX + CLASSES[head] for _, head, _ in PROPERTIES])
    chunks = ids.chunks.take(places // _FACTS_PER_DOCUMENT)
    zeros, ones = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64)
    place = pa.StructArray.from_arrays([chunks, zeros, ones], fields=list(PLACE))
    return {
        "instance_id": _number("instance", count),
        "class_iri": classes.take(chosen),
        "property_iri": iris.take(chosen),
        "subject_id": ids.entities.take(heads[places]),
        "object_id": ids.entities.take(tails[places]),
        "literal": pa.nulls(count, pa.string()),
        "datatype": pa.nulls(count, pa.string()),
        "confidence": np.full(count, 0.9),
        "chunk_id": chunks,
        "start": zeros,
        "end": ones,
        "subject_span": pa.nulls(count, SPAN),
        "object_span": pa.nulls(count, SPAN),
        "places": _list_each(place),
        "triple_ids": _list_each(ids.triples.take(places)),
        "producer": pa.array(["rules"]).take(zeros),
    }


def _number(kind: str, count: int) -> pa.Array:
    return pa.array([f"{kind}-{number:010}" for number in range(count)], pa.string())


def _list_each(values: pa.Array | Sequence[str]) -> pa.Array:
    """A list of one for each value."""
    items = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
    return pa.ListArray.from_arrays(np.arange(len(items) + 1, dtype=np.int32), items)


def _empty_lists(count: int, kind: pa.DataType | None = None) -> pa.Array:
    offsets = np.zeros(count + 1, dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array([], kind or pa.string()))


def _blank(values: pa.Array, where: npt.NDArray[np.bool_]) -> pa.Array:
    """The values, null where it says so."""
    return pc.if_else(pa.array(where), pa.scalar(None, pa.string()), values)


def _span(starts: Numbers, ends: Numbers) -> pa.Array:
    return pa.StructArray.from_arrays([pa.array(starts), pa.array(ends)], fields=list(SPAN))
