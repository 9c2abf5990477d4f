"""Fine-tune a BERT-style encoder into a 3-way NLI cross-encoder.

    python models/train.py BASE_DIR OUT_DIR PAIRS.jsonl.gz [--evaluate TEST.jsonl.gz ...]

Pairs are JSON lines (plain or .gz) with ``premise``, ``hypothesis`` and ``label``: entailment,
neutral, contradiction, or not_entailment where nobody said which of the other two it is. The
result is a checkpoint that ``models/convert.py`` turns into the bundled model.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from pair_files import read_rows
from torch.nn.utils import clip_grad_norm_
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    get_linear_schedule_with_warmup,
)

LABELS = ("entailment", "neutral", "contradiction")
# Pairs known only not to be entailed: their loss is that of "neutral or contradiction".
NOT_ENTAILMENT = len(LABELS)
LABEL_IDS = {**{name: number for number, name in enumerate(LABELS)}, "not_entailment": 3}
# Batches of similar length are cut from pools of this many batches, so that little is padding
# and the order still is random.
BATCHES_PER_POOL = 60
WARM_UP_SHARE = 0.06
WEIGHT_DECAY = 0.01
LARGEST_GRADIENT = 1.0
REPORT_EVERY = 100


@dataclass(frozen=True, slots=True)
class Example:
    """One tokenized pair and its label, 0 to 3."""

    input_ids: list[int]
    type_ids: list[int]
    label: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """The settings that made the bundled model."""

    learning_rate: float = 1.5e-4
    max_tokens: int = 160
    batch_size: int = 32
    seed: int = 7


def main() -> None:
    """Read the command line, train, and evaluate where asked to."""
    recipe = Recipe()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path, help="folder of the encoder to start from")
    parser.add_argument("out", type=Path, help="folder for the trained checkpoint")
    parser.add_argument("pairs", type=Path, nargs="+", help="training pairs")
    parser.add_argument("--learning-rate", type=float, default=recipe.learning_rate)
    parser.add_argument("--max-tokens", type=int, default=recipe.max_tokens)
    parser.add_argument("--batch-size", type=int, default=recipe.batch_size)
    parser.add_argument("--seed", type=int, default=recipe.seed)
    parser.add_argument("--evaluate", type=Path, nargs="*", default=[], metavar="FILE")
    arguments = parser.parse_args()
    recipe = Recipe(
        arguments.learning_rate, arguments.max_tokens, arguments.batch_size, arguments.seed
    )
    random.seed(recipe.seed)
    torch.manual_seed(recipe.seed)
    # A local folder, here and below.
    tokenizer = AutoTokenizer.from_pretrained(arguments.base, local_files_only=True)  # nosec B615
    model = load_base(arguments.base)
    train(model, read_examples(arguments.pairs, tokenizer, recipe), recipe)
    # Kept in fp16, the form that is shipped; the evaluation below sees the same rounding.
    model.half().save_pretrained(arguments.out)
    tokenizer.save_pretrained(arguments.out)
    model.float()
    for path in arguments.evaluate:
        examples = read_examples([path], tokenizer, recipe)
        print(f"{path.name}: accuracy {accuracy(model, examples, recipe):.2%}", flush=True)


def load_base(folder: Path) -> PreTrainedModel:
    """Load the encoder with a fresh 3-way head and frozen word embeddings."""
    model: PreTrainedModel = AutoModelForSequenceClassification.from_pretrained(  # nosec B615
        folder,
        num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)),
        label2id={name: number for number, name in enumerate(LABELS)},
        local_files_only=True,
        dtype=torch.float32,
    )
    # Half of all weights; training pairs are too few to move rare words without hurting them.
    model.get_input_embeddings().weight.requires_grad_(False)
    return model


def read_examples(
    paths: Iterable[Path], tokenizer: PreTrainedTokenizerBase, recipe: Recipe
) -> list[Example]:
    """Read and tokenize labelled pairs; an unknown label is an error that names its pair."""
    rows = []
    for path in paths:
        for number, row in enumerate(read_rows(path), 1):
            if row["label"] not in LABEL_IDS:
                sys.exit(f"{path}, pair {number}: unknown label {row['label']!r}")
            rows.append(row)
    encoded = tokenizer(
        [row["premise"] for row in rows],
        [row["hypothesis"] for row in rows],
        truncation="longest_first",
        max_length=recipe.max_tokens,
        return_token_type_ids=True,
    )
    cut = sum(len(ids) == recipe.max_tokens for ids in encoded["input_ids"])
    print(f"{len(rows)} pairs, {cut} of them cut to {recipe.max_tokens} tokens", flush=True)
    return [
        Example(ids, types, LABEL_IDS[row["label"]])
        for ids, types, row in zip(
            encoded["input_ids"], encoded["token_type_ids"], rows, strict=True
        )
    ]


def train(model: PreTrainedModel, examples: list[Example], recipe: Recipe) -> None:
    """Run one epoch of AdamW with warm-up and linear decay."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=recipe.learning_rate, weight_decay=WEIGHT_DECAY)
    steps = -(-len(examples) // recipe.batch_size)
    schedule = get_linear_schedule_with_warmup(optimizer, int(WARM_UP_SHARE * steps), steps)
    model.train()
    started, seen = time.monotonic(), 0
    for step, batch in enumerate(bucketed_batches(examples, recipe.batch_size), 1):
        loss = batch_loss(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        clip_grad_norm_(weights, LARGEST_GRADIENT)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        seen += len(batch)
        if step % REPORT_EVERY == 0 or seen == len(examples):
            rate = seen / (time.monotonic() - started)
            left = (len(examples) - seen) / rate
            print(
                f"step {step}/{steps}  loss {loss.item():.3f}  {rate:.1f} pairs/s  "
                f"{left / 60:.0f} min left",
                flush=True,
            )


def bucketed_batches(examples: list[Example], batch_size: int) -> Iterator[list[Example]]:
    """Yield every example once, in random batches of similar length."""
    shuffled = random.sample(examples, len(examples))
    pool_size = batch_size * BATCHES_PER_POOL
    for start in range(0, len(shuffled), pool_size):
        pool = sorted(
            shuffled[start : start + pool_size], key=lambda example: len(example.input_ids)
        )
        batches = [pool[at : at + batch_size] for at in range(0, len(pool), batch_size)]
        random.shuffle(batches)
        yield from batches


def batch_loss(model: PreTrainedModel, batch: list[Example]) -> torch.Tensor:
    """Return the mean loss of a batch.

    Cross-entropy for the three labels; -log(P(neutral) + P(contradiction)) for a pair that is
    known only not to be entailed.
    """
    log_p = torch.log_softmax(forward(model, batch), dim=-1)
    labels = torch.tensor([example.label for example in batch], device=log_p.device)
    known = labels != NOT_ENTAILMENT
    loss = -log_p[known].gather(1, labels[known, None]).sum()
    loss = loss - torch.logsumexp(log_p[~known][:, 1:], dim=-1).sum()
    return loss / len(batch)


def forward(model: PreTrainedModel, batch: list[Example]) -> torch.Tensor:
    """Run a batch, padded to its longest, and return logits (n, 3)."""
    longest = max(len(example.input_ids) for example in batch)
    padding = model.config.pad_token_id or 0

    def padded(rows: list[list[int]], filler: int) -> torch.Tensor:
        filled = [row + [filler] * (longest - len(row)) for row in rows]
        return torch.tensor(filled, device=model.device)

    logits: torch.Tensor = model(
        input_ids=padded([example.input_ids for example in batch], padding),
        token_type_ids=padded([example.type_ids for example in batch], 0),
        attention_mask=padded([[1] * len(example.input_ids) for example in batch], 0),
    ).logits
    return logits.float()


@torch.inference_mode()
def accuracy(model: PreTrainedModel, examples: list[Example], recipe: Recipe) -> float:
    """Return the share of three-way examples whose most probable label is right."""
    model.eval()
    known = [example for example in examples if example.label != NOT_ENTAILMENT]
    right = 0
    for start in range(0, len(known), recipe.batch_size):
        batch = known[start : start + recipe.batch_size]
        chosen = forward(model, batch).argmax(dim=-1).tolist()
        right += sum(c == e.label for c, e in zip(chosen, batch, strict=True))
    return right / len(known) if known else float("nan")


if __name__ == "__main__":
    main()
