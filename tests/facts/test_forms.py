"""Every form that people keep n-ary facts in is recognised and read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zstandard

import getd
from getd.errors import ConfigError, DataNotFound, FactError, FactFileError
from getd.formats.detect import detect_format, read_named
from getd.io.lines import BLOCK

TEXT = "award\tJordan\tBulls\tMVP\nplays for\tPippen\tBulls\naward\tBird\tCeltics\tMVP\n"
FACTS = [
    ("award", "Jordan", "Bulls", "MVP"),
    ("plays for", "Pippen", "Bulls"),
    ("award", "Bird", "Celtics", "MVP"),
]


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_text_is_split_at_tabs(tmp_path: Path) -> None:
    assert read_named(write(tmp_path / "a.txt", TEXT)).rows() == FACTS


def test_a_line_without_tabs_is_split_at_runs_of_spaces(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.txt",
        "likes  ann bob \n  likes cy dan\nplays for\tann\tthe club\nlikes   ann   cy",
    )
    expected = [
        ("likes", "ann", "bob"),
        ("likes", "cy", "dan"),
        ("plays for", "ann", "the club"),
        ("likes", "ann", "cy"),
    ]
    assert read_named(path).rows() == expected


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        TEXT[:-1],
        TEXT.replace("\n", "\r\n")[:-1],
        "\n\n" + TEXT,
    ],
)
def test_windows_line_ends_byte_order_marks_and_blank_lines_change_nothing(
    tmp_path: Path, text: str
) -> None:
    assert read_named(write(tmp_path / "a.txt", text)).rows() == FACTS


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    name = "a\x0bb\x0cc\x85d\u2028e\rf"
    assert read_named(write(tmp_path / "a.txt", f"r\t{name}\tx\n")).rows() == [("r", name, "x")]


def test_text_is_literal_unless_it_is_called_escaped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "r\ta\\tb\tc\n")
    assert read_named(path).rows() == [("r", "a\\tb", "c")]
    assert read_named(path, escaped=True).rows() == [("r", "a\tb", "c")]


def test_gzip_and_zstd_are_opened_on_the_way(tmp_path: Path) -> None:
    zipped = write(tmp_path / "a.txt.gz", gzip.compress(TEXT.encode()))
    packed = zstandard.compress(TEXT[:40].encode()) + zstandard.compress(
        TEXT[40:].encode()
    )  # two frames
    assert (
        read_named(zipped).rows()
        == read_named(write(tmp_path / "a.txt.zst", packed)).rows()
        == FACTS
    )


def test_a_file_larger_than_one_block_is_read_whole(tmp_path: Path) -> None:
    n = 3 * BLOCK // 20
    facts = [
        ("r", f"entity number {i:09d}", f"é{i % 7}") if i % 3 else ("s", f"e{i}") for i in range(n)
    ]
    path = write(tmp_path / "big.txt", "\n".join("\t".join(fact) for fact in facts))
    assert path.stat().st_size > 2 * BLOCK
    assert read_named(path).rows() == facts


def test_csv_with_a_relation_column(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv", 'e1,relation,e2,e3\nJordan,award,Bulls,MVP\nPippen,"plays for",Bulls,\n'
    )
    assert detect_format(path) == "csv"
    assert read_named(path).rows() == FACTS[:2]


def test_csv_with_a_relation_column_and_roles(tmp_path: Path) -> None:
    header = "relation,player,club,award,season\n"
    text = (
        header
        + "award,Jordan,Bulls,MVP,\nplays for,Pippen,Bulls,,1991\nplays for,Bird,Celtics,,1986\n"
    )
    labels = read_named(write(tmp_path / "a.csv", text))
    assert set(labels.signatures) == {("player", "club", "award"), ("player", "club", "season")}
    assert labels.rows()[1] == ("plays for", "Pippen", "Bulls", "1991")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_of_one_relation_with_roles_as_columns(tmp_path: Path, separator: str) -> None:
    text = "player,club\nPippen,Bulls\n\nBird,Celtics\n".replace(",", separator)
    labels = read_named(write(tmp_path / "plays for.csv", text))
    assert set(labels.signatures) == {("player", "club")}
    assert labels.rows() == [("plays for", "Pippen", "Bulls"), ("plays for", "Bird", "Celtics")]


@pytest.mark.parametrize(
    "names",
    [("line", "row"), ("^.*$", "*"), ("roles", "0"), ("arrangement", "1"), ("literal", "len")],
)
@pytest.mark.parametrize("with_relation", [True, False])
def test_columns_may_have_any_name(
    tmp_path: Path, names: tuple[str, ...], with_relation: bool
) -> None:
    header, row = (("relation", *names), ("r", "a", "b")) if with_relation else (names, ("a", "b"))
    labels = read_named(write(tmp_path / "r.csv", f"{','.join(header)}\n{','.join(row)}\n"))
    assert (set(labels.signatures), labels.rows()) == ({names}, [("r", "a", "b")])
    again = getd.KnowledgeBase.from_dataframe(
        {"train": pl.DataFrame([row], schema=header, orient="row")}, relation="r"
    )
    assert again.signatures[0].roles == names


def test_missing_cells_of_pandas_are_holes() -> None:
    frame = pd.DataFrame(
        {"relation": ["r", "s"], "e1": ["a", "b"], "e2": pd.array([1, None], dtype="Int64")}
    )
    kb = getd.KnowledgeBase.from_dataframe({"train": frame})
    assert [kb.decode(facts) for facts in kb.split("train").values()] == [
        [("s", "b")],
        [("r", "a", "1")],
    ]
    with pytest.raises(
        FactError, match=r"^expected a name of its own for every column, found 'a' twice$"
    ):
        getd.KnowledgeBase.from_dataframe(pd.DataFrame([["x", "y"]], columns=["a", "a"]))


def test_quoted_csv_may_hold_separators_and_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'relation,e1,e2\r\nr,"a,""b""\r\nc",d\r\nr,e,f\r\n')
    assert read_named(path).rows() == [("r", 'a,"b"\r\nc', "d"), ("r", "e", "f")]


def test_parquet_and_frames(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "relation": ["award", "plays for"],
            "e1": ["Jordan", "Pippen"],
            "e2": ["Bulls"] * 2,
            "e3": ["MVP", None],
        }
    )
    frame.write_parquet(tmp_path / "a.parquet")
    assert read_named(tmp_path / "a.parquet").rows() == FACTS[:2]
    for table in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow()):
        kb = getd.KnowledgeBase.from_dataframe({"train": table})
        assert [kb.decode(facts) for facts in kb.split("train").values()] == [
            [FACTS[1]],
            [FACTS[0]],
        ]


def test_cells_that_are_not_text_are_written_as_text() -> None:
    frame = pd.DataFrame({"who": ["Jordan", "Bird"], "year": [1991, 1986], "points": [31.5, 25.0]})
    kb = getd.KnowledgeBase.from_dataframe({"train": frame}, relation="scored")
    assert kb.decode(kb.split("train")[3]) == [
        ("scored", "Jordan", "1991", "31.5"),
        ("scored", "Bird", "1986", "25.0"),
    ]
    assert kb.signatures[0].roles == ("who", "year", "points")
    arrow = pa.table({"who": pa.array(["Jordan"]).dictionary_encode(), "year": [1991]})
    assert getd.KnowledgeBase.from_dataframe({"train": arrow}).n_entities == 2


def test_json_lines_with_lists_and_with_roles(tmp_path: Path) -> None:
    lines = [
        {"relation": "award", "entities": ["Jordan", "Bulls", "MVP"]},
        {"relation": "award", "entities": {"player": "Bird", "year": 1986}},
        {"entities": {"year": 1991, "player": "Jordan"}, "relation": "award"},
        {"relation": "award", "entities": {"player": ["Ann", "Bob"], "year": "1991"}},
    ]
    labels = read_named(write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines))))
    assert labels.rows() == [
        ("award", "Jordan", "Bulls", "MVP"),
        ("award", "Bird", "1986"),
        ("award", "Jordan", "1991"),
        ("award", "Ann", "Bob", "1991"),
    ]
    assert set(labels.signatures) == {
        ("e1", "e2", "e3"),
        ("player", "year"),
        ("player", "player", "year"),
    }


def test_roles_keep_the_order_of_the_first_file(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", '{"relation": "r", "entities": {"b": "1", "a": "2"}}')
    write(tmp_path / "test.jsonl", '{"relation": "r", "entities": {"a": "4", "b": "3"}}')
    kb = getd.load(tmp_path)
    assert (kb.n_relations, kb.decode(kb.split("test")[2])) == (1, [("r", "3", "4")])


def test_hyper_relational_csv(tmp_path: Path) -> None:
    path = write(
        tmp_path / "train.csv", "Jordan,award,MVP,team,Bulls,season,1991\nBird,award,MVP\nA,b,C\n"
    )
    labels = read_named(path)
    assert detect_format(path) == "hyper-csv"
    assert labels.rows() == [
        ("award", "Jordan", "MVP", "1991", "Bulls"),
        ("award", "Bird", "MVP"),
        ("b", "A", "C"),
    ]
    assert set(labels.signatures) == {
        ("subject", "object", "season", "team"),
        ("subject", "object"),
    }


def test_wikipeople_json(tmp_path: Path) -> None:
    line = {"P166_h": "Q1", "P166_t": "Q2", "N": 5, "P585": ["+1980"], "P1706": ["Q9", "Q8"]}
    labels = read_named(write(tmp_path / "a.json", json.dumps(line)))
    assert labels.rows() == [("P166", "Q1", "Q2", "Q8", "Q9", "+1980")]
    assert set(labels.signatures) == {("subject", "object", "P1706", "P1706", "P585")}


def test_qualifiers_in_another_order_are_the_same_fact_and_counted_apart(tmp_path: Path) -> None:
    rows = ["s,r,o,a,1,b,2", "s,r,o,b,2,a,1", "s,r,o,a,1,b,2", "s,r,o,b,2,a,1", "s,r,o"]
    kb = getd.load(write(tmp_path / "train.csv", "\n".join(rows)).parent)
    assert (kb.duplicates["train"].repeated, kb.duplicates["train"].reordered) == (2, 1)
    assert sum(len(facts) for facts in kb.split("train").values()) == 2
    assert kb.notices == (
        "train: 3 duplicate facts dropped, 1 of them with qualifiers in another order",
    )


def test_a_name_with_several_role_sets_is_several_relations(tmp_path: Path) -> None:
    kb = getd.load(write(tmp_path / "train.csv", "s,r,o,a,1\nt,r,o,b,1\nu,r,o\nu,q,o").parent)
    assert list(kb.relations) == [
        "q",
        "r(subject, object)",
        "r(subject, object, a)",
        "r(subject, object, b)",
    ]
    assert kb.signatures[2].roles == ("subject", "object", "a")


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("statements/train.txt", "Q1,P1,Q2\nQ3,P1,Q4,P2,Q5\n", "hyper-csv"),
        ("facts", "r,a,b\ns,c,b\n", "csv"),
        ("facts.txt", "r a,b c\n", "tsv"),
        ("facts.txt", '{"relation": "r"}\tx\n', "tsv"),
        ("facts", '{"relation": "r", "entities": ["a"]}', "jsonl"),
        ("facts.csv", "relation,e1,e2\nr,e1,x\ns,e1,y\n", "csv"),
        ("facts.tsv", "a,b\tc\td\n", "tsv"),
        ("PAR1.txt", "PAR1\ta\tb\n", "tsv"),
    ],
)
def test_the_form_is_recognised_from_the_content(
    tmp_path: Path, name: str, text: str, form: str
) -> None:
    assert detect_format(write(tmp_path / name, text)) == form


def test_the_form_can_be_forced(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,b,c\nd,e,f\n")
    assert getd.load(path, format="hyper-csv").n_relations == 2
    assert getd.load(path, format="csv").signatures[0].roles == ("a", "b", "c")
    with pytest.raises(
        ConfigError,
        match=r"^data.format is one of auto, tsv, .*, found 'cvs'; did you mean 'csv'\?$",
    ):
        getd.load(path, format="cvs")


def test_whether_csv_is_hyper_relational_is_asked_of_the_first_file_alone(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", "a,r,b\nc,r,d\n")
    write(tmp_path / "test.csv", "a,r,d\n")
    assert getd.load(tmp_path).splits["test"][2].entities.tolist() == [[0, 3]]


FOLDERS = [
    {
        "train.txt": TEXT,
        "valid.txt.gz": gzip.compress(b"award\ta\tb\tc\n"),
        "test.jsonl": '{"relation": "r", "entities": ["a", "b"]}',
    },
    {
        "n-ary_train.txt": TEXT,
        "n-ary_valid.txt": "award\ta\tb\tc\n",
        "n-ary_test.txt": "r a b",
        "README.txt": "not facts",
        "LICENSE.txt": "",
    },
    {
        "train/award.txt": TEXT[:30],
        "train/more.txt": TEXT[30:],
        "dev/x.txt": "award\ta\tb\tc\n",
        "test/y.txt": "r a b",
    },
]


@pytest.mark.parametrize("files", FOLDERS)
def test_folders_with_splits(tmp_path: Path, files: dict[str, str | bytes]) -> None:
    if "train/award.txt" in files:
        cut = TEXT.index("plays")
        files = files | {"train/award.txt": TEXT[:cut], "train/more.txt": TEXT[cut:]}
    for name, text in files.items():
        write(tmp_path / name, text)
    kb = getd.load(tmp_path)
    assert {split: sum(map(len, blocks.values())) for split, blocks in kb.splits.items()} == {
        "train": 3,
        "valid": 1,
        "test": 1,
    }


def test_a_folder_of_tables_is_one_set_that_we_split(tmp_path: Path) -> None:
    write(
        tmp_path / "transfers.csv", "player,to\n" + "\n".join(f"p{i},c{i % 3}" for i in range(30))
    )
    write(
        tmp_path / "awards.csv", "player,award\n" + "\n".join(f"p{i},a{i % 2}" for i in range(30))
    )
    kb = getd.load(tmp_path)
    assert {split: len(blocks[2]) for split, blocks in kb.splits.items()} == {
        "train": 48,
        "valid": 6,
        "test": 6,
    }
    assert list(kb.relations) == ["awards", "transfers"]
    assert kb.notices == (
        f"{tmp_path / 'awards.csv'}: no column 'relation', so each row is a fact awards(player, award)",
        f"{tmp_path / 'transfers.csv'}: no column 'relation', so each row is a fact transfers(player, to)",
        "no splits given: split 8:1:1 at random with seed 0",
    )


def test_tables_of_splits_are_of_the_relation_of_their_folder(tmp_path: Path) -> None:
    write(tmp_path / "transfers" / "train.csv", "player,to\na,b\n")
    write(tmp_path / "transfers" / "test.csv", "to,player\nb,a\n")
    kb = getd.load(tmp_path / "transfers")
    assert (list(kb.relations), kb.decode(kb.split("test")[2])) == (
        ["transfers"],
        [("transfers", "a", "b")],
    )
    assert list(getd.load(tmp_path / "transfers", relation="moves").relations) == ["moves"]


def test_files_that_are_left_out_are_named(tmp_path: Path) -> None:
    for name in ("train.txt", "my_test.txt", "other.csv", "train_old.txt"):
        write(tmp_path / name, TEXT)
    kb = getd.load(tmp_path)
    assert (list(kb.splits), kb.notices[0]) == (
        ["train", "test"],
        f"{tmp_path}: left out other.csv, train_old.txt",
    )


def test_a_table_called_something_test_is_a_table_beside_others(tmp_path: Path) -> None:
    for name in ("driving_test.csv", "driving_licence.csv", "plays.csv"):
        write(tmp_path / name, "who,what\na,b\n")
    assert list(getd.load(tmp_path).relations) == ["driving_licence", "driving_test", "plays"]


def test_a_form_is_recognised_for_each_table_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "player,club\nA,B\n")
    write(tmp_path / "b.csv", "Jordan,award,MVP\nBird,award,MVP\n")
    assert [(r.name, r.arity) for r in getd.load(tmp_path).signatures] == [("a", 2), ("award", 2)]


def test_a_header_in_plain_text_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "train.tsv", "relation\te1\te2\nr\ta\tb\n")
    assert getd.load(tmp_path).notices == (
        f"{path}: the first line looks like a header; plain text has none: read as a fact",
    )


def test_positions_may_stand_in_any_order(tmp_path: Path) -> None:
    assert read_named(write(tmp_path / "a.csv", "relation,e2,e1\nr,b,a\n")).rows() == [
        ("r", "a", "b")
    ]


def test_numbers_in_json_stay_as_they_are_written(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        '{"relation": "r", "entities": [1.10, 1e3, 0.1000000000000000001, 12345678901234567890]}',
    )
    assert read_named(path).rows() == [
        ("r", "1.10", "1e3", "0.1000000000000000001", "12345678901234567890")
    ]


def test_a_qualifier_may_be_called_subject(tmp_path: Path) -> None:
    rows = "a,r,b,subject,c\na,r,b,object,d\nx,r,y,subject,z\n"
    source = write(tmp_path / "q.csv", rows)
    for form in ("jsonl", "parquet", "csv"):
        getd.convert(source, tmp_path / f"facts.{form}", format="hyper-csv")
        getd.convert(tmp_path / f"facts.{form}", tmp_path / f"{form}.csv", "hyper-csv")
        assert (tmp_path / f"{form}.csv").read_text() == rows


def test_tables_of_splits_from_python_agree_on_their_columns() -> None:
    train, test = (
        pl.DataFrame({"player": ["a"], "club": ["b"]}),
        pl.DataFrame({"club": ["b"], "player": ["a"]}),
    )
    kb = getd.KnowledgeBase.from_dataframe({"train": train, "test": test}, relation="plays")
    assert kb.n_relations == 1
    assert "1 facts of test are in train too (kept)" in kb.notices
    with pytest.raises(FactFileError) as caught:
        getd.KnowledgeBase.from_dataframe(
            {"train": train, "test": test.rename({"player": "players"})}, relation="plays"
        )
    expected = "for relation 'plays' the columns player, club as in the train table"
    assert str(caught.value) == f"the test table: expected {expected}, but 'player' is missing"


def test_missing_numbers_are_holes() -> None:
    frame = pl.DataFrame({"relation": ["r", "r"], "e1": ["a", "b"], "e2": [1.5, float("nan")]})
    assert getd.KnowledgeBase.from_dataframe({"train": frame}).arities == (1, 2)


def test_facts_from_python() -> None:
    kb = getd.KnowledgeBase.from_facts(
        {"train": [("r", "a", 1), ("r", "b", 2.5, "c")], "test": [["r", "a", "b"]]}
    )
    assert (kb.arities, list(kb.entities), list(kb.relations)) == (
        (2, 3),
        ["1", "2.5", "a", "b", "c"],
        ["r(e1, e2)", "r(e1, e2, e3)"],
    )
    assert kb.split("test")[2].rows().tolist() == [[0, 2, 3]]
    assert np.array_equal(
        kb.known("train").lookup(np.array([0]), np.array([[2, 0]]), 1).values, [0]
    )


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ([("r",)], "fact 0: expected a relation and at least one entity, found ('r',)"),
        ([("r", "a"), "rab"], "fact 1: expected a relation and at least one entity, found 'rab'"),
        ([("r", None)], "fact 0: expected names, found None"),
        ([("r", "")], "fact 0: expected names, found ''"),
        ([("r", float("nan"))], "fact 0: expected names, found nan"),
        ([("r", "a\0")], "fact 0: expected names, found 'a\\x00'"),
        ([("r", "\ud800")], "expected names that UTF-8 can hold, found '\\ud800'"),
        ([], "facts: expected facts, found none"),
        (
            {"tran": []},
            "expected the splits train, valid, test, found 'tran'; did you mean 'train'?",
        ),
    ],
)
def test_facts_from_python_that_cannot_be_understood(facts: object, message: str) -> None:
    with pytest.raises(FactError) as caught:
        getd.KnowledgeBase.from_facts(facts)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_frame_that_is_none_is_refused() -> None:
    with pytest.raises(FactError, match=r"^expected a polars, pandas or Arrow table, found int$"):
        getd.KnowledgeBase.from_dataframe(3)


def test_arities_are_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "train.txt", "r a\nr a b\nr a b c\n")
    assert getd.load(tmp_path, arity=2).arities == (2,)
    assert getd.load(tmp_path, max_arity=2).arities == (1, 2)
    with pytest.raises(
        FactError, match=rf"^{tmp_path.name}: expected facts of arity 7, found arity 1, 2, 3$"
    ):
        getd.load(tmp_path, arity=7)
    assert path.exists()


def test_a_split_that_is_not_there_is_refused_where_it_is_needed(tmp_path: Path) -> None:
    write(tmp_path / "test.txt", TEXT)
    kb = getd.load(tmp_path)
    with pytest.raises(FactError) as caught:
        kb.split("train")
    assert str(caught.value) == f"{tmp_path.name} has no train facts: it has test only"
    assert caught.value.exit_code == 1
    with pytest.raises(
        FactError,
        match=r"^expected one of the splits train, valid, test, found 'tset'; did you mean 'test'\?$",
    ):
        kb.split("tset")


def test_a_path_that_shadows_a_name_wins_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "demo" / "train.txt", TEXT)
    monkeypatch.chdir(tmp_path)
    assert getd.load("demo").notices == (
        "reading the path demo, not the built-in data set of that name",
    )


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound) as caught:
        getd.load(tmp_path / "nothing.txt")
    assert str(caught.value) == f"{tmp_path / 'nothing.txt'}: no such file or folder"
