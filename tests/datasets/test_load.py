"""Paths and names are loaded: files, folders with splits, folders of tables."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import getd
from getd.errors import ConfigError, DataNotFound, FactError

TEXT = "award\tJordan\tBulls\tMVP\nplays for\tPippen\tBulls\naward\tBird\tCeltics\tMVP\n"


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


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


def test_roles_keep_the_order_of_the_first_file(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", '{"relation": "r", "entities": {"b": "1", "a": "2"}}')
    write(tmp_path / "test.jsonl", '{"relation": "r", "entities": {"a": "4", "b": "3"}}')
    kb = getd.load(tmp_path)
    assert (kb.n_relations, kb.decode(kb.split("test")[2])) == (1, [("r", "3", "4")])


def test_qualifiers_in_another_order_are_the_same_fact_and_counted_apart(tmp_path: Path) -> None:
    rows = ["s,r,o,a,1,b,2", "s,r,o,b,2,a,1", "s,r,o,a,1,b,2", "s,r,o,b,2,a,1", "s,r,o"]
    kb = getd.load(write(tmp_path / "train.csv", "\n".join(rows)).parent)
    assert (kb.duplicates["train"].repeated, kb.duplicates["train"].reordered) == (2, 1)
    assert sum(len(facts) for facts in kb.split("train").values()) == 2
    assert kb.notices[:1] == (
        "train: 3 duplicate facts dropped, 1 of them with qualifiers in another order",
    )


def test_orders_of_qualifiers_are_the_same_in_all_files_of_a_split(tmp_path: Path) -> None:
    files = {"a.csv": ["s,r,o,c,3,a,1,b,2", "t,r,o,a,1"], "b.csv": ["s,r,o,b,2,a,1,c,3", "t,r,o"]}
    for name, rows in files.items():
        write(tmp_path / "train" / name, "\n".join(rows))
    dropped = getd.load(tmp_path, format="hyper-csv").duplicates["train"]
    assert (dropped.repeated, dropped.reordered) == (0, 1)


def test_a_name_with_several_role_sets_is_several_relations(tmp_path: Path) -> None:
    kb = getd.load(write(tmp_path / "train.csv", "s,r,o,a,1\nt,r,o,b,1\nu,r,o\nu,q,o").parent)
    assert list(kb.relations) == [
        "q",
        "r(subject, object)",
        "r(subject, object, a)",
        "r(subject, object, b)",
    ]
    assert kb.signatures[2].roles == ("subject", "object", "a")


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
    reason = "no column 'relation', so each row is a fact"
    assert kb.notices == (
        f"{tmp_path / 'awards.csv'}: {reason} awards(player, award)",
        f"{tmp_path / 'transfers.csv'}: {reason} transfers(player, to)",
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
        f"{path}: the first line looks like a header; plain text has none: read as a fact "
        "(--format csv reads a table with a header)",
    )


def test_a_first_line_that_shares_no_name_with_the_others_looks_like_a_header(
    tmp_path: Path,
) -> None:
    rows = [f"S{i % 2} queen{i % 3} {i % 4}" for i in range(12)]
    notice = "the first line looks like a header; plain text has none: read as a fact"

    path = write(tmp_path / "header.txt", "\n".join(["season who episode", *rows]))
    assert getd.load(path).notices[0] == f"{path}: {notice}"
    path = write(tmp_path / "second.txt", "\n".join([rows[0], "season who episode", *rows]))
    assert not any(notice in text for text in getd.load(path).notices)
    path = write(tmp_path / "two.txt", "\n".join(["a b c", "d e f", *rows]))
    assert not any(notice in text for text in getd.load(path).notices)
    path = write(tmp_path / "few.txt", "\n".join(["season who episode", *rows[:8]]))
    assert not any(notice in text for text in getd.load(path).notices)


@pytest.mark.parametrize("mark", [",", ";", "|"])
def test_a_table_may_be_called_text_if_its_header_has_no_spaces(tmp_path: Path, mark: str) -> None:
    path = write(tmp_path / "plays.txt", f"player{mark}club\nAda Hale{mark}Oxbow\n")
    assert getd.load(path).signatures[0].roles == ("player", "club")


@pytest.mark.parametrize(("first", "second"), [("0", "1"), ("12", "3"), ("-7", "0")])
def test_an_index_without_a_name_is_left_out(tmp_path: Path, first: str, second: str) -> None:
    path = write(tmp_path / "plays.csv", f'"",player,club\n{first},a,b\n{second},c,d\n')
    kb = getd.load(path)
    assert kb.signatures[0].roles == ("player", "club")
    notice = "left out the first column: it has no name and only numbers the rows"
    assert kb.notices[0] == f"{path}: {notice}"


def test_cells_that_say_missing_elsewhere_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "plays.csv", "relation,who,what\nr,NA,NaN\nr,b,NA\nr,Nan,?\n")
    assert getd.load(path).notices[:3] == (
        f"{path}: 1 cell is '?': read as a name, not as missing",
        f"{path}: 2 cells are 'NA': read as a name, not as missing",
        f"{path}: 1 cell is 'NaN': read as a name, not as missing",
    )


def test_rows_without_any_cell_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "plays.csv", "who,what\na,b\n,\n\nc,d\n,\n")
    assert [facts.entities.tolist() for facts in getd.load(path).split("train").values()] == [
        [[0, 1], [2, 3]]
    ]
    path = write(tmp_path / "quoted.csv", 'who,what\n"a",b\n"",\n')
    assert list(getd.load(path).entities) == ["a", "b"]


def test_cells_with_spaces_at_their_ends_are_counted(tmp_path: Path) -> None:
    notice = "with a space, which is read too"
    path = write(tmp_path / "plays.csv", "who, what\na, b\nc d,e\n")
    assert getd.load(path).notices[1] == f"{path}: 1 cell begins or ends {notice}"
    path = write(tmp_path / "plays.csv", "who, what\na, b\nc , d\n")
    assert getd.load(path).notices[1] == f"{path}: 3 cells begin or end {notice}"


def test_a_table_that_mostly_repeats_itself_is_told(tmp_path: Path) -> None:
    notice = (
        "only 2 of {} rows are left: each fact counts once, so how often it occurs is not learnt"
    )
    path = write(tmp_path / "plays.csv", "who,what\n" + "a,b\n" * 3 + "c,d\n" * 2)
    assert notice.format(5) in getd.load(path).notices
    path = write(tmp_path / "plays.csv", "who,what\n" + "a,b\n" * 2 + "c,d\n" * 2)
    assert not any("rows are left" in text for text in getd.load(path).notices)


def test_roles_with_a_name_of_its_own_in_nearly_every_fact_are_listed(tmp_path: Path) -> None:
    rows = [f"id{i},a{i % 3},b{max(i, 1)},c{max(i, 2)}" for i in range(20)]
    path = write(tmp_path / "plays.csv", "\n".join(["id,who,18,17", *rows]))
    roles = "'id' of plays, '18' of plays"
    notice = f"nearly every fact has a name of its own in {roles}: little can be learnt about it"
    assert notice in getd.load(path).notices

    write(tmp_path / "ids.csv", "id,club\n" + "".join(f"id{i},x\n" for i in range(20)))
    assert notice.replace("'id' of plays, ", "") in getd.load(tmp_path).notices
    write(path, "\n".join(["id,who,18,17", *rows[:19]]))
    assert not any("nearly every" in text for text in getd.load(path).notices)
    write(path, "\n".join(["relation,e1,e2,e3,e4", *(f"r,{row}" for row in rows)]))
    assert not any("nearly every" in text for text in getd.load(path).notices)


def test_a_qualifier_may_be_called_subject(tmp_path: Path) -> None:
    rows = "a,r,b,subject,c\na,r,b,object,d\nx,r,y,subject,z\n"
    source = write(tmp_path / "q.csv", rows)
    for form in ("jsonl", "parquet", "csv"):
        getd.convert(source, tmp_path / f"facts.{form}", format="hyper-csv")
        getd.convert(tmp_path / f"facts.{form}", tmp_path / f"{form}.csv", "hyper-csv")
        assert (tmp_path / f"{form}.csv").read_text() == rows


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
    expected = "expected one of the splits train, valid, test"
    with pytest.raises(FactError) as caught:
        kb.split("tset")
    assert str(caught.value) == f"{expected}, found 'tset'; did you mean 'test'?"


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
