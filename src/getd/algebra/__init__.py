"""Pure functions on tensors: tensor rings, reshaped rings, Tucker and CP. No facts, no ``nn.Module``.

The environment of a place is what a multilinear score leaves once every vector but that one is put in: at any place
``score = environment · vector``, so it is the query vector that a missing entity should resemble. In shapes ``b`` is
the batch, ``m`` the number of modes, ``d_j`` the size of mode ``j``, ``R_j`` the rank of the bond before it.
"""
