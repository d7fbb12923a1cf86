"""A tiny INSTRUCTOR model with random weights: the folder's form is the published one's.

T5 encoder, mean of the tokens, dense layer, unit length, over a vocabulary of letters and a few
words. Libraries of 2022 and of today read it alike.
"""

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

INSTRUCTION = "Represent the fact for retrieval: "
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
    for name, value in (_describe_model() | _describe_tokenizer()).items():
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


def _describe_model() -> dict[str, Any]:
    parts = ["Transformer", "Pooling", "Dense", "Normalize"]
    return {
        "config.json": {
            "architectures": ["T5EncoderModel"],
            "model_type": "t5",
            "vocab_size": len(_VOCABULARY),
            "d_model": WIDTH,
            "d_kv": _HEAD_SIZE,
            "d_ff": _FEED,
            "num_layers": _LAYERS,
            "num_heads": _HEADS,
            "relative_attention_num_buckets": 8,
            "relative_attention_max_distance": 16,
            "dropout_rate": 0.1,
            "layer_norm_epsilon": 1e-6,
            "feed_forward_proj": "relu",
            "is_encoder_decoder": True,
            "use_cache": False,
            "pad_token_id": 0,
            "eos_token_id": 1,
            "decoder_start_token_id": 0,
        },
        "sentence_bert_config.json": {"max_seq_length": LONGEST, "do_lower_case": False},
        "config_sentence_transformers.json": {
            "__version__": {"sentence_transformers": "2.2.0", "transformers": "4.7.0"}
        },
        "modules.json": [
            {
                "idx": index,
                "name": str(index),
                "path": f"{index}_{part}" if index else "",
                "type": f"sentence_transformers.models.{part}",
            }
            for index, part in enumerate(parts)
        ],
        "1_Pooling/config.json": {
            "word_embedding_dimension": WIDTH,
            "pooling_mode_cls_token": False,
            "pooling_mode_mean_tokens": True,
            "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
        "2_Dense/config.json": {
            "in_features": WIDTH,
            "out_features": SIZE,
            "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity",
        },
        "3_Normalize/.gitkeep": {},
    }


def _describe_tokenizer() -> dict[str, Any]:
    flags = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False)
    special = [
        {"id": number, "content": text, "special": True, **flags}
        for number, text in enumerate(_VOCABULARY[:3])
    ]
    scores = [-3.0 - 0.01 * n - 4 * (len(text) == 1) for n, text in enumerate(_VOCABULARY)]
    words = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
    end = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    one, two = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    names = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    return {
        "tokenizer.json": {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": special,
            "normalizer": None,
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [{"type": "WhitespaceSplit"}, words],
            },
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [one, end],
                "pair": [one, end, two, end],
                "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}},
            },
            "decoder": words,
            "model": {
                "type": "Unigram",
                "unk_id": 2,
                "vocab": [list(pair) for pair in zip(_VOCABULARY, scores, strict=True)],
            },
        },
        "tokenizer_config.json": {
            **names,
            "extra_ids": 0,
            "additional_special_tokens": [],
            "model_max_length": LONGEST,
            "tokenizer_class": "T5Tokenizer",
        },
        "special_tokens_map.json": names,
    }


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
