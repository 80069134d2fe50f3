"""Data sets by name: found, downloaded whole and checked, or generated."""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import getd
from getd.datasets import catalogue as datasets
from getd.datasets.catalogue import DATASETS, DataSet, cache_folder, download, normalise
from getd.datasets.demo import demo_facts
from getd.errors import DownloadError
from getd.profile.describe import describe
from tests.conftest import Result
from tests.tiny import rows_of

PUBLISHED = {"train": b"a likes b\nb likes c\n", "valid": b"a likes c\n", "test": b"c likes a\n"}


@pytest.fixture
def server() -> Iterator[str]:
    """A local server with the published files, whole and cut short, and with an error."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            folder, _, split = self.path.strip("/").removesuffix(".txt").partition("/")
            if folder == "gone":
                self.send_error(404)
                return
            data = PUBLISHED[split]
            self.send_response(200)
            self.send_header("Content-Length", str(len(data) + 1000 * (folder == "cut")))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def dataset(*folders: str) -> DataSet:
    normal = {f"{split}.txt": normalise(data, (1, 0, 2)) for split, data in PUBLISHED.items()}
    return DataSet(
        name="Likes",
        about="who likes whom",
        facts=(2, 1, 1),
        entities=3,
        relations=1,
        arities="2",
        licence="none",
        source="here",
        addresses=tuple(f"{folder}/{{split}}.txt" for folder in folders),
        columns=(1, 0, 2),
        sha256={file: hashlib.sha256(data).hexdigest() for file, data in normal.items()},
    )


def test_a_named_set_is_downloaded_once_into_the_cache(
    server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, getd: Callable[..., Result]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("GETD_DATA", raising=False)
    monkeypatch.setitem(DATASETS, "Likes", dataset(f"{server}/ok"))
    first = getd("info", "Likes", "--json")
    assert first.code == 0
    assert json.loads(first.out)["splits"]["train"]["facts"] == 2
    assert [line.split("/")[-1] for line in first.err.splitlines()] == [
        "train.txt",
        "valid.txt",
        "test.txt",
    ]
    assert (cache_folder() / "Likes" / "train.txt").read_text() == "likes\ta\tb\nlikes\tb\tc\n"
    assert [path.name for path in cache_folder().iterdir()] == ["Likes"]
    second = getd("info", "Likes", "--json")
    assert (second.out, second.err) == (first.out, "")


def test_progress_counts_bytes(server: str, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    download(dataset(f"{server}/ok"), tmp_path / "Likes", lambda *step: seen.append(step))
    assert seen[0] == (f"{server}/ok/train.txt", 20, 20)


def test_the_next_address_is_tried(server: str, tmp_path: Path) -> None:
    download(dataset(f"{server}/gone", f"{server}/ok"), tmp_path / "Likes")
    assert len(list((tmp_path / "Likes").iterdir())) == 3


def refused(data: DataSet, target: Path) -> str:
    with pytest.raises(DownloadError) as caught:
        download(data, target)
    assert list(target.parent.iterdir()) == []
    return str(caught.value)


def test_a_wrong_checksum_names_both_and_leaves_nothing(server: str, tmp_path: Path) -> None:
    right = dataset(f"{server}/ok")
    wrong = replace(right, sha256={**right.sha256, "test.txt": "0" * 64})
    digest = right.sha256["test.txt"]
    assert refused(wrong, tmp_path / "Likes") == (
        f"Likes/test.txt from {server}/ok/test.txt: expected SHA-256 {'0' * 64}, found {digest}"
    )


def test_an_interrupted_download_leaves_nothing(server: str, tmp_path: Path) -> None:
    message = refused(dataset(f"{server}/cut"), tmp_path / "Likes")
    assert (
        message
        == f"cannot download {server}/cut/train.txt: the connection broke after 20 of 1,020 bytes"
    )


def test_ctrl_c_in_a_download_leaves_nothing(server: str, tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(dataset(f"{server}/ok"), tmp_path / "Likes", interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_have_the_file(server: str, tmp_path: Path) -> None:
    message = refused(dataset(f"{server}/gone"), tmp_path / "Likes")
    assert message == f"cannot download {server}/gone/train.txt: the server answered 404 Not Found"


def test_no_server(tmp_path: Path) -> None:
    message = refused(dataset("http://127.0.0.1:9"), tmp_path / "Likes")
    assert message == "cannot download http://127.0.0.1:9/train.txt: [Errno 111] Connection refused"


def test_a_changed_copy_of_a_published_set_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / "WN18").mkdir(exist_ok=True)
        (tmp_path / "WN18" / f"{split}.txt").write_text("r a b\n")
    monkeypatch.setenv("GETD_DATA", str(tmp_path))
    notices = getd.load("WN18").notices
    assert notices[:3] == tuple(
        f"{split}.txt of WN18 is not the published file" for split in ("train", "valid", "test")
    )


def test_folders_in_getd_data_have_names_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.txt").write_text("r a b\n")
    monkeypatch.setenv("GETD_DATA", str(tmp_path))
    assert getd.load("mine").n_entities == 2


COUNTS = {
    name: (dataset.facts, dataset.entities, dataset.relations)
    for name, dataset in DATASETS.items()
    if name != "WD50K"
}


@pytest.mark.parametrize("name", COUNTS)
def test_the_real_sets_have_the_published_counts_and_hashes(real_data: Path, name: str) -> None:
    kb = getd.load(name)
    facts = tuple(sum(map(len, kb.split(split).values())) for split in ("train", "valid", "test"))
    assert (facts, kb.n_entities, kb.n_relations) == COUNTS[name]
    assert kb.notices == ()


KEY_SEEN = {
    "JF17K-3": [0.6449, 0.4153, 0.7780, 0.7412],
    "JF17K-4": [0.3625, 0.3102, 0.3670, 0.6078, 0.1651],
    "WikiPeople-3": [0.3588, 0.4938, 0.2045, 0.3780],
    "WikiPeople-4": [0.0912, 0.1310, 0.1639, 0.0276, 0.0421],
    "WN18": [0.5205, 0.5346, 0.5064],
    "FB15k": [0.8337, 0.8628, 0.8046],
    "FB15k-237": [0.8319, 0.9023, 0.7615],
    "JF17K": [0.6369, 0.5580, 0.7540, 0.6869, 0.1184, 0.7892, 0.5625],
}
UNSEEN = {"JF17K-4": 21 / 951, "FB15k-237": 28 / 20466}
SAME = {
    "WN18": 0.9396,
    "FB15k": 0.8093,
    "JF17K": 0.0473,
    "WikiPeople-3": 0.0445,
    "JF17K-3": 0.0142,
    "FB15k-237": 0.0,
}


@pytest.mark.parametrize("name", KEY_SEEN)
def test_the_real_sets_leak_as_counted_by_others(real_data: Path, name: str) -> None:
    leakage = describe(getd.load(name)).leakage
    assert leakage is not None
    shares = (leakage.key_seen, *leakage.key_seen_by_position)
    assert [round(share, 4) for share in shares] == KEY_SEEN[name]
    assert leakage.unseen_entity_facts == pytest.approx(UNSEEN.get(name, 0))
    assert name not in SAME or round(leakage.same_entities, 4) == SAME[name]


def test_wd50k_and_wikipeople_are_read_without_losing_a_fact(real_data: Path) -> None:
    wd50k = describe(getd.load("WD50K"))
    assert [wd50k.splits[split].facts for split in ("train", "valid", "test")] == [
        166_435,
        23_913,
        46_159,
    ]
    assert (wd50k.entities, wd50k.duplicates, wd50k.overlap["train/valid"]) == (47_155, 0, 272)
    assert {n: counts.facts for n, counts in wd50k.arities.items() if n < 5} == {
        2: 204_340,
        3: 21_057,
        4: 9_510,
    }
    people = describe(getd.load("WikiPeople-json"))
    assert [people.splits[split].facts for split in ("valid", "test")] == [38_223, 38_281]
    assert (people.entities, people.relation_names, people.leakage) == (27_604, 135, None)
    assert {n: counts.facts for n, counts in people.arities.items()} == {
        2: 67735,
        3: 5311,
        4: 2869,
        5: 475,
        6: 111,
        7: 2,
        8: 1,
    }
    assert round(describe(getd.load("WikiPeople-4")).splits["test"].literal_facts, 2) == 0.98


@pytest.mark.parametrize(
    ("arity", "name", "n_facts"), [(3, "JF17K-3", 34_544), (4, "JF17K-4", 9_509)]
)
def test_one_arity_of_jf17k_is_the_fact_set_of_that_arity(
    real_data: Path, arity: int, name: str, n_facts: int
) -> None:
    def facts(kb: getd.KnowledgeBase) -> set[tuple[str, ...]]:
        return {
            fact
            for blocks in kb.splits.values()
            for facts in blocks.values()
            for fact in kb.decode(facts)
        }

    chosen = facts(getd.load("JF17K", arity=arity))
    assert len(chosen) == n_facts
    assert chosen == facts(getd.load(name))


@pytest.mark.parametrize(
    ("name", "sizes"), [("Synthetic10-3", (400, 50, 50)), ("Synthetic10-4", (1200, 150, 150))]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_synthetic_sets_are_tensors_of_cp_rank_one(
    name: str, sizes: tuple[int, ...], seed: int
) -> None:
    kb = getd.load(name, seed=seed)
    blocks = [next(iter(kb.split(split).values())) for split in ("train", "valid", "test")]
    assert (tuple(map(len, blocks)), kb.n_entities, kb.n_relations) == (sizes, 10, 2)
    rows = np.concatenate([facts.rows() for facts in blocks])
    supports = [sorted(set(column.tolist())) for column in rows.T]
    assert sorted(map(tuple, rows.tolist())) == list(itertools.product(*supports))


def test_the_demo_is_small_mixed_readable_and_the_same_for_a_seed() -> None:
    kb = getd.load("demo")
    n_facts = sum(len(facts) for blocks in kb.splits.values() for facts in blocks.values())
    assert 2_000 <= n_facts <= 5_000
    assert kb.arities == (2, 3, 4)
    assert describe(kb).splits["test"].unseen_entities == 0
    assert rows_of(demo_facts(0)) == rows_of(demo_facts(0)) != rows_of(demo_facts(1))
    assert kb.signatures[kb.relations.id("transfer")].roles == ("player", "from", "to", "season")


def test_the_rules_of_the_demo_hold() -> None:
    facts = rows_of(demo_facts(0))
    club = {(fact[1], fact[3]): fact[2] for fact in facts if fact[0] == "plays for"}
    city = {fact[1]: fact[2] for fact in facts if fact[0] == "based in"}
    for relation, *entities in facts:
        if relation == "transfer":
            player, before, after, season = entities
            years = sorted(season for (who, season) in club if who == player)
            assert (club[player, years[years.index(season) - 1]], club[player, season]) == (
                before,
                after,
            )
        elif relation == "award":
            assert club[entities[0], entities[3]] == entities[1]
        elif relation == "born in":
            assert city[club[entities[0], "2014-15"]] == entities[1]
    earned = {fact[1]: set() for fact in facts if fact[0] == "award"}
    for fact in facts:
        if fact[0] == "award":
            earned[fact[1]].add(fact[3])
    assert all(len(awards) == 1 for awards in earned.values())
    days = {(frozenset(fact[1:3]), fact[3]) for fact in facts if fact[0] == "fixture"}
    assert len(days) == len({pair for pair, _ in days})


def test_a_listing_has_every_name(getd: Callable[..., Result]) -> None:
    result = getd("datasets", "--json")
    names = [record["name"] for record in json.loads(result.out)["datasets"]]
    assert names == ["demo", "Synthetic10-3", "Synthetic10-4", *DATASETS]
    assert all(name in getd("datasets").out for name in names)
    assert datasets.locate_dataset("../etc") is None


def test_clubs_of_the_demo_meet_each_other_once_a_season_and_never_themselves() -> None:
    kb = getd.load("demo")
    every = [
        fact
        for blocks in kb.splits.values()
        for block in blocks.values()
        for fact in kb.decode(block)
    ]
    pairs = [(frozenset(fact[1:3]), fact[4]) for fact in every if fact[0] == "fixture"]
    assert all(len(clubs) == 2 for clubs, _ in pairs)
    assert len(set(pairs)) == len(pairs)
