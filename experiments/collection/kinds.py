"""The kinds of generated data sets, half for fitting defaults and half held out, and real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from experiments.collection import graphs, mixed, shapes, tables, texts
from experiments.collection.data import Data
from getd.datasets.load import load
from getd.facts.knowledge_base import KnowledgeBase

Maker = Callable[[np.random.Generator], Data]


@dataclass(frozen=True)
class Kind:
    """A kind of data set: a seed gives the facts."""

    name: str
    shape: str
    maker: Maker

    @property
    def description(self) -> str:
        """One line that says what the facts are."""
        return (self.maker.__doc__ or "").strip()

    def make(self, seed: int) -> Data:
        """Make the data of a seed; other kinds draw other numbers for it."""
        return self.maker(np.random.default_rng([seed, *self.name.encode()]))

    def load(self, seed: int) -> KnowledgeBase:
        """Write the data to a file and load it, as a user would; the seed splits it too."""
        with TemporaryDirectory() as folder:
            path = self.make(seed).write(Path(folder), self.name)
            return load(path, seed=seed)


# Pairs of kinds of the same shape. Defaults may be fitted on the first of a pair, never on the
# second. The pairs were written down before anything was fitted and stay as they are.
PAIRS: tuple[tuple[str, Maker, Maker], ...] = (
    ("one relation", tables.shop_orders, tables.library_loans),
    ("one relation", tables.course_enrolments, tables.parliament_votes),
    ("one relation per arity", mixed.three_relations, mixed.warehouse),
    ("a hundred facts", tables.hundred_facts, mixed.small_museum),
    ("one hub", mixed.airport_hub, mixed.city_contracts),
    ("functional columns", tables.flight_schedule, tables.postal_addresses),
    ("functional columns", tables.timetable, tables.match_results),
    ("almost determined", tables.device_list, tables.country_table),
    ("high-cardinality ids", tables.sensor_logs, tables.invoices),
    ("dates", texts.football_transfers, texts.patents),
    ("dates", texts.subscriptions, texts.hotel_bookings),
    ("free text", texts.multilingual_labels, texts.support_tickets),
    ("40 % blanks", texts.patient_records, texts.machine_inventory),
    ("few relations, rare arities", mixed.hospital, mixed.depot),
    ("arity 2 to 6", mixed.hospital_wards, mixed.university),
    ("lists", texts.co_authorship, texts.movie_casts),
    ("lists", texts.chemistry_reactions, texts.recipes),
    ("compositions", graphs.family_trees, graphs.geography),
    ("compositions", graphs.taxonomy, graphs.permissions),
    ("inverse and symmetric", graphs.inverse_relations, graphs.symmetric_relations),
    ("order and popularity", graphs.tournaments, graphs.citations),
    ("hubs of a science or a trade", mixed.drug_disease_gene, mixed.supply_chains),
    ("a latent structure", shapes.low_rank, shapes.block_model),
    ("a dense table", shapes.dense_tensor, shapes.phonology),
    ("nothing but counts", shapes.noise, shapes.zipf_popularity),
    ("nothing but memory", shapes.pure_lookup, shapes.bundles),
    ("many relations", shapes.many_relations, shapes.product_attributes),
    ("many entities", shapes.many_entities, graphs.follower_graph),
)


def _kind(shape: str, maker: Maker) -> Kind:
    return Kind(maker.__name__.replace("_", "-"), shape, maker)


FITTING = {kind.name: kind for kind in (_kind(shape, first) for shape, first, _ in PAIRS)}
HELD_OUT = {kind.name: kind for kind in (_kind(shape, second) for shape, _, second in PAIRS)}
KINDS = FITTING | HELD_OUT
REAL = (
    "demo",
    "WikiPeople-3",
    "WikiPeople-4",
    "JF17K-3",
    "JF17K-4",
    "JF17K",
    "WD50K",
    "WN18",
    "FB15k-237",
)

# Drawn so that no model can be expected to do better than to count: it need not be above.
ONLY_COUNTS = ("noise", "zipf-popularity")


def load_data(name: str, seed: int) -> KnowledgeBase:
    """Load a kind by its name, or a real data set, which is the same for every seed."""
    return KINDS[name].load(seed) if name in KINDS else load(name)
