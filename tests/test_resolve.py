"""Resolve: planted statements become exactly the planted entities, relations and facts."""

import random
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pytest

from kpyramid.completion.corrections import Corrections
from kpyramid.documents.qualifiers import BRACKET, cite_document
from kpyramid.keys import content_id
from kpyramid.pipeline.stages import resolve
from kpyramid.pipeline.stages.tables import Row, build_table
from tests.planted import WordEmbedder
from tests.rows import each_row


def make_raw(head: str, relation: str, tail: str, chunk: str = "chunk-1", **more: object) -> Row:
    row: dict[str, object] = {
        "claim_id": f"claim-{chunk}",
        "chunk_id": chunk,
        "head": head,
        "relation": relation,
        "tail": tail,
        "head_span": None,
        "relation_span": None,
        "tail_span": None,
        "negated": False,
        "modality": None,
        "attribution": None,
        "qualifiers": [],
        "confidence": 0.5,
        "producer": "rules",
    } | more
    return row | {"raw_triple_id": content_id("raw", *(str(row[k]) for k in sorted(row)))}


def make_mention(text: str, kind: str, chunk: str = "chunk-1", start: int = 0) -> Row:
    return {
        "mention_id": content_id("mention", text, kind, chunk, start),
        "claim_id": f"claim-{chunk}",
        "chunk_id": chunk,
        "text": text,
        "type": kind,
        "start": start,
        "end": start + len(text),
    }


def build_chunks(raws: list[Row]) -> pa.Table:
    """One document per chunk, unless the chunk says `document/chunk`."""
    places = sorted({str(raw["chunk_id"]) for raw in raws})
    return build_table(
        "chunks",
        [
            {"chunk_id": place, "document_id": place.split("/")[0], "start": 0, "end": 1}
            | {"text": "-", "tokens": 1}
            for place in places
        ],
    )


def build_documents(
    chunks: pa.Table, titles: Mapping[str, str] | None = None, text: str = "-"
) -> pa.Table:
    rows = [
        {"document_id": key, "source": f"{key}.txt", "title": (titles or {}).get(key), "text": text}
        | {"language": "en", "metadata": [], "access": [], "licence": None, "sha256": key}
        for key in sorted(set(chunks["document_id"].to_pylist()))
    ]
    return build_table("documents", rows)


def run(
    raws: Iterable[Row],
    mentions: Iterable[Row] = (),
    titles: Mapping[str, str] | None = None,
    min_confidence: float = 0.0,
    text: str = "-",
    chunks: pa.Table | None = None,
) -> dict[str, pa.Table]:
    raws = [*raws]
    chunks = build_chunks(raws) if chunks is None else chunks
    return resolve.run(
        build_documents(chunks, titles, text),
        build_table("mentions", mentions),
        build_table("raw_triples", raws),
        chunks,
        embedder=WordEmbedder(),
        former=None,
        disambiguator=None,
        min_confidence=min_confidence,
        corrections=Corrections(),
    )


def list_facts(made: dict[str, pa.Table]) -> set[tuple[str, str, str]]:
    names = {r["entity_id"]: r["name"] for r in made["entities"].to_pylist()}
    verbs = {r["relation_id"]: r["name"] for r in made["relations"].to_pylist()}
    return {
        (names[r["head_id"]], verbs[r["relation_id"]], names.get(r["tail_id"]) or r["literal"])
        for r in made["triples"].to_pylist()
    }


def test_one_fact_seen_through_overlapping_chunks_is_one_triple_with_all_its_places() -> None:
    raws = [make_raw("Anna Holm", "founded", "Aster", f"chunk-{n}") for n in (1, 2)]

    made = run([*raws, make_raw("the Anna Holm", "founded", "Aster's")])

    (triple,) = made["triples"].to_pylist()
    assert len(triple["raw_triple_ids"]) == 3
    assert {raw["raw_triple_id"] for raw in raws} < set(triple["raw_triple_ids"])
    assert made["rejects"].num_rows == 0


def test_the_last_word_of_many_names_is_a_name_by_itself() -> None:
    names = ["Harbour Deploy Jenkins", "Staging Deploy Jenkins", "Velm Jenkins", "Jenkins"]
    raws = [make_raw(name, "runs on", f"Orm {n}") for n, name in enumerate(names)]
    kinds = [make_mention(name, "PERSON" if n % 2 else "ORG") for n, name in enumerate(names)]
    assert {head for head, _, _ in list_facts(run(raws, kinds))} == set(names)


def test_a_fact_that_is_not_sure_enough_is_a_reject_with_its_entities() -> None:
    raws = [
        make_raw("Holm", "met", "Batt", confidence=0.4),
        make_raw("Holm", "met", "Batt", "chunk-2", confidence=0.4),
        make_raw("Holm", "founded", "Aster", confidence=0.5),
        make_raw("Vell", "was founded by", "Lund", confidence=0.9),
    ]
    made = run(raws, min_confidence=0.6)
    assert list_facts(made) == {("Holm", "met", "Batt"), ("Vell", "was founded by", "Lund")}
    assert set(made["entities"]["name"].to_pylist()) == {"Holm", "Batt", "Vell", "Lund"}
    inverse = {row["name"]: row["inverse_of"] for row in made["relations"].to_pylist()}
    assert inverse == {"met": None, "was founded by": None}
    (reject,) = made["rejects"].to_pylist()
    assert (reject["reason"], reject["row_key"]) == ("low_confidence", raws[2]["raw_triple_id"])


def test_confidence_grows_with_chunks_and_not_with_repetition_in_one() -> None:
    once = [make_raw("Holm", "met", "Batt")]
    same_chunk = [*once, make_raw("the Holm", "met", "Batt")]
    two_chunks = [*once, make_raw("Holm", "met", "Batt", "chunk-2")]

    values = [
        run(raws)["triples"]["confidence"].to_pylist() for raws in (once, same_chunk, two_chunks)
    ]

    assert values == [[0.5], [0.5], [0.75]]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (make_raw("Anna", "visits", "Rome", modality="if"), "not_asserted"),
        (make_raw("Anna", "visited", "Rome", attribution="Bob"), "attributed"),
        (make_raw("The Anna", "met", "Anna"), "same_head_and_tail"),
    ],
)
def test_what_is_doubted_or_empty_is_a_reject_and_no_fact(raw: Row, reason: str) -> None:
    made = run([raw])

    assert made["triples"].num_rows == made["entities"].num_rows == made["relations"].num_rows == 0
    (reject,) = made["rejects"].to_pylist()
    assert (reject["reason"], reject["row_key"]) == (reason, raw["raw_triple_id"])


def test_a_denied_statement_does_not_weaken_the_same_one_asserted_elsewhere() -> None:
    made = run([make_raw("A", "met", "B"), make_raw("A", "met", "B", "chunk-2", negated=True)])

    rows = {row["negated"]: row for row in made["triples"].to_pylist()}
    assert len(rows) == 2
    assert rows[False]["confidence"] == rows[True]["confidence"] == 0.5
    assert rows[False]["relation_id"] == rows[True]["relation_id"]
    assert made["rejects"].num_rows == 0


@pytest.mark.parametrize(
    "kind", ["DATE", "TIME", "CARDINAL", "ORDINAL", "QUANTITY", "MONEY", "PERCENT"]
)
def test_a_value_is_a_literal_and_no_entity(kind: str) -> None:
    made = run(
        [make_raw("Leon Batt", "scored", "12  \n units")], [make_mention("12  \n units", kind)]
    )

    (triple,) = made["triples"].to_pylist()
    assert (triple["literal"], triple["tail_id"]) == ("12 units", None)
    assert made["entities"]["name"].to_pylist() == ["Leon Batt"]


def test_a_name_that_is_also_a_value_elsewhere_stays_apart() -> None:
    span = {"start": 50, "end": 54}
    mentions = [
        make_mention("1984", "WORK_OF_ART", start=0),
        make_mention("1984", "DATE", start=50),
    ]
    raws = [
        make_raw("Orwell", "wrote", "1984", tail_span={"start": 0, "end": 4}),
        make_raw("Orwell", "died in", "1984", tail_span=span),
    ]

    triples = run(raws, mentions)["triples"].to_pylist()

    assert sorted(str(row["literal"]) for row in triples) == ["1984", "None"]


def test_passive_and_active_are_two_relations_that_name_each_other() -> None:
    made = run([make_raw("A", "founded", "B"), make_raw("C", "was founded by", "D")])

    relations = {row["name"]: row for row in made["relations"].to_pylist()}
    assert relations["was founded by"]["inverse_of"] == relations["founded"]["relation_id"]
    assert relations["founded"]["inverse_of"] is None


def test_a_passive_without_its_active_names_no_inverse() -> None:
    made = run([make_raw("C", "was founded by", "D")])

    assert made["relations"]["inverse_of"].to_pylist() == [None]


def test_the_type_of_an_entity_is_the_most_frequent_that_says_something() -> None:
    kinds = ["NOUN", "NOUN", "NOUN", "ORG", "PERSON", "PERSON"]
    mentions = [make_mention("Holm", kind, f"chunk-{n}") for n, kind in enumerate(kinds)]
    raws = [make_raw("Holm", "met", "B", f"chunk-{n}") for n in range(len(kinds))]

    entities = {row["name"]: row for row in run(raws, mentions)["entities"].to_pylist()}

    assert entities["Holm"]["type"] == "PERSON"
    assert entities["Holm"]["mentions"] == sorted(str(m["mention_id"]) for m in mentions)
    assert entities["B"]["type"] == "NOUN"


def test_wordings_of_one_name_are_one_entity_with_all_its_forms() -> None:
    raws = [make_raw(name, "met", "B") for name in ("The Holm", "holm", "Holm’s")]

    entities = {row["name"]: row for row in run(raws)["entities"].to_pylist()}

    assert len(entities) == 2
    assert entities["The Holm"]["surface_forms"] == sorted(["The Holm", "holm", "Holm’s"])


def test_the_order_of_the_rows_changes_nothing() -> None:
    dice = random.Random(3)
    names = ["Holm", "the Holm", "holm", "Batt", "Lund", "1902", "Batt's"]
    verbs = ["founded", "was founded by", "founds", "met", "is a"]
    raws = {
        str(row["raw_triple_id"]): row
        for row in (
            make_raw(
                dice.choice(names),
                dice.choice(verbs),
                dice.choice(names),
                f"chunk-{dice.randrange(4)}",
                negated=dice.random() < 0.1,
                qualifiers=[("time", str(dice.randrange(1900, 2000)))],
                confidence=dice.random(),
            )
            for _ in range(150)
        )
    }
    mentions = {
        str(row["mention_id"]): row
        for row in (
            make_mention(
                dice.choice(names),
                dice.choice(["PERSON", "ORG", "NOUN", "DATE"]),
                f"chunk-{dice.randrange(4)}",
                dice.randrange(3),
            )
            for _ in range(80)
        )
    }
    expected = run(raws.values(), mentions.values())
    assert len(list_facts(expected)) > 20
    for seed in range(5):
        mix = random.Random(seed)
        raw_rows, mention_rows = ([*rows.values()] for rows in (raws, mentions))
        mix.shuffle(raw_rows)
        mix.shuffle(mention_rows)
        assert run(raw_rows, mention_rows) == expected


def list_relations(*facts: tuple[str, str, str]) -> list[set[str]]:
    made = run([make_raw(*fact) for fact in facts])
    return [set(row["surface_forms"]) for row in made["relations"].to_pylist()]


def test_phrases_that_differ_in_light_words_are_one_relation() -> None:
    relations = list_relations(
        ("A", "is the capital of", "B"), ("C", "capital of", "D"), ("E", "is capital of", "F")
    )

    assert relations == [{"is the capital of", "capital of", "is capital of"}]


@each_row("one, other")
def test_opposites_and_other_directions_never_merge(one: str, other: str) -> None:
    pairs = [("A", "B"), ("C", "D"), ("E", "F")]

    relations = list_relations(*((h, phrase, t) for phrase in (one, other) for h, t in pairs))

    assert len(relations) == 2


def test_the_fullest_name_is_canonical_and_all_wordings_are_kept() -> None:
    raws = [make_raw(n, "met", f"B{i}") for i, n in enumerate(["Holm", "Holm", "Anna Holm"])]
    raws.append(make_raw("Dr. Anna Holm", "left", "Ghent"))
    mentions = [make_mention(n, "PERSON") for n in ("Holm", "Anna Holm", "Dr. Anna Holm")]

    entities = {row["name"]: row for row in run(raws, mentions)["entities"].to_pylist()}

    assert entities["Dr. Anna Holm"]["surface_forms"] == ["Anna Holm", "Dr. Anna Holm", "Holm"]


def test_a_fact_between_two_wordings_of_one_entity_is_a_reject() -> None:
    raws = [make_raw("United Nations", "is called", "UN"), make_raw("UN", "met in", "Geneva")]
    mentions = [make_mention(n, "ORG") for n in ("United Nations", "UN")]

    made = run(raws, mentions)

    assert made["rejects"]["reason"].to_pylist() == ["same_head_and_tail"]
    assert made["triples"].num_rows == 1


def resolve_text(
    sentences: Mapping[str, str],
    raws: list[tuple[str, str, str, str]],
    titles: Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> set[tuple[str, str, str, str]]:
    """Head's cluster and its name, relation, tail of facts (document, head, relation, tail)."""
    rows, mentions = [], []
    for place, head, relation, tail in raws:
        text = sentences[place]
        span = {"start": text.index(head), "end": text.index(head) + len(head)}
        rows.append(make_raw(head, relation, tail, place, head_span=span))
        for name in (head, tail):
            if name in (kinds or {}):
                at = span["start"] if name == head else 0
                mentions.append(make_mention(name, (kinds or {})[name], place, at))
    chunks = build_table(
        "chunks",
        [
            {"chunk_id": place, "document_id": place, "start": 0, "end": len(text), "text": text}
            | {"tokens": 1}
            for place, text in sentences.items()
        ],
    )
    made = run(rows, mentions, titles, chunks=chunks)
    names = {r["entity_id"]: r["name"] for r in made["entities"].to_pylist()}
    verbs = {r["relation_id"]: r["name"] for r in made["relations"].to_pylist()}
    return {
        (r["head_id"], names[r["head_id"]], verbs[r["relation_id"]], names[r["tail_id"]])
        for r in made["triples"].to_pylist()
    }


def test_the_film_of_each_document_is_another_thing_than_the_kind() -> None:
    texts = {"a": "Vertigo is a film. The film won Oscars.", "b": "The film lost Oscars."}

    facts = resolve_text(
        texts,
        [
            ("a", "Vertigo", "is a", "film"),
            ("a", "film", "won", "Oscars"),
            ("b", "film", "lost", "Oscars"),
        ],
    )

    assert len({head for head, name, *_ in facts if name == "film"}) == 2


@each_row("title, kind, head, name")
def test_a_title_is_a_name_of_the_lead_subject(title: str, kind: str, head: str, name: str) -> None:
    facts = resolve_text(
        {"a": f"Yes, {head} won Oscars."},
        [("a", head, "won", "Oscars")],
        {"a": title},
        {head: kind},
    )

    assert {fact[1] for fact in facts} == {name}


@each_row("head, tail, kinds, kept")
def test_one_thing_has_two_names_of_one_kind(
    head: str, tail: str, kinds: dict[str, str], kept: bool
) -> None:
    made = run([make_raw(head, "is the same as", tail)], [make_mention(*p) for p in kinds.items()])

    assert (made["triples"].num_rows == 1) == kept
    assert made["rejects"]["reason"].to_pylist() == ([] if kept else ["kinds_differ"])


def place(head: str, title: str | None, kind: str | None = None) -> list[list[tuple[str, str]]]:
    """The qualifiers of what a document of that title says of `head`."""
    raws = [make_raw(head, "met", "Batt", qualifiers=[("time", "2019")])]
    mentions = [make_mention(head, kind)] if kind else []
    triples = run(raws, mentions, {"chunk-1": title} if title else {})["triples"]
    return [row["qualifiers"] for row in triples.to_pylist()]


def test_a_fact_about_a_noun_of_its_document_says_the_title() -> None:
    said = [("document", "Does rest help?"), ("time", "2019")]
    assert place("two patients", "Does rest help?") == [said]
    assert place("two patients", "Rest / work") == [[("document", "Rest/work"), ("time", "2019")]]
    long = "Does rest help the patients of many old hospitals " * 3
    (((_, title), _),) = place("two patients", long)
    assert title.endswith(" …") and len(title) <= 80 and long.startswith(title[:-2])


@pytest.mark.parametrize("title", [None, "report_2019.pdf", "p0123", "3f2a-77", "two patients"])
def test_a_title_that_tells_nothing_is_not_said(title: str | None) -> None:
    assert place("two patients", title) == [[("time", "2019")]]


@pytest.mark.parametrize("title", [None, "report_2019.pdf"])
def test_a_document_without_a_title_is_told_by_how_it_begins(title: str | None) -> None:
    assert cite_document(title, "\n We asked 40 nurses.\nThen more.") == "We asked 40 nurses."
    assert cite_document(title, "12 / 19") is None


@each_row("text, topic")
def test_a_document_without_a_title_is_told_by_what_it_is_about(
    text: str, topic: str | None
) -> None:
    assert cite_document(None, text) == (topic or text.partition("\n")[0])
    assert cite_document("Rye", text) == "Rye"


def test_what_a_text_without_a_title_tells_of_the_past_is_of_its_own_case() -> None:
    text = "To assess the yield of rye."
    facts = [("Batt", "opened", "Oslo"), ("Case number", "was tied to", "Batt")]
    facts += [("Right heart failure", "is tied to", "Batt")]
    said = {}
    for titles in ({}, {"chunk-1": "Rye"}):
        made = run([make_raw(*fact) for fact in facts], titles=titles, text=text)
        by_id = {r["entity_id"]: r["name"] for r in made["entities"].to_pylist()}
        said[not titles] = {
            by_id[r["head_id"]]: dict(r["qualifiers"]) for r in made["triples"].to_pylist()
        }
    topic = {"document": "yield of rye"}
    assert said[True] == {"Batt": {}, "Case number": topic, "Right heart failure": {}}
    assert not any(said[False].values())


def test_names_and_kinds_and_what_the_title_names_need_no_document() -> None:
    only = [("time", "2019")]
    assert place("Anna Holm", "Life in Oslo") == [only]
    raws = [make_raw("Whales", "are", "mammals"), make_raw("Anna Holm", "met", "two patients")]
    made = run(raws, [make_mention("Anna Holm", "PERSON")], {"chunk-1": "Anna Holm"})
    assert [row["qualifiers"] for row in made["triples"].to_pylist()] == [[], []]


def test_only_a_bracket_that_tells_namesakes_apart_is_no_part_of_a_title() -> None:
    assert BRACKET.sub("", "Jaws (1975 film)") == "Jaws"
    assert BRACKET.sub("", "Baby (If You Think It's Over)") == "Baby (If You Think It's Over)"
