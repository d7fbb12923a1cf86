"""What is extracted at once: a whole document, or a stretch of a long one."""

from collections.abc import Iterator

from kpyramid.extraction.text.sentences import Span, split_sentences

MAX_CHARACTERS = 20_000
"""About eight pages: words refer back within a section, and an edit costs one passage anew."""


def cut_passages(text: str) -> Iterator[Span]:
    """The text in stretches of at most `MAX_CHARACTERS`, cut at a blank line or a sentence's end.

    Every character that is not white space is in exactly one of them.
    """
    start = 0
    while len(text) - start > MAX_CHARACTERS:
        part = text[start : start + MAX_CHARACTERS]
        blank = part.rfind("\n\n") + 2
        if blank <= MAX_CHARACTERS // 2:
            blank = max((span.start for span in split_sentences(part)), default=0)
        cut = blank or MAX_CHARACTERS
        if part[:cut].strip():
            yield Span(start, start + cut)
        start += cut
    if text[start:].strip():
        yield Span(start, len(text))
