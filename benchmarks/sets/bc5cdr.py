"""BioCreative V CDR (Li et al., Database 2016): the diseases that chemicals induce, by abstract.

Scored is each pair (chemical, disease) of MeSH ids per abstract, as the task does. A mention of
several ids ("D006470|D003556") names each of them; a mention without an id ("-1") names nothing
that could be scored. Annotators left out a disease where they saw a narrower one of the same
mechanism; that rule needs the MeSH tree, which does not come with the corpus, so nothing is
filtered here: a pair with the wider disease counts as wrong.
"""

import gzip
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from making.facts import Fact, Thing
from making.questions import make_questions

from kpyramid.errors import InputError
from kpyramid.extraction.syntax.tree import Tree
from kpyramid.ontology.population.examples import Words
from sets.canon import Score
from sets.files import QuestionSet, read_licence
from sets.mention_pairs import Mention, MentionDocument

Pairs = frozenset[tuple[str, str]]

ENDINGS = (".BioC.xml", ".BioC.xml.gz")
_MAX_CHARACTERS = 200_000_000
"""A hundred times the corpus: a file that unpacks to more is none of it."""
_NO_ID = "-1"


@dataclass(frozen=True, slots=True)
class Abstract:
    """Title and abstract as one text, its mentions, and the pairs that its annotators saw."""

    key: str
    text: str
    title_end: int
    chemicals: tuple[Mention, ...]
    diseases: tuple[Mention, ...]
    pairs: Pairs

    def join_tree(self, tree: Tree) -> MentionDocument:
        """The document of the parsed text."""
        return MentionDocument(tree, self.title_end, self.chemicals, self.diseases)


def read_abstracts(folder: Path) -> list[Abstract]:
    """The abstracts of all BioC files of a folder, plain or gzipped, by name and place.

    Raises:
        InputError: no such file, or one that is no BioC of this corpus (names file and place).
    """
    paths = sorted(path for path in folder.iterdir() if path.name.endswith(ENDINGS))
    if not paths:
        raise InputError(f"{folder}: no file that ends in {' or '.join(ENDINGS)}")
    return [abstract for path in paths for abstract in _read_file(path)]


def _read_file(path: Path) -> list[Abstract]:
    root = parse_xml(_read_bytes(path), source=path.name)
    return [_read_document(document, path.name) for document in root.iter("document")]


def _read_bytes(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(_MAX_CHARACTERS + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {error}; fetch the file again") from error
    if len(data) > _MAX_CHARACTERS:
        raise InputError(f"{path}: more than {_MAX_CHARACTERS} bytes; split it")
    return data


def parse_xml(data: bytes, *, source: str) -> Element:
    """The root of an XML text; a DTD it names is not fetched.

    Raises:
        InputError: not well-formed (names the line), or it declares entities.
    """
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data

    def refuse_entity(name: str, *_: object) -> None:
        raise InputError(
            f"{source}, line {parser.CurrentLineNumber}: declares the entity {name}; BioC needs "
            "none, and entities can grow without end: write the characters themselves"
        )

    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        message = f"{source}, line {error.lineno}: {expat.ErrorString(error.code)}; mend the XML"
        raise InputError(message) from error
    return builder.close()


def _read_document(document: Element, source: str) -> Abstract:
    key = document.findtext("id", "")
    text, title_end = "", 0
    mentions: dict[str, list[tuple[tuple[str, ...], int, int]]] = {"Chemical": [], "Disease": []}
    try:
        for passage in document.iter("passage"):
            # Passages are apart by a character that no passage holds; offsets count it.
            text = text.ljust(int(passage.findtext("offset", "")), "\n")
            text += passage.findtext("text", "")
            title_end = title_end or len(text)
            for annotation in passage.iter("annotation"):
                facts = _read_facts(annotation)
                spans = [
                    (int(place.attrib["offset"]), int(place.attrib["length"]))
                    for place in annotation.iter("location")
                ]
                ids = tuple(i for i in facts["MESH"].split("|") if i != _NO_ID)
                if ids and facts["type"] in mentions:
                    start, end = min(s for s, _ in spans), max(s + size for s, size in spans)
                    mentions[facts["type"]].append((ids, start, end))
        relations = [_read_facts(relation) for relation in document.iter("relation")]
        pairs = {(r["Chemical"], r["Disease"]) for r in relations if r["relation"] == "CID"}
    except (KeyError, ValueError) as error:
        raise InputError(
            f"{source}, document {key}: {type(error).__name__}: {error}; give BioC with offsets, "
            "types and MESH ids as in the CDR corpus"
        ) from error
    chemicals, diseases = (
        tuple(Mention(ids, Words(text[start:end], start, end)) for ids, start, end in found)
        for found in mentions.values()
    )
    return Abstract(key, text, title_end, chemicals, diseases, frozenset(pairs))


def _read_facts(element: Element) -> dict[str, str]:
    return {i.attrib["key"]: i.text or "" for i in element.findall("infon")}


def list_cooccurrences(document: MentionDocument, *, in_sentence: bool) -> Pairs:
    """The pairs that the document names at all, or in one sentence."""
    sentences = [
        (document.tree[first].idx, document.tree[end - 1].end)
        for first, end in document.tree.sentences
    ]
    if not in_sentence:
        sentences = [(0, len(document.tree.text))]
    found = set()
    for start, end in sentences:
        subjects, objects = (
            {e for m in mentions if start <= m.words.start < end for e in m.entities}
            for mentions in (document.subjects, document.objects)
        )
        found |= {(s, o) for s in subjects for o in objects}
    return frozenset(found)


def score_pairs(found: Sequence[Pairs], gold: Iterable[Pairs]) -> Score:
    """Precision and recall over all pairs of all abstracts, given in the same order."""
    both = list(zip(found, gold, strict=True))
    right = sum(len(ours & theirs) for ours, theirs in both)
    return Score(
        precision=right / max(sum(len(ours) for ours, _ in both), 1),
        recall=right / max(sum(len(theirs) for _, theirs in both), 1),
    )


_SHORTEST = 4
"""Letters of a name: shorter ones are abbreviations, which abstracts use for anything."""


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when there is no BioC file of this corpus."""
    if not any(path.name.endswith(ENDINGS) for path in folder.iterdir()):
        return None
    abstracts = read_abstracts(folder)
    made = make_questions(_list_facts(abstracts))
    return QuestionSet(
        folder.name,
        tuple(
            {
                "id": abstract.key,
                "title": abstract.text[: abstract.title_end],
                "text": abstract.text[abstract.title_end :].strip(),
            }
            for abstract in abstracts
        ),
        made.questions,
        read_licence(folder),
        "choice questions made from the pairs of chemical and induced disease",
        made.left_out,
    )


def _list_facts(abstracts: Sequence[Abstract]) -> Iterator[Fact]:
    names: dict[str, Counter[str]] = defaultdict(Counter)
    kinds: dict[str, str] = {}
    for abstract in abstracts:
        for kind, mentions in (("chemical", abstract.chemicals), ("disease", abstract.diseases)):
            for mention in mentions:
                if len(mention.entities) == 1 and len(mention.words.text) >= _SHORTEST:
                    names[mention.entities[0]][mention.words.text] += 1
                    kinds[mention.entities[0]] = kind
    things = {
        key: Thing(
            key,
            max(sorted(found), key=found.__getitem__),
            (kinds[key],),
            tuple(sorted(found)),
        )
        for key, found in names.items()
    }
    for abstract in abstracts:
        for chemical, disease in sorted(abstract.pairs):
            if chemical in things and disease in things:
                yield Fact(
                    things[chemical],
                    "induces",
                    things[disease],
                    ("chemical", "disease"),
                    (abstract.key,),
                    (abstract.text,),
                )
