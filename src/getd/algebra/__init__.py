"""Pure functions on tensors: rings, reshaped rings, Tucker and CP. No facts, no ``nn.Module``.

The environment of a mode is what a multilinear score leaves once every vector but that mode's is
put in: at any mode ``score = environment · vector``, so it is the query that a missing entity
should resemble. In shapes ``b`` is the batch, ``m`` the number of modes, ``d_j`` the size of mode
``j``, ``R_j`` the rank of the bond before it.
"""

from getd.algebra.cp import cp_environments
from getd.algebra.expressiveness import exact_cp, exact_getd, exact_tucker
from getd.algebra.reshape import reshaped_environments
from getd.algebra.ring import ring_environments, ring_parameters, ring_to_tensor
from getd.algebra.tucker import tucker_environments

__all__ = [
    "cp_environments",
    "exact_cp",
    "exact_getd",
    "exact_tucker",
    "reshaped_environments",
    "ring_environments",
    "ring_parameters",
    "ring_to_tensor",
    "tucker_environments",
]
