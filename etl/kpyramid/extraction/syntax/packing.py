"""A parse as text and back, so that it can be kept."""

import json

from kpyramid.extraction.syntax.tree import Node, Tree

_COLUMNS = 13


def pack_tree(tree: Tree) -> str:
    """The tokens of a tree as one line of JSON; the text itself is not in it."""
    columns: list[list[object]] = [[] for _ in range(_COLUMNS)]
    for node in tree.nodes:
        row = (
            *(node.text, node.word, node.lemma, node.pos, node.tag, node.dep, node.entity),
            *(node.iob, int(node.space), node.idx),
            *(node.head.i, node.left_edge.i, node.right_edge.i),
        )
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    packed = {"sentences": tree.sentences, "columns": columns}
    return json.dumps(packed, ensure_ascii=False, separators=(",", ":"))


def unpack_tree(text: str, packed: str) -> Tree:
    """The tree of `text` that `pack_tree` packed."""
    data = json.loads(packed)
    tree = Tree(text, [], [(first, end) for first, end in data["sentences"]])
    sentence_of = [at for at, (first, end) in enumerate(tree.sentences) for _ in range(first, end)]
    columns = data["columns"]
    for i, row in enumerate(zip(*columns[:10], strict=True)):
        words, word, lemma, pos, tag, dep, entity, iob, space, idx = row
        tree.nodes.append(
            Node(
                *(tree, i, idx, words, word, lemma, pos, tag, dep, entity, iob),
                bool(space),
                sentence_of[i],
            )
        )
    nodes = tree.nodes
    for node, head, left, right in zip(nodes, *columns[10:], strict=True):
        node.head, node.left_edge, node.right_edge = nodes[head], nodes[left], nodes[right]
        if head != node.i:
            node.head.children.append(node)
    return tree
