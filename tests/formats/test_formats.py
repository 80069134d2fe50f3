"""Every format that people keep n-ary facts in is recognised and read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
import zstandard

import getd
from getd.errors import FactFileError
from getd.formats.csv_rows import read_csv_rows
from getd.formats.format import ReadOptions
from getd.formats.registry import detect_format, read_named
from getd.io.lines import BLOCK
from getd.io.problems import Problems
from tests.tiny import rows_of

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
    assert rows_of(read_named(write(tmp_path / "a.txt", TEXT))) == FACTS


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
    assert rows_of(read_named(path)) == expected


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
    assert rows_of(read_named(write(tmp_path / "a.txt", text))) == FACTS


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    name = "a\x0bb\x0cc\x85d\u2028e"
    assert rows_of(read_named(write(tmp_path / "a.txt", f"r\t{name}\tx\n"))) == [("r", name, "x")]


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_a_carriage_return_within_a_line_is_refused(tmp_path: Path, name: str) -> None:
    separator = "," if name == "a.csv" else "\t"
    text = "relation,e1,e2\r\nr,a,b\r\nr,c\rd,e\nr,a,c\n".replace(",", separator)
    path = write(tmp_path / name, text)
    with pytest.raises(FactFileError) as caught:
        read_named(path)
    expected = "expected lines that end with a line feed, found lines that end with a carriage"
    assert str(caught.value) == f"{path}:3: {expected} return alone (1 bad line)"


def test_text_that_begins_with_an_entity_gets_a_notice(tmp_path: Path) -> None:
    steps = [(f"e{i}", "next to", f"e{(i + 1) % 30}") for i in range(30)]
    head_first = "\n".join("\t".join(step) for step in steps)
    notice = "the first column looks like an entity: 30 of 30 relation names are entities too"
    path = write(tmp_path / "a.tsv", head_first)
    assert read_named(path).notices == (f"{path}: {notice}; getd reads the relation first",)

    relation_first = "\n".join(
        f"{'r' * (i % 7)}elation\t{a}\t{c}" for i, (a, _, c) in enumerate(steps)
    )
    assert read_named(write(path, relation_first)).notices == ()


@pytest.mark.parametrize(("n_shared", "has_notice"), [(1, False), (2, True)])
def test_a_fifth_of_the_relation_names_decides_what_the_first_column_is(
    tmp_path: Path, n_shared: int, has_notice: bool
) -> None:
    lines = [f"r{i} a b" for i in range(10)] + [f"r0 r{i} b" for i in range(n_shared)]
    assert bool(read_named(write(tmp_path / "a.txt", "\n".join(lines))).notices) is has_notice


@pytest.mark.parametrize(("n_heads", "has_notice"), [(19, False), (20, True)])
def test_a_second_column_of_few_names_gets_a_notice(
    tmp_path: Path, n_heads: int, has_notice: bool
) -> None:
    """People buy things: no head is ever a tail."""
    lines = [f"person {i}\tbuys\tthing {i % 9}" for i in range(n_heads)]
    path = write(tmp_path / "a.tsv", "\n".join(lines))
    notice = "the first column looks like an entity: it has 20 names, the second one only 1"
    expected = (f"{path}: {notice}; getd reads the relation first",) if has_notice else ()
    assert read_named(path).notices == expected


def test_few_relation_names_decide_nothing(tmp_path: Path) -> None:
    lines = [f"r{i} r{i} b" for i in range(4)]
    assert read_named(write(tmp_path / "a.txt", "\n".join(lines))).notices == ()


@pytest.mark.parametrize("header", ["Head\tRELATION\tTail", "Relation\ta\tb", "s\tpredicate\to"])
def test_a_header_in_text_has_a_word_for_relations(tmp_path: Path, header: str) -> None:
    (notice,) = read_named(write(tmp_path / "a.tsv", f"{header}\nr\ta\tb\n")).notices
    assert "plain text has none: read as a fact" in notice


@pytest.mark.parametrize("name", ["a.nt", "a.txt", "a"])
def test_rdf_is_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    text = '# a comment\n\n<http://a> <http://p> "text" .\n_:b <http://p> <http://c>.\n'
    path = write(tmp_path / name, text)
    with pytest.raises(FactFileError) as caught:
        read_named(path)
    hint = "convert it to lines of relation, subject and object, separated by tabs"
    assert str(caught.value) == f"{path}: RDF is not read yet; {hint}"
    assert rows_of(read_named(path, "tsv"))[1][0] == "<http://a>"
    for text in ("@prefix a: <http://a> .\na:b a:c a:d .\n", "<a>\t<p>\t<b>\t.\n"):
        write(path, text)
        with pytest.raises(FactFileError, match=r"RDF is not read yet"):
            read_named(path)


def test_text_is_literal_unless_it_is_called_escaped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "r\ta\\tb\tc\n")
    assert rows_of(read_named(path)) == [("r", "a\\tb", "c")]
    assert rows_of(read_named(path, options=ReadOptions(escaped=True))) == [("r", "a\tb", "c")]


def test_gzip_and_zstd_are_opened_on_the_way(tmp_path: Path) -> None:
    zipped = write(tmp_path / "a.txt.gz", gzip.compress(TEXT.encode()))
    packed = zstandard.compress(TEXT[:40].encode()) + zstandard.compress(
        TEXT[40:].encode()
    )  # two frames
    assert (
        rows_of(read_named(zipped))
        == rows_of(read_named(write(tmp_path / "a.txt.zst", packed)))
        == FACTS
    )


def test_a_file_larger_than_one_block_is_read_whole(tmp_path: Path) -> None:
    n = 3 * BLOCK // 20
    facts = [
        ("r", f"entity number {i:09d}", f"é{i % 7}") if i % 3 else ("s", f"e{i}") for i in range(n)
    ]
    path = write(tmp_path / "big.txt", "\n".join("\t".join(fact) for fact in facts))
    assert path.stat().st_size > 2 * BLOCK
    assert rows_of(read_named(path)) == facts


def test_csv_with_a_relation_column(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv", 'e1,relation,e2,e3\nJordan,award,Bulls,MVP\nPippen,"plays for",Bulls,\n'
    )
    assert detect_format(path) == "csv"
    assert rows_of(read_named(path)) == FACTS[:2]


def test_csv_with_a_relation_column_and_roles(tmp_path: Path) -> None:
    header = "relation,player,club,award,season\n"
    text = (
        header
        + "award,Jordan,Bulls,MVP,\nplays for,Pippen,Bulls,,1991\nplays for,Bird,Celtics,,1986\n"
    )
    labels = read_named(write(tmp_path / "a.csv", text))
    assert set(labels.signatures) == {("player", "club", "award"), ("player", "club", "season")}
    assert rows_of(labels)[1] == ("plays for", "Pippen", "Bulls", "1991")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_of_one_relation_with_roles_as_columns(tmp_path: Path, separator: str) -> None:
    text = "player,club\nPippen,Bulls\n\nBird,Celtics\n".replace(",", separator)
    labels = read_named(write(tmp_path / "plays for.csv", text))
    assert set(labels.signatures) == {("player", "club")}
    assert rows_of(labels) == [("plays for", "Pippen", "Bulls"), ("plays for", "Bird", "Celtics")]


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
    assert (set(labels.signatures), rows_of(labels)) == ({names}, [("r", "a", "b")])
    again = getd.KnowledgeBase.from_dataframe(
        {"train": pl.DataFrame([row], schema=header, orient="row")}, relation="r"
    )
    assert again.signatures[0].roles == names


def test_quoted_csv_may_hold_separators_and_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'relation,e1,e2\r\nr,"a,""b""\r\nc",d\r\nr,e,f\r\n')
    assert rows_of(read_named(path)) == [("r", 'a,"b"\r\nc', "d"), ("r", "e", "f")]


def test_no_more_quoted_rows_are_held_than_a_batch_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(f'"a{i}",b{i}' + (f",c{i}" if i % 3 == 0 else "") + "\n" for i in range(20))
    path = write(tmp_path / "a.csv", lines)
    monkeypatch.setattr("getd.formats.csv_rows.BATCH_ROWS", 6)
    sizes = [len(rows) for rows in read_csv_rows(path, ",", Problems(path))]
    assert sum(sizes) == 20
    assert max(sizes) <= 6


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
    assert rows_of(read_named(tmp_path / "a.parquet")) == FACTS[:2]
    for table in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow()):
        kb = getd.KnowledgeBase.from_dataframe({"train": table})
        assert [kb.decode(facts) for facts in kb.split("train").values()] == [
            [FACTS[1]],
            [FACTS[0]],
        ]


def test_json_lines_with_lists_and_with_roles(tmp_path: Path) -> None:
    lines = [
        {"relation": "award", "entities": ["Jordan", "Bulls", "MVP"]},
        {"relation": "award", "entities": {"player": "Bird", "year": 1986}},
        {"entities": {"year": 1991, "player": "Jordan"}, "relation": "award"},
        {"relation": "award", "entities": {"player": ["Ann", "Bob"], "year": "1991"}},
    ]
    labels = read_named(write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines))))
    assert rows_of(labels) == [
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


def test_hyper_relational_csv(tmp_path: Path) -> None:
    path = write(
        tmp_path / "train.csv", "Jordan,award,MVP,team,Bulls,season,1991\nBird,award,MVP\nA,b,C\n"
    )
    labels = read_named(path)
    assert detect_format(path) == "hyper-csv"
    assert rows_of(labels) == [
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
    assert rows_of(labels) == [("P166", "Q1", "Q2", "Q8", "Q9", "+1980")]
    assert set(labels.signatures) == {("subject", "object", "P1706", "P1706", "P585")}


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


def test_positions_may_stand_in_any_order(tmp_path: Path) -> None:
    assert rows_of(read_named(write(tmp_path / "a.csv", "relation,e2,e1\nr,b,a\n"))) == [
        ("r", "a", "b")
    ]


@pytest.mark.parametrize(("roles", "shown"), [("null", "null"), ('"ab"', "ab"), ("12", "12")])
def test_the_roles_of_a_list_are_a_list(tmp_path: Path, roles: str, shown: str) -> None:
    line = f'{{"relation": "r", "roles": {roles}, "entities": ["x", "y"]}}'
    path = write(tmp_path / "a.jsonl", line)
    with pytest.raises(FactFileError) as caught:
        read_named(path)
    message = f"expected a list of roles, found {shown}"
    assert str(caught.value) == f"{path}:1: {message} (1 bad line)"


def test_numbers_in_json_stay_as_they_are_written(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        '{"relation": "r", "entities": [1.10, 1e3, 0.1000000000000000001, 12345678901234567890]}',
    )
    assert rows_of(read_named(path)) == [
        ("r", "1.10", "1e3", "0.1000000000000000001", "12345678901234567890")
    ]


@pytest.mark.parametrize(
    ("header", "separator", "roles"),
    [
        ("Name, Vorname;Produkt;Ort", ";", ("Name, Vorname", "Produkt", "Ort")),
        ("a|b|c", "|", ("a", "b", "c")),
        ("a\tb\tc", "\t", ("a", "b", "c")),
        ("a,b;c,d", ",", ("a", "b;c", "d")),
        ('"a;b;c;d",b,c', ",", ("a;b;c;d", "b", "c")),
        ("a;b,c", ",", ("a;b", "c")),
    ],
)
def test_a_header_is_split_at_the_separator_that_it_has_most(
    tmp_path: Path, header: str, separator: str, roles: tuple[str, ...]
) -> None:
    row = separator.join(["x"] * len(roles))
    assert read_named(write(tmp_path / "a.csv", f"{header}\n{row}\n")).signatures == (roles,)


def test_the_keys_of_predictions_are_ignored_in_json_lines(tmp_path: Path) -> None:
    record = {"relation": "r", "entities": ["a", "b"], "confidence": 0.5, "plausibility": -1.5}
    record |= {"score": 1, "probability": 0.1, "rank": 2, "known": False}
    path = write(tmp_path / "a.jsonl", json.dumps(record))
    assert rows_of(read_named(path)) == [("r", "a", "b")]
    path = write(tmp_path / "b.jsonl", json.dumps({**record, "weight": 1}))
    with pytest.raises(FactFileError, match=r"found the keys 'relation', .*'weight'"):
        read_named(path)
