"""Tables are written in batches, and no spreadsheet runs what is in them."""

import errno
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accord._files import OptionError, atomic_output
from accord.tables import TableWriter, refuse_unknown_suffix
from accord.tables.cells import guard_formulas


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small tmpfs needs rights that are not here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_full_disk_leaves_nothing(tiny_disk: Path, name: str) -> None:
    rows = pa.table({"a": np.random.default_rng(0).normal(size=50_000)})

    def fill() -> None:
        with atomic_output(tiny_disk / name) as part, TableWriter(part) as writer:
            for _ in range(10):
                writer.write(rows)

    with pytest.raises(OSError, match="No space left") as caught:
        fill()
    assert caught.value.errno == errno.ENOSPC
    assert not list(tiny_disk.iterdir())


def test_formulas_become_text_in_csv_and_stay_in_parquet(tmp_path: Path) -> None:
    hostile = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "＝1", "-1.5", "+3", "plain", None]
    table = pa.table({"=name": hostile, "number": np.arange(-5.0, 5.0)})
    for name in ("out.csv", "out.parquet"):
        with TableWriter(tmp_path / name) as writer:
            writer.write(table)
    cells = guard_formulas(table).column(0).to_pylist()
    assert cells == [f"'{cell}" for cell in hostile[:6]] + hostile[6:]
    text = (tmp_path / "out.csv").read_text()
    assert text.startswith('"\'=name"')
    assert '\n"\'=1+1",-5' in text
    assert pq.read_table(tmp_path / "out.parquet").equals(table)


def test_batches_are_one_table(tmp_path: Path) -> None:
    with TableWriter(tmp_path / "out.csv") as writer:
        writer.write(pa.table({"a": [1, 2]}))
        writer.write(pa.table({"a": [3]}))
    assert (tmp_path / "out.csv").read_text() == '"a"\n1\n2\n3\n'


def test_tables_go_to_files_of_two_kinds_and_to_standard_output() -> None:
    for path in ("out.csv", "out.PARQUET", "-"):
        assert refuse_unknown_suffix(path) == Path(path)
    with pytest.raises(OptionError, match=r"must end in \.csv or \.parquet, got 'out\.xlsx'"):
        refuse_unknown_suffix("out.xlsx")


def test_a_table_on_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with atomic_output("-") as part, TableWriter(part) as writer:
        writer.write(pa.table({"a": [1, 2]}))
    assert capfdbinary.readouterr().out == b'"a"\n1\n2\n'


def test_numbers_that_do_not_repeat_get_no_dictionary(tmp_path: Path) -> None:
    table = pa.table({"town": ["a", "b"] * 500, "mean": np.random.default_rng(0).normal(size=1000)})
    with TableWriter(tmp_path / "out.parquet") as writer:
        writer.write(table)
    assert pq.read_table(tmp_path / "out.parquet").equals(table)
    group = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0)
    dictionaries = [group.column(place).has_dictionary_page for place in range(2)]
    assert dictionaries == [True, False]
