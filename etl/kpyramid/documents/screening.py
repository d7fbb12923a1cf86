"""Screening: selects the prose of a text for parsing, and drops the rest with a reason."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from typing import Any

from kpyramid.documents.blocks import Block, classify_labels, read_label
from kpyramid.documents.cleaning import CLOSING, is_citation, list_blocks
from kpyramid.documents.sentences import FIRM_END, Dropped, Span, split_sentences, trim
from kpyramid.documents.words import LETTERS, pick_table, read_words

# Language identification: whether a text is in the configured language.
#
# A language is one entry of `LANGUAGES`; a further language also needs its grammar rules.

_WORDS = read_words(__file__, "language.toml")
_LETTER = re.compile(r"[^\W\d_]")
_SAMPLE = 2_000
"""Characters that are classified; more make no difference to the result."""
_FEW_WORDS = 5
"""Fewer words are not classified: names and titles of any language occur in any other."""
_PROSE = 0.2
"""Share of function words from which a text is in the language, whatever its names."""
_NATIVE = 0.1
"""Share of function words from which another language needs a high probability."""


@dataclass(frozen=True)
class Language:
    """The data of a language that extraction needs besides its grammar rules.

    `distinctive_words`: frequent function words that are rare or missing in related languages;
    `shared_words`: the other function words, which indicate prose but not its language.
    `alike`: codes of languages that the classifier cannot distinguish from it (its creoles).
    """

    foreign_letter: re.Pattern[str]
    distinctive_words: frozenset[str]
    shared_words: frozenset[str]
    alike: frozenset[str]

    @cached_property
    def function_words(self) -> frozenset[str]:
        """All function words: at least one in about five words of prose in the language."""
        return self.distinctive_words | self.shared_words


LANGUAGES: Mapping[str, Language] = {
    "en": Language(
        # Letters other than Latin, its extensions, and the letters of formulas and ordinals.
        foreign_letter=re.compile(r"[^\W\d_A-Za-zªº\u00c0-\u02ff\u1e00-\u1eff\u2100-\u214f]"),
        distinctive_words=_WORDS["own.en"],
        shared_words=_WORDS["shared.en"],
        alike=frozenset({"pcm"}),
    )
}

_NEIGHBOURS = pick_table(_WORDS, "neighbour")
"""Function words of languages with the same letters that share words with English.

Words with another meaning in English ("die", "war", "son"), and parts of "i.e.", are left out.
"""
_ANY_NEIGHBOUR = frozenset().union(*_NEIGHBOURS.values())
_BORROWED = re.compile(r"\b(?:de\s(?:facto|jure|novo)|[àa]\sla\s\w+|en\s(?:route|masse|bloc))\b")


def detect_language(text: str, expected: str) -> str:
    """The ISO 639 code of the text's language: `expected` unless the evidence is strong.

    A text in another script is in another language, however short it is; "und" where the
    classifier does not know the language.
    """
    language = LANGUAGES[expected]
    sample = text[:_SAMPLE]
    letters = len(_LETTER.findall(sample)) if not sample.isascii() else 0
    if letters and 2 * len(language.foreign_letter.findall(sample)) > letters:
        code, _ = classify_text(sample, language.alike)
        return code if code not in {expected, "zxx"} else "und"
    if has_foreign_grammar(sample, expected):
        code, _ = classify_text(sample, language.alike)
        if code not in {expected, "zxx"}:
            return code
    words = [word.lower() for word in LETTERS.findall(sample)]
    if len(words) < _FEW_WORDS:
        return expected
    native = sum(word in language.distinctive_words for word in words) / len(words)
    strange = _ANY_NEIGHBOUR.intersection(words) - language.function_words
    if native >= _PROSE or (native >= _NATIVE and sample.isascii() and not strange):
        return expected  # without the classifier, which takes half a second to load
    code, confidence = classify_text(sample, language.alike)
    if code in {expected, "zxx"} or confidence < (0.6 if native < _NATIVE else 0.95):
        return expected
    return code


def has_foreign_grammar(text: str, expected: str) -> bool:
    """Whether another language has every function word of the text, two of them not `expected`'s.

    Particles before a capital ("Juan de la Cruz") belong to a name and alone are no evidence.
    """
    function_words = LANGUAGES[expected].function_words
    present = {word.lower() for word in LETTERS.findall(text)}
    native = present & function_words
    if not native <= _ANY_NEIGHBOUR or len((present & _ANY_NEIGHBOUR) - function_words) < 2:
        return False  # most texts, fast
    words = LETTERS.findall(_BORROWED.sub(" ", text))
    words[:1] = [word.lower() for word in words[:1]]
    small = {word for word in words if word.islower()}
    for code, neighbour in _NEIGHBOURS.items():
        foreign = (small & neighbour) - function_words
        if code == expected or len(foreign) < 2 or not native <= neighbour:
            continue
        count = 0
        outside = False
        named = False
        for word in reversed(words):
            if word in foreign:
                count += 1
                outside |= not named
            elif word not in _ANY_NEIGHBOUR:
                named = not word.islower()
        if outside and count >= _PROSE * len(words):
            return True
    return False


def is_surely(text: str, expected: str) -> bool:
    """Whether a sentence among sentences in another language is in the expected language."""
    language = LANGUAGES[expected]
    if language.distinctive_words.isdisjoint(word.lower() for word in LETTERS.findall(text)):
        return False
    code, confidence = classify_text(text[:_SAMPLE], language.alike)
    return code == expected and confidence > 0.5


def classify_text(text: str, left_out: frozenset[str] = frozenset()) -> tuple[str, float]:
    """The most likely language and its probability; "zxx" for text in no language."""
    code, confidence = _load_classifier(left_out).classify(text)
    return str(code), float(confidence)


@cache
def _load_classifier(left_out: frozenset[str]) -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    classifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    classifier.set_languages(sorted(set(classifier.labels) - left_out))
    return classifier


_LEAST_SHARES = ((80, 0.22), (50, 0.13), (16, 0.04))
"""From so many words on, a text with a smaller share of function words is a flattened table.

English prose has a share of .4 on average, its poorest sentence of 80 words on two corpora .25, of
50 words .15; flattened tables have less. Length alone is no reason to drop: from sentences of 300
words, coordinated with "and", "while" or semicolons, the parser reads as many facts as from
sentences of 60 words, and as few wrong ones."""
_LONGEST_DETAIL = 200
_FENCE = re.compile(r"^[^\S\n]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_RULE = re.compile(r"[\s|+=_*\-–—:.#~]*")
_GAP = re.compile(r"(?<=\S)(?: {3,}|\t)(?=\S)")
_COMMA_WITHOUT_SPACE = re.compile(r",(?!\s|\d{3}(?!\d)|$)")
_NUMBER = re.compile(r"[^\w\s]{0,3}\d[\d.,:/%–-]*+[^\w\s]{0,2}")
_CODE_MARK = re.compile(r"[{}=<>;\\`]|\(\)|(?<=\w)[_(](?=\w)|::|->|&&|\|\||(?<=\w)\.(?=[a-z_]+\()")
_CODE_END = re.compile(r"[{};]$|^[)}\]]+[;,]?$|^(?://|/\*|#include|#!)")
_STATEMENT = re.compile(
    r"""(?: (?:def|class|for|while|if|elif|else|try|except|with|return|import|from|public|private
              |static|void|const|let|var|fn|func|function|print|raise|yield)\b
            .* (?:\w[(\[.]|\s=\s) .* [:;{)\]]$
          | (?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER)\s .* \b(?:FROM|INTO|SET|TABLE|VALUES)\b )
    """,
    re.VERBOSE,
)
_ITEM = re.compile(
    r"[^\S\n]*(?:[-*•‣◦–+]|#{1,6}|\(?\d{1,3}[.)]|\(?[a-zA-Z]\)"
    r"|\d{1,2}(?:\.\d{1,2})+\.?(?= (?!Million|Billion|Percent)[A-Z]))[^\S\n]+"
)
_LINE = re.compile(r"(?<![^\n])[^\S\n]*(?:[-*•‣◦–+][^\S\n]+)?(?=\S)([^\n]+)")
_SENTENCE_END = re.compile(r"[.!?…:;][\"'”’»)\]]*$")


def screen_text(
    text: str, language: str, blocks: Sequence[Block] = ()
) -> tuple[list[Span], list[Dropped]]:
    """The spans of prose to parse, and the dropped spans, both in text order.

    Each block that may be prose is a span of its own; missing blocks are guessed from the lines.
    A block in another language retains only sentences that are clearly in this language. Rows of
    a table, code, references, headings without a sentence, and sentences that are no prose are
    dropped. A speaker's label is no part of the prose.
    """
    prose: list[Span] = []
    dropped: list[Dropped] = []
    parts = _sort_blocks(text, blocks) if blocks else _guess_blocks(text, language)
    for reason, part in parts:
        if reason is not None:
            dropped.append(_drop(reason, text, part))
            continue
        for block in list_blocks(text, part.start, part.end):
            for entry in _cut_entries(text, block):
                _screen_block(text, entry, language, prose, dropped)
    return prose, dropped


def _cut_entries(text: str, block: Span) -> Iterator[Span]:
    """The entries of a log in a block, without their dates and times; else the block."""
    start = block.start
    stamps = _STAMP.finditer(text, block.start, block.end)
    for stamp in stamps if _STAMP.match(text, block.start, block.end) else ():
        if text[start : stamp.start()].strip():
            yield Span(start, stamp.start())
        start = stamp.end()
    yield Span(start, block.end)


_STAMP = re.compile(
    r"""^(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,?\ )?
    (?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}\ [A-Z][a-z]{2,8}(?:\ \d{4})?)
    (?:[T ]\ *\d\d?[:.]\d\d(?::\d\d)?\b[ \t]*|[ \t]{2,}|\t)""",
    re.M | re.X,
)
"""The date and time before an entry of a log: "2025-05-02  raised memory"."""


def _sort_blocks(text: str, blocks: Sequence[Block]) -> Iterator[tuple[str | None, Span]]:
    """Each block with the reason why it is no prose, or None; the cells of a row are joined."""
    for (kind, *_), group in groupby(blocks, lambda b: (b.kind, b.row, b.kind != "cell" and b)):
        row = list(group)
        start, end = row[0].start, row[-1].end
        reason = _REASONS.get(kind)
        if kind == "heading" and _SENTENCE_END.search(text[max(start, end - 4) : end]):
            reason = None
        elif kind == "turn":
            start += read_label(text[start:end], is_marked=True)
        yield reason, Span(start, end)


_REASONS = {"code": "code", "cell": "table", "pair": "pair", "heading": "heading"}


def _guess_blocks(text: str, language: str) -> Iterator[tuple[str | None, Span]]:
    """The spans of code and pairs with their reason, and those between them as prose."""
    start = 0
    recognised = [
        *_find_code_blocks(text, language),
        *(
            ("pair", Span(line.start, line.end))
            if line.kind == "pair"
            else (None, Span(line.start, line.start + size))
            for line, size in list_labelled(text)
        ),
    ]
    for reason, part in sorted(recognised, key=lambda each: each[1].start):
        if part.start < start:
            continue  # within code
        yield None, Span(start, part.start)
        if reason is not None:
            yield reason, part
        start = part.end
    yield None, Span(start, len(text))


def list_labelled(text: str) -> Iterator[tuple[Block, int]]:
    """The pairs and turns among the lines of a text without blocks, with the label's length."""
    lines = [m.span(1) for m in _LINE.finditer(text)] if ": " in text else []
    labels = classify_labels((text[start:end], False) for start, end in lines)
    for (start, end), label in zip(lines, labels, strict=True):
        if label is not None:
            yield Block(label[0], start, end), label[1]


def _screen_block(
    text: str, block: Span, language: str, prose: list[Span], dropped: list[Dropped]
) -> None:
    body = text[block.start : block.end]
    code = detect_language(body, language)
    if code == language:
        _screen_lines(text, block, language, prose, dropped)
        return
    for native, group in groupby(
        split_sentences(body), lambda s: is_surely(body[s.start : s.end], language)
    ):
        sentences = list(group)
        part = Span(block.start + sentences[0].start, block.start + sentences[-1].end)
        if native:
            _screen_lines(text, part, language, prose, dropped)
        else:
            dropped.append(_drop("language_not_supported", text, part, f"[{code}] "))


def _screen_lines(
    text: str, block: Span, language: str, prose: list[Span], dropped: list[Dropped]
) -> None:
    for reason, span in _cut_lines(text, block, language):
        if reason is not None:
            dropped.append(_drop(reason, text, span))
            continue
        runs: list[list[Span]] = [[]]
        for sentence in split_sentences(text[span.start : span.end]):
            here = Span(span.start + sentence.start, span.start + sentence.end)
            words = text[here.start : here.end]
            reason, note = judge_sentence(words, language)
            if reason is None or (reason == "no_words" and runs[-1]):
                runs[-1].append(here)  # numbers after an abbreviation: "c. 1450 - c. 1499"
                if not FIRM_END.search(words):
                    continue  # a parser does not end a sentence at the stop of "Ltd."
            else:
                dropped.append(_drop(reason, text, here, note))
            runs.append([])
        prose += (Span(run[0].start, run[-1].end) for run in runs if run)


def _drop(reason: str, text: str, span: Span, note: str = "") -> Dropped:
    words = text[span.start : span.end]
    if len(words) > _LONGEST_DETAIL:
        words = words[: _LONGEST_DETAIL - 1] + "…"
    return Dropped(reason, note + words, span)


def _find_code_blocks(text: str, language: str) -> Iterator[tuple[str, Span]]:
    """The text between two fences, fences included, unless it is prose."""
    fences = [] if "```" not in text and "~~~" not in text else list(_FENCE.finditer(text))
    for opening, closing in zip(fences[::2], fences[1::2], strict=False):
        if _share_function_words(text[opening.end() : closing.start()], language) < 0.2:
            yield "code", Span(opening.start(), closing.end())


def _cut_lines(text: str, block: Span, language: str) -> Iterator[tuple[str | None, Span]]:
    """The block's runs of lines, each with the reason why it is no prose, or None."""
    lines: list[Span] = []
    position = block.start
    for words in text[block.start : block.end].split("\n"):
        lines += trim(text, position, position + len(words))
        position += len(words) + 1
    widest = max(line.end - line.start for line in lines)
    listed = _is_list(text, lines)
    stretch: tuple[str | None, Span] | None = None
    for number, line in enumerate(lines):
        reason = judge_line(text[line.start : line.end], language)
        mark = _ITEM.match(text, line.start, line.end) if reason is None else None
        start = mark.end() if mark and mark.end() < line.end else line.start
        if stretch is not None:
            goes_on = reason is not None or not (
                mark or listed or _ends_apart(text, lines[number - 1], line, widest)
            )
            if stretch[0] == reason and goes_on:
                stretch = (reason, Span(stretch[1].start, line.end))
                continue
            yield stretch
        stretch = (reason, Span(start, line.end))
    if stretch is not None:
        yield stretch


def _is_list(text: str, lines: list[Span]) -> bool:
    """Whether lines are items or parts of a title: capitalised, and none ends as a sentence.

    Two lines of more than 70 characters may be a broken sentence.
    """
    return len(lines) > 1 + any(s.end - s.start > 70 for s in lines) and all(
        (text[s.start].isupper() or text[s.start].isdigit())
        and not _SENTENCE_END.search(text[max(s.start, s.end - 4) : s.end])
        and text[s.end - 1] not in ",-–"
        for s in lines
    )


def _ends_apart(text: str, before: Span, line: Span, widest: int) -> bool:
    """Whether a line does not continue in the next: it ends a sentence, or is short as a heading.

    A wrapped line is nearly as wide as its block and may end before a name.
    """
    if text[before.end - 1] in ",-–":
        return False
    ended = _SENTENCE_END.search(text[max(before.start, before.end - 4) : before.end])
    short = before.end - before.start < 0.7 * widest
    if ended:
        return short or line.end - line.start < 0.7 * widest
    return short and not text[line.start].islower()


def judge_line(line: str, language: str) -> str | None:
    """The reason why a line is no prose ("no_words", "table", "code", "citation"), or None.

    The formula that ends a letter is "no_statement".
    """
    line = line.strip().strip("`")
    if CLOSING.fullmatch(line):
        return "no_statement"
    if _RULE.fullmatch(line):
        return "table" if "|" in line else "no_words"
    if line[0] == "|" or line.count(" | ") > 1 or line.count("|") > 3:
        return "table"
    if "\t" in line or "   " in line or "," in line:
        gaps = len(_GAP.findall(line))
        parted = gaps > 1 or (gaps and line.count("\t")) or _is_separated(line)
        if parted and _share_function_words(line, language) < 0.2:
            return "table"
    if _is_code(line, language):
        return "code"
    return "citation" if is_citation(line, _share_function_words(line, language)) else None


def _is_code(line: str, language: str) -> bool:
    """Whether a line is a statement, mark-up, data or a formula; prose may have symbols too."""
    marks = len(_CODE_MARK.findall(line))
    if not marks:
        return False
    if len(line) < 200 and _STATEMENT.match(line):
        return True
    words = LETTERS.findall(line)
    if "=" in line and max(map(len, words), default=0) < 4:
        return True
    if marks < 3 and not _CODE_END.search(line):
        return False
    rare = _share_function_words(line, language) < 0.2
    return 2 * marks >= len(words) or (rare and 5 * marks >= len(words))


def _is_separated(line: str) -> bool:
    return ", " not in line and len(_COMMA_WITHOUT_SPACE.findall(line)) > 2


def judge_sentence(sentence: str, language: str) -> tuple[str | None, str]:
    """The reason why a sentence is no prose, or None, and a note for the reject.

    Reasons: "no_words" (emoji, numbers), "language_not_supported", "address" (web and mail),
    "citation", "all_capitals", "table" (numbers), "list" (of words), "no_prose" (words without
    grammar).
    """
    words = LETTERS.findall(sentence)
    long_words = [word for word in words if len(word) > 1]
    if not long_words:
        return "no_words", ""
    tokens = sentence.split()
    known = LANGUAGES[language]
    if not sentence.isascii():
        letters = sum(map(len, words))
        if 2 * len(known.foreign_letter.findall(sentence)) > letters:
            return "language_not_supported", f"[{detect_language(sentence, language)}] "
    addresses = sum(len(t) for t in tokens if "://" in t or "@" in t or t.startswith("www."))
    if 2 * addresses > sum(map(len, tokens)):
        return "address", ""
    if len(long_words) > 3 and sum(w.isupper() for w in long_words) > 0.8 * len(long_words):
        return "all_capitals", ""
    native = sum(word.lower() in known.function_words for word in words)
    if is_citation(sentence, native / len(words)):
        return "citation", ""
    numbers = sum(_NUMBER.fullmatch(token) is not None for token in tokens)
    if len(tokens) > 3 and 2 * numbers > len(tokens) and not native:
        return "table", ""
    if not native and 3 * sentence.count(",") >= len(tokens) > 3 and sentence[-1] not in ".!?":
        return "list", ""
    least = next((share for size, share in _LEAST_SHARES if len(tokens) >= size), 0.0)
    if native < least * len(tokens):
        return "no_prose", ""
    strange = len(words) > 7 and not any(word.lower() in known.distinctive_words for word in words)
    if strange or has_foreign_grammar(sentence, language):
        code = detect_language(sentence, language)
        if code != language:
            return "language_not_supported", f"[{code}] "
    return None, ""


def _share_function_words(text: str, language: str) -> float:
    words = LETTERS.findall(text)
    known = LANGUAGES[language].function_words
    return sum(word.lower() in known for word in words) / max(len(words), 1)
