"""Shapes of tensors and of counts: low rank, blocks, noise, popularity, memory, size."""

from __future__ import annotations

import numpy as np

from experiments.collection.data import Fact, PlainText, Table, facts, table
from experiments.collection.draws import (
    by_weight,
    grouped,
    member,
    noisy,
    numbered,
    people,
    popular,
    towns,
)


def low_rank(rng: np.random.Generator) -> Table:
    """Ratings without a number (user, item, context): drawn from a tensor of rank 6."""
    factors = [rng.gamma(0.3, 1.0, (n, 6)) for n in (120, 90, 40)]
    component = by_weight(
        rng, np.tile(np.prod([f.sum(axis=0) for f in factors], axis=0), (3500, 1))
    )
    user, item, context = (by_weight(rng, factor.T[component]) for factor in factors)

    return table(
        user=people(120)[user],
        item=numbered("item", 90)[item],
        context=numbered("context", 40)[context],
    )


def block_model(rng: np.random.Generator) -> PlainText:
    """Four relations of three entities: which blocks go together depends on the relation."""
    names = numbered("node", 240)
    block = grouped(rng, 240, 8)
    lines: list[Fact] = []
    for relation in ("joins", "splits", "feeds", "drains"):
        triples = rng.integers(0, 8, (5, 3))
        chosen = triples[rng.integers(0, 5, 900)]
        chosen = np.where(rng.random((900, 3)) < 0.05, rng.integers(0, 8, (900, 3)), chosen)
        lines += facts(relation, *(names[member(rng, block, column)] for column in chosen.T))
    return PlainText(lines)


def dense_tensor(rng: np.random.Generator) -> Table:
    """A small table (material, process, quality) in which 40 % of all combinations occur."""
    scores = rng.normal(size=(24, 1, 1)) + rng.normal(size=(1, 16, 1))
    scores = scores + np.einsum("ik,jk,lk->ijl", *(rng.normal(size=(n, 2)) for n in (24, 16, 12)))
    scores = scores + rng.normal(0, 0.5, scores.shape)
    material, process, quality = np.nonzero(scores > np.quantile(scores, 0.6))
    return table(
        material=numbered("material", 24)[material],
        process=numbered("process", 16)[process],
        quality=numbered("quality", 12)[quality],
    )


def phonology(rng: np.random.Generator) -> Table:
    """A table of languages (language, feature, value): values by family and by area."""
    n_languages = 160
    family = popular(rng, 14, n_languages, 0.6)
    area = grouped(rng, n_languages, 7)
    by_family = rng.integers(0, 5, (14, 40))
    by_area = rng.integers(0, 5, (7, 40))

    language, feature = np.nonzero(rng.random((n_languages, 40)) < 0.55)
    is_areal = (feature % 4 == 0) | (rng.random(len(feature)) < 0.1)
    inherited = by_family[family[language], feature]
    value = np.where(is_areal, by_area[area[language], feature], inherited)
    value = noisy(rng, value % (2 + feature % 4), 5, 0.08)
    return table(
        language=np.char.add(towns(n_languages), "ish")[language],
        feature=numbered("feature", 40)[feature],
        value=np.array(["absent", "present", "weak", "strong", "mixed"])[value],
    )


def noise(rng: np.random.Generator) -> Table:
    """Three columns of sixty names each, drawn uniformly: there is nothing to learn."""
    columns = rng.integers(0, 60, (3, 3000))
    return table(
        colour=numbered("colour", 60)[columns[0]],
        number=numbered("number", 60)[columns[1]],
        card=numbered("card", 60)[columns[2]],
    )


def zipf_popularity(rng: np.random.Generator) -> Table:
    """Columns that do not depend on each other, each with its popular names: nothing but counts."""
    return table(
        song=numbered("song", 150)[popular(rng, 150, 3000, 1.0)],
        station=numbered("station", 30)[popular(rng, 30, 3000, 0.8)],
        listener=people(200)[popular(rng, 200, 3000, 0.6)],
    )


def pure_lookup(rng: np.random.Generator) -> Table:
    """Parts (part, colour, supplier, order): the part determines two columns, by no rule."""
    part = popular(rng, 250, 2500, 0.5)
    return table(
        part=numbered("part", 250)[part],
        colour=numbered("colour", 40)[rng.integers(0, 40, 250)[part]],
        supplier=towns(60)[rng.integers(0, 60, 250)[part]],
        order=numbered("order", 120)[rng.integers(0, 120, len(part))],
    )


def bundles(rng: np.random.Generator) -> Table:
    """Sets of three articles that are sold together again and again, by no rule, to anyone."""
    articles = rng.integers(0, 150, (350, 3))
    bundle = popular(rng, 350, 2800, 0.4)
    first, second, third = articles[bundle].T

    names = numbered("article", 150)
    return table(
        first=names[first],
        second=names[second],
        third=names[third],
        customer=people(200)[rng.integers(0, 200, len(bundle))],
    )


def many_relations(rng: np.random.Generator) -> PlainText:
    """Five hundred relations with about eight facts each, between types of entities."""
    names = numbered("item", 900)
    kind = grouped(rng, 900, 30)

    lines: list[Fact] = []
    for relation in range(500):
        arity = rng.choice([2, 2, 2, 3])
        kinds = rng.integers(0, 30, arity)
        n_facts = rng.integers(4, 13)
        columns = [member(rng, kind, np.full(n_facts, number)) for number in kinds]
        lines += facts(f"relation {relation + 1}", *(names[column] for column in columns))
    return PlainText(lines)


def product_attributes(rng: np.random.Generator) -> PlainText:
    """Two hundred attributes as relations (product, value): the category decides which it has."""
    n_products = 500
    category = grouped(rng, n_products, 20)
    attributes_of = [rng.choice(200, 15, replace=False) for _ in range(20)]
    brand = popular(rng, 40, n_products, 0.7)
    usual = rng.integers(0, 6, (40, 200))

    products = numbered("product", n_products)
    lines: list[Fact] = []
    for product in range(n_products):
        attributes = rng.choice(attributes_of[category[product]], 9, replace=False)
        values = noisy(rng, usual[brand[product], attributes], 6, 0.25)
        for attribute, value in zip(attributes, values, strict=True):
            text = f"value {attribute % 20 + 1}-{value + 1}"
            lines.append((f"attribute {attribute + 1}", str(products[product]), text))
    return PlainText(lines)


def many_entities(rng: np.random.Generator) -> PlainText:
    """A register of companies: twenty thousand people and companies, few facts each."""
    n_companies = 7000
    staff = people(13000)
    companies = np.array([f"company {number:05}" for number in range(n_companies)])
    town = popular(rng, 200, n_companies, 0.8)
    trade = noisy(rng, town % 30, 30, 0.5)
    lines = facts("registered in", companies, towns(200)[town], numbered("trade", 30)[trade])

    # Directors live near their companies, and some have two.
    home = popular(rng, 200, len(staff), 0.8)
    home = np.where(np.isin(home, town), home, town[0])
    director = np.concatenate([np.arange(len(staff)), rng.integers(0, len(staff), 2000)])
    company = member(rng, town, home[director])
    office = noisy(rng, np.zeros(len(director), dtype=np.int64), 3, 0.4)
    offices = np.array(["director", "owner", "secretary"])
    lines += facts("officer", staff[director], companies[company], offices[office])
    return PlainText(lines)
