"""Nouns that many things are said to be, and that no class names, as classes."""

import re
from collections import defaultdict

import numpy as np

from kpyramid.completion.columns import encode
from kpyramid.completion.drafting import find_class
from kpyramid.completion.types import Completion, GraphLayer, OntologyLayer, Proposal
from kpyramid.completion.units import find_stated, rank_phrases
from kpyramid.extraction.normal import lemmatise, normalise_relation
from kpyramid.induction.checking import Named, fit_class
from kpyramid.induction.kinds import Kinds
from kpyramid.ontology.wording import name_class

_IS_A = "be a"
_COMPLEMENT = re.compile(r"\s(?:of|in|for|from|at|on|by|with|to|who|which|that|and|or)\s|[,(]")


def propose_classes(
    graph: GraphLayer, ontology: OntologyLayer, compared: Completion, least: int
) -> list[Proposal]:
    """The nouns under which `X is a …` files at least `least` things, and their common parent.

    A fact that states a value already (`is a tenor`: voice type) files nothing.
    """
    schema = ontology.schema
    wordings, tails = encode(graph.wordings), encode(graph.tails)
    is_a = np.array([normalise_relation(w).key == _IS_A for w in wordings.words], dtype=bool)
    places = np.flatnonzero(is_a[wordings.codes] & ~find_stated(graph, ontology))
    kinds = Kinds(schema)
    nouns = {
        code: find_noun(tails.words[code], kinds) for code in set(tails.codes[places].tolist())
    }
    groups: dict[str, list[int]] = defaultdict(list)
    for at in places.tolist():
        noun = nouns[int(tails.codes[at])]
        if noun is not None and graph.heads[at][:1].isupper():
            groups[noun].append(at)
    rank = rank_phrases(compared)[compared.phrase_of]
    found = []
    for noun in sorted(groups):
        facts = groups[noun]
        if len({graph.heads[at] for at in facts}) >= least:
            parent = find_class((graph.head_types[at] for at in facts), schema)
            ends = (Named("", graph.heads[at], graph.head_types[at]) for at in facts)
            fitting = sum(fit_class(end, parent, schema) is not None for end in ends)
            found.append(
                Proposal(
                    kind="class",
                    label=noun,
                    definition=f"A kind of {name_class(parent, schema)}.",
                    domain=parent,
                    range=None,
                    phrases=(noun,),
                    facts=tuple(facts),
                    score=float(rank[facts].sum()),
                    agreement=fitting / len(facts),
                )
            )
    return found


def find_noun(words: str, kinds: Kinds) -> str | None:
    """The noun at the head of a noun phrase: `town` of `small town in Idaho`; None of a class's."""
    core = _COMPLEMENT.split(words, maxsplit=1)[0].split()
    noun = lemmatise(core[-1]) if core and core[-1].islower() else ""
    return noun if noun.isalpha() and len(noun) > 2 and kinds.find(words) is None else None
