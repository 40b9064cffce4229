"""Files as people have them: separators, encodings, compression, and all that can be wrong."""

import gzip
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accord._files import OptionError
from accord.tables import TableError, TableFile, open_table, read_header, read_table
from accord.tables.cells import cleaned


def written(folder: Path, content: bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,x\n2,\n",
        b"a;b\r\n1;x\r\n2;NA\r\n",
        b"a\tb\n 1 \t x\n2\tnull\n",
        b"a|b\n1|x\n2|n/a\n",
        b"\xef\xbb\xbfa,b\n1,x\n2,NaN\n",
        "a,b\n1,x\n2,\n".encode("utf-16"),
        b"\n\n a , b \n1,x\n2,\n\n",
        b'"a","b"\n"1","x"\n"2",""\n',
        b"'a','b'\n'1','x'\n'2',''\n",
        b"a;b\n1;'x'\n2;''\n",
        b"a^b\n1^x\n2^NA\n",
        b"a b\n1 x\n2 NA\n",
        b"  a     b\n  1     x\n 2  NA  \n",
        "a,b\n1,x\n2,\n".encode("utf-16-le"),
        "a,b\n1,x\n2,\n".encode("utf-16-be"),
    ],
    ids=[
        *("comma", "semicolon", "tab", "bar", "utf-8 mark", "utf-16", "spaces", "quotes"),
        *("single quotes", "single quotes of text", "caret", "one space", "aligned"),
        *("utf-16-le", "utf-16-be"),
    ],
)
def test_one_table_however_it_is_written(tmp_path: Path, content: bytes) -> None:
    data = read_table(written(tmp_path, content)).data
    cells = {name: cleaned(data[name]).to_pylist() for name in data.column_names}
    assert cells == {"a": ["1", "2"], "b": ["x", None]}


def test_single_quotes_around_cells_are_said_and_apostrophes_kept(tmp_path: Path) -> None:
    around = read_table(written(tmp_path, b"'a','b'\n1,'x, ''y'''\n2,'z'\n"))
    assert around.data["b"].to_pylist() == ["x, 'y'", "z"]
    assert any("single quotation marks" in note for note in around.notes)
    inside = read_table(written(tmp_path, b"a,b\n1,'tis\n2,it's\n3,'z'\n", "words.csv"))
    assert inside.data["b"].to_pylist() == ["'tis", "it's", "'z'"]
    assert not inside.notes


def test_cells_are_kept_byte_for_byte(tmp_path: Path) -> None:
    path = written(tmp_path, b"id,x\n NA ,1\nNone,2\nnull,3\n 007,4\n,5\n")
    with open_table(path) as stream:
        (batch,) = stream.batches
    assert batch["id"].to_pylist() == [" NA ", "None", "null", " 007", ""]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("naïve,Zoë\n1,é\n", "cp1252"), ("price\n5 €\n", "cp1252"), ("a\n\x81é\n", "latin-1")],
)
def test_other_encodings_are_found_and_said(tmp_path: Path, text: str, encoding: str) -> None:
    table = read_table(written(tmp_path, text.encode(encoding)))
    assert table.data.column_names == text.split("\n")[0].split(",")
    assert table.notes == (
        f"data.csv is not UTF-8 text and was read as {encoding}. If letters look wrong, give "
        "its encoding (--encoding).",
    )
    assert read_table(written(tmp_path, text.encode())).notes == ()


def test_unusual_separators_are_said(tmp_path: Path) -> None:
    for content, spoken in ((b"a b\n1 2\n", "spaces"), (b"a^b\n1^2\n", "'^'")):
        (note,) = read_table(written(tmp_path, content)).notes
        assert f"separated by {spoken}" in note


@pytest.mark.parametrize(
    ("content", "delimiter", "columns"),
    [
        (b"a,b;c\n1,2;3\n", ";", ["a,b", "c"]),
        (b"a,b\tc\n1,2\t3\n", "tab", ["a,b", "c"]),
        (b"a,1 b\n2,3 4\n", "space", ["a,1", "b"]),
        (b"a:b\n1:2\n", ":", ["a", "b"]),
    ],
)
def test_the_separator_may_be_given(
    tmp_path: Path, content: bytes, delimiter: str, columns: list[str]
) -> None:
    path = written(tmp_path, content)
    assert read_table(TableFile(path, delimiter=delimiter)).data.column_names == columns
    assert read_header(TableFile(path, delimiter=delimiter)) == columns
    with pytest.raises(OptionError, match="must be one character"):
        read_table(TableFile(path, delimiter="ab"))


def test_text_with_spaces_is_no_table_of_words(tmp_path: Path) -> None:
    path = written(tmp_path, b"city\nNew York\nUlm\n")
    assert read_table(path).data.to_pydict() == {"city": ["New York", "Ulm"]}


@pytest.mark.parametrize(
    ("content", "mark"),
    [
        (b"a\tb\n0,500\t1,250\n1,250\t2,500\n", ","),
        (b"a;b\n1,5;1.234\n", ","),
        (b"a,b\n1.5,2\n", "."),
        (b"a,b\n1,2\n", None),
    ],
)
def test_the_decimal_mark_is_found(tmp_path: Path, content: bytes, mark: str | None) -> None:
    path = written(tmp_path, content)
    assert read_table(path).decimal == mark
    assert read_table(TableFile(path, decimal=",")).decimal == ","
    with pytest.raises(OptionError, match="decimal must be"):
        read_table(TableFile(path, decimal=";"))  # type: ignore[arg-type]


def test_a_large_file_of_spaces(tmp_path: Path) -> None:
    lines = b"".join(b"%7d   %d\n" % (i, i * i) for i in range(50_000))
    path = written(tmp_path, b"      a   b\n" + lines)
    data = read_table(path).data
    assert data.num_rows == 50_000
    assert data["b"][-1].as_py() == str(49_999**2)


def test_compressed_files(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(b"a,b\n1,2\n"), "data.csv.gz")
    assert read_table(path).data.to_pydict() == {"a": ["1"], "b": ["2"]}
    with pytest.raises(TableError, match="cannot be decompressed"):
        read_table(written(tmp_path, gzip.compress(b"a,b\n1,2\n")[:20], "cut.csv.gz"))


def test_cells_may_hold_separators_and_line_ends(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, b'"a,1",b\n"x\ny",2\n'))
    assert table.data.to_pydict() == {"a,1": ["x\ny"], "b": ["2"]}


def test_parquet_keeps_types_and_streams_in_order(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"a": np.arange(1000), "b": np.arange(1000.0)}), path)
    assert read_table(path).data.schema.types == [pa.int64(), pa.float64()]
    with open_table(path, batch_rows=128, columns=["b", "absent"]) as stream:
        assert stream.columns == ("a", "b")
        assert stream.position() == 0
        batches = list(stream.batches)
        assert stream.position() == 1
    assert max(batch.num_rows for batch in batches) <= 128
    assert pa.concat_tables(batches).to_pydict() == {"b": list(np.arange(1000.0))}


def test_csv_streams_in_order(tmp_path: Path) -> None:
    path = written(tmp_path, b"a\n" + b"".join(b"%d\n" % i for i in range(1000)))
    with open_table(path, batch_rows=300) as stream:
        rows = [cell for batch in stream.batches for cell in batch["a"].to_pylist()]
    assert rows == [str(i) for i in range(1000)]


def test_a_line_break_in_a_name_is_a_space(tmp_path: Path) -> None:
    path = written(tmp_path, b'"Price\r\nin CHF";"a \n b"\r\n1;"x\ny"\r\n2;z\r\n')
    table = read_table(path).data
    assert table.to_pydict() == {"Price in CHF": ["1", "2"], "a b": ["x\ny", "z"]}


def test_a_parquet_file_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    pq.write_table(pa.table({"a": [1]}), path)
    assert read_header(path) == ["a"]


def test_the_fingerprint_follows_the_content(tmp_path: Path) -> None:
    one = read_table(written(tmp_path, b"a\n1\n", "1.csv")).sha256
    same = read_table(written(tmp_path, b"a\n1\n", "2.csv")).sha256
    other = read_table(written(tmp_path, b"a\n2\n", "3.csv")).sha256
    assert one == same != other
    frame = pd.DataFrame({"a": [1, 2]})
    assert read_table(frame).sha256 == read_table(frame.copy()).sha256
    assert read_table(frame).sha256 != read_table(frame + 1).sha256


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "a.csv", "a.csv is empty"),
        (b"a,b\n", "a.csv", "no rows"),
        (b"\n\n", "a.csv", "no columns"),
        (b"a,b\n1,2\n3\n", "a.csv", r"Row #3: Expected 2 columns, got 1"),
        (b"a,b,a\n1,2,3\n", "a.csv", "unique, but a.csv has 'a' more than once"),
        (b"a\n" + b"1\n" * 5_000_000 + b"\xe9\n", "a.csv", "not utf-8 text"),
        (b"\x00\x01\x02", "a.csv", "not text"),
        (b"PAR1 and no more", "a.parquet", "cannot be read as Parquet"),
        (b"hello", "a.parquet", "cannot be read as Parquet"),
        (b"PK\x03\x04", "a.xlsx", "Excel workbook"),
    ],
)
def test_broken_files_are_named_with_a_remedy(
    tmp_path: Path, content: bytes, name: str, message: str
) -> None:
    with pytest.raises(TableError, match=message):
        read_table(written(tmp_path, content, name))


def test_a_parquet_file_cut_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(0).normal(size=10_000)}), path)
    content = path.read_bytes()
    damaged = content[:4] + bytes(1000) + content[1004:]  # the footer is whole, the pages are not
    with pytest.raises(TableError, match="cut short"):
        read_table(written(tmp_path, content[:-100], "cut.parquet"))
    with pytest.raises(TableError, match="cut short"):
        read_table(written(tmp_path, damaged, "damaged.parquet"))


def test_the_named_encoding_is_used(tmp_path: Path) -> None:
    path = written(tmp_path, "naïve\né\n".encode("latin-1"))
    assert read_table(TableFile(path, encoding="latin-1")).data.to_pydict() == {"naïve": ["é"]}
    with pytest.raises(TableError, match=r"not utf-8 text\. Give the encoding latin-1"):
        read_table(TableFile(path, encoding="utf-8"))
    with pytest.raises(OptionError, match="known text encoding"):
        read_table(TableFile(path, encoding="klingon"))


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="does not exist"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(OptionError, match="is a folder"):
        read_table(tmp_path)


def test_ten_thousand_columns(tmp_path: Path) -> None:
    names = [f"a column with a long name, number {i}" for i in range(10_000)]
    frame = pd.DataFrame(np.zeros((3, 10_000)), columns=names)
    frame.to_csv(tmp_path / "wide.csv", index=False)
    table = read_table(tmp_path / "wide.csv")
    assert table.data.num_columns == 10_000
    assert table.data.num_rows == 3


@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
def test_tables_come_through_pipes(path: str) -> None:
    code = (
        "import sys; from accord.tables import open_table, read_table\n"
        "t = read_table(sys.argv[1]); print(t.name, t.data.to_pydict(), len(t.sha256))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], input=b"a;b\n1;2\n", capture_output=True, check=True
    )
    assert done.stdout.decode() == "standard input {'a': ['1'], 'b': ['2']} 64\n"
    empty = subprocess.run([sys.executable, "-c", code, path], input=b"", capture_output=True)
    assert b"standard input is empty" in empty.stderr


def test_names_of_files_are_safe_to_print(tmp_path: Path) -> None:
    for content in (b"", b"a,a\n1,2\n", b"a,b\n1,2\n3\n", b"a\n"):
        with pytest.raises(TableError) as caught:
            read_table(written(tmp_path, content, "\x1b[2Jevil.csv"))
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("first", [b"sep=;\r\n", b'"sep=;"\r\n', b"\xef\xbb\xbfSEP=;\n\n"])
def test_a_first_line_that_names_the_separator(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "export.csv"
    path.write_bytes(first + b"a;b,c\r\n1;2\r\n3;4\r\n")
    assert read_table(path).data.to_pydict() == {"a": ["1", "3"], "b,c": ["2", "4"]}
    assert read_header(path) == ["a", "b,c"]


def test_a_column_of_several_types_is_read_as_a_file_would_be() -> None:
    frame = pd.DataFrame({"a": [1.5, "x", None], "b": [1, "2", 3.0], "c": [0.1, 0.2, 0.3]})
    table = read_table(frame).data
    assert table.column("a").to_pylist() == ["1.5", "x", None]
    assert table.column("b").to_pylist() == ["1", "2", "3.0"]
    assert table.column("c").to_pylist() == [0.1, 0.2, 0.3]


def test_sparse_columns_are_numbers() -> None:
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 0.0, 1.0])})
    assert read_table(frame).data.column("a").to_pylist() == [0.0, 0.0, 1.0]


def test_types_that_pandas_alone_has_are_read_as_what_they_stand_for() -> None:
    cut = pd.cut(pd.Series([1.0, 7.0, None]), [0, 5, 10])
    month = pd.PeriodIndex(["2024-02", None, "2024-03"], freq="M")
    table = read_table(pd.DataFrame({"cut": cut, "month": month})).data
    assert table.column("cut").to_pylist() == ["(0, 5]", "(5, 10]", None]
    assert table.column("month").to_pylist() == [
        pd.Timestamp("2024-02-01"),
        None,
        pd.Timestamp("2024-03-01"),
    ]
    bare = pd.DataFrame({"bare": pd.arrays.IntervalArray(cut)})
    assert read_table(bare).data.column("bare").to_pylist() == ["(0.0, 5.0]", "(5.0, 10.0]", None]


@pytest.mark.parametrize("value", [1 + 2j, object()])
def test_cells_of_no_known_type_are_named(value: object) -> None:
    with pytest.raises(TableError, match=r"'odd' of the DataFrame holds .* \((complex|object)"):
        read_table(pd.DataFrame({"x": [1.0], "odd": [value]}))


NAMES, ROWS = "size,town,price", ["1.5,Ulm,2", "2.5,Bonn,3", "4.5,Ulm,7"]


@pytest.mark.parametrize(
    ("lines", "names", "note"),
    [
        (["# rig 7", "# 2024-05-01", NAMES, *ROWS], NAMES, "2 lines above .* '# rig 7'"),
        (["# rig 7; run 3", NAMES, *ROWS], NAMES, "1 line above"),
        (["Operator,Smith", "", NAMES, *ROWS], NAMES, "1 line above .* 'Operator,Smith'"),
        ([NAMES, *(f"{row}," for row in ROWS)], f"{NAMES},column 4", ""),
        ([f"{NAMES},", *ROWS], NAMES, ""),
        ([NAMES, *(f'"r{k}",{row}' for k, row in enumerate(ROWS))], f"column 1,{NAMES}", ""),
    ],
    ids=["comments", "other marks", "remark", "rows end in one", "header ends in one", "R"],
)
def test_lines_above_the_header_and_headers_of_another_width(
    lines: list[str], names: str, note: str, tmp_path: Path
) -> None:
    path = tmp_path / "rig.csv"
    path.write_text("\n".join(lines) + "\n")
    table = read_table(path)
    assert table.data.column_names == names.split(",")
    assert table.data.column("price").to_pylist() == ["2", "3", "7"]
    assert len(table.notes) == bool(note)
    assert all(re.search(note, found) for found in table.notes)


@pytest.mark.parametrize(
    "lines",
    [
        ["size,price", "1,5,2", "2,5,3"],
        ["size, town", '1, "Ulm, DE"', '2, "Bonn, DE"'],
        ['"size", "town"', '"1", "Ulm, DE"', '"2", "Bonn, DE"'],
    ],
    ids=["decimal commas", "spaces before quotation marks", "spaces between quoted cells"],
)
def test_cells_that_are_cut_in_two_are_no_names_of_rows(lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(TableError, match="Expected 2 columns, got 3"):
        read_table(path)
