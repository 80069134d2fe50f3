"""Dates, free text, blanks and lists: what tables of people hold besides names."""

from __future__ import annotations

import numpy as np

from experiments.collection.data import JsonLines, PlainText, Table, record, table
from experiments.collection.draws import (
    Names,
    by_weight,
    dates,
    grouped,
    member,
    noisy,
    numbered,
    people,
    popular,
    titles,
    towns,
)

SYLLABLES = "ba co di fu ga he ki lo mu na or pe ra si ta ve"
GROUPS = "alcohol aldehyde acid ester amine amide nitrile ketone chloride ether"
CLASSES = "oxidation reduction esterification hydrolysis amination coupling"


def football_transfers(rng: np.random.Generator) -> Table:
    """Transfers (player, from, to, date): careers between clubs, in two windows a year."""
    n_players = 500
    level = np.sort(rng.integers(0, 5, 60))
    windows = [(f"{year}-{month}", 31) for year in range(2010, 2024) for month in ("01", "07")]
    days = np.concatenate([dates(f"{month}-01", length) for month, length in windows])

    columns: dict[str, list[str]] = {name: [] for name in ("player", "from", "to", "date")}
    club = rng.integers(0, 60, n_players)
    start = rng.integers(0, 20, n_players)
    for move in range(6):
        is_moving = rng.random(n_players) < 0.7
        next_level = np.clip(level[club] + rng.choice([-1, 0, 0, 1], n_players), 0, 4)
        next_club = member(rng, level, next_level)
        is_moving &= next_club != club

        window = np.minimum(start + 2 * move, len(windows) - 1)
        days_left = np.minimum(rng.exponential(6, n_players).astype(int), 30)
        day = 31 * window + 30 - days_left
        columns["player"] += people(n_players)[is_moving].tolist()
        columns["from"] += towns(60)[club[is_moving]].tolist()
        columns["to"] += towns(60)[next_club[is_moving]].tolist()
        columns["date"] += days[day[is_moving]].tolist()
        club = np.where(is_moving, next_club, club)
    return Table(columns)


def patents(rng: np.random.Generator) -> Table:
    """Patents (inventor, applicant, class, filed): about two thousand different dates."""
    n_rows = 2600
    inventor = popular(rng, 500, n_rows, 0.5)
    employer = popular(rng, 60, 500)
    applicant = noisy(rng, employer[inventor], 60, 0.08)

    field = rng.dirichlet(np.full(30, 0.1), 60)
    patent_class = by_weight(rng, field[applicant])
    first = rng.integers(0, 2200, 500)[inventor]
    filed = np.minimum(first + rng.exponential(400, n_rows).astype(int), 2919)
    return table(
        inventor=people(500)[inventor],
        applicant=[f"{name} Works" for name in towns(60)[applicant]],
        patent_class=[f"{'ABCDEF'[n % 6]}{n + 10:02}" for n in patent_class],
        filed=dates("2014-01-01", 2920)[filed],
    )


def subscriptions(rng: np.random.Generator) -> Table:
    """Subscriptions (customer, plan, channel, month): plans come and go within four years."""
    n_rows = 3200
    customer = rng.integers(0, 350, n_rows)
    month = rng.integers(0, 48, n_rows)

    # A plan is sold around its month; loyal customers keep to a family of plans.
    peak = np.linspace(0, 48, 24)
    family = np.arange(24) % 4
    loyalty = rng.integers(0, 4, 350)[customer]
    weights = np.exp(-(((month[:, None] - peak) / 6) ** 2))
    weights = weights * np.where(family == loyalty[:, None], 6.0, 1.0)
    plan = by_weight(rng, weights)
    channel = noisy(rng, (loyalty + month // 16) % 5, 5, 0.2)
    return table(
        customer=people(350)[customer],
        plan=numbered("plan", 24)[plan],
        channel=np.array(["shop", "phone", "web", "app", "partner"])[channel],
        month=[f"{2020 + number // 12}-{number % 12 + 1:02}" for number in month],
    )


def hotel_bookings(rng: np.random.Generator) -> Table:
    """Bookings (guest, hotel, category, arrival, departure): stays of one to seven nights."""
    n_rows = 2800
    guest = popular(rng, 450, n_rows, 0.5)
    region = grouped(rng, 450, 6)[guest]
    hotel = member(rng, grouped(rng, 48, 6), noisy(rng, region, 6, 0.15))
    category = noisy(rng, rng.integers(0, 4, 450)[guest], 4, 0.15)

    season = np.array([30, 90, 150, 200, 250, 330])[region]
    arrival = (season + rng.normal(0, 25, n_rows).astype(int)) % 365
    nights = rng.choice([1, 2, 3, 7], n_rows, p=[0.25, 0.3, 0.15, 0.3])
    return table(
        guest=people(450)[guest],
        hotel=[f"Hotel {name}" for name in titles(48)[hotel]],
        category=np.array(["single", "double", "suite", "family"])[category],
        arrival=dates("2023-01-01", 372)[arrival],
        departure=dates("2023-01-01", 372)[arrival + nights],
    )


def multilingual_labels(rng: np.random.Generator) -> Table:
    """Labels (concept, language, text): languages of a family often share the word."""
    n_concepts = 420
    syllables = np.array(SYLLABLES.split())
    roots = ["".join(syllables[rng.integers(0, 16, 3)]) for _ in range(n_concepts)]
    other_roots = ["".join(syllables[rng.integers(0, 16, 3)]) for _ in range(n_concepts)]
    endings = {"en": "", "de": "en", "nl": "en", "fr": "e", "it": "o", "es": "o", "fi": "i"}

    rows = []
    for concept in range(n_concepts):
        for language, ending in endings.items():
            if rng.random() < 0.8:
                root = (other_roots if language in ("fr", "it", "es") else roots)[concept]
                spelling = root if rng.random() < 0.5 else root.replace("c", "k")
                rows.append((f"Q{1000 + concept}", language, spelling + ending))
    concepts, languages, texts = zip(*rows, strict=True)
    return table(concept=concepts, language=languages, text=texts)


def support_tickets(rng: np.random.Generator) -> Table:
    """Tickets (customer, product, text, team): sentences, of which most occur once or twice."""
    n_rows = 2000
    customer = popular(rng, 300, n_rows, 0.6)
    owned = rng.integers(0, 25, (300, 3))
    product = owned[customer, rng.integers(0, 3, n_rows)]
    topic = noisy(rng, product % 5, 5, 0.3)

    verbs = np.array(
        ["does not start", "is too slow", "shows an error", "was billed twice", "leaks"]
    )
    since = np.array(
        ["since the update", "since Monday", "every morning", "after the repair", "again"]
    )
    tone = np.array(["Hello, ", "Urgent: ", "", "Dear team, ", "Once more: ", "Please help, "])
    words = zip(
        tone[rng.integers(0, 6, n_rows)],
        numbered("product", 25)[product],
        verbs[topic],
        since[rng.integers(0, 5, n_rows)],
        strict=True,
    )
    team = noisy(rng, (topic + product // 13) % 7, 7, 0.05)
    return table(
        customer=people(300)[customer],
        product=numbered("product", 25)[product],
        text=[f"{greeting}my {name} {verb} {time}" for greeting, name, verb, time in words],
        team=numbered("team", 7)[team],
    )


def patient_records(rng: np.random.Generator) -> JsonLines:
    """Records (patient, diagnosis, drug, ward, doctor): 40 % of the keys are missing."""
    n_rows = 3500
    patient = popular(rng, 450, n_rows, 0.3)
    diagnosis = noisy(rng, rng.integers(0, 40, 450)[patient], 40, 0.25)
    drug = noisy(rng, 2 * diagnosis + rng.integers(0, 2, n_rows), 80, 0.15)
    ward = noisy(rng, diagnosis % 12, 12, 0.1)
    doctor = 3 * ward + rng.integers(0, 3, n_rows)

    return _with_blanks(
        rng,
        "record",
        patient=people(450)[patient],
        diagnosis=numbered("diagnosis", 40)[diagnosis],
        drug=numbered("drug", 80)[drug],
        ward=numbered("ward", 12)[ward],
        doctor=people(500)[-36:][doctor],
    )


def machine_inventory(rng: np.random.Generator) -> JsonLines:
    """Machines (machine, maker, model, site, state, year): 40 % of the keys are missing."""
    n_rows = 3000
    model = popular(rng, 90, n_rows, 0.6)
    machine = 8 * model + rng.integers(0, 8, n_rows)
    site = noisy(rng, rng.integers(0, 20, 720)[machine], 20, 0.1)
    year = 2005 + (model % 6) * 3 + rng.integers(0, 3, 720)[machine]
    state = noisy(rng, 2 * (year < 2012), 4, 0.3)

    return _with_blanks(
        rng,
        "machine",
        machine=numbered("machine", 720)[machine],
        maker=towns(15)[model // 6],
        model=numbered("model", 90)[model],
        site=numbered("site", 20)[site],
        state=np.array(["running", "idle", "in repair", "retired"])[state],
        year=year.astype(str),
    )


def _with_blanks(rng: np.random.Generator, relation: str, **columns: Names) -> JsonLines:
    """Leave out 40 % of the cells; of a row with less than two cells the first two are kept."""
    rows = np.stack(list(columns.values()), axis=1)
    is_kept = rng.random(rows.shape) < 0.6
    is_kept[is_kept.sum(axis=1) < 2, :2] = True

    roles = np.array(list(columns))
    records = []
    for row, kept in zip(rows, is_kept, strict=True):
        entities = zip(roles[kept].tolist(), row[kept].tolist(), strict=True)
        records.append(record(relation, **dict(entities)))
    return JsonLines(records)


def co_authorship(rng: np.random.Generator) -> JsonLines:
    """Papers (venue, year, authors): one to five authors of a group, with guests."""
    n_papers = 2200
    groups = popular(rng, 70, n_papers, 0.6)
    field = groups % 12
    venue = noisy(rng, 2 * field + rng.integers(0, 2, n_papers), 24, 0.1)
    year = noisy(rng, groups % 10 + rng.integers(0, 4, n_papers), 13, 0.1)
    sizes = rng.choice([1, 2, 3, 4, 5], n_papers, p=[0.1, 0.3, 0.3, 0.2, 0.1])

    names = people(560)
    records = []
    for i in range(n_papers):
        staff = 8 * groups[i] + rng.permutation(8)
        guests = rng.integers(0, 560, 5)
        authors = np.where(rng.random(5) < 0.1, guests, staff[:5])[: sizes[i]]
        authors = np.unique(authors)  # in alphabetical order, as in some fields
        paper = {"venue": f"venue {venue[i] + 1}", "year": str(2010 + year[i])}
        records.append(record("paper", **paper, author=names[authors].tolist()))
    return JsonLines(records)


def movie_casts(rng: np.random.Generator) -> JsonLines:
    """Films: a director and two to five actors, then genre and year, and the awards."""
    n_films = 600
    director = popular(rng, 90, n_films, 0.6)
    genre = noisy(rng, rng.integers(0, 10, 90)[director], 10, 0.25)
    year = noisy(rng, rng.integers(0, 30, 90)[director] + rng.integers(0, 8, n_films), 38, 0.1)
    stars = popular(rng, 320, 5 * n_films, 0.5).reshape(n_films, 5)
    regulars = rng.integers(0, 320, (90, 6))

    directors = people(90).tolist()
    actors = people(1000)[-320:]
    records = []
    for i, film in enumerate(titles(n_films).tolist()):
        mixed = np.where(rng.random(5) < 0.6, rng.permutation(regulars[director[i]])[:5], stars[i])
        cast = list(dict.fromkeys(actors[mixed[: rng.integers(2, 6)]].tolist()))
        records.append(record("cast", film=film, director=directors[director[i]], actor=cast))
        details = {"genre": f"genre {genre[i] + 1}", "year": str(1980 + year[i])}
        records.append(record("released", film=film, **details))
        if rng.random() < 0.3:
            prize = f"prize {genre[i] % 5 + 1}"
            records.append(record("award", film=film, prize=prize, winner=cast[0]))
    return JsonLines(records)


def chemistry_reactions(rng: np.random.Generator) -> PlainText:
    """Reactions of four to six entities: a class changes one group of a molecule to another."""
    groups = GROUPS.split()
    classes = CLASSES.split()
    n_rows = 2600
    reaction = popular(rng, len(classes), n_rows, 0.5)
    before = rng.integers(0, 10, (len(classes), 3))[reaction, rng.integers(0, 3, n_rows)]
    after = (before + 1 + 2 * reaction) % 10
    scaffold = rng.integers(0, 70, n_rows)

    reagent = noisy(rng, 3 * reaction + before % 3, 18, 0.1)
    solvent = noisy(rng, rng.integers(0, 9, 18)[reagent], 9, 0.2)
    catalyst = noisy(rng, 2 * reaction + after % 2, 12, 0.1)
    temperature = noisy(rng, rng.integers(0, 8, 12)[catalyst], 8, 0.2)
    entities = np.array(
        [
            [f"{groups[g]} of scaffold {s + 1}" for g, s in zip(before, scaffold, strict=True)],
            numbered("reagent", 18)[reagent],
            [f"{groups[g]} of scaffold {s + 1}" for g, s in zip(after, scaffold, strict=True)],
            numbered("solvent", 9)[solvent],
            numbered("catalyst", 12)[catalyst],
            [f"{20 * (t + 1)} °C" for t in temperature],
        ]
    )

    arity = rng.choice([4, 5, 6], n_rows, p=[0.4, 0.35, 0.25])
    lines = []
    for row, length, number in zip(entities.T, arity, reaction, strict=True):
        lines.append((classes[number], *row[:length].tolist()))
    return PlainText(lines)


def recipes(rng: np.random.Generator) -> JsonLines:
    """Recipes (dish, cuisine, ingredients): three to six ingredients, in versions of a dish."""
    n_dishes = 260
    cuisine = grouped(rng, n_dishes, 9)
    pantry = [rng.choice(140, 35, replace=False) for _ in range(9)]
    core = [rng.choice(pantry[number], 6, replace=False) for number in cuisine]

    dish_names = [f"{title} stew" for title in titles(n_dishes)]
    ingredient_names = numbered("ingredient", 140)
    records = []
    for dish in popular(rng, n_dishes, 2000, 0.5):
        size = rng.integers(3, 7)
        chosen = rng.permutation(core[dish])[:size]
        swapped = np.where(rng.random(size) < 0.12, rng.integers(0, 140, size), chosen)

        kitchen = f"cuisine {cuisine[dish] + 1}"
        names = ingredient_names[np.unique(swapped)].tolist()
        records.append(record("recipe", dish=dish_names[dish], cuisine=kitchen, ingredient=names))
    return JsonLines(records)
