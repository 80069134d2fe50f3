"""Which numbers a training multiplies: fp32, or bf16 on machines that are faster with it.

Only products are rounded: parameters, norms, sums, the optimiser and validation stay in fp32.
"""

import torch

from getd.evaluation.precision import MIN_TABLE, Settled, is_bf16_faster
from getd.models.base import DotProductModel, ScoringModel
from getd.runs.config import TrainSettings


def choose_precision(settings: TrainSettings, model: ScoringModel, device: torch.device) -> Settled:
    """Settle what ``auto`` means for a training on this machine."""
    if settings.precision != "auto":
        return settings.precision
    is_fused = settings.kvsall_loss in ("softmax", "each-answer")
    if not is_fused or not isinstance(model, DotProductModel):
        return "fp32"

    # Only candidates that all questions of a batch share are multiplied with them at once.
    n_candidates, dim = model.candidates(0).shape
    if settings.regime == "sampled":
        n_candidates = min(n_candidates, settings.negatives) if settings.shared_negatives else 0
    is_large = n_candidates * dim >= MIN_TABLE
    return "bf16" if is_large and is_bf16_faster(device) else "fp32"
