"""The built-in demo: a small sports world with readable names and hidden rules (docs/demo.md)."""

from collections.abc import Iterator
from itertools import combinations, cycle, product

import numpy as np

from getd.facts.named import NamedFacts, NamedFactsBuilder
from getd.facts.relation import Roles

_Facts = Iterator[tuple[str, ...]]  # relation, entity, …
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
    "Alder Bay, Brightwater, Cape Merrin, Dunmouth, Eastquay, Fairhaven, "
    "Glenmoor, Harrowfell, Inverdale, Kestrel Ridge, Lochbrae, Mossgate, "
    "Nettleford, Oxbow, Pinebridge, Quarry Mills, Reedham, Stonewater"
)
_SUFFIXES = ("Rovers", "United", "Athletic", "Wanderers", "City", "Albion")
_FIRST_NAMES = "Ada Ben Cleo Dario Elin Femi Greta Hugo Ines Jonas Kira Luca"
_LAST_NAMES = "Abara Brandt Castell Duarte Ekman Farrow Galloway Hale Ibarra Jansen Kovac Lindqvist"
_AWARDS = ("Golden Boot", "Iron Gloves", "Playmaker Prize", "Captain's Cup")
_SEASONS = tuple(f"{2014 + i}-{15 + i}" for i in range(8))
_CLUBS_PER_LEAGUE = 6
_STEPS = (1, 5)  # clubs round the league that a player moves on
_STAY = 2  # seasons between two moves


def demo_facts(seed: int = 0) -> NamedFacts:
    """The facts of the demo in a random order, the same for the same seed."""
    rng = np.random.default_rng(seed)
    facts = list(_facts(rng))
    rng.shuffle(facts)
    builder = NamedFactsBuilder()
    for row, (relation, *entities) in enumerate(facts):
        builder.add_row(row, relation, ROLES[relation], entities)
    return builder.build()


def _facts(rng: np.random.Generator) -> _Facts:
    cities = _CITIES.split(", ")
    named = zip(cities, cycle(_SUFFIXES), strict=False)
    clubs = [f"{city} {suffix}" for city, suffix in named]
    leagues = np.reshape(clubs, (-1, _CLUBS_PER_LEAGUE)).tolist()
    for league, members in zip(_LEAGUES, leagues, strict=True):
        for club in members:
            yield "member of", club, league
        yield from _fixtures(members)
    for club, city in zip(clubs, cities, strict=True):
        yield "based in", club, city

    names = [" ".join(name) for name in product(_FIRST_NAMES.split(), _LAST_NAMES.split())]
    people = rng.permutation(names).tolist()

    # One coach and three players follow each career.
    careers = list(np.ndindex(len(leagues), _CLUBS_PER_LEAGUE, len(_STEPS)))
    for number, person in enumerate(people):
        region, home, step = careers[number % len(careers)]
        club_of = []
        for season in range(len(_SEASONS)):
            club_number = home + _STEPS[step] * (season // _STAY)
            club_of.append(leagues[region][club_number % _CLUBS_PER_LEAGUE])

        if number < len(careers):
            yield from _tenure("coaches", f"Coach {person}", club_of)
        else:
            yield "born in", person, cities[region * _CLUBS_PER_LEAGUE + home]
            yield from _career(person, club_of, _AWARDS[(home + step) % len(_AWARDS)])


def _tenure(relation: str, person: str, club_of: list[str]) -> _Facts:
    for club, season in zip(club_of, _SEASONS, strict=True):
        yield relation, person, club, season


def _career(player: str, club_of: list[str], award: str) -> _Facts:
    yield from _tenure("plays for", player, club_of)

    # The first season at a new club earns the award of the career.
    for s in range(_STAY, len(_SEASONS), _STAY):
        yield "transfer", player, club_of[s - 1], club_of[s], _SEASONS[s]
        yield "award", player, club_of[s], award, _SEASONS[s]


def _fixtures(members: list[str]) -> _Facts:
    """Every pair meets once a season on the same matchday; they take turns at being at home."""
    for (i, first), (j, second) in combinations(enumerate(members), 2):
        matchday = f"matchday {(i + j) % len(members) + 1}"
        for s, season in enumerate(_SEASONS):
            pair = (first, second) if (i + j + s) % 2 else (second, first)
            yield "fixture", *pair, matchday, season
