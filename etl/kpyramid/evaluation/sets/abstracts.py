"""BioCreative V CDR: choice questions made from the diseases that chemicals induce."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from kpyramid.evaluation.bc5cdr import ENDINGS, Abstract, read_abstracts
from kpyramid.evaluation.facts import Fact, Thing
from kpyramid.evaluation.making import make_questions
from kpyramid.evaluation.questions import QuestionSet
from kpyramid.evaluation.sets.files import read_licence

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
