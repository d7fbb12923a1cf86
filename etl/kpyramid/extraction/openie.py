"""Rule-based open information extraction on a dependency parse: no model call, no network."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from kpyramid.documents.blocks import PROSE, Block
from kpyramid.documents.screening import detect_language, list_labelled, screen_text
from kpyramid.documents.sentences import Dropped, Span
from kpyramid.extraction.facts.assembly import assemble_extraction
from kpyramid.extraction.facts.candidates import Findings
from kpyramid.extraction.facts.clauses import find_clause_facts
from kpyramid.extraction.facts.coreference import Antecedents
from kpyramid.extraction.facts.nominals import find_nominal_facts
from kpyramid.extraction.facts.propositions import list_propositions
from kpyramid.extraction.facts.tables import read_tables
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.syntax.stance import find_reported
from kpyramid.extraction.syntax.tree import Tree
from kpyramid.extraction.types import Extraction, Proposition, Titled, join_extractions

_LEAST_PROSE, _MOST_PROSE = 100, 4000
"""The least and most characters of prose from which the language of cells and keys is detected."""


class DependencyExtractor:
    """Finds claims, mentions and facts by grammar; equal texts give equal extractions.

    `parser` names an installed spaCy package with tagger, parser and NER; it is loaded on first
    use, so building the object is cheap. `language` is a key of `LANGUAGES`. `author`: the name of
    the organisation that "we" stands for, if any.
    """

    def __init__(self, parser: str, language: str = "en", author: str = "") -> None:
        self._parser = Parser(parser)
        self._language, self._author = language, " ".join(author.split())

    def extract(self, text: str, title: str = "") -> Extraction:
        """The extraction of one text; `extract_all` is faster for many texts."""
        return next(self.extract_all((Titled(text, title),)))

    def extract_all(self, texts: Iterable[str | Titled]) -> Iterator[Extraction]:
        """The extraction of each text, in text order; text that is no prose is dropped.

        Words of a text such as "the film" may refer to the title of its document.
        """
        waiting: deque[tuple[list[Dropped], Titled]] = deque()

        def screen() -> Iterator[tuple[str, Sequence[Span], Sequence[Span]]]:
            for each in texts:
                given = Titled(each) if isinstance(each, str) else each
                codes = [Span(b.start, b.end) for b in given.blocks if b.kind == "inline_code"]
                blocks = tuple(b for b in given.blocks if b.kind != "inline_code")
                given = given._replace(blocks=blocks)
                spans, dropped = screen_text(given.text, self._language, blocks)
                waiting.append((dropped, given))
                yield given.text, spans, codes

        for tree in self._parser.parse_parts(screen()):
            left_out, given = waiting.popleft()
            prose = " ".join(given.text[b.start : b.end] for b in given.blocks if b.kind in PROSE)
            is_read = len(prose) < _LEAST_PROSE or (
                detect_language(prose[:_MOST_PROSE], self._language) == self._language
            )
            given = given if is_read else given._replace(blocks=())
            yield _extract_tree(tree, left_out, given, self._author)

    def read_sentences(self, sentences: Iterable[str]) -> Iterator[tuple[Proposition, ...]]:
        """The n-ary facts of each sentence in its own words, pronouns unresolved.

        Nothing is screened: the caller ensures that each is a sentence in the language.
        """
        return map(list_propositions, self._parser.parse_all(sentences))

    def read_parts(
        self, lines: Iterable[tuple[str, Sequence[Span]]]
    ) -> Iterator[tuple[Proposition, ...]]:
        """The n-ary facts of the given spans of each line, without screening."""
        return map(list_propositions, self._parser.parse_parts(lines))


def read_findings(
    tree: Tree, title: str = "", blocks: Sequence[Block] = (), author: str = ""
) -> Findings:
    """The candidates that the rules propose for one text of a document."""
    lines = blocks or [line for line, _ in list_labelled(tree.text)]
    findings = Findings(tree, Antecedents(tree, title, lines, author))
    findings.reported = find_reported(tree, findings.frames, blocks)
    find_clause_facts(findings)
    find_nominal_facts(findings)
    findings.drop_silent()
    return findings


def _extract_tree(
    tree: Tree, left_out: Sequence[Dropped], given: Titled, author: str
) -> Extraction:
    findings = read_findings(tree, given.title, given.blocks, author)
    # Cells and pairs are no prose; those without a fact are rejected with a reason of their own.
    is_read = {"table", "pair"} if given.blocks else {"pair"}
    if not given.blocks:
        pairs = (Block("pair", d.span.start, d.span.end) for d in left_out if d.reason == "pair")
        first, _, rest = given.text.partition("\n")
        while (second := rest.partition("\n"))[0].isupper() and first.isupper():
            first, _, rest = second  # the first line is a letterhead
        heads = _HEADING.fullmatch(first.strip()) and (first.isupper() or not rest[:1].strip())
        title = given.title or (first.strip() if heads else "")
        given = given._replace(title=title, blocks=tuple(pairs))
    tables = read_tables(given)
    findings.dropped.extend(each for each in left_out if each.reason not in is_read)
    return join_extractions(assemble_extraction(findings), tables)


_HEADING = re.compile(r"[A-Z][A-Z ]+[A-Z]|[A-Z][\w-]+(?: (?:of|the|and|for|[A-Z][\w-]*)){1,6}")
"""A first line that heads a plain text: in capitals, or each word with one."""
