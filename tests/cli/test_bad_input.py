"""Every bad input gives its one line and exit code, and leaves no partial file."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from getd.cli.app import exit_code
from tests.conftest import Result

Getd = Callable[..., Result]


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


CASES = {
    "empty file": ("train.txt", "", ": expected facts, found an empty file"),
    "only a byte order mark": (
        "train.txt",
        b"\xef\xbb\xbf",
        ": expected facts, found an empty file",
    ),
    "CSV of old Macs": (
        "train.csv",
        "a,b\rx,y\r",
        ":1: expected a header of CSV, found lines that end with a carriage return alone",
    ),
    "CSV with an empty column": (
        "train.csv",
        "player,club\n,Bulls\n,Celtics\n",
        ":2: expected a name in column 'player' of relation 'FOLDER', found it empty "
        "(2 bad lines)\n"
        "PATH:3: expected a name in column 'player' of relation 'FOLDER', found it empty",
    ),
    "JSON with NaN": (
        "train.jsonl",
        '{"relation": "r", "entities": [NaN]}',
        ":1: expected a name, found NaN (1 bad line)",
    ),
    "JSON with too few roles": (
        "train.jsonl",
        '{"relation": "r", "roles": ["a"], "entities": ["x", "y"]}',
        ":1: expected a role for each of 2 entities, found 1 (1 bad line)",
    ),
    "WikiPeople without a relation": (
        "train.json",
        '{"_h": "a", "_t": "b", "N": 2}',
        ":1: expected a name in every field, found an empty one (1 bad line)",
    ),
    "only blank lines": ("train.txt", "\n\n", ": expected facts, found only blank lines"),
    "binary file": (
        "train.txt",
        b"\x7fELF\x02\x01\0\0",
        ":1: expected text, found a NUL byte at offset 6",
    ),
    "NUL byte": (
        "train.txt",
        "r\ta\tb\nr\ta\0\tb\n",
        ":2: expected text, found a NUL byte at offset 9",
    ),
    "workbook": (
        "train.csv",
        b"PK\x03\x04\x14\0\0\0",
        ":1: expected text, found a zip file or a workbook; unpack it, or save the sheet as CSV",
    ),
    "UTF-16": (
        "train.csv",
        "player,club\na,b\n".encode("utf-16"),
        ":1: expected text, found UTF-16; save it as UTF-8",
    ),
    "not UTF-8": (
        "train.txt",
        b"r\ta\tb\nr\ta\xff\tb\n",
        ":2: expected UTF-8, found byte 0xff at offset 9; save the file as UTF-8",
    ),
    "not UTF-8 from the first byte on": (
        "train.txt",
        b"\xe9\ta\tb\n",
        ":1: expected UTF-8, found byte 0xe9 at offset 0; save the file as UTF-8",
    ),
    "not UTF-8 late": (
        "train.txt",
        b"r\ta\tb\n" * 1_000_000 + b"r\t\xe9\tb\n",
        ":1000001: expected UTF-8, found byte 0xe9 at offset 6000002; save the file as UTF-8",
    ),
    "only a relation": (
        "train.txt",
        "r\ta\tb\naward\n",
        ":2: expected a relation and at least one entity, found only 'award' (1 bad line)",
    ),
    "empty field": (
        "train.txt",
        "r\ta\tb\nr\t\tb\n",
        ":2: expected a name in every field, found field 2 empty (1 bad line)",
    ),
    "empty last field": (
        "train.txt",
        "r\ta\t\n",
        ":1: expected a name in every field, found field 3 empty (1 bad line)",
    ),
    "one endless line": (
        "train.txt",
        "r\t" + "a" * 100_000_000,
        ":1: expected a fact, found a line of more than 1,048,576 bytes",
    ),
    "an endless line among others": (
        "train.txt",
        "r\ta\tb\n" * 10 + "r\t" + "a" * 2_000_000 + "\tb\nr\ta\tb\n",
        ":11: expected a fact, found a line of more than 1,048,576 bytes",
    ),
    "JSON of another shape": (
        "train.jsonl",
        '{"relation": "r", "args": ["a"]}\n',
        ':1: expected {"relation": name, "entities": [name, …] or {role: name, …}}, '
        "found the keys 'relation', 'args' (1 bad line)",
    ),
    "JSON that is no object": (
        "train.jsonl",
        "[1, 2]\n",
        ":1: expected a JSON object, found [1, 2] (1 bad line)",
    ),
    "JSON list of objects": (
        "train.json",
        '[{"relation": "r", "entities": ["a"]}]\n',
        ":1: expected a JSON object, found a list; write one object a line (1 bad line)",
    ),
    "JSON list over several lines": (
        "train.json",
        '[\n{"relation": "r", "entities": ["a"]}\n]\n',
        ":1: expected JSON lines, a whole object on every line, "
        "found an object or a list over several lines",
    ),
    "JSON object over several lines": (
        "train.json",
        '\n{\n"relation": "r", "entities": ["a"]\n}\n',
        ":2: expected JSON lines, a whole object on every line, "
        "found an object or a list over several lines",
    ),
    "JSON of a table": (
        "train.jsonl",
        '{"player": "Jordan", "club": "Bulls"}\n',
        ':1: expected {"relation": name, "entities": [name, …] or {role: name, …}}, '
        "found the keys 'player', 'club'; save a table as CSV or Parquet (1 bad line)",
    ),
    "JSON cut short": (
        "train.jsonl",
        '{"relation": "r", "ent',
        ':1: expected a JSON object, found {"relation": "r", "ent '
        "(unterminated string starting at at column 19) (1 bad line)",
    ),
    "JSON with a wrong entity": (
        "train.jsonl",
        '{"relation": "r", "entities": ["a", null]}',
        ":1: expected a name, found null (1 bad line)",
    ),
    "JSON with an empty name": (
        "train.jsonl",
        '{"relation": "r", "entities": {"who": ""}}',
        ":1: expected a name in every field, found an empty one (1 bad line)",
    ),
    "JSON without entities": (
        "train.jsonl",
        '{"relation": "r", "entities": []}',
        ":1: expected a relation and at least one entity, found only 'r' (1 bad line)",
    ),
    "JSON with entities of another kind": (
        "train.jsonl",
        '{"relation": "r", "entities": "a"}',
        ":1: expected a list or an object of entities, found a (1 bad line)",
    ),
    "JSON with a key twice": (
        "train.jsonl",
        '{"relation": "r", "entities": {"who": "a", "who": "b"}}',
        ":1: expected each key once, found one twice (1 bad line)",
    ),
    "JSON with a lone surrogate": (
        "train.jsonl",
        '{"relation": "r", "entities": ["\\ud800"]}',
        ":1: expected a name that text can hold, found '\\ud800' (1 bad line)",
    ),
    "JSON nested too deeply": (
        "train.jsonl",
        "[" * 100_000,
        ":1: expected a JSON object, found one nested too deeply (1 bad line)",
    ),
    "WikiPeople with a wrong N": (
        "train.json",
        '{"P1_h": "a", "P1_t": "b", "N": 3}',
        ":1: expected N = 2 for 2 entities, found 3 (1 bad line)",
    ),
    "CSV with a short row": (
        "train.csv",
        "relation,e1,e2\nr,a,b\nr,a\n",
        ":3: expected 3 fields (relation, e1, e2), found 2 (1 bad line)",
    ),
    "CSV with an empty cell": (
        "train.csv",
        "player,club\nPippen,Bulls\nJordan,\n",
        ":3: expected a name in column 'club' of relation 'FOLDER', found it empty (1 bad line)",
    ),
    "CSV with a hole between": (
        "train.csv",
        "relation,e1,e2,e3\nr,a,,c\n",
        ":2: expected a name in every field, found column 'e2' empty (1 bad line)",
    ),
    "CSV with no relation in a row": (
        "train.csv",
        "relation,e1\n,a\n",
        ":2: expected a name in column 'relation', found it empty (1 bad line)",
    ),
    "CSV with only a relation in a row": (
        "train.csv",
        "relation,e1\nr,\n",
        ":2: expected a relation and at least one entity, found only 'r' (1 bad line)",
    ),
    "CSV with no entity columns": (
        "train.csv",
        "relation\nr\n",
        ": expected columns with entities, found none",
    ),
    "CSV with a column twice": (
        "train.csv",
        "relation,e1,e1\nr,a,b\n",
        ":1: expected a name of its own for every column, found 'e1' twice",
    ),
    "CSV with a column without a name": (
        "train.csv",
        "relation,,e1\nr,a,b\n",
        ":1: expected a name of its own for every column, found column 2 without one; "
        "name it or delete it",
    ),
    "CSV with row names that have no name": (
        "train.csv",
        "\n,a,b\nMazda,1,2\n",
        ":2: expected a name of its own for every column, found column 1 without one; "
        "name it or delete it",
    ),
    "CSV with an index that counts a row twice": (
        "train.csv",
        ",a,b\n1,1,2\n1,1,2\n",
        ":1: expected a name of its own for every column, found column 1 without one; "
        "name it or delete it",
    ),
    "CSV with an index and another column without a name": (
        "train.csv",
        ",a,\n1,1,2\n",
        ":1: expected a name of its own for every column, found column 3 without one; "
        "name it or delete it",
    ),
    "CSV with an index alone": (
        "train.csv",
        '""\n1\n2\n',
        ":1: expected a name of its own for every column, found column 1 without one; "
        "name it or delete it",
    ),
    "CSV with a header alone": (
        "train.csv",
        "relation,e1\n",
        ": expected rows below the header, found none",
    ),
    "CSV with an open quote": (
        "train.csv",
        'relation,e1\nr,a\nr,"b\n',
        ":3: expected a row of CSV, found a broken one (unexpected end of data) (1 bad line)",
    ),
    "CSV with wrong roles": (
        "train.csv",
        'relation,roles,e1,e2\nr,"[""a""]",x,y\n',
        ":2: expected a JSON list of 2 role names in column 'roles', found '[\"a\"]' (1 bad line)",
    ),
    "hyper-relational CSV with half a qualifier": (
        "train.csv",
        "a,r,b\nc,r,d\na,r,c,q\n",
        ":3: expected subject,relation,object and pairs of qualifier,value, "
        "found 4 fields (1 bad line)",
    ),
    "hyper-relational CSV with an empty qualifier": (
        "train.csv",
        "a,r,b,q,v,,w\n",
        ":1: expected a name in every field, found field 6 empty (1 bad line)",
    ),
    "CSV with roles nested too deeply": (
        "train.csv",
        f"relation,roles,e1\nr,{'[' * 100_000},x\n",
        f":2: expected a JSON list of 1 role names in column 'roles', found '{'[' * 40}",
    ),
    "truncated gzip": (
        "train.txt.gz",
        gzip.compress(b"r\ta\tb\n" * 1000)[:-12],
        ": expected a whole compressed file, found one cut short",
    ),
    "Parquet that is none": ("train.parquet", b"PAR1 and then nothing", None),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_one_line_and_exit_code_1(tmp_path: Path, getd: Getd, case: str) -> None:
    name, data, message = CASES[case]
    hyper = ["--format", "hyper-csv"] if case.startswith("hyper") else []
    path = write(tmp_path / name, data)
    for result in (
        getd("info", tmp_path, *hyper),
        getd("convert", tmp_path, tmp_path / "out", *hyper),
    ):
        assert (result.code, result.out) == (1, "")
        if message is None:
            assert result.err.startswith(
                f"{path}: expected a whole Parquet file, found a broken one ("
            )
            assert result.err.count("\n") == 1
        elif case == "CSV with roles nested too deeply":
            assert result.err.startswith(f"{path}{message}")
            assert len(result.err) == 301
        else:
            assert (
                result.err
                == f"{path}{message.replace('FOLDER', tmp_path.name).replace('PATH', str(path))}\n"
            )
    assert listing(tmp_path) == [name]


def test_many_bad_lines_are_counted_and_ten_shown(tmp_path: Path, getd: Getd) -> None:
    path = write(tmp_path / "train.txt", "r\ta\tb\n" + "lonely\n" * 7 + "r\t\tb\n" * 6)
    result = getd("info", tmp_path)
    lines = result.err.splitlines()
    assert result.code == 1
    message = "expected a relation and at least one entity, found only 'lonely'"
    assert lines[0] == f"{path}:2: {message} (13 bad lines)"
    assert lines[9] == f"{path}:11: expected a name in every field, found field 2 empty"
    assert len(lines) == 10


def test_ragged_lines_where_one_arity_was_asked_for(tmp_path: Path, getd: Getd) -> None:
    path = write(tmp_path / "train.txt", "r\ta\tb\tc\nr\ta\tb\nr\ta\n")
    result = getd("info", tmp_path, "--one-arity")
    assert (result.code, result.err) == (
        1,
        f"{path}:2: expected 1 relation and 3 entities, found 2 entities (2 bad lines)\n"
        f"{path}:3: expected 1 relation and 3 entities, found 1 entities\n",
    )
    result = getd("info", tmp_path, "--one-arity", "--arity", 2)
    assert result.err.startswith(
        f"{path}:1: expected 1 relation and 2 entities, found 3 entities (2 bad lines)\n"
    )


def test_a_parquet_file_cut_short(tmp_path: Path, getd: Getd) -> None:
    path = tmp_path / "train.parquet"
    pl.DataFrame({"relation": ["r"] * 1000, "e1": [f"a{i}" for i in range(1000)]}).write_parquet(
        path
    )
    path.write_bytes(path.read_bytes()[:-100])
    result = getd("info", path)
    assert result.code == 1
    assert result.err.startswith(f"{path}: expected a whole Parquet file, found a broken one (")
    assert result.err.count("\n") == 1


def test_a_parquet_file_with_holes_names_the_rows(tmp_path: Path, getd: Getd) -> None:
    path = tmp_path / "moves.parquet"
    pl.DataFrame({"player": ["a", "b"], "to": ["x", None]}).write_parquet(path)
    message = "expected a name in column 'to' of relation 'moves', found it empty"
    assert getd("info", path).err == f"{path}: row 2: {message} (1 bad line)\n"
    pl.DataFrame({"player": ["a"], "to": [["x"]]}).write_parquet(path)
    assert getd("info", path).err == f"{path}: expected text in column 'to', found List(String)\n"
    pl.DataFrame({"player": ["a\0"], "to": ["x"]}).write_parquet(path)
    assert (
        getd("info", path).err
        == f"{path}: row 1: expected text, found a NUL character (1 bad line)\n"
    )
    pl.DataFrame({"player": []}, schema={"player": pl.String}).write_parquet(path)
    assert getd("info", path).err == f"{path}: expected facts, found a table without rows\n"


def test_a_column_that_is_missing_in_one_split(tmp_path: Path, getd: Getd) -> None:
    train, test = (
        write(tmp_path / "train.csv", "player,club,season\na,b,c\n"),
        write(tmp_path / "test.csv", "player,season\na,c\n"),
    )
    result = getd("info", tmp_path)
    expected = f"for relation '{tmp_path.name}' the columns player, club, season as in {train}"
    assert (result.code, result.err) == (1, f"{test}: expected {expected}, but 'club' is missing\n")
    write(test, "player,club,season,goals\na,b,c,d\n")
    assert getd("info", tmp_path).err == f"{test}: expected {expected}, but 'goals' is there too\n"
    write(train, "relation,e1\nr,a\n")
    assert (
        getd("info", tmp_path).err
        == f"{test}: expected a column 'relation' as in {train}, found none\n"
    )


def test_a_header_missing_says_what_else_it_could_be(tmp_path: Path, getd: Getd) -> None:
    path = write(tmp_path / "train.csv", "a,b,c\nd,e,f,g,h\n")
    assert getd("info", tmp_path).err == (
        f"{path}:2: expected 3 fields (a, b, c), found 5; "
        "for rows without a header there is --format hyper-csv (1 bad line)\n"
    )


def test_wrong_escapes_are_named(tmp_path: Path, getd: Getd) -> None:
    path = write(tmp_path / "train.tsv", "r\tC:\\data\tb\n")
    assert (
        getd("info", tmp_path, "--escaped").err
        == f"{path}:1: expected the escapes \\\\ \\t \\n \\r, found \\d (1 bad line)\n"
    )
    assert getd("info", tmp_path).code == 0


def test_a_fact_in_train_and_test_is_told_kept_and_counted(tmp_path: Path, getd: Getd) -> None:
    write(tmp_path / "train.txt", "r\ta\tb\nr\ta\tc\nr\ta\tc\n")
    write(tmp_path / "test.txt", "r\ta\tb\n")
    result = getd("info", tmp_path, "--json")
    report = json.loads(result.out)
    assert (
        result.err
        == "note: train: 1 duplicate facts dropped\nnote: 1 facts of test are in train too (kept)\n"
    )
    assert (
        report["splits"]["test"]["facts"],
        report["overlap"]["train/test"],
        report["duplicates"],
    ) == (1, 1, 1)


def test_paths_that_are_no_files(tmp_path: Path, getd: Getd) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert (
        getd("info", "/dev/zero").err
        == "/dev/zero: expected a regular file, found a device or pipe\n"
    )
    assert (
        getd("info", tmp_path / "pipe.txt").err
        == f"{tmp_path / 'pipe.txt'}: expected a regular file, found a device or pipe\n"
    )
    (tmp_path / "empty").mkdir()
    result = getd("info", tmp_path / "empty")
    ends = ".txt, .tsv, .csv, .parquet, .jsonl, .ndjson, .json"
    assert (
        result.err
        == f"{tmp_path / 'empty'}: expected files train, valid, test ending in {ends}, found none\n"
    )
    assert result.code == 1


def test_a_split_with_an_ending_nobody_reads(tmp_path: Path, getd: Getd) -> None:
    write(tmp_path / "train.txt.bz2", b"x")
    write(tmp_path / "test.txt", "r a b")
    ends = ".txt, .tsv, .csv, .parquet, .jsonl, .ndjson, .json"
    assert (
        getd("info", tmp_path).err
        == f"{tmp_path}: expected train facts in files ending in {ends}, found train.txt.bz2\n"
    )
    (tmp_path / "train.txt.bz2").unlink()
    (tmp_path / "train").mkdir()
    assert getd("info", tmp_path).err.endswith("found train/ without such files\n")


def test_form_and_ending_that_disagree(tmp_path: Path, getd: Getd) -> None:
    path = write(tmp_path / "facts.txt", "r a b\n")
    result = getd("convert", path, tmp_path / "facts.csv", "--to", "tsv")
    assert (result.code, result.err) == (2, "facts.csv is for csv, but --to says tsv\n")
    assert getd("convert", path, tmp_path / "facts.json").code == 0
    assert (tmp_path / "facts.json").is_file()


def test_relations_that_hyper_csv_would_confuse(tmp_path: Path, getd: Getd) -> None:
    records = [
        {"relation": "award", "entities": {"player": "Jordan", "prize": "MVP", "year": "1991"}},
        {"relation": "award", "entities": {"prize": "Cup", "club": "Bulls", "year": "1992"}},
    ]
    path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, records)))
    result = getd("convert", path, tmp_path / "a.csv", "--to", "hyper-csv")
    message = "hyper-csv cannot tell apart 'award' of player, prize and of prize, club"
    assert (result.code, result.err) == (1, f"{message}; choose another form\n")


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m getd info demo"
    done = subprocess.run(f"{command} > /dev/full", shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "No space left on device\n")
    done = subprocess.run(f"{command} >&-", shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_path_that_is_too_long(getd: Getd) -> None:
    result = getd("info", "x" * 5000)
    assert (result.code, result.err.count("\n"), result.err[-19:]) == (1, 1, "File name too long\n")


def test_ctrl_c_is_one_line(tmp_path: Path) -> None:
    code = """
import getd.datasets.load, sys
from getd.cli.app import main

def stop(*_, **__):
    raise KeyboardInterrupt

getd.datasets.load.load = stop
sys.exit(main(["info", "demo"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_two_sources_of_one_split(tmp_path: Path, getd: Getd) -> None:
    write(tmp_path / "train.txt", "r a b")
    write(tmp_path / "train.csv", "a,b\nc,d")
    assert (
        getd("info", tmp_path).err
        == f"{tmp_path}: expected one source of train facts, found train.csv, train.txt\n"
    )


def test_no_permission(tmp_path: Path, getd: Getd, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "train.txt", "r a b")

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    result = getd("info", path)
    assert (result.code, result.err) == (1, f"{path}: cannot be read: Permission denied\n")
    monkeypatch.setattr(Path, "iterdir", refuse)
    assert getd("info", tmp_path).err == f"{tmp_path}: cannot be read: Permission denied\n"


def test_a_full_disk_leaves_nothing_behind(
    tmp_path: Path, getd: Getd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", fill)
    result = getd("convert", "demo", tmp_path / "out")
    assert (result.code, result.err) == (
        1,
        f"cannot write {tmp_path / 'out'}: No space left on device\n",
    )
    assert listing(tmp_path) == []


def test_a_full_disk_keeps_what_was_there(tmp_path: Path, getd: Getd) -> None:
    out = tmp_path / "out"
    assert getd("convert", "demo", out, "--to", "parquet").code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    limited = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
    code = f"{limited} from getd.cli.app import main; import sys; sys.exit(main(sys.argv[1:]))"
    for form in ("parquet", "tsv", "csv", "jsonl"):
        done = subprocess.run(
            [sys.executable, "-c", code, "convert", "demo", str(out), "--to", form, "--overwrite"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.startswith(f"cannot write {out}: ")
        assert done.stderr.count("\n") == 1
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert listing(tmp_path) == ["out"]


def test_output_that_exists_is_kept_unless_told(tmp_path: Path, getd: Getd) -> None:
    out = tmp_path / "out"
    assert getd("convert", "demo", out).code == 0
    result = getd("convert", "demo", out)
    assert (result.code, result.err) == (
        1,
        f"{out} exists; choose another place or pass --overwrite\n",
    )
    assert getd("convert", "demo", out, "--overwrite", "--to", "csv").code == 0
    assert sorted(path.name for path in out.iterdir()) == ["test.csv", "train.csv", "valid.csv"]
    write(out / "thesis.md", "years of work")
    result = getd("convert", "demo", out, "--overwrite")
    assert (result.code, result.err) == (
        1,
        f"{out} holds more than facts (thesis.md); choose another place\n",
    )


def test_a_place_that_cannot_be_written(tmp_path: Path, getd: Getd) -> None:
    write(tmp_path / "file", "x")
    result = getd("convert", "demo", tmp_path / "file" / "out")
    assert (result.code, result.err) == (
        1,
        f"cannot write {tmp_path / 'file' / 'out'}: {tmp_path / 'file'} is not a folder\n",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["inof"],
            'unknown command "inof". Did you mean "info"? Available commands: '
            "info, convert, datasets, demo, train, tune, combine, models, ...",
        ),
        (["info"], 'command "info" parameter DATA requires an argument.'),
        (["info", "demo", "--arty", "3"], "unknown option: --arty. Did you mean --arity?"),
        (
            ["info", "demo", "--arity", "x"],
            'invalid value for --arity: unable to convert "x" into int.',
        ),
        (["info", "demo", "--arity", "0"], "data.arity: input should be greater than 0, found 0"),
        (["info", "demo", "more"], "unused Tokens: ['more']."),
        (["convert", "demo", "x", "--to", "xlsx"], None),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(
    getd: Getd, arguments: list[str], message: str | None
) -> None:
    result = getd(*arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    if message is not None:
        assert result.err == f"{message}\n"


def test_an_unknown_name_is_answered_with_the_nearest(getd: Getd) -> None:
    result = getd("info", "JF17k4")
    assert (result.code, result.err) == (
        1,
        "no file, folder or data set 'JF17k4'; did you mean 'JF17K-4'?\n",
    )


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_files_that_we_write_have_the_permissions_of_the_umask(
    tmp_path: Path, getd: Getd, umask: int
) -> None:
    before = os.umask(umask)
    try:
        getd("convert", "demo", tmp_path / "out")
    finally:
        os.umask(before)

    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "out", tmp_path / "out" / "train.tsv")
    }
    assert modes == {"out": 0o777 & ~umask, "train.tsv": 0o666 & ~umask}


def test_a_library_that_gives_up_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    def give_up() -> None:
        raise pl.exceptions.PanicException("index out of bounds\nat length")

    assert exit_code(give_up) == 1
    assert (
        capfd.readouterr().err == "a library failed on this data: index out of bounds\\nat length\n"
    )


def test_what_is_no_panic_is_not_swallowed() -> None:
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        exit_code(leave)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 5", "expected a section [model], found model = 5"),
        ("training = [1]", "expected a section [training], found training = [1]"),
        ("memory = 'x'", "expected a section [memory], found memory = 'x'"),
        ("[model]\nname = ['getd']", "expected the name of a model, found ['getd']"),
        ("a = " + "[" * 5000, "PATH: expected TOML, found values nested too deeply"),
        ("a." * 20_000 + "b = 1", "PATH: expected keys of at most 100 parts, found one of more"),
        ("[" + "a." * 20_000 + "b]", "PATH: expected keys of at most 100 parts, found one of more"),
        ("[training]\nepochs = " + "9" * 5000, None),
        ("[training]\nseed = 1979-99-99", None),
    ],
)
def test_a_config_of_another_shape_is_one_line(
    tmp_path: Path, getd: Getd, text: str, message: str | None
) -> None:
    path = write(tmp_path / "config.toml", text)
    result = getd("train", "missing", "--config", path)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    if message is not None:
        assert result.err == f"{message.replace('PATH', str(path))}\n"


@pytest.mark.parametrize("value", ["5", "['demo']"])
@pytest.mark.parametrize("command", ["train", "tune"])
def test_data_of_a_config_that_is_no_text_is_one_line(
    tmp_path: Path, getd: Getd, command: str, value: str
) -> None:
    path = write(tmp_path / "config.toml", f"data = {value}")
    result = getd(command, "--config", path)
    message = "expected data to be a path or the name of a data set"
    assert (result.code, result.err) == (2, f"{message}, found {value}\n")


@pytest.mark.parametrize("value", ["[" * 5000, "9" * 5000])
def test_a_setting_that_toml_cannot_hold_is_text(getd: Getd, value: str) -> None:
    result = getd("train", "missing", "--set", f"training.epochs={value}")
    assert (result.code, result.err[:17]) == (2, "training.epochs: ")
    assert len(result.err) <= 301
