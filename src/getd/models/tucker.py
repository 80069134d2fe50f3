"""TuckER: n-TuckER for facts of two entities, under its own name and with its usual sizes."""

from pydantic import PositiveInt

from getd.models.n_tucker import NTuckER, NTuckERSettings


class TuckERSettings(NTuckERSettings):
    """Settings of ``[model]`` with ``name = "tucker"``."""

    entity_dim: PositiveInt | None = 200
    relation_dim: PositiveInt | None = 30


class TuckER(NTuckER):
    """Tucker scoring of facts of two entities with a dense core (n-tucker at arity 2)."""

    binary_only = True
    parameters_formula = "|E|d + |R|d_r + d_r d^2"
