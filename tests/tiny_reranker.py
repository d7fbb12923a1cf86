"""A cross-encoder of ten nodes in ONNX: its logit counts the words that both texts have.

Written byte by byte as protocol buffers, since the package `onnx` is none of ours.
"""

from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

_FLOAT, _INT64 = 1, 7
_WORDS = "john harlow uncle mary stone novel wrote grey water zog".split()


def write_reranker(folder: Path) -> Path:
    """The folder with `model.onnx` and `tokenizer.json` in it."""
    folder.mkdir()
    vocabulary = {word: at for at, word in enumerate(["[UNK]", "[SEP]", *_WORDS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="$A", pair="$A [SEP] $B:1", special_tokens=[("[SEP]", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "model.onnx").write_bytes(_write_model())
    return folder


def _write_model() -> bytes:
    nodes = [
        _write_node("Unsqueeze", ["input_ids", "one"], "across"),
        _write_node("Unsqueeze", ["input_ids", "two"], "down"),
        _write_node("Equal", ["across", "down"], "same"),
        _write_node("Unsqueeze", ["token_type_ids", "one"], "second"),
        _write_node("Sub", ["unit", "token_type_ids"], "firsts"),
        _write_node("Unsqueeze", ["firsts", "two"], "first"),
        _write_node("Mul", ["first", "second"], "pairs"),
        _write_node("Where", ["same", "pairs", "nothing"], "matches"),
        _write_node(
            "Cast", ["matches"], "numbers", _tag(5, _text(1, "to") + _int(3, _FLOAT) + _int(20, 2))
        ),
        _write_node(
            "ReduceSum",
            ["numbers"],
            "logit",
            _tag(5, _text(1, "keepdims") + _int(3, 0) + _int(20, 2)),
        ),
    ]
    graph = b"".join(_tag(1, node) for node in nodes) + _text(2, "overlap")
    for name, value in (("one", [1]), ("two", [2]), ("unit", [1]), ("nothing", [0])):
        numbers = b"".join(_int(7, number) for number in value)
        graph += _tag(5, _int(1, len(value)) + _int(2, _INT64) + numbers + _text(8, name))
    for name in ("input_ids", "token_type_ids"):
        graph += _tag(11, _write_value(name, _INT64, ("batch", "length")))
    graph += _tag(12, _write_value("logit", _FLOAT, ()))
    return _int(1, 8) + _tag(7, graph) + _tag(8, _text(1, "") + _int(2, 13))


def _write_node(kind: str, inputs: list[str], output: str, attributes: bytes = b"") -> bytes:
    named = b"".join(_text(1, name) for name in inputs)
    return named + _text(2, output) + _text(3, output) + _text(4, kind) + attributes


def _write_value(name: str, kind: int, shape: tuple[str, ...]) -> bytes:
    sizes = b"".join(_tag(1, _text(2, size)) for size in shape)
    return _text(1, name) + _tag(2, _tag(1, _int(1, kind) + _tag(2, sizes)))


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _int(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _tag(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _tag(field, text.encode())
