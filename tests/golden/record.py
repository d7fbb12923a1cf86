"""The golden examples: texts, and what the extractor makes of them; `make golden` records it.

A file holds entries: `== name`, the text with `> ` before each line, then one line per result. To
add an example write its name and its text, then record and read the diff.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.types import Extraction, Fact, Proposition
from kpyramid.settings import ExtractSettings

FILES = (Path(__file__).parent / "constructions.txt", Path(__file__).parent / "oddities.txt")
_HEADING, _TEXT = "== ", "> "


@dataclass(frozen=True, slots=True)
class Entry:
    """One example; `results` are the lines recorded for its text."""

    name: str
    text: str
    results: tuple[str, ...]


def read_entries(path: Path) -> tuple[str, list[Entry]]:
    """What stands before the first entry, and the entries."""
    preface, *parts = path.read_text("utf-8").split(f"\n{_HEADING}")
    entries = []
    for part in parts:
        name, *lines = part.rstrip("\n").split("\n")
        text = [line for line in lines if line.startswith(_TEXT) or line == _TEXT.rstrip()]
        results = tuple(line for line in lines if line not in text and line)
        entries.append(Entry(name, "\n".join(line[len(_TEXT) :] for line in text), results))
    return preface, entries


def describe_results(
    texts: Sequence[str], extractor: DependencyExtractor, *, n_ary: bool
) -> Iterator[tuple[str, ...]]:
    """The result lines of each text; with its n-ary facts where it is one sentence."""
    propositions = extractor.read_sentences(texts) if n_ary else [()] * len(texts)
    for found, facts in zip(extractor.extract_all(texts), propositions, strict=True):
        yield (*_describe_extraction(found), *map(_describe_proposition, facts))


def _describe_extraction(found: Extraction) -> Iterator[str]:
    for number, claim in enumerate(found.claims):
        yield f"claim    {claim.text}"
        yield from (_describe_fact(fact) for fact in found.facts if fact.claim == number)
    for dropped in found.dropped:
        words = dropped.text.replace("\n", "⏎").replace("\t", "⇥")
        yield f"dropped  {dropped.reason}: {words}"


def _describe_fact(fact: Fact) -> str:
    notes = ["not"] if fact.negated else []
    notes += [f"{fact.modality}"] if fact.modality else []
    notes += [f"according to {fact.attribution}"] if fact.attribution else []
    notes += [f"{name} {value}" for name, value in fact.qualifiers.items()]
    note = f"   [{', '.join(notes)}]" if notes else ""
    return f"  fact   {fact.head} | {fact.relation} | {fact.tail}{note}"


def _describe_proposition(fact: Proposition) -> str:
    notes = ["not"] if fact.negated else []
    notes += [f"{fact.modality}"] if fact.modality else []
    notes += [f"according to {fact.attribution}"] if fact.attribution else []
    note = f"   [{', '.join(notes)}]" if notes else ""
    arguments = "; ".join(f"{argument.role}: {argument.text}" for argument in fact.arguments)
    return f"n-ary    {fact.predicate} ({arguments}){note}"


def record(path: Path, extractor: DependencyExtractor) -> None:
    """Write the file anew with the results of today."""
    preface, entries = read_entries(path)
    texts = [entry.text for entry in entries]
    results = describe_results(texts, extractor, n_ary=path.stem == "constructions")
    parts = [preface]
    for entry, lines in zip(entries, results, strict=True):
        quoted = [f"{_TEXT}{line}".rstrip() for line in entry.text.split("\n")]
        parts.append("\n".join([f"{_HEADING}{entry.name}", *quoted, *lines, ""]))
    path.write_text("\n".join(parts), "utf-8")


def main() -> None:
    settings = ExtractSettings()
    extractor = DependencyExtractor(settings.parser, settings.language)
    for path in FILES:
        record(path, extractor)
        print(f"{path.name}: {len(read_entries(path)[1])} examples")


if __name__ == "__main__":
    main()
