"""Closed sets of names that the command line and the settings share.

A table says where the code behind each of its names is, ``"module:object"``, so that a new format,
regime or loss is one file and one line here. The code is imported when it is first needed, so that
``getd --help`` stays fast.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

Split = Literal["train", "valid", "test"]

# File formats of facts
FORMATS = {
    "tsv": "getd.formats.plain_text:TSV",
    "csv": "getd.formats.tables:CSV",
    "parquet": "getd.formats.parquet:PARQUET",
    "jsonl": "getd.formats.json_lines:JSONL",
    "hyper-csv": "getd.formats.hyper_relational:HYPER_CSV",
    "wikipeople": "getd.formats.wikipeople:WIKIPEOPLE",
}
READ_ONLY_FORMATS = ("wikipeople",)

# Training
REGIMES = {
    "1vsall": "getd.training.regimes.one_vs_all:OneVsAll",
    "kvsall": "getd.training.regimes.kvs_all:KvsAll",
    "sampled": "getd.training.regimes.sampled:Sampled",
}
KVSALL_LOSSES = {
    "softmax": "getd.training.losses.multi_answer:answer_softmax",
    "each-answer": "getd.training.losses.multi_answer:each_answer",
    "bce": "getd.training.losses.multi_answer:bce",
    "bce-over-softmax": "getd.training.losses.multi_answer:bce_over_softmax",
}
SAMPLED_LOSSES = {
    "softmax": "getd.training.losses.sampled:sampled_softmax",
    "margin": "getd.training.losses.sampled:margin",
    "logistic": "getd.training.losses.sampled:logistic",
}
OptimizerName = Literal["adam", "adagrad"]
Schedule = Literal["exponential", "linear"]
NormKind = Literal["rms", "batch", "none"]
DeviceName = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "fp32", "bf16"]
Preset = Literal["auto", "paper"]
PRESETS: tuple[Preset, ...] = ("auto", "paper")

# Evaluation, tuning, export
Ties = Literal["realistic", "optimistic", "pessimistic"]
Grouping = Literal["arity", "position", "relation", "seen"]
Pruning = Literal["median", "hyperband", "none"]
ExportFormat = Literal["parquet", "npz", "onnx"]

# The names of the tables, as types; checked when they are used, not by a type checker.
if TYPE_CHECKING:
    ReadFormat = str
    WriteFormat = str
    FormatChoice = str
    RegimeName = str
    KvsAllLoss = str
    SampledLoss = str
else:
    ReadFormat = Literal[tuple(FORMATS)]
    WriteFormat = Literal[tuple(name for name in FORMATS if name not in READ_ONLY_FORMATS)]
    FormatChoice = Literal["auto", ReadFormat]  # auto: recognised from the content
    RegimeName = Literal[tuple(REGIMES)]
    KvsAllLoss = Literal[tuple(KVSALL_LOSSES)]
    SampledLoss = Literal[tuple(SAMPLED_LOSSES)]


def load(table: Mapping[str, str]) -> dict[str, Any]:
    """Import the code behind every name of a table."""
    loaded = {}
    for name, location in table.items():
        module, _, attribute = location.partition(":")
        loaded[name] = getattr(import_module(module), attribute)
    return loaded
