r"""What the training facts alone say about the weights of a memory.

Each training fact is looked up as if it had not been counted, and the weights maximise the
likelihood of its entities among all candidates, without any model,

.. math::
    \sum_q \log \operatorname{softmax}_c \bigl(\theta^\top x_{-q}(c)\bigr)_{c_q}
    - \lambda |\theta - \theta_0|^2.

First all positions of all arities share the weights of a kind of source (``one`` given entity,
``two``, ``beside`` …); then each position has its own, close to those. So an arity of a few facts
begins with what all facts have shown.
"""

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from getd.algebra.convex import Bowl, minimise
from getd.facts.facts import Blocks, Facts, sample_facts
from getd.facts.known_answers import KnownAnswers
from getd.memory.memory import Memory, kind_of
from getd.memory.questions import Questions

# Before any fact is seen: the weights of the share and of its logarithm.
START = {
    "frequency": (0.0, 0.5),
    "one": (0.5, 0.2),
    "two": (0.5, 0.2),
    "all": (0.5, 0.2),
    "beside": (0.0, 0.05),
    "beside two": (0.0, 0.05),
}
SAMPLE = 1000  # facts of an arity that own weights are learnt from
SHARED_SAMPLE = 300  # facts of an arity that shared weights are learnt from
SHARED_PRIOR = 0.3  # λ of the shared weights
OWN_PRIOR = 3.0  # λ of those of a position
LONG = 6  # the arity from which on samples are smaller, as facts ask more and longer questions


def learn_prior(memory: Memory, blocks: Blocks, known: KnownAnswers) -> dict[str, Tensor]:
    """Learn weights by arity and position, "4-0", from the facts that the memory counts.

    ``known`` are the answers of these facts.
    """
    shared = _learn_shared(memory, _samples(blocks, SHARED_SAMPLE), known)

    learnt = {}
    for name, facts, position in _slots(_samples(blocks, SAMPLE)):
        questions = Questions.leave_out(memory, facts, position, known)
        centre = shared[_columns(memory, facts.arity, position)]
        learnt[name], _ = minimise(partial(questions.loss, scale=0), centre, centre, OWN_PRIOR)
    return learnt


def start_weights(memory: Memory, arity: int, position: int) -> Tensor:
    """Return the weights of a position that no training fact has."""
    return _start()[_columns(memory, arity, position)]


def _learn_shared(memory: Memory, blocks: Blocks, known: KnownAnswers) -> Tensor:
    """Learn the weights of all kinds of sources, two of each."""
    parts = []
    for _, facts, position in _slots(blocks):
        questions = Questions.leave_out(memory, facts, position, known)
        parts.append((questions, _columns(memory, facts.arity, position)))

    def loss(theta: Tensor) -> Bowl:
        value = theta.new_zeros(())
        gradient = torch.zeros_like(theta)
        hessian = theta.new_zeros(len(theta), len(theta))

        # A position adds to the weights of its kinds of sources alone.
        for questions, columns in parts:
            bowl = questions.loss(theta[columns], 0)
            value += bowl.value
            gradient.index_add_(0, columns, bowl.gradient)
            cells = (columns[:, None], columns[None, :])
            hessian.index_put_(cells, bowl.hessian, accumulate=True)
        return Bowl(value, gradient, hessian)

    theta, _ = minimise(loss, _start(), _start(), SHARED_PRIOR)
    return theta


def _samples(blocks: Blocks, number: int) -> dict[int, Facts]:
    """Draw so many facts of each arity, and fewer of long ones."""
    samples: dict[int, Facts] = {}
    for arity, facts in blocks.items():
        share = min(1.0, (LONG / max(arity, 1)) ** 2)
        samples |= sample_facts({arity: facts}, max(1, int(share * number)))
    return samples


def _slots(blocks: Mapping[int, Facts]) -> list[tuple[str, Facts, int]]:
    """Name every position of every arity that has facts."""
    slots = []
    for arity, facts in blocks.items():
        for position in range(arity if len(facts) else 0):
            slots.append((f"{arity}-{position}", facts, position))
    return slots


def _columns(memory: Memory, arity: int, position: int) -> Tensor:
    """Return where the two weights of each source are among those of the kinds."""
    kinds = list(START)
    numbers = [kinds.index(kind_of(source, arity)) for source in memory.sources(arity, position)]
    return torch.tensor([2 * number + column for number in numbers for column in (0, 1)])


def _start() -> Tensor:
    return torch.tensor(list(START.values()), dtype=torch.float64).flatten()
