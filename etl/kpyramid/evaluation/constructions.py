"""The grammatical constructions of a sentence, so that a score can be told apart by them."""

from collections.abc import Iterable

from kpyramid.extraction.syntax.tree import Node, Tree

_VERBS = frozenset({"VERB", "AUX"})
_PARTICIPLES = frozenset({"VBN", "VBG"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass", "expl"})
_QUOTES = frozenset({'"', "``", "''", "“", "”"})
_OF_EDGE = {
    "relcl": "relative clause",
    "appos": "apposition",
    "nsubjpass": "passive",
    "csubjpass": "passive",
    "auxpass": "passive",
    "dative": "ditransitive",
    "poss": "possessive",
    "ccomp": "complement clause",
    "neg": "negation",
    "expl": "existential",
    "nummod": "quantity",
}


def find_constructions(tree: Tree) -> frozenset[str]:
    """The names of the constructions that occur, as the parser sees them; "plain" for none."""
    found = {name for node in tree.nodes for name in _name_constructions(node)}
    return frozenset(found or {"plain"})


def _name_constructions(node: Node) -> Iterable[str]:
    if node.dep in _OF_EDGE:
        yield _OF_EDGE[node.dep]
    if node.dep == "conj":
        yield "verb coordination" if node.pos in _VERBS else "noun coordination"
    elif node.dep == "xcomp":
        yield "control or raising"
    elif node.dep == "acl" and node.tag in _PARTICIPLES:
        yield "participial clause"
    elif node.dep == "acl":
        yield "infinitive of a noun"
    elif node.dep == "advcl":
        bare = node.tag in _PARTICIPLES and not _has_child(node, _SUBJECTS)
        yield "participial clause" if bare else "adverbial clause"
    elif node.dep == "ROOT" and node.pos not in _VERBS:
        yield "verbless"
    if node.lemma == "be" and _has_child(node, {"attr", "acomp"}):
        yield "copula"
    if node.tag == "MD":
        yield "modality"
    if node.text in _QUOTES:
        yield "quotation"
    elif node.text == "?":
        yield "question"
    elif node.text in {"(", "-LRB-"}:
        yield "parenthesis"


def _has_child(node: Node, labels: Iterable[str]) -> bool:
    return any(child.dep in labels for child in node.children)
