"""Binary relations as in knowledge graphs: compositions, inverses, symmetry, hierarchies."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from experiments.collection.data import Fact, PlainText, facts
from experiments.collection.draws import grouped, member, noisy, numbered, people, popular, towns


def family_trees(rng: np.random.Generator) -> PlainText:
    """Families of four generations: parents, and the kinships that follow from them."""
    parents: dict[int, tuple[int, int]] = {}
    generation = list(range(80))
    n_people = 80
    lines: list[Fact] = []
    names = people(2000)

    for _ in range(3):
        couples = rng.permutation(generation)[: len(generation) // 2 * 2].reshape(-1, 2).tolist()
        generation = []
        for mother, father in couples:
            lines.append(("married to", names[mother], names[father]))
            lines.append(("married to", names[father], names[mother]))
            for _ in range(rng.integers(1, 5)):
                parents[n_people] = (mother, father)
                generation.append(n_people)
                n_people += 1

    siblings = defaultdict(list)
    for child, couple in parents.items():
        siblings[couple].append(child)
    for child, couple in parents.items():
        for parent in couple:
            lines.append(("parent of", names[parent], names[child]))
            for grandparent in parents.get(parent, ()):
                lines.append(("grandparent of", names[grandparent], names[child]))
            for other in siblings[parents[parent]] if parent in parents else ():
                if other != parent:
                    lines.append(("aunt or uncle of", names[other], names[child]))
        for other in siblings[couple]:
            if other != child:
                lines.append(("sibling of", names[child], names[other]))
    return PlainText([tuple(map(str, line)) for line in lines])


def geography(rng: np.random.Generator) -> PlainText:
    """Towns in districts in regions in countries: containment at all levels, and neighbours."""
    n_towns = 450
    region_of_district = np.sort(rng.integers(0, 24, 90))
    country_of_region = np.sort(rng.integers(0, 6, 24))
    district = rng.integers(0, 90, n_towns)
    region = region_of_district[district]
    country = country_of_region[region]

    town_names = towns(n_towns)
    districts = numbered("district", 90)
    regions = numbered("region", 24)
    countries = numbered("country", 6)
    lines = facts("in", town_names, districts[district])
    lines += facts("in", town_names, regions[region])
    lines += facts("in", town_names, countries[country])
    lines += facts("in", districts, regions[region_of_district])
    lines += facts("in", regions, countries[country_of_region])

    # Neighbours are in the same district, or in the next one if that has towns.
    next_district = (district + 1) % 90
    next_district = np.where(np.isin(next_district, district), next_district, district)
    for near in (district, next_district):
        neighbour = member(rng, district, near)
        is_other = neighbour != np.arange(n_towns)
        lines += facts("next to", town_names[is_other], town_names[neighbour[is_other]])
        lines += facts("next to", town_names[neighbour[is_other]], town_names[is_other])
    lines += facts("speaks", town_names, numbered("language", 9)[(country + region % 2) % 9])
    return PlainText(lines)


def inverse_relations(rng: np.random.Generator) -> PlainText:
    """Three relations and their inverses: every fact is there in both directions."""
    staff = people(500)
    firms = np.array([f"{name} Ltd" for name in towns(60)])
    courses = numbered("course", 80)
    employer = popular(rng, 60, 700, 0.8)
    employee = rng.integers(0, 500, 700)
    lines = facts("works for", staff[employee], firms[employer])
    lines += facts("employs", firms[employer], staff[employee])

    teacher = rng.integers(0, 120, 600)
    course = member(rng, grouped(rng, 80, 12), grouped(rng, 120, 12)[teacher])
    lines += facts("teaches", staff[teacher], courses[course])
    lines += facts("taught by", courses[course], staff[teacher])

    owner = rng.integers(0, 60, 500)
    owned = (owner + 1 + popular(rng, 58, 500, 0.5)) % 60
    lines += facts("owns", firms[owner], firms[owned])
    lines += facts("owned by", firms[owned], firms[owner])
    return PlainText(lines)


def symmetric_relations(rng: np.random.Generator) -> PlainText:
    """Knows, interacts with, means the same as: all symmetric, the last one transitive too."""
    names = people(300)
    proteins = numbered("protein", 200)
    words = numbered("word", 240)
    circle = grouped(rng, 300, 20)
    person = rng.integers(0, 300, 900)
    friend = member(rng, circle, noisy(rng, circle[person], 20, 0.1))
    first = popular(rng, 200, 700, 0.8)
    second = popular(rng, 200, 700, 0.8)

    lines = []
    for relation, column, left, right in (
        ("knows", names, person, friend),
        ("interacts with", proteins, first, second),
    ):
        is_pair = left != right
        lines += facts(relation, column[left[is_pair]], column[right[is_pair]])
        lines += facts(relation, column[right[is_pair]], column[left[is_pair]])

    meaning = grouped(rng, 240, 60)
    left, right = np.nonzero(meaning[:, None] == meaning)
    is_pair = left != right
    lines += facts("means", words[left[is_pair]], words[right[is_pair]])
    return PlainText(lines)


def taxonomy(rng: np.random.Generator) -> PlainText:
    """A tree of concepts: the parent, all ancestors, and traits that are inherited."""
    n_concepts = 700
    parent = np.array([0, *(rng.integers(0, max(1, i // 3), 1)[0] for i in range(1, n_concepts))])
    traits_of = rng.random((n_concepts, 25)) < 0.01
    names = numbered("concept", n_concepts)
    traits = numbered("trait", 25)

    lines: list[Fact] = []
    for concept in range(1, n_concepts):
        lines += facts("is a", [names[concept]], [names[parent[concept]]])
        inherited = traits_of[concept].copy()
        ancestor = parent[concept]
        while True:
            inherited |= traits_of[ancestor]
            lines += facts("is a kind of", [names[concept]], [names[ancestor]])
            if ancestor == 0:
                break
            ancestor = parent[ancestor]
        for trait in np.flatnonzero(inherited):
            lines += facts("has", [names[concept]], [traits[trait]])
    return PlainText(lines)


def permissions(rng: np.random.Generator) -> PlainText:
    """Users have roles, roles have permissions; some of what a user may do is written out."""
    n_users = 350
    roles = numbered("role", 25)
    rights = np.array(
        [
            f"{verb} {thing}"
            for verb in ("read", "write", "approve")
            for thing in numbered("folder", 40)
        ]
    )
    users = np.array([name.lower().replace(" ", ".") for name in people(n_users)])
    has_role = rng.random((n_users, 25)) < 0.08
    has_role[np.arange(n_users), rng.integers(0, 25, n_users)] = True
    allows = rng.random((25, 120)) < 0.08

    user, role = np.nonzero(has_role)
    lines = facts("has role", users[user], roles[role])
    role, right = np.nonzero(allows)
    lines += facts("allows", roles[role], rights[right])
    user, right = np.nonzero((has_role.astype(int) @ allows > 0) & (rng.random((350, 120)) < 0.4))
    lines += facts("may", users[user], rights[right])
    lines += facts("reports to", users, users[np.arange(n_users) // 7])
    return PlainText(lines)


def tournaments(rng: np.random.Generator) -> PlainText:
    """Who beat whom, by strength, and who drew; who plays where, and for which club."""
    n_players = 160
    strength = rng.normal(size=n_players)
    city = grouped(rng, n_players, 16)
    first = rng.integers(0, n_players, 3000)
    second = member(rng, city, noisy(rng, city[first], 16, 0.5))
    is_pair = first != second
    first = first[is_pair]
    second = second[is_pair]

    margin = strength[first] - strength[second] + rng.normal(0, 0.4, len(first))
    names = people(n_players)
    lines = []
    for relation, rows in (
        ("beat", margin > 0.2),
        ("lost to", margin < -0.2),
        ("drew with", np.abs(margin) <= 0.2),
    ):
        lines += facts(relation, names[first[rows]], names[second[rows]])
    lines += facts("plays for", names, numbered("chess club", 16)[city])
    return PlainText(lines)


def citations(rng: np.random.Generator) -> PlainText:
    """Papers cite older papers of their topic, popular ones first; authors and venues."""
    n_papers = 900
    topic = grouped(rng, n_papers, 18)
    names = np.array([f"paper {number:04}" for number in range(n_papers)])
    cited = np.ones(n_papers)

    lines: list[Fact] = []
    for paper in range(30, n_papers):
        weights = cited[:paper] * np.where(topic[:paper] == topic[paper], 20.0, 1.0)
        targets = rng.choice(paper, rng.integers(1, 6), replace=False, p=weights / weights.sum())
        cited[targets] += 1
        lines += facts("cites", [names[paper]] * len(targets), names[targets])

    writers = people(360)
    author = member(rng, grouped(rng, 360, 18), np.repeat(topic, 2))
    lines += facts("written by", np.repeat(names, 2), writers[author])
    venue = noisy(rng, topic // 2, 12, 0.15)
    lines += facts("published in", names, numbered("journal", 12)[venue])
    return PlainText(lines)


def follower_graph(rng: np.random.Generator) -> PlainText:
    """Fifteen thousand accounts in communities, each of which follows one or two others."""
    n_accounts = 15000
    community = grouped(rng, n_accounts, 150)
    members = np.argsort(community, kind="stable").reshape(150, -1)
    follower = np.repeat(np.arange(n_accounts), rng.integers(1, 3, n_accounts))
    n_links = len(follower)

    # Half of the links go to the few accounts that a community looks up to.
    own = community[follower]
    leader = members[own, rng.integers(0, 5, n_links)]
    peer = member(rng, community, noisy(rng, own, 150, 0.1))
    followed = np.where(rng.random(n_links) < 0.5, leader, peer)

    is_pair = followed != follower
    accounts = np.array([f"@user{number:05}" for number in range(n_accounts)])
    return PlainText(facts("follows", accounts[follower[is_pair]], accounts[followed[is_pair]]))
