"""Several relations of several arities: small ones, hubs, organisations, sciences."""

from __future__ import annotations

import numpy as np

from experiments.collection.data import Fact, PlainText, Table, facts
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
from experiments.worlds import hospital_facts, three_relations_facts


def hospital(rng: np.random.Generator) -> PlainText:
    """A third of the facts binary, about a hundred 4-ary, most 5-ary: shifts of nurses."""
    return PlainText(hospital_facts(rng))


def depot(rng: np.random.Generator) -> PlainText:
    """A third of the facts binary, about a hundred 4-ary, most 5-ary: tours of lorries."""
    n_drivers = 90
    n_tours = 2200
    drivers = people(n_drivers)
    lorries = numbered("lorry", 40)
    days = dates("2024-01-01", 120)
    routes = towns(30)
    home_route = rng.integers(0, 30, n_drivers)
    usual_lorry = rng.integers(0, 40, n_drivers)

    driver = rng.integers(0, n_drivers, n_tours)
    route = noisy(rng, home_route[driver], 30, 0.2)
    lorry = noisy(rng, usual_lorry[driver], 40, 0.15)
    helper = (driver + 1 + route % 5) % n_drivers
    day = rng.integers(0, 120, n_tours)
    tours = (drivers[driver], lorries[lorry], routes[route], days[day], drivers[helper])
    lines = facts("tour", *tours)

    lines += facts("licence", drivers, numbered("class", 6)[home_route % 6])
    lines += facts("usual lorry", drivers, lorries[usual_lorry])
    crew, colleague = np.nonzero(home_route[:, None] % 8 == home_route % 8)
    lines += facts("works with", drivers[crew], drivers[colleague])
    repaired = rng.integers(0, 40, 105)
    garage = noisy(rng, repaired % 5, 5, 0.1)
    columns = (lorries[repaired], numbered("garage", 5)[garage], days[rng.integers(0, 120, 105)])
    lines += facts("repair", *columns, numbered("part", 12)[noisy(rng, repaired % 12, 12, 0.3)])
    return PlainText(lines)


def three_relations(rng: np.random.Generator) -> PlainText:
    """One relation per arity: 800 facts of two entities, 100 of four, 1,700 of five."""
    return PlainText(three_relations_facts(rng))


def warehouse(rng: np.random.Generator) -> PlainText:
    """One relation per arity: where articles are, who delivers them, how they move."""
    articles = numbered("article", 260)
    kind = grouped(rng, 260, 13)
    shelves = numbered("shelf", 52)
    article = np.repeat(np.arange(260), 3)
    shelf = noisy(rng, 4 * kind[article] + rng.integers(0, 4, len(article)), 52, 0.1)
    lines = facts("stored in", articles[article], shelves[shelf])

    delivered = popular(rng, 260, 1300, 0.5)
    supplier = noisy(rng, rng.integers(0, 30, 13)[kind[delivered]], 30, 0.2)
    month = (rng.integers(0, 12, 30)[supplier] + rng.integers(0, 4, 1300)) % 12
    months = np.array([f"2024-{number + 1:02}" for number in range(12)])
    lines += facts("delivered", articles[delivered], towns(30)[supplier], months[month])

    moved = popular(rng, 260, 900, 0.5)
    source = 4 * kind[moved] + rng.integers(0, 4, 900)
    target = (source + 1 + rng.integers(0, 2, 900)) % 52
    clerk = noisy(rng, source // 4 % 18, 18, 0.15)
    week = numbered("week", 52)[rng.integers(0, 52, 900)]
    columns = (articles[moved], shelves[source], shelves[target], people(18)[clerk], week)
    return PlainText(lines + facts("moved", *columns))


def small_museum(rng: np.random.Generator) -> PlainText:
    """About 130 facts of a museum in four relations: paintings, painters, halls, loans."""
    paintings = titles(45)
    painters = people(12)
    painter = popular(rng, 12, 45, 0.5)
    style = rng.integers(0, 4, 12)
    hall = noisy(rng, style[painter], 6, 0.2)
    lines = facts("painted by", paintings, painters[painter])
    lines += facts("hangs in", paintings, numbered("hall", 6)[hall])
    lines += facts("style", painters, np.array(["baroque", "cubist", "naive", "abstract"])[style])

    lent = rng.integers(0, 45, 30)
    borrower = noisy(rng, painter[lent] % 5, 5, 0.2)
    years = np.array(["2021", "2022", "2023"])[rng.integers(0, 3, 30)]
    return PlainText(lines + facts("lent to", paintings[lent], towns(5)[borrower], years))


def airport_hub(rng: np.random.Generator) -> Table:
    """Routes (airline, from, to, aircraft): one airport is at an end of nine in ten of them."""
    n_rows = 1800
    airline = popular(rng, 40, n_rows, 0.4)
    region = grouped(rng, 120, 10)
    other = member(rng, region, noisy(rng, grouped(rng, 40, 10)[airline], 10, 0.25))
    far = np.where(rng.random(n_rows) < 0.9, 0, rng.integers(0, 120, n_rows))
    is_outbound = rng.random(n_rows) < 0.5

    aircraft = noisy(rng, region[other] // 2 + 5 * (airline % 3), 15, 0.2)
    airports = towns(120)
    return Table(
        {
            "airline": numbered("airline", 40)[airline].tolist(),
            "from": airports[np.where(is_outbound, far, other)].tolist(),
            "to": airports[np.where(is_outbound, other, far)].tolist(),
            "aircraft": numbered("aircraft", 15)[aircraft].tolist(),
        }
    )


def city_contracts(rng: np.random.Generator) -> PlainText:
    """Contracts of a city with firms, four relations: the city is in nineteen of twenty facts."""
    firms = np.array([f"{name} Ltd" for name in towns(110)])
    trade = grouped(rng, 110, 11)
    years = np.array([str(2010 + number) for number in range(15)])
    services = numbered("service", 33)

    lines: list[Fact] = []
    for relation in ("hires", "pays", "sues", "renews"):
        firm = popular(rng, 110, 500, 0.7)
        buyers = np.array(["Brightwater", "Harrowfell", "Reedham"])
        buyer = buyers[by_weight(rng, np.tile([0.95, 0.03, 0.02], (500, 1)))]
        service = noisy(rng, 3 * trade[firm] + rng.integers(0, 3, 500), 33, 0.1)
        year = noisy(rng, rng.integers(0, 12, 110)[firm] + rng.integers(0, 3, 500), 15, 0.2)
        lines += facts(relation, buyer, firms[firm], services[service], years[year])
    return PlainText(lines)


def hospital_wards(rng: np.random.Generator) -> PlainText:
    """A hospital from two to six entities: grades, beds, training, admissions, shifts."""
    nurses = people(110)
    wards = numbered("ward", 14)
    ward = grouped(rng, 110, 14)
    days = dates("2024-01-01", 100)
    shifts = np.array(["early", "late", "night"])
    grade = (ward + rng.integers(0, 2, 110)) % 5
    lines = facts("grade", nurses, numbered("grade", 5)[grade])
    lines += facts("works in", nurses, wards[ward])

    bed = rng.integers(0, 140, 500)
    patient = rng.integers(0, 260, 500)
    patients = numbered("patient", 260)
    lines += facts("bed", patients[patient], numbered("bed", 140)[bed], wards[bed // 10])

    trained = rng.integers(0, 110, 350)
    topic = noisy(rng, 2 * grade[trained], 12, 0.3)
    topics = numbered("course", 12)[topic]
    trainers = people(400)[-9:][noisy(rng, topic % 9, 9, 0.1)]
    lines += facts("training", nurses[trained], topics, trainers, days[rng.integers(0, 100, 350)])

    sick = rng.integers(0, 260, 700)
    where = noisy(rng, rng.integers(0, 14, 260)[sick], 14, 0.2)
    doctor = 2 * where + rng.integers(0, 2, 700)
    illness = noisy(rng, 3 * where + rng.integers(0, 3, 700), 42, 0.1)
    doctors = np.array([f"Dr {name}" for name in people(300)[-28:]])
    columns = (patients[sick], wards[where], doctors[doctor], numbered("illness", 42)[illness])
    lines += facts("admission", *columns, days[rng.integers(0, 100, 700)])

    nurse = rng.integers(0, 110, 1800)
    day = rng.integers(0, 100, 1800)
    shift = (rng.integers(0, 3, 110)[nurse] + day // 7) % 3
    on = noisy(rng, ward[nurse], 14, 0.1)
    leader = people(300)[150:192][3 * on + shift]
    columns_of_shift = (nurses[nurse], wards[on], days[day], shifts[shift], leader)
    return PlainText(lines + facts("shift", *columns_of_shift, numbered("floor", 5)[on // 3]))


def university(rng: np.random.Generator) -> PlainText:
    """A university from two to six entities; three and six entities are rare: exams, grades."""
    students = numbered("student", 350)
    staff = people(60)
    department = grouped(rng, 60, 10)
    terms = np.array([f"{2018 + n // 2} {'autumn' if n % 2 else 'spring'}" for n in range(12)])
    courses = numbered("course", 90)
    grades = np.array(["A", "B", "C", "D", "F"])
    departments = numbered("department", 10)
    major = grouped(rng, 350, 10)
    lines = facts("studies in", students, departments[major])
    lines += facts("member of", staff, departments[department])
    lines += facts("belongs to", courses, departments[np.arange(90) % 10])

    talent = rng.integers(0, 4, 350)
    student = rng.integers(0, 350, 1700)
    course = noisy(rng, major[student] + 10 * rng.integers(0, 9, 1700), 90, 0.1)
    examiner = member(rng, department, course % 10)
    term = (rng.integers(0, 8, 350)[student] + course // 25) % 12
    grade = np.clip(talent[student] + rng.integers(-1, 2, 1700), 0, 4)
    columns = (students[student], courses[course], staff[examiner], terms[term], grades[grade])
    lines += facts("exam", *columns)

    teacher = rng.integers(0, 60, 400)
    taught = department[teacher] + 10 * rng.integers(0, 9, 400)
    halls = numbered("hall", 12)[noisy(rng, department[teacher], 12, 0.2)]
    lines += facts(
        "lecture", staff[teacher], courses[taught], halls, terms[rng.integers(0, 12, 400)]
    )

    tutor = rng.integers(0, 60, 90)
    tutored = member(rng, major, department[tutor])
    lines += facts("tutors", staff[tutor], students[tutored], terms[rng.integers(0, 12, 90)])
    first = member(rng, department, major[:70])
    second = member(rng, department, major[:70])
    defence = (students[:70], staff[first], staff[second], departments[major[:70]])
    return PlainText(
        lines + facts("defence", *defence, terms[rng.integers(6, 12, 70)], grades[talent[:70]])
    )


def drug_disease_gene(rng: np.random.Generator) -> PlainText:
    """Drugs, diseases and genes with hubs: targets, treatments, associations, trials, effects."""
    drugs = numbered("drug", 180)
    genes = numbered("gene", 260)
    diseases = numbered("disease", 120)
    pathway_of_gene = grouped(rng, 260, 15)
    pathway_of_disease = grouped(rng, 120, 15)
    pathway_of_drug = grouped(rng, 180, 15)

    drug = popular(rng, 180, 900, 0.6)
    gene = member(rng, pathway_of_gene, noisy(rng, pathway_of_drug[drug], 15, 0.15))
    hub = popular(rng, 260, 900, 1.2)
    gene = np.where(rng.random(900) < 0.3, hub, gene)
    lines = facts("targets", drugs[drug], genes[gene])

    drug = popular(rng, 180, 900, 0.6)
    disease = member(rng, pathway_of_disease, noisy(rng, pathway_of_drug[drug], 15, 0.2))
    lines += facts("treats", drugs[drug], diseases[disease])
    disease = popular(rng, 120, 900, 0.7)
    gene = member(rng, pathway_of_gene, noisy(rng, pathway_of_disease[disease], 15, 0.25))
    lines += facts("associated with", genes[gene], diseases[disease])

    drug = popular(rng, 180, 700, 0.6)
    disease = member(rng, pathway_of_disease, noisy(rng, pathway_of_drug[drug], 15, 0.1))
    gene = member(rng, pathway_of_gene, pathway_of_drug[drug])
    phase = noisy(rng, drug % 4, 4, 0.3)
    lines += facts(
        "trial", drugs[drug], diseases[disease], genes[gene], numbered("phase", 4)[phase]
    )
    other = popular(rng, 180, 700, 0.6)
    effect = noisy(rng, (pathway_of_drug[drug] + pathway_of_drug[other]) % 9, 9, 0.15)
    return PlainText(
        lines + facts("interacts", drugs[drug], drugs[other], numbered("effect", 9)[effect])
    )


def supply_chains(rng: np.random.Generator) -> PlainText:
    """Products of parts, suppliers of parts, shipments of five entities between factories."""
    products = numbered("product", 80)
    parts = numbered("part", 200)
    factories = towns(45)
    product, part = np.nonzero(rng.random((80, 200)) < 0.04)
    lines = facts("contains", products[product], parts[part])

    maker = rng.integers(0, 45, 200)
    second_maker = rng.integers(0, 45, 200)
    assembler = rng.integers(0, 45, 80)
    lines += facts("assembled in", products, factories[assembler])

    # A part goes from one of its makers to where a product that contains it is assembled.
    row = rng.integers(0, len(part), 2400)
    source = np.where(rng.random(2400) < 0.75, maker[part[row]], second_maker[part[row]])
    target = assembler[product[row]]
    distance = np.abs(source - target)
    mode = noisy(rng, np.digitize(distance, [8, 20]), 3, 0.1)
    carrier = noisy(rng, 4 * mode + source % 4, 12, 0.15)
    modes = np.array(["road", "rail", "sea"])[mode]
    carriers = numbered("carrier", 12)[carrier]
    shipments = (parts[part[row]], factories[source], factories[target], modes, carriers)
    lines += facts("ships", *shipments)

    stocked = rng.integers(0, len(part), 700)
    keeper = factories[assembler[product[stocked]]]
    months = np.array([f"2024-{number + 1:02}" for number in range(12)])
    month = months[rng.integers(0, 12, 700)]
    return PlainText(lines + facts("stocks", keeper, parts[part[stocked]], month))
