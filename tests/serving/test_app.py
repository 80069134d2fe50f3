"""The service answers as the run does, refuses what it must, and never falls over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from getd.run import Run
from getd.runs.opened import OpenedRun

pytest.importorskip("fastapi", reason="getd[serve] is not installed")
from fastapi.testclient import TestClient

from getd.prediction.records import RatingRecord, answered_record
from getd.serving.app import create_app, static
from getd.serving.middleware import ServeSettings

QUESTION = {"relation": "transfer", "entities": ["Ada Hale", "?", "Oxbow United", "2016-17"]}


@pytest.fixture(scope="module")
def run(served: OpenedRun) -> Run:
    return Run(served)


@pytest.fixture(scope="module")
def client(served: OpenedRun) -> Iterator[TestClient]:
    with TestClient(create_app(served, ServeSettings())) as client:
        yield client


def test_answers_are_the_records_of_the_run(client: TestClient, run: Run) -> None:
    by_role = {"relation": "born in", "entities": {"city": "?", "player": "Ada Hale"}}
    several = {"relation": "plays for", "entities": ["?", "?", "2016-17"]}
    relation = {"relation": "?", "entities": ["Ada Hale", "Oxbow"]}
    questions = [QUESTION, by_role, several, relation]
    reply = client.post("/predict", json={"questions": questions, "top": 3}).json()
    for question, answered in zip(questions, reply["answered"], strict=True):
        parsed = run.question(question["relation"], question["entities"])
        assert answered["question"] == list(parsed.text)
        (expected,) = run.answer([parsed], top=3)
        for record, answer in zip(answered["answers"], expected, strict=True):
            own = answered_record(parsed, [answer]).answers[0].as_dict()
            assert list(record) == list(own)
            for key, value in own.items():
                is_number = isinstance(value, float)
                assert record[key] == (pytest.approx(value, abs=1e-5) if is_number else value)


def test_the_shortcut_answers_as_the_app_does(client: TestClient) -> None:
    relation = {"relation": "?", "entities": ["Ada Hale", "Oxbow"]}
    several = {"relation": "plays for", "entities": ["?", "?", "2016-17"]}
    bodies = [
        {"questions": [QUESTION, relation], "top": 3},
        {"questions": [several], "top": 2, "include_known": True},
        {"questions": [QUESTION], "why": True},
        {"questions": [{**QUESTION, "relation": "trasfer"}]},
        {"questions": [several] * 5},
        {"questions": "none"},
    ]
    for body in bodies:
        content = json.dumps(body).encode()
        plain, other = (
            client.post("/predict", content=content, headers={"Content-Type": kind})
            for kind in ("application/json", "application/json; charset=utf-8")
        )
        assert (plain.status_code, plain.json()) == (other.status_code, other.json())
        assert dict(plain.headers) == dict(other.headers)


def test_answers_come_with_the_reasons_that_why_gives(client: TestClient) -> None:
    relation = {"relation": "?", "entities": ["Ada Hale", "Oxbow"]}
    body = {"questions": [QUESTION, relation], "top": 3, "why": True}
    explained, relations = client.post("/predict", json=body).json()["answered"]
    best = explained["answers"][0]
    alone = client.post("/why", json={**QUESTION, "names": [best["entity"]]}).json()["why"]
    assert alone == best["why"]
    assert len(alone) == 1
    assert all("why" not in answer for answer in relations["answers"])
    without = client.post("/predict", json={**body, "why": False}).json()["answered"]
    assert all("why" not in answer for answer in without[0]["answers"])


def test_reasons_are_limited_and_go_to_the_best_answers(client: TestClient) -> None:
    body = {"questions": [QUESTION, QUESTION, QUESTION], "top": 5, "why": True}
    answered = client.post("/predict", json=body).json()["answered"]
    counts = [sum("why" in answer for answer in each["answers"]) for each in answered]
    assert counts == [4, 3, 3]
    assert all("why" in each["answers"][0] for each in answered)


def test_ratings_are_the_records_of_the_run(client: TestClient, run: Run) -> None:
    facts = [
        {"relation": "born in", "entities": ["Ada Hale", "Oxbow"]},
        {"relation": "plays for", "entities": ["Ada Hale", "Oxbow United", "2016-17"]},
    ]
    records = client.post("/score", json={"facts": facts}).json()["facts"]
    for record, fact in zip(records, facts, strict=True):
        (rating,) = run.rate([(fact["relation"], *fact["entities"])])
        assert record == RatingRecord.model_validate(rating).as_dict()
        assert set(record) == {"fact", "plausibility", "fit", "confidence", "ranks", "known"}


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        (
            "/predict",
            {"questions": [{**QUESTION, "relation": "trasfer"}]},
            "unknown relation 'trasfer'; did you mean 'transfer'?",
        ),
        (
            "/predict",
            {"questions": []},
            "questions: list should have at least 1 item after validation, not 0",
        ),
        (
            "/predict",
            {"questions": [QUESTION], "top": 0},
            "top: input should be greater than or equal to 1",
        ),
        ("/predict", {"questions": [QUESTION], "tip": 1}, "tip: extra inputs are not permitted"),
        ("/why", {**QUESTION, "names": ["a", "b"]}, "expected 1 names for what is open, found 2"),
        ("/score", {"facts": [QUESTION]}, "unknown entity '?'"),
        (
            "/predict",
            {"questions": [{"relation": "plays for", "entities": ["?", "?", "2016-17"]}] * 5},
            "expected 4 questions with several '?' at most, "
            "and 'top' of 64 at most for them, found 5 and 10",
        ),
    ],
)
def test_mistakes_are_one_line(
    client: TestClient, path: str, body: dict[str, object], detail: str
) -> None:
    reply = client.post(path, json=body)
    assert (reply.status_code, reply.json()) == (422, {"detail": detail})


def test_names_are_found_by_their_beginning_their_middle_and_their_likeness(
    client: TestClient,
) -> None:
    assert client.get("/entities", params={"q": "ada ha"}).json() == ["Ada Hale"]
    assert "Oxbow United" in client.get("/entities", params={"q": "united"}).json()
    assert client.get("/entities", params={"q": "oxbwo unted"}).json()[0] == "Oxbow United"
    assert len(client.get("/entities", params={"limit": 7}).json()) == 7


def test_what_it_tells_of_itself(client: TestClient, run: Run) -> None:
    about = client.get("/health").json()
    counts = (about["status"], about["entities"], about["facts"]["train"])
    assert counts == ("ok", run.kb.n_entities, 1844)
    assert client.get("/relations").json()[0] == {
        "relation": "plays for",
        "roles": ["player", "club", "season"],
        "facts": 864,
    }


def test_the_map_shows_the_two_directions_in_which_vectors_differ_most(
    client: TestClient, run: Run
) -> None:
    points = client.get("/map").json()
    assert [point["entity"] for point in points] == list(run.kb.entities)

    vectors = run.opened.model.bare.entity.weight.detach().double().numpy()
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centred = vectors - vectors.mean(axis=0)
    values, directions = np.linalg.eigh(centred.T @ centred)
    plane = np.array([(point["x"], point["y"]) for point in points])
    for axis, direction in enumerate(directions[:, np.argsort(-values)[:2]].T):
        expected = centred @ direction
        sign = np.sign(expected @ plane[:, axis])
        assert np.allclose(plane[:, axis], sign * expected, atol=1e-4)


def test_requests_are_counted_by_path_and_unknown_paths_as_one(served: OpenedRun) -> None:
    with TestClient(create_app(served, ServeSettings())) as client:
        for path in ("/health", "/no-such-path", "/another", "/openapi.json"):
            client.get(path)
        client.post("/predict", json={"questions": [QUESTION]})
        text = client.get("/metrics").text
    assert 'getd_requests_total{path="/health",status="200"} 1.0' in text
    assert 'getd_requests_total{path="other",status="404"} 2.0' in text
    assert 'getd_requests_total{path="/predict",status="200"} 1.0' in text
    assert 'path="/openapi.json"' in text
    assert "no-such-path" not in text


def test_pages_need_nothing_from_elsewhere(client: TestClient) -> None:
    for path, name in (("/", "page.html"), ("/docs", "docs.html")):
        page = client.get(path).text
        assert page == static(name)
        assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page)


def test_a_token_is_asked_for(served: OpenedRun) -> None:
    with TestClient(create_app(served, ServeSettings(token="word"))) as client:
        assert client.post("/predict", json={"questions": [QUESTION]}).status_code == 401
        right = {"Authorization": "Bearer word"}
        reply = client.post("/predict", json={"questions": [QUESTION]}, headers=right)
        assert reply.status_code == 200
        assert client.get("/relations", headers={"Authorization": "Bearer wird"}).status_code == 401
        assert client.get("/relations", headers={"Authorization": "Bearer word"}).status_code == 200
        assert client.get("/health").status_code == 200


def test_fuzzed_requests_never_break_it(served: OpenedRun) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, settings

    app = create_app(served, ServeSettings(timeout=10))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    for operation in schema.get_all_operations():
        cases = operation.ok().as_strategy()

        @settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
        @given(cases)
        def check(case: object) -> None:
            reply = case.call()  # type: ignore[attr-defined]
            assert reply.status_code in (200, 400, 413, 422)
            assert "Traceback" not in reply.text
            assert str(Path(served.path).parent) not in reply.text

        check()


def test_every_endpoint_documents_its_problems(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/predict", "/why", "/score", "/entities", "/relations", "/map", "/metrics"} <= {*paths}
    for methods in paths.values():
        for method in methods.values():
            assert set(method["responses"]) == {"200", "400", "401", "413", "422", "503"}
