"""How near in meaning a word is to labels, by the embedding model; each label is embedded once."""

from collections.abc import Callable, Sequence

import numpy as np

from kpyramid.embeddings.port import Matrix


class PhraseComparer:
    """Cosines of phrases; the model is opened when the first word matches nothing by its form."""

    def __init__(self, embed: Callable[[Sequence[str]], Matrix]) -> None:
        self._embed = embed
        self._vectors: dict[str, Matrix] = {}

    def compare(self, text: str, known: Sequence[str]) -> list[float]:
        """The cosine of a text with each of some others."""
        if not known:
            return []
        new = [phrase for phrase in dict.fromkeys(known) if phrase not in self._vectors]
        own, *others = self._embed([text, *new])
        self._vectors.update(zip(new, others, strict=True))
        rows = np.stack([self._vectors[phrase] for phrase in known])
        return [float(cosine) for cosine in rows @ own]
