"""All regimes by name: a regime is one file here and one line in ``getd.choices``."""

from getd import choices
from getd.training.regimes.base import Regime

REGIMES: dict[str, type[Regime]] = choices.load(choices.REGIMES)
