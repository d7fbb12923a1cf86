"""Fine-tune a model on rows of `make_questions.py --instructions` with KSL's values (5.3).

`python docs/tune_lora.py MODEL ROWS OUT`: a folder or name of a causal model for transformers, the
folder with train.jsonl and test.jsonl, and the folder that the adapter is written to. Needs torch,
transformers and peft. The test rows serve for validation: keep other questions for the figure that
you quote.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model

TEMPLATE = """\
Below is an instruction that describes a task, paired with an input that provides further context. \
Write a response that appropriately completes the request.

### Instruction:
{instruction}

### Input:
{input}

### Response:
"""
"""Alpaca's."""
IGNORED = -100
"""Label of a token that is not learnt: those of the prompt, since only the choice is taught."""

Encode = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The paper's values; `micro` rows at a time make up a batch (ours: what a small GPU holds).

    MedQA took 5 epochs, the others 3.
    """

    rank: int = 16
    alpha: int = 16
    dropout: float = 0.05
    modules: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")
    rate: float = 3e-4
    batch: int = 128
    micro: int = 4
    length: int = 1152
    epochs: int = 3
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Example:
    """Tokens of a row, and what is to be learnt of them."""

    tokens: list[int]
    labels: list[int]


def read_rows(path: Path) -> list[Mapping[str, str]]:
    """The rows of a file."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def encode_row(row: Mapping[str, str], encode: Encode, end: int, length: int) -> Example | None:
    """A row in Alpaca's template; None for one that is longer than is learnt from."""
    prompt, reply = encode(TEMPLATE.format(**row)), [*encode(row["output"]), end]
    if len(prompt) + len(reply) > length:
        return None
    return Example(prompt + reply, [IGNORED] * len(prompt) + reply)


def add_lora(model: Any, recipe: Recipe) -> Any:
    """The model with adapters at the projections of its attention; all else is frozen."""
    config = LoraConfig(
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=list(recipe.modules),
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)


def compute_loss(model: Any, examples: Sequence[Example]) -> Any:
    """The mean loss of a token to be learnt, padded on the right."""
    width = max(len(example.tokens) for example in examples)

    def pad(rows: Iterator[list[int]], value: int) -> Any:
        return torch.tensor([row + [value] * (width - len(row)) for row in rows])

    tokens = pad((example.tokens for example in examples), 0)
    labels = pad((example.labels for example in examples), IGNORED)
    seen = pad(([1] * len(example.tokens) for example in examples), 0)
    at = model.device
    return model(input_ids=tokens.to(at), attention_mask=seen.to(at), labels=labels.to(at)).loss


def cut(examples: Sequence[Example], size: int) -> list[Sequence[Example]]:
    """Runs of so many examples, the last one shorter."""
    return [examples[at : at + size] for at in range(0, len(examples), size)]


def take_step(model: Any, optimiser: Any, batch: Sequence[Example], recipe: Recipe) -> None:
    """One step of the optimiser on one batch."""
    model.train()
    for part in cut(batch, recipe.micro):
        (compute_loss(model, part) * len(part) / len(batch)).backward()
    optimiser.step()
    optimiser.zero_grad()


def validate(model: Any, examples: Sequence[Example], recipe: Recipe) -> float:
    """The mean loss of a row that is not learnt from."""
    model.eval()
    with torch.no_grad():
        sums = [
            compute_loss(model, part).item() * len(part) for part in cut(examples, recipe.micro)
        ]
    return math.fsum(sums) / len(examples)


def tune(
    model: Any, train: Sequence[Example], test: Sequence[Example], out: Path, recipe: Recipe
) -> list[float]:
    """Writes the adapter of the epoch with the lowest validation loss; the losses by epoch."""
    torch.manual_seed(recipe.seed)
    model = add_lora(model, recipe)
    learnt = [each for each in model.parameters() if each.requires_grad]
    optimiser = torch.optim.AdamW(learnt, lr=recipe.rate)
    losses: list[float] = []
    for _ in range(recipe.epochs):
        order = torch.randperm(len(train)).tolist()
        for batch in cut([train[at] for at in order], recipe.batch):
            take_step(model, optimiser, batch, recipe)
        losses.append(validate(model, test, recipe))
        if losses[-1] == min(losses):
            model.save_pretrained(out)
    return losses


def main(arguments: list[str]) -> int:
    """Reads the rows, tunes the model, says what came of it; returns the exit code."""
    if len(arguments) != 3:
        sys.stderr.write("usage: python docs/tune_lora.py MODEL ROWS OUT\n")
        return 2
    from transformers import AutoModelForCausalLM, AutoTokenizer

    name, rows, out = arguments
    recipe = Recipe()
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name, dtype="auto")
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    sides = []
    for side in ("train", "test"):
        read = read_rows(Path(rows) / f"{side}.jsonl")
        made = [
            encode_row(r, tokenizer.encode, tokenizer.eos_token_id, recipe.length) for r in read
        ]
        kept = [example for example in made if example]
        sys.stderr.write(f"{side}: {len(kept)} rows, {len(made) - len(kept)} too long\n")
        if not kept:
            sys.stderr.write(f"{side}.jsonl gives nothing: export rows of more questions\n")
            return 3
        sides.append(kept)
    losses = tune(model, *sides, Path(out), recipe)
    sys.stderr.write(f"validation losses {losses}; the adapter with the lowest is in {out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
