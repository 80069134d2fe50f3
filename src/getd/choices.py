"""Closed sets of names that the command line and the settings share.

Literal types only: this module imports nothing but typing, so that ``getd --help`` stays fast.
"""

from __future__ import annotations

from typing import Literal

Split = Literal["train", "valid", "test"]

# File formats of facts. A new one also needs a line in ``getd.formats.registry.FORMATS``.
WriteFormat = Literal["tsv", "csv", "parquet", "jsonl", "hyper-csv"]
ReadFormat = Literal[WriteFormat, "wikipeople"]
FormatChoice = Literal["auto", ReadFormat]  # auto: recognised from the content

# Training
RegimeName = Literal["1vsall", "kvsall", "sampled"]
KvsAllLoss = Literal["softmax", "bce", "bce-over-softmax"]
SampledLoss = Literal["softmax", "margin", "logistic"]
OptimizerName = Literal["adam", "adagrad"]
NormKind = Literal["rms", "batch", "none"]
DeviceName = Literal["auto", "cpu", "cuda"]

# Evaluation, tuning, export
Ties = Literal["realistic", "optimistic", "pessimistic"]
Grouping = Literal["arity", "position", "relation", "seen"]
Pruning = Literal["median", "hyperband", "none"]
ExportFormat = Literal["parquet", "npz", "onnx"]
