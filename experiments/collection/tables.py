"""Tables of one relation: plain ones, with columns that others determine, and with ids."""

from __future__ import annotations

import numpy as np

from experiments.collection.data import Table, table
from experiments.collection.draws import (
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

SUBJECTS = "maths english biology chemistry physics history art music sports latin"


def shop_orders(rng: np.random.Generator) -> Table:
    """Orders (customer, product, shop, day): tastes by segment, a shop near home, weekends."""
    n_rows = 4000
    customer = popular(rng, 300, n_rows, 0.6)
    segment = grouped(rng, 300, 8)[customer]

    taste = rng.dirichlet(np.full(12, 0.3), 8)
    category = by_weight(rng, taste[segment])
    product = member(rng, grouped(rng, 120, 12), category)
    shop = noisy(rng, grouped(rng, 300, 15)[customer], 15, 0.2)

    is_weekend = rng.random(n_rows) < np.where(segment % 2, 0.8, 0.2)
    weekday = np.where(is_weekend, rng.integers(5, 7, n_rows), rng.integers(0, 5, n_rows))
    day = 7 * rng.integers(0, 9, n_rows) + weekday
    return table(
        customer=people(300)[customer],
        product=numbered("article", 120)[product],
        shop=towns(15)[shop],
        day=dates("2024-03-04", 63)[day],
    )


def library_loans(rng: np.random.Generator) -> Table:
    """Loans (reader, book, branch, month): readers keep to a few authors and to a branch."""
    n_rows = 3000
    reader = popular(rng, 250, n_rows, 0.7)
    favourites = rng.integers(0, 100, (250, 3))
    favourite = favourites[reader, rng.integers(0, 3, n_rows)]

    author = noisy(rng, favourite, 100, 0.3)
    book = 4 * author + popular(rng, 4, n_rows)
    branch = noisy(rng, grouped(rng, 250, 8)[reader], 8, 0.1)
    month = rng.integers(0, 24, n_rows)
    return table(
        reader=people(250)[reader],
        book=titles(400)[book],
        branch=towns(8)[branch],
        month=[f"{2022 + number // 12}-{number % 12 + 1:02}" for number in month],
    )


def course_enrolments(rng: np.random.Generator) -> Table:
    """Enrolments (student, course, term, teacher): a curriculum, cohorts, a few electives."""
    n_students = 400
    programme = grouped(rng, n_students, 10)
    start = rng.integers(0, 6, n_students)
    student = np.repeat(np.arange(n_students), 9)

    # Two courses of a programme for each of six semesters, of which a student takes nine.
    curriculum = rng.permuted(np.tile(np.arange(12), (n_students, 1)), axis=1)
    own = 12 * programme[student] + curriculum[:, :9].ravel()
    course = noisy(rng, own, 120, 0.15)
    semester = course % 12 // 2
    term = start[student] + noisy(rng, semester, 6, 0.1)
    teacher = (course // 2 + term // 4) % 70
    return table(
        student=numbered("student", n_students)[student],
        course=numbered("course", 120)[course],
        term=[f"{2016 + number // 2} {'autumn' if number % 2 else 'spring'}" for number in term],
        teacher=people(70)[teacher],
    )


def parliament_votes(rng: np.random.Generator) -> Table:
    """Votes (member, bill, vote): parties vote by two dimensions of ideology, with dissent."""
    n_members = 150
    n_bills = 120
    parties = rng.normal(size=(8, 2))
    party = grouped(rng, n_members, 8)
    bill_direction = rng.normal(size=(n_bills, 2))
    support = rng.normal(0.3, 0.3, n_bills)

    number = rng.permutation(n_members * n_bills)[:5000]
    member_id = number // n_bills
    bill = number % n_bills
    agreement = (parties[party[member_id]] * bill_direction[bill]).sum(axis=1) + support[bill]

    is_dissent = rng.random(len(number)) < 0.05
    vote = np.where((agreement > 0) ^ is_dissent, "yes", "no")
    vote[rng.random(len(number)) < 0.04] = "abstention"
    return table(
        member=people(n_members)[member_id],
        bill=numbered("bill", n_bills)[bill],
        vote=vote,
    )


def hundred_facts(rng: np.random.Generator) -> Table:
    """A hundred rows (person, project, skill), and nothing else."""
    person = rng.integers(0, 24, 400)
    project = noisy(rng, grouped(rng, 24, 6)[person], 6, 0.25)
    skill = noisy(rng, rng.integers(0, 9, 24)[person], 9, 0.25)

    rows = np.unique(np.stack([person, project, skill], axis=1), axis=0)
    person, project, skill = rng.permutation(rows)[:100].T
    return table(
        person=people(24)[person],
        project=numbered("project", 6)[project],
        skill=numbered("skill", 9)[skill],
    )


def flight_schedule(rng: np.random.Generator) -> Table:
    """Flights (flight, airline, from, to, weekday): the flight determines all but the weekday."""
    n_flights = 420
    airline = popular(rng, 14, n_flights)
    base = rng.integers(0, 40, 14)
    from_airport = noisy(rng, base[airline], 40, 0.4)
    to_airport = (from_airport + rng.integers(1, 40, n_flights)) % 40

    # Daily flights, flights on working days, and flights twice a week.
    chance = rng.choice([1.0, 0.7, 0.3], n_flights)
    flight, weekday = np.nonzero(rng.random((n_flights, 7)) < chance[:, None])
    days = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
    return Table(
        {
            "flight": [f"{'ABCDEFGHIJKLMN'[airline[i]]}X{100 + i}" for i in flight],
            "airline": numbered("airline", 14)[airline[flight]].tolist(),
            "from": towns(40)[from_airport[flight]].tolist(),
            "to": towns(40)[to_airport[flight]].tolist(),
            "weekday": days[weekday].tolist(),
        }
    )


def postal_addresses(rng: np.random.Generator) -> Table:
    """Addresses (resident, street, postcode, city, county): each column determines the next."""
    n_rows = 1800
    city_of_postcode = np.sort(popular(rng, 25, 90, 0.7))
    county_of_city = np.sort(rng.integers(0, 6, 25))
    postcode_of_street = rng.integers(0, 90, 350)

    # Residents move, mostly within their city.
    resident = rng.integers(0, 800, n_rows)
    city_of_street = city_of_postcode[postcode_of_street]
    home = city_of_street[rng.integers(0, 350, 800)]
    near = member(rng, city_of_street, home[resident])
    street = np.where(rng.random(n_rows) < 0.8, near, rng.integers(0, 350, n_rows))

    postcode = postcode_of_street[street]
    city = city_of_postcode[postcode]
    return table(
        resident=people(800)[resident],
        street=[f"{name} Street" for name in towns(350)[street]],
        postcode=[str(10000 + 137 * number) for number in postcode],
        city=towns(480)[-25:][city],
        county=numbered("county", 6)[county_of_city[city]],
    )


def timetable(rng: np.random.Generator) -> Table:
    """Lessons (class, subject, teacher, room, hour): class and subject determine the teacher."""
    subjects = np.array(SUBJECTS.split())
    n_classes = 40
    n_hours = 30
    lessons = np.array([5, 5, 3, 2, 2, 3, 3, 2, 3, 2])
    week = np.repeat(np.arange(len(subjects)), lessons)
    subject = np.concatenate([rng.permutation(week) for _ in range(n_classes)])
    class_id = np.repeat(np.arange(n_classes), n_hours)
    hour = np.tile(np.arange(n_hours), n_classes)

    # Four teachers of a subject share the classes; sciences, art and sports have their own rooms.
    teacher = 4 * subject + rng.integers(0, 4, (n_classes, len(subjects)))[class_id, subject]
    special = np.isin(subject, [2, 3, 4, 6, 8])
    room_number = np.where(special, 40 + 2 * subject + hour % 2, class_id)
    room_number = noisy(rng, room_number, 60, 0.05)
    return Table(
        {
            "class": [f"class {5 + number // 5}{'abcde'[number % 5]}" for number in class_id],
            "subject": subjects[subject].tolist(),
            "teacher": people(40)[teacher].tolist(),
            "room": numbered("room", 60)[room_number].tolist(),
            "hour": [f"day {1 + number // 6}, hour {1 + number % 6}" for number in hour],
        }
    )


def match_results(rng: np.random.Generator) -> Table:
    """Matches (home, away, round, season, result): a round robin, and results by strength."""
    n_teams = 20
    n_rounds = n_teams - 1
    columns: dict[str, list[str]] = {
        name: [] for name in ("home", "away", "round", "season", "result")
    }
    strength = rng.normal(0, 1, n_teams)
    for season in range(5):
        strength = strength + rng.normal(0, 0.2, n_teams)
        order = rng.permutation(n_teams)
        for number in range(2 * n_rounds):
            # The circle method: all but the first team turn by one place a round.
            turned = np.concatenate([order[:1], np.roll(order[1:], number % n_rounds)])
            home = turned[: n_teams // 2]
            away = turned[: n_teams // 2 - 1 : -1]
            if (number + number // n_rounds) % 2:
                home, away = away, home

            margin = strength[home] - strength[away] + 0.3 + rng.normal(0, 0.8, len(home))
            result = np.select([margin > 0.4, margin < -0.4], ["home win", "away win"], "draw")
            columns["home"] += towns(n_teams)[home].tolist()
            columns["away"] += towns(n_teams)[away].tolist()
            columns["round"] += [f"round {number + 1}"] * len(home)
            columns["season"] += [f"{2019 + season}"] * len(home)
            columns["result"] += result.tolist()
    return Table(columns)


def device_list(rng: np.random.Generator) -> Table:
    """Inspections (device, type, room, quarter): almost everything is determined."""
    n_devices = 280
    type_of_device = popular(rng, 18, n_devices, 0.6)
    room_of_device = rng.integers(0, 400, n_devices)

    device, quarter = np.nonzero(rng.random((n_devices, 4)) < 0.96)
    return table(
        device=numbered("device", n_devices)[device],
        type=numbered("type", 18)[type_of_device[device]],
        room=[f"room {number:03}" for number in room_of_device[device]],
        quarter=np.array(["Q1", "Q2", "Q3", "Q4"])[quarter],
    )


def country_table(rng: np.random.Generator) -> Table:
    """Countries by year (country, capital, currency, year): almost everything is determined."""
    n_countries = 130
    currency = np.where(rng.random(n_countries) < 0.2, 0, np.arange(n_countries))
    country, year = np.nonzero(rng.random((n_countries, 9)) < 0.98)
    return table(
        country=numbered("country", n_countries)[country],
        capital=towns(n_countries)[country],
        currency=numbered("currency", n_countries)[currency[country]],
        year=[str(2015 + number) for number in year],
    )


def sensor_logs(rng: np.random.Generator) -> Table:
    """Log lines (reading, sensor, hour, status): every line has an id of its own."""
    n_rows = 3000
    sensor = popular(rng, 80, n_rows, 0.4)
    kind = grouped(rng, 80, 5)[sensor]
    hour = rng.integers(0, 24, n_rows)

    # Each kind of sensor has its bad hours.
    peak = np.array([2, 12, 7, 19, 23])[kind]
    distance = np.abs(hour - peak)
    is_off = np.minimum(distance, 24 - distance) < 4
    level = noisy(rng, np.where(is_off, 1 + kind % 3, 0), 4, 0.1)
    status = np.array(["ok", "warning", "fault", "no signal"])[level]
    return table(
        reading=[f"{number:08x}" for number in rng.permutation(2**20)[:n_rows]],
        sensor=numbered("sensor", 80)[sensor],
        hour=[f"{number:02}:00" for number in hour],
        status=status,
    )


def invoices(rng: np.random.Generator) -> Table:
    """Invoice lines (invoice, customer, article, quantity): one to four lines an invoice."""
    n_invoices = 1300
    customer_of_invoice = popular(rng, 200, n_invoices, 0.8)
    invoice = np.repeat(np.arange(n_invoices), rng.integers(1, 5, n_invoices))
    customer = customer_of_invoice[invoice]

    trade = grouped(rng, 200, 10)[customer]
    article = member(rng, grouped(rng, 150, 10), noisy(rng, trade, 10, 0.15))
    package = rng.integers(0, 6, 150)[article]
    quantity = noisy(rng, package, 6, 0.3)
    return table(
        invoice=[f"R{2400000 + number}" for number in invoice],
        customer=[f"{name} Ltd" for name in towns(200)[customer]],
        article=numbered("article", 150)[article],
        quantity=np.array(["1", "2", "5", "10", "50", "100"])[quantity],
    )
