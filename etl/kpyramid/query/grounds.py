"""What is cited for an answer: the sentences that say it, and what stands before them."""

from collections.abc import Sequence
from dataclasses import dataclass

from kpyramid.extraction.text.sentences import split_sentences
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.reader.asked import STOP, Asked
from kpyramid.query.reader.matching import find_name, read_name, split_words
from kpyramid.query.reader.values import find_values
from kpyramid.query.types import Evidence, Item


@dataclass(frozen=True, slots=True)
class Ground:
    """What is cited, and what its passage says before it, its title first.

    The text has a line for the place and one for each fact that was read from it.
    """

    text: str
    before: str = ""


def find_grounds(
    places: Sequence[Evidence], context: Sequence[Item], snapshot: Snapshot
) -> list[Ground]:
    """The cited sentences with what stands before them, and the facts read from them in words."""
    titles = snapshot.titles({place.document_id for place in places})
    grounds = []
    for place in places:
        before = titles.get(place.document_id, "")
        for passage in snapshot.evidence(place.chunk_id):
            before += "\n" + passage.text[: max(place.start - passage.start, 0)]
        facts = [i.text for i in context if i.layer != "text" and place in i.evidence]
        said = [" ".join(place.text.split()), *dict.fromkeys(facts)]
        grounds.append(Ground("\n".join(said), before))
    return grounds


def add_fact(ground: Ground, fact: str) -> Ground:
    """What is cited, with one more fact that was read from it."""
    return Ground(f"{ground.text}\n{fact}", ground.before)


def choose_grounds(asked: Asked, value: str, grounds: Sequence[Ground]) -> list[Ground]:
    """What of some places says a value, and those that lead to it by a name that both say.

    All of them when none says the value in these words.
    """
    narrowed = [_narrow(ground, value) for ground in grounds]
    saying = [ground for ground in narrowed if ground]
    bridges = {word for ground in saying for word in _list_large(ground.text)}
    bridges -= asked.named | {word.stem for word in split_words(value)} | STOP
    leading = [
        ground
        for ground, found in zip(grounds, narrowed, strict=True)
        if not found and bridges & _list_large(ground.text)
    ]
    return [*saying, *leading] if saying else list(grounds)


def _list_large(text: str) -> set[str]:
    return {word.stem for word in split_words(text) if word.large and word.start}


def _narrow(ground: Ground, value: str) -> Ground | None:
    """The sentences and facts of a place that say a value; none if none does."""
    name = read_name(value)
    before, said = ground.before, []
    for sentence in ground.text.split("\n"):
        for span in split_sentences(sentence):
            part = sentence[span.start : span.end]
            if find_name(name, split_words(part), find_values(part)):
                said.append(part)
            elif not said:
                before += f"\n{part}"
    return Ground("\n".join(said), before) if said else None
