"""Ways to damage a file, by what it is: bytes, text, JSON, safetensors, Parquet."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

Damage = Callable[[Path, Path, Random], None]
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 7, 10**30, -(10**18), 2**63, 1e308, -1e308, 1e-320, 0.5),
    *(
        math.nan,
        math.inf,
        -math.inf,
        "",
        "x",
        "1",
        "getd",
        "../..",
        "\x1b[31mred",
        "\u202e",
        "a" * 5000,
    ),
    *([], {}, [[]], [1, 2, 3], {"a": {"b": []}}, [None] * 50),
)
NUMBERS = (
    "-1",
    "0",
    "1",
    "3",
    "7",
    "0.5",
    "1e308",
    "nan",
    "inf",
    "99999999999999999999",
    "1000000",
    "true",
    '"x"',
    "[]",
)


def damage_file(path: Path, other: Path, random: Random) -> None:
    """Damage a file in one of the ways that there are for its kind; ``other`` is a file to take
    things from.
    """
    ways = [flip_bits, cut, grow, repeat, empty, lose, become_folder, swap]
    own = {
        ".json": bend_json,
        ".jsonl": bend_lines,
        ".toml": bend_text,
        ".txt": bend_text,
        ".parquet": bend_parquet,
    }
    if path.suffix == ".safetensors":
        ways += [bend_head, bend_head, bend_tensors, bend_tensors, bend_tensors]
    elif path.suffix in own:
        ways += [own[path.suffix]] * 8
    if path.suffix in (".json", ".jsonl"):
        ways += [bend_text] * 2
    random.choice(ways)(path, other, random)


def flip_bits(path: Path, other: Path, random: Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(random.choice((1, 1, 2, 8)) if data else 0):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)


def cut(path: Path, other: Path, random: Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: random.randrange(len(data) + 1)])


def grow(path: Path, other: Path, random: Random) -> None:
    data, place = path.read_bytes(), random.randrange(path.stat().st_size + 1)
    path.write_bytes(data[:place] + random.randbytes(random.randrange(1, 40)) + data[place:])


def repeat(path: Path, other: Path, random: Random) -> None:
    data, place = path.read_bytes(), random.randrange(path.stat().st_size + 1)
    path.write_bytes(data[:place] + data[place // 2 :])


def empty(path: Path, other: Path, random: Random) -> None:
    path.write_bytes(b"")


def lose(path: Path, other: Path, random: Random) -> None:
    path.unlink()


def become_folder(path: Path, other: Path, random: Random) -> None:
    path.unlink()
    path.mkdir()


def swap(path: Path, other: Path, random: Random) -> None:
    path.write_bytes(other.read_bytes())


def bend_text(path: Path, other: Path, random: Random) -> None:
    """Another number, another word, a line moved, lost or twice."""
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    numbers = list(re.finditer(r"-?\d+(\.\d+)?", text))
    if numbers and random.random() < 0.6:
        number = random.choice(numbers)
        text = text[: number.start()] + random.choice(NUMBERS) + text[number.end() :]
    else:
        lines = text.split("\n")
        place = random.randrange(len(lines))
        changed = random.choice(
            ([], [lines[place]] * 2, [lines[place] + "x"], ["[" * 3000], ["\x1b[2J\x00"])
        )
        text = "\n".join([*lines[:place], *changed, *lines[place + 1 :]])
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


def bend_json(path: Path, other: Path, random: Random) -> None:
    path.write_text(
        json.dumps(bent(_json(path.read_text(encoding="utf-8", errors="replace")), random))
    )


def bend_lines(path: Path, other: Path, random: Random) -> None:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    place = random.randrange(len(lines))
    lines[place] = json.dumps(bent(_json(lines[place]), random))
    path.write_text("\n".join(lines))


def bent(value: Any, random: Random) -> Any:
    """A JSON value with one thing in it replaced, lost or added."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        changed = dict(value)
        way = random.random()
        if way < 0.15:
            del changed[key]
        elif way < 0.25:
            changed[str(random.choice(VALUES))[:50]] = changed.pop(key)
        else:
            changed[key] = bent(value[key], random)
        return changed
    if isinstance(value, list) and value and random.random() < 0.7:
        place = random.randrange(len(value))
        changed_item = bent(value[place], random)
        return random.choice(
            (
                value[:place] + value[place + 1 :],
                [*value[:place], changed_item, *value[place + 1 :]],
            )
        )
    return random.choice(VALUES)


def bend_head(path: Path, other: Path, random: Random) -> None:
    """The head of a safetensors file, or the JSON texts that it carries."""
    data = path.read_bytes()
    if len(data) < 8:
        return
    (size,) = struct.unpack("<Q", data[:8])
    head = _json(data[8 : 8 + size].decode("utf-8", errors="replace"))
    carried = head.get("__metadata__") if isinstance(head, dict) else None
    if isinstance(carried, dict) and carried and random.random() < 0.6:
        key = random.choice(list(carried))
        head["__metadata__"] = {**carried, key: json.dumps(bent(_json(str(carried[key])), random))}
    else:
        head = bent(head, random)
    text = json.dumps(head).encode()
    length = random.choice((len(text), len(text), len(text), random.randrange(2**40)))
    path.write_bytes(struct.pack("<Q", length) + text + data[8 + size :])


def bend_tensors(path: Path, other: Path, random: Random) -> None:
    """A tensor of another type, shape, name or with other numbers, in a file that is whole."""
    try:
        tensors = load_file(path)
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
    except Exception:  # damaged already
        return
    name = random.choice(sorted(tensors))
    ways: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
        lambda tensor: tensor.to(
            random.choice((torch.float64, torch.float16, torch.int8, torch.bool, torch.int64))
        ),
        lambda tensor: tensor.flatten()[: max(1, tensor.numel() // 2)],
        lambda tensor: tensor.unsqueeze(0),
        lambda tensor: tensor.transpose(0, -1) if tensor.dim() > 1 else tensor.repeat(2),
        lambda tensor: (
            torch.full_like(tensor, 200) if not tensor.is_floating_point() else tensor * math.nan
        ),
        lambda tensor: tensor * 1e30 if tensor.is_floating_point() else -tensor - 1,
        lambda tensor: torch.zeros(0),
        lambda tensor: torch.zeros_like(tensor),
    )
    way = random.randrange(len(ways) + 2)
    if way < len(ways):
        tensors[name] = ways[way](tensors[name]).contiguous()
    else:
        moved = tensors.pop(name)
        if way == len(ways):
            tensors[
                random.choice(("x", "model/x", "optimizer/whole/9/x", "random/torch", name + "/"))
            ] = moved
    save_file(tensors, path, metadata)


def bend_parquet(path: Path, other: Path, random: Random) -> None:
    """Facts of other numbers, types or columns, in a file that is whole."""
    try:
        table = pl.read_parquet(path)
    except Exception:  # damaged already
        return
    ways: tuple[Callable[[pl.DataFrame], pl.DataFrame], ...] = (
        lambda facts: facts.with_columns(pl.col("relation") + random.choice((-1, 1, 1000, 2**40))),
        lambda facts: facts.with_columns(
            pl.col("entities").list.eval(pl.element() + random.choice((-1, 1, 2**40)))
        ),
        lambda facts: facts.with_columns(pl.col("entities").list.head(1)),
        lambda facts: facts.with_columns(
            pl.lit(random.choice(("train", "other", None))).alias("split")
        ),
        lambda facts: facts.drop(random.choice(facts.columns)),
        lambda facts: facts.rename({random.choice(facts.columns): "x"}),
        lambda facts: facts.sample(fraction=1.0, shuffle=True, seed=random.randrange(99)),
        lambda facts: facts.head(random.randrange(len(facts) + 1)),
        lambda facts: facts.with_columns(
            pl.col("relation").cast(random.choice((pl.String, pl.Float64, pl.Boolean)))
        ),
        lambda facts: pl.concat([facts, facts]),
        lambda facts: facts.filter(pl.col("split") != random.choice(("train", "valid", "test"))),
    )
    random.choice(ways)(table).write_parquet(path)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
