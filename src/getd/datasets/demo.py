"""The built-in demo: a small sports world with readable names and hidden rules; ``docs/demo.md`` tells them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from getd.facts.named import NamedFacts, NamedFactsBuilder
from getd.facts.relation import Roles

ROLES: dict[str, Roles] = {
    "member of": ("club", "league"),
    "based in": ("club", "city"),
    "born in": ("player", "city"),
    "plays for": ("player", "club", "season"),
    "coaches": ("coach", "club", "season"),
    "transfer": ("player", "from", "to", "season"),
    "fixture": ("home", "away", "matchday", "season"),
    "award": ("player", "club", "award", "season"),
}

_LEAGUES = ("Coast League", "Highland League", "River League")
_CITIES = (
    *("Alder Bay", "Brightwater", "Cape Merrin", "Dunmouth", "Eastquay", "Fairhaven"),
    *("Glenmoor", "Harrowfell", "Inverdale", "Kestrel Ridge", "Lochbrae", "Mossgate"),
    *("Nettleford", "Oxbow", "Pinebridge", "Quarry Mills", "Reedham", "Stonewater"),
)
_SUFFIXES = ("Rovers", "United", "Athletic", "Wanderers", "City", "Albion")
_FIRST = (
    "Ada",
    "Ben",
    "Cleo",
    "Dario",
    "Elin",
    "Femi",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Kira",
    "Luca",
)
_LAST = (
    "Abara",
    "Brandt",
    "Castell",
    "Duarte",
    "Ekman",
    "Farrow",
    "Galloway",
    "Hale",
    "Ibarra",
    "Jansen",
    "Kovac",
    "Lindqvist",
)
_AWARDS = ("Golden Boot", "Iron Gloves", "Playmaker Prize", "Captain's Cup")
_SEASONS = tuple(f"{2014 + i}-{15 + i}" for i in range(8))
_CLUBS_PER_LEAGUE, _STEPS, _STAY = (
    6,
    (1, 5),
    2,
)  # a player moves on by one step round the league every two seasons


def demo_labels(seed: int = 0) -> NamedFacts:
    """The facts of the demo in a random order, the same for the same seed."""
    rng = np.random.default_rng(seed)
    facts = list(_facts(rng))
    builder = NamedFactsBuilder()
    for row, place in enumerate(rng.permutation(len(facts)).tolist()):
        relation, *entities = facts[place]
        builder.add_row(ROLES[relation], (row, relation, entities, 0))
    return builder.build()


def _facts(rng: np.random.Generator) -> Iterator[tuple[str, ...]]:
    clubs = [f"{city} {_SUFFIXES[i % len(_SUFFIXES)]}" for i, city in enumerate(_CITIES)]
    leagues = [clubs[i : i + _CLUBS_PER_LEAGUE] for i in range(0, len(clubs), _CLUBS_PER_LEAGUE)]
    for league, members in zip(_LEAGUES, leagues, strict=True):
        yield from (("member of", club, league) for club in members)
        yield from _fixtures(members)
    yield from (("based in", club, city) for club, city in zip(clubs, _CITIES, strict=True))
    names = [f"{first} {last}" for first, last in product(_FIRST, _LAST)]
    people = [names[i] for i in rng.permutation(len(names)).tolist()]
    careers = list(product(range(len(leagues)), range(_CLUBS_PER_LEAGUE), range(len(_STEPS))))
    for number, person in enumerate(people):
        region, home, step = careers[number % len(careers)]
        club_of = [
            leagues[region][(home + _STEPS[step] * (s // _STAY)) % _CLUBS_PER_LEAGUE]
            for s in range(len(_SEASONS))
        ]
        if number < len(careers):  # one coach and three players follow each career
            yield from (
                ("coaches", f"Coach {person}", club, season)
                for club, season in zip(club_of, _SEASONS, strict=True)
            )
        else:
            yield "born in", person, _CITIES[region * _CLUBS_PER_LEAGUE + home]
            yield from _career(person, club_of, _AWARDS[(home + step) % len(_AWARDS)])


def _career(player: str, club_of: list[str], award: str) -> Iterator[tuple[str, ...]]:
    yield from (
        ("plays for", player, club, season) for club, season in zip(club_of, _SEASONS, strict=True)
    )
    for s in range(_STAY, len(_SEASONS), _STAY):
        yield "transfer", player, club_of[s - 1], club_of[s], _SEASONS[s]
        yield (
            "award",
            player,
            club_of[s],
            award,
            _SEASONS[s],
        )  # the first season at a new club earns the career's award


def _fixtures(members: list[str]) -> Iterator[tuple[str, ...]]:
    """Every pair meets on a matchday of its own sum; the other club is at home in every second season."""
    for i, j in product(range(len(members)), repeat=2):
        if i < j:
            for s, season in enumerate(_SEASONS):
                home, away = (i, j) if (i + j + s) % 2 else (j, i)
                yield (
                    "fixture",
                    members[home],
                    members[away],
                    f"matchday {(i + j) % len(members) + 1}",
                    season,
                )
