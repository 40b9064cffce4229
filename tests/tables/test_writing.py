"""Output files appear whole or not at all, and no spreadsheet runs what is in them."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accord.tables import OptionError, TableWriter, atomic_output, check_output, guard_formulas


def test_the_file_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with atomic_output(path) as part:
        part.write_text("half")
        assert not path.exists()
    assert path.read_text() == "half"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_of_a_failure(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail_half_way() -> None:
        with atomic_output(path, force=True) as part:
            part.write_text("new")
            raise error

    with pytest.raises(error):
        fail_half_way()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(OptionError, match=r"already exists\. Pass --force"), atomic_output(path):
        pass
    assert path.read_text() == "old"
    with atomic_output(path, force=True) as part:
        part.write_text("new")
    assert path.read_text() == "new"


def test_a_file_made_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"

    def race() -> None:
        with atomic_output(path) as part:
            part.write_text("mine")
            path.write_text("theirs")

    with pytest.raises(OptionError, match="meanwhile"):
        race()
    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"does not exist\. Create it"):
        check_output(tmp_path / "absent" / "out.csv")
    with pytest.raises(OptionError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(OSError, match="cannot write to /proc"):
        check_output("/proc/out.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="cannot write to"):
        check_output(tmp_path / "out.csv")


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
