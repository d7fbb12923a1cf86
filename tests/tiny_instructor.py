"""A tiny INSTRUCTOR model with random weights: the folder's form is the published one's.

T5 encoder, mean of the tokens, dense layer, unit length, over a vocabulary of letters and a few
words. Libraries of 2022 and of today read it alike.
"""

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest

INSTRUCTION = "Represent the fact for retrieval: "
FILES = Path(__file__).parent / "rows" / "tiny_instructor.json"
"""All of the folder but its weights, with the sizes below."""
WIDTH, SIZE = 16, 12
"""Of a token's vector, and of a text's."""
LONGEST = 512
"""Tokens of a text with its instruction."""

_HEADS, _HEAD_SIZE, _LAYERS, _FEED = 2, 8, 2, 24
_WORDS = "▁ ▁the ▁of ▁in ▁a ▁Represent ▁fact ▁for ▁retrieval ▁clustering ▁river ▁born".split()
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?'-äöüéßя日本"
_VOCABULARY = ["<pad>", "</s>", "<unk>", *_WORDS, *_LETTERS]


def require_instructor() -> None:
    """Without the extra the test is a named skip, in CI a failure."""
    if importlib.util.find_spec("sentence_transformers") is None:
        assert "CI" not in os.environ, "the extra instructor must be installed"
        pytest.skip("the extra instructor is not installed")


def write_instructor(folder: Path, seed: int = 0) -> Path:
    """The folder, with weights drawn from the seed."""
    import torch

    weights = draw_weights(seed)
    dense = {"linear.weight": weights.pop("linear.weight")}
    for name, part in {"pytorch_model.bin": weights, "2_Dense/pytorch_model.bin": dense}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        torch.save({k: torch.from_numpy(v) for k, v in part.items()}, folder / name)
    for name, value in json.loads(FILES.read_bytes()).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")
    return folder


def draw_weights(seed: int) -> dict[str, np.ndarray]:
    """All weights by name, drawn large enough that every part of the model matters."""
    draw = np.random.default_rng(seed)

    def make(*shape: int, scale: float = 0.3, middle: float = 0.0) -> np.ndarray:
        return (middle + draw.standard_normal(shape) * scale).astype(np.float32)

    inner = _HEADS * _HEAD_SIZE
    weights = {"shared.weight": make(len(_VOCABULARY), WIDTH, scale=1.0)}
    for layer in range(_LAYERS):
        block = f"encoder.block.{layer}.layer"
        for name in "qkv":
            weights[f"{block}.0.SelfAttention.{name}.weight"] = make(inner, WIDTH)
        weights[f"{block}.0.SelfAttention.o.weight"] = make(WIDTH, inner)
        weights[f"{block}.1.DenseReluDense.wi.weight"] = make(_FEED, WIDTH)
        weights[f"{block}.1.DenseReluDense.wo.weight"] = make(WIDTH, _FEED)
        for part in (0, 1):
            weights[f"{block}.{part}.layer_norm.weight"] = make(WIDTH, middle=1.0)
    bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    weights[bias] = make(8, _HEADS)
    weights["encoder.final_layer_norm.weight"] = make(WIDTH, middle=1.0)
    weights["linear.weight"] = make(SIZE, WIDTH)
    return weights


def compute_vector(
    folder: Path,
    weights: dict[str, np.ndarray],
    instruction: str,
    text: str,
    *,
    pool_instruction: bool = False,
) -> np.ndarray:
    """A text's vector step by step: tokens, encoder, mean without the instruction, dense, length.

    The encoder of T5 (Raffel et al. 2020): no bias, layer norm without a mean, positions as a
    bias of attention by distance, attention without a scale.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = tokenizer.encode(instruction + text).ids
    if len(ids) > LONGEST:
        ids = [*ids[: LONGEST - 1], ids[-1]]
    own = 0 if pool_instruction else len(tokenizer.encode(instruction).ids) - 1
    state = {name: value.astype(np.float64) for name, value in weights.items()}
    mean = _encode(state, ids)[own:].mean(axis=0)
    vector = state["linear.weight"] @ mean
    return np.asarray(vector / np.linalg.norm(vector))


def _encode(state: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    hidden = state["shared.weight"][ids]
    first = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    distances = np.arange(len(ids))[None, :] - np.arange(len(ids))[:, None]
    bias = np.moveaxis(state[first][_find_buckets(distances)], 2, 0)
    for layer in range(_LAYERS):
        block = f"encoder.block.{layer}.layer"
        scaled = _normalise(hidden, state[f"{block}.0.layer_norm.weight"])
        queries, keys, values = (
            (scaled @ state[f"{block}.0.SelfAttention.{name}.weight"].T)
            .reshape(-1, _HEADS, _HEAD_SIZE)
            .swapaxes(0, 1)
            for name in "qkv"
        )
        scores = queries @ keys.swapaxes(1, 2) + bias
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = (shares @ values).swapaxes(0, 1).reshape(len(ids), -1)
        hidden = hidden + mixed @ state[f"{block}.0.SelfAttention.o.weight"].T
        scaled = _normalise(hidden, state[f"{block}.1.layer_norm.weight"])
        wide = np.maximum(0, scaled @ state[f"{block}.1.DenseReluDense.wi.weight"].T)
        hidden = hidden + wide @ state[f"{block}.1.DenseReluDense.wo.weight"].T
    return _normalise(hidden, state["encoder.final_layer_norm.weight"])


def _normalise(hidden: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.asarray(weight * hidden / np.sqrt((hidden**2).mean(axis=-1, keepdims=True) + 1e-6))


def _find_buckets(distances: np.ndarray) -> np.ndarray:
    """Eight buckets, four for each direction: two for 0 and 1, two by logarithm up to 16."""
    size = np.abs(distances)
    far = 2 + (np.log(np.maximum(size, 1) / 2) / np.log(16 / 2) * 2).astype(int)
    return np.asarray(4 * (distances > 0) + np.where(size < 2, size, np.minimum(far, 3)))
