"""Ranks equal a nested loop, and the laws that no ranking may break."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from getd.errors import ConfigError, NonFiniteScores
from getd.evaluation import ranks as ranks_module
from getd.evaluation.rank_scores import Ranks, Ties, rank_scores
from getd.evaluation.ranks import rank_facts
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.base import DotProductModel, ModelSizes, ScoringModel
from getd.models.frequency import Frequency
from getd.models.lookup import Lookup
from tests.evaluation import reference_evaluation as reference
from tests.evaluation.reference_evaluation import Fact, Table

N_RELATIONS, N_ENTITIES = 3, 4  # entities stand twice in facts, and carry the numbers of relations
TIES: tuple[Ties, ...] = ("realistic", "optimistic", "pessimistic")


def facts_of(arity: int) -> st.SearchStrategy[Fact]:
    return st.tuples(st.integers(0, N_RELATIONS - 1), *[st.integers(0, N_ENTITIES - 1)] * arity)


CHUNKS = st.sampled_from([1, 40, 10**6])
MIXED = st.lists(st.one_of([facts_of(arity) for arity in (1, 2, 3, 4)]), min_size=1, max_size=20)


def known_of(facts: list[Fact]) -> KnownAnswers:
    return KnownAnswers.build([reference.blocks(facts)])


def random_facts(n: int = 60, arity: int = 3, n_entities: int = 50, seed: int = 0) -> Facts:
    rng = np.random.default_rng(seed)
    entities = rng.integers(0, n_entities, (n, arity))
    entities[: n // 2, :-1] = entities[0, :-1]  # one question with many answers
    return Facts(rng.integers(0, N_RELATIONS, n) * (np.arange(n) >= n // 2), entities)


def all_known(facts: Facts) -> KnownAnswers:
    return KnownAnswers.build([{facts.arity: facts}])


def same(first: Ranks, second: Ranks) -> bool:
    return np.array_equal(first.rank, second.rank) and np.array_equal(
        first.candidates, second.candidates
    )


@given(ranked=MIXED, others=MIXED, ties=st.sampled_from(TIES), chunk=CHUNKS)
def test_ranks_equal_a_nested_loop(
    ranked: list[Fact], others: list[Fact], ties: Ties, chunk: int
) -> None:
    model, known = Table(N_RELATIONS, N_ENTITIES), known_of(ranked + others)
    for arity, facts in reference.blocks(ranked).items():
        ranks = rank_facts(model, facts, known, ties=ties, chunk=chunk)
        relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
        for position in range(arity):
            scores = model.score_candidates(relation, entities, position).tolist()
            for row, fact in enumerate(reference.plain(facts)):
                answer = fact[position + 1]
                expected = reference.rank(
                    scores[row], answer, fact, position + 1, ranked + others, ties
                )
                assert (ranks.rank[row, position], ranks.candidates[row, position]) == expected


def test_an_answer_that_is_not_known_is_ranked_too() -> None:
    facts = Facts(np.array([0]), np.array([[1, 2]]))
    nothing = KnownAnswers.build([])
    assert rank_facts(Table(N_RELATIONS, N_ENTITIES), facts, nothing).candidates.tolist() == [
        [N_ENTITIES] * 2
    ]


@pytest.mark.parametrize("chunk", [1, 100, 1000, 10**6])
def test_a_constant_model_earns_chance(chunk: int) -> None:
    facts, model = random_facts(), Table(N_RELATIONS, 50)
    model.change = lambda scores: torch.full_like(scores, 0.1)
    ranks = rank_facts(model, facts, all_known(facts), chunk=chunk)
    assert np.array_equal(ranks.rank, (ranks.candidates + 1) / 2)
    assert (ranks.candidates < 50).any()


class Given(DotProductModel):
    """A dot product of given vectors, one query for each relation."""

    def __init__(self, queries: Tensor, table: Tensor) -> None:
        super().__init__(ModelSizes(len(table), len(queries), (1, 3)))
        self.register_buffer("asks", queries)
        self.register_buffer("entity", table)

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        return self.get_buffer("asks")[relation]

    def candidates(self, position: int) -> Tensor:
        return self.get_buffer("entity")


class Called(Given):
    """The same scores, out of a call of the model's own."""

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        return super().score_candidates(relation, entities, position, candidates)


def random_vectors(*sizes: int, seed: int) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def all_alike(n_entities: int, dim: int, n_relations: int = N_RELATIONS, seed: int = 1) -> Given:
    """A model that gives every entity the same vector."""
    return Given(
        random_vectors(n_relations, dim, seed=seed),
        random_vectors(dim, seed=seed + 1).repeat(n_entities, 1),
    )


@pytest.mark.parametrize("shapes", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_equal_vectors_are_level_whatever_the_shape_of_the_product(shapes: int) -> None:
    rng = np.random.default_rng(0)
    nothing = KnownAnswers.build([])
    for number in range(shapes):
        n_facts, n_entities, dim = rng.integers(1, [9, 90, 260]).tolist()
        model = all_alike(n_entities, dim, n_relations=n_facts, seed=number)
        facts = Facts(np.arange(n_facts), rng.integers(0, n_entities, (n_facts, 1)))
        in_two_spans = 16 * (n_entities // 2 + 1)
        chunk = int(rng.choice([10**6, in_two_spans]))
        ranks = rank_facts(model, facts, nothing, chunk=chunk)
        assert (ranks.rank == (n_entities + 1) / 2).all(), (n_facts, n_entities, dim, chunk)


@pytest.mark.parametrize("kind", [Given, Called])
@pytest.mark.parametrize("n_facts", [1, 2, 60])
@pytest.mark.parametrize("chunk", [300, 1000, 10**6])
def test_equal_vectors_are_level_among_known_answers_too(
    kind: type[Given], n_facts: int, chunk: int
) -> None:
    facts = random_facts(n_facts)
    vectors = all_alike(50, 200)
    model = kind(vectors.get_buffer("asks"), vectors.get_buffer("entity"))
    ranks = rank_facts(model, facts, all_known(facts), chunk=chunk)
    assert np.array_equal(ranks.rank, (ranks.candidates + 1) / 2)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("dim", [1, 7, 200])
def test_ranks_are_those_of_double_precision_where_scores_are_further_apart_than_rounding(
    dim: int, scale: float
) -> None:
    n_facts, n_entities = 40, 500
    queries, table = (
        random_vectors(n_facts, dim, seed=3) * scale,
        random_vectors(n_entities, dim, seed=4),
    )
    table[::3] = table[0]  # some that are level
    facts = Facts(
        np.arange(n_facts), np.random.default_rng(5).integers(0, n_entities, (n_facts, 1))
    )
    ranks = rank_facts(Given(queries, table), facts, KnownAnswers.build([]))

    # The most that rounding can do to the difference of two scores; twice, as the level is as wide.
    exact = queries.double() @ table.double().T
    magnitude = queries.double().abs() @ table.double().abs().T
    answers = torch.tensor(facts.entities)
    bound = 2 * (dim + 8) * 2.0**-24 * (magnitude + 2 * magnitude.gather(1, answers))

    difference = exact - exact.gather(1, answers)
    same_vector = (table == table[answers[:, 0]][:, None]).all(dim=2)
    fewest_above = (difference > bound).sum(dim=1)
    most_above = ((difference > -bound) & ~same_vector).sum(dim=1)
    level = (same_vector.sum(dim=1) - 1) / 2
    rank = torch.tensor(ranks.rank[:, 0])
    assert (1 + fewest_above + level <= rank).all()
    assert (rank <= 1 + most_above + level).all()
    assert (fewest_above == most_above).float().mean() > 0.9  # all but few are told apart


@pytest.mark.parametrize("number", [1.0, 1e-30, 1e30, -3.0])
def test_the_tolerance_grows_with_the_scores(number: float) -> None:
    table = torch.tensor([[1.0], [1.0 + 5e-7], [1.01]])
    facts = Facts(np.array([0]), np.array([[0]]))
    ranks = rank_facts(Given(torch.tensor([[number]]), table), facts, KnownAnswers.build([]))
    assert ranks.rank.item() == (2.5 if number > 0 else 1.5)


class Whole(DotProductModel):
    """A dot product of small whole numbers: scores are exact, whatever the shape of the product."""

    def __init__(self, n_entities: int, dim: int = 3, dtype: torch.dtype = torch.float32) -> None:
        super().__init__(ModelSizes(n_entities, N_RELATIONS, (3,)))
        generator = torch.Generator().manual_seed(1)
        self.register_buffer(
            "entity", torch.randint(-2, 3, (n_entities, dim), generator=generator).to(dtype)
        )
        self.rows_asked: list[int] = []  # how many queries were made at a time

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        self.rows_asked.append(len(relation))
        others = [given for given in range(entities.shape[1]) if given != position]
        return self.get_buffer("entity")[entities[:, others]].sum(dim=1) + relation[:, None]

    def candidates(self, position: int) -> Tensor:
        return self.get_buffer("entity") * (1 - position)


class Biased(Whole):
    """A dot product with something of its own added."""

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        ids = torch.arange(self.n_entities) if candidates is None else candidates
        return super().score_candidates(relation, entities, position, candidates) + ids % 3


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("chunk", [1, 40, 300, 1000, 10**6, 10**15])
@pytest.mark.parametrize("kind", [Whole, Biased])
def test_a_dot_product_is_ranked_by_the_scores_of_the_model(
    kind: type[Whole], chunk: int, ties: Ties
) -> None:
    facts, model = random_facts(20), kind(50)
    known = all_known(facts)
    ranks = rank_facts(model, facts, known, chunk=chunk, ties=ties)
    for position in range(3):
        scores = model.score_candidates(
            torch.tensor(facts.relation), torch.tensor(facts.entities), position
        )
        left_out = known.lookup(facts.relation, facts.entities, position)
        expected = rank_scores(scores, facts.entities[:, position], left_out, ties=ties)
        assert np.array_equal(ranks.rank[:, position], expected.rank)
        assert np.array_equal(ranks.candidates[:, position], expected.candidates)


def test_a_model_in_double_precision_is_ranked_in_it() -> None:
    facts = random_facts()
    double = rank_facts(Whole(50, dtype=torch.float64), facts, all_known(facts), chunk=300)
    assert same(double, rank_facts(Whole(50), facts, all_known(facts), chunk=300))


@pytest.mark.parametrize("chunk", [100, 1000, 10**6])
def test_the_query_of_a_question_is_made_once_however_many_spans_of_candidates_there_are(
    chunk: int,
) -> None:
    facts, model = random_facts(), Whole(50)
    rank_facts(model, facts, all_known(facts), chunk=chunk)
    assert sum(model.rows_asked) == facts.entities.size


class Largest(TorchDispatchMode):
    """Watches how many bytes the tensors that operations make hold, views of ``table`` aside."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table, self.bytes = table.untyped_storage().data_ptr(), 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        tensor = func(*args, **(kwargs or {}))
        if isinstance(tensor, Tensor) and tensor.untyped_storage().data_ptr() != self.table:
            self.bytes = max(self.bytes, tensor.untyped_storage().nbytes())
        return tensor


@pytest.mark.parametrize("n_entities", [500, 4000])
def test_nothing_that_is_made_grows_with_the_table(n_entities: int) -> None:
    facts, chunk = random_facts(10, n_entities=n_entities), 4000
    model, known = all_alike(n_entities, 32), all_known(facts)
    with Largest(model.get_buffer("entity")) as largest:
        rank_facts(model, facts, known, chunk=chunk)
    assert largest.bytes == 4 * chunk < model.get_buffer("entity").nbytes


@pytest.mark.parametrize("ties", TIES)
def test_strictly_increasing_maps_of_scores_change_nothing(ties: Ties) -> None:
    facts, model = random_facts(), Table(N_RELATIONS, 50)
    before = rank_facts(model, facts, all_known(facts), ties=ties)
    model.change = lambda scores: scores.exp() * 3 - 5
    assert same(rank_facts(model, facts, all_known(facts), ties=ties), before)
    model.change = lambda scores: -scores
    assert not same(rank_facts(model, facts, all_known(facts), ties=ties), before)


class Renamed(ScoringModel):
    """A model whose entities have other numbers: ``names[old] = new``."""

    def __init__(self, model: Table, names: Tensor) -> None:
        super().__init__(model.sizes)
        self.model, self.names, self.old = model, names, names.argsort()

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        scores = self.model.score_candidates(relation, self.old[entities], position)[:, self.old]
        return scores if candidates is None else scores[:, candidates]


@pytest.mark.parametrize("chunk", [100, 10**6])
def test_renaming_entities_changes_nothing(chunk: int) -> None:
    facts, model = random_facts(), Table(N_RELATIONS, 50)
    names = torch.randperm(50, generator=torch.Generator().manual_seed(3))
    renamed = Facts(facts.relation, names.numpy()[facts.entities])
    before = rank_facts(model, facts, all_known(facts))
    assert same(rank_facts(Renamed(model, names), renamed, all_known(renamed), chunk=chunk), before)


@pytest.mark.parametrize("chunk", [1, 40, 300, 329])
@pytest.mark.parametrize("kind", ["table", "frequency", "lookup"])
def test_the_size_of_a_chunk_changes_nothing(kind: str, chunk: int) -> None:
    facts, size = random_facts(16, n_entities=11), (N_RELATIONS, 11)
    counted = ({3: random_facts(n_entities=11, seed=1)}, *size)
    model = {
        "table": lambda: Table(*size),
        "frequency": lambda: Frequency.from_facts(*counted),
        "lookup": lambda: Lookup.from_facts(*counted),
    }[kind]()
    known = all_known(facts)
    assert same(rank_facts(model, facts, known, chunk=chunk), rank_facts(model, facts, known))


@pytest.mark.parametrize("chunk", [100, 1000, 2000])
@pytest.mark.parametrize("n_entities", [50, 400])
def test_no_more_scores_than_a_chunk_are_held_however_many_entities_there_are(
    chunk: int, n_entities: int
) -> None:
    facts, model = random_facts(n_entities=n_entities), Table(N_RELATIONS, n_entities)
    rank_facts(model, facts, all_known(facts), chunk=chunk)
    assert max(rows * columns for rows, columns in model.shapes_asked) <= chunk
    assert (
        sum(rows * columns for rows, columns in model.shapes_asked)
        >= facts.entities.size * n_entities
    )


def test_every_score_is_computed_once() -> None:
    facts, model = random_facts(200), Table(N_RELATIONS, 50)
    # 2 spans of candidates, blocks of up to 16 questions
    rank_facts(model, facts, all_known(facts), chunk=400)
    assert {columns for _, columns in model.shapes_asked} == {25}
    assert sum(rows * columns for rows, columns in model.shapes_asked) == facts.entities.size * 50


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_scores_that_are_not_finite_stop_the_ranking(value: float) -> None:
    facts, model = random_facts(4), Table(N_RELATIONS, 50)

    def spoil(scores: Tensor) -> Tensor:
        scores[1:3, 0] = value
        return scores

    model.change = spoil
    with pytest.raises(NonFiniteScores, match=r"^2 of 200 scores are NaN or infinite$"):
        rank_facts(model, facts, all_known(facts))


def test_every_part_of_the_model_is_given_back_in_the_mode_it_had() -> None:
    facts, model = random_facts(4), Table(N_RELATIONS, 50)
    model.frozen = nn.BatchNorm1d(2).eval()
    model.trained = nn.BatchNorm1d(2)
    during = []

    def callbacks(scores: Tensor) -> Tensor:
        during.extend([model.training, model.trained.training, torch.is_grad_enabled()])
        return scores * float("nan")

    model.change = callbacks
    with pytest.raises(NonFiniteScores, match=r"^200 of 200 scores are NaN or infinite$"):
        rank_facts(model, facts, all_known(facts))
    assert (model.training, model.frozen.training, model.trained.training) == (True, False, True)
    assert during == [False, False, False]


class Cheat(Table):
    """Reads the open column."""

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        return nn.functional.one_hot(entities[:, position], self.n_entities).float()


def test_the_answer_is_not_shown_to_the_model() -> None:
    facts = random_facts()
    ranks = rank_facts(Cheat(N_RELATIONS, 50), facts, all_known(facts))
    assert (ranks.rank[facts.entities > 0] > 1).all()


def test_an_unknown_tie_rule_is_refused() -> None:
    message = (
        r"^ties: expected one of realistic, optimistic, pessimistic, found 'optimist'; "
        r"did you mean 'optimistic'\?$"
    )
    facts = random_facts(4)
    with pytest.raises(ConfigError, match=message):
        rank_facts(Table(N_RELATIONS, 50), facts, all_known(facts), ties="optimist")  # type: ignore[arg-type]


def test_all_candidates_of_the_usual_data_sets_are_scored_at_once() -> None:
    assert ranks_module.CHUNK // ranks_module.MIN_ROWS >= 100_000
