"""Fingerprints: hashes that identify facts, weights and texts."""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from torch import Tensor

from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.split import SPLITS


def facts_fingerprint(kb: KnowledgeBase) -> str:
    """Hash what a training learns from: names, roles, and the facts of all splits in order."""
    digest = sha256()
    digest.update(_packed(kb.entities))
    digest.update(_packed(kb.relations))
    for signature in kb.signatures:
        digest.update(_packed([signature.name, *signature.roles]))

    for split in SPLITS:
        for arity, facts in sorted(kb.splits.get(split, {}).items()):
            if not len(facts):
                continue
            digest.update(f"{split} {arity} {len(facts)}".encode())
            digest.update(facts.relation.astype("<i8").data)
            digest.update(facts.entities.astype("<i8").data)
    return digest.hexdigest()


def weights_fingerprint(weights: Mapping[str, Tensor]) -> str:
    """Hash the names and numbers of all weights."""
    digest = sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().numpy().data)
    return digest.hexdigest()


def text_fingerprint(*texts: str) -> str:
    return sha256(_packed(texts)).hexdigest()


def _packed(texts: Iterable[str]) -> bytes:
    """Join texts, each with its length, so that different lists never give the same bytes."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return b"".join(b"%d:%b" % (len(text), text) for text in encoded) + b"."
