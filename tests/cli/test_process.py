"""The command as a process: quick help, Ctrl-C, a request to stop, a full disk."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import accord

ACCORD = [sys.executable, "-c", "from accord.cli import main; main()"]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from accord.cli import application\n"
        "heavy = {'torch', 'pandas', 'pyarrow', 'numpy', 'sklearn', 'matplotlib', 'jinja2'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_prediction_imports_nothing_that_it_does_not_need(
    model_file: Path, houses: pd.DataFrame, tmp_path: Path
) -> None:
    houses.head(1).to_csv(tmp_path / "one.csv", index=False)
    code = (
        "import sys; from accord.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "idle = {'rich', 'matplotlib', 'jinja2', 'dask', 'distributed', 'pyarrow.dataset',\n"
        "        'sklearn.pipeline', 'sklearn.ensemble', 'sklearn.neighbors', 'sklearn.cluster',\n"
        "        'sklearn.gaussian_process', 'sklearn.linear_model', 'sklearn.model_selection',\n"
        "        'torch._dynamo', 'torch._inductor', 'torch.onnx', 'sklearn.metrics',\n"
        "        'scipy.stats.distributions', 'scipy.optimize._optimize',\n"
        "        'accord.calibration', 'accord.datasets', 'accord.losses', 'accord.paper',\n"
        "        'accord.report', 'accord.service', 'accord.validation', 'accord.workflows.fit'}\n"
        "print(sorted(idle & set(sys.modules)))"
    )
    asked = ["predict", str(model_file), str(tmp_path / "one.csv"), "-o", str(tmp_path / "o.csv")]
    found = subprocess.run(
        [sys.executable, "-c", code, *asked, "-q"], capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines()[-1] == "[]"


@pytest.fixture
def big_table(houses: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "big.csv"
    pd.concat([houses] * 40, ignore_index=True).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGHUP], ids=["Ctrl-C", "the terminal closes"]
)
def test_a_stopped_fit_leaves_nothing_but_what_it_goes_on_from(
    big_table: Path, number: signal.Signals
) -> None:
    folder = big_table.parent
    before = {path.name for path in folder.iterdir()}
    process = subprocess.Popen(
        [*ACCORD, "fit", str(big_table), "--target", "price"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "Training" not in process.stderr.readline():
        pass
    time.sleep(1)  # into the training, which takes far longer
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "stopped" in errors
    assert "Traceback" not in errors
    assert {path.name for path in folder.iterdir()} - {"model.accord.unfinished"} == before


def test_a_fit_that_was_killed_goes_on_to_the_same_bits(
    houses: pd.DataFrame, tmp_path: Path
) -> None:
    houses.to_csv(tmp_path / "houses.csv", index=False)
    fit = [*ACCORD, "fit", "houses.csv", "--target", "price", "--effort", "quick", "--no-report"]
    killed = subprocess.Popen([*fit, "-q"], cwd=tmp_path)
    kept = tmp_path / "model.accord.unfinished"
    while not list(kept.glob("[!.]*.unit")):
        assert killed.poll() is None, "it ended before anything was kept"
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "model.accord").exists()
    again = subprocess.run(fit, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Used again from a stopped run" in again.stderr
    assert not kept.exists()
    whole = [*fit, "-q", "--no-resume", "-o", "whole.accord"]
    subprocess.run(whole, cwd=tmp_path, check=True)
    models = [accord.load(tmp_path / name) for name in ("model.accord", "whole.accord")]
    one, other = (model.predict_interval(houses).to_numpy() for model in models)
    assert np.array_equal(one, other)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "predict_stream.py"
    done = subprocess.run(
        [sys.executable, str(script), "--rows", "500000"], capture_output=True, text=True
    )
    assert "limit 1024 MB: kept" in done.stdout, done.stderr


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small tmpfs needs rights that are not here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(tiny_disk: Path, model_file: Path, big_table: Path) -> None:
    out = tiny_disk / "out.csv"
    done = subprocess.run(
        [*ACCORD, "predict", str(model_file), str(big_table), "-o", str(out)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 1
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tiny_disk.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_result_that_cannot_be_printed(tmp_path: Path) -> None:
    lines = "y,m\n" + "".join(f"{i},{i}\n" for i in range(20))
    (tmp_path / "p.csv").write_text(lines)
    ask = ["validate", "p.csv", "--truth", "y", "--mean", "m", "--rule", "within 1"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*ACCORD, *ask, "--report", "v.html"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "Error: cannot print the result (No space left on device). The files that it names are "
        "written."
    )
    assert {"v.html", "v.json"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_predictions_that_standard_output_cannot_take(
    model_file: Path, houses: pd.DataFrame, tmp_path: Path
) -> None:
    houses.to_csv(tmp_path / "new.csv", index=False)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*ACCORD, "predict", str(model_file), "new.csv", "-o", "-", "-q"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
    assert done.returncode == 1
    assert "cannot write to standard output (No space left on device)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_named_before_anything_heavy_is_imported() -> None:
    code = (
        "import sys; from accord.cli import application\n"
        "for ask in (['fit', 'no.csv', '-t', 'y'], ['predict', 'no.accord', 'no.csv'],\n"
        "            ['evaluate', 'no.accord', 'no.csv'], ['compare', 'no.csv', '-t', 'y'],\n"
        "            ['monitor', 'no.accord', 'no.csv']):\n"
        "    try: application(ask)\n"
        "    except SystemExit as end: assert end.code == 2\n"
        "heavy = {'torch', 'pandas', 'pyarrow', 'numpy', 'sklearn', 'matplotlib', 'jinja2'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stderr.count("does not exist") == 5
    assert found.stdout.strip() == "[]"


def test_a_missing_column_is_named_before_torch_is_imported(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n1,2\n3,4\n")
    code = (
        "import sys; from accord.cli import application\n"
        "for ask in (['fit', 't.csv', '-t', 'z'], ['fit', 't.csv', '-t', 'y', '--group', 'z'],\n"
        "            ['validate', 't.csv', '--truth', 'y', '--mean', 'z', '--rule', 'exact']):\n"
        "    try: application(ask)\n"
        "    except SystemExit as end: assert end.code == 2\n"
        "print(sorted({'torch', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert found.stderr.count("column 'z' is not in t.csv") == 3
    assert found.stdout.strip() == "[]"


def test_a_closed_pipe_ends_quietly(model_file: Path, houses: pd.DataFrame, tmp_path: Path) -> None:
    pd.concat([houses] * 20).to_csv(tmp_path / "many.csv", index=False)
    command = f"{' '.join(map(repr, ACCORD))} predict {model_file} many.csv -o - -q | head -2"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr.strip() in ("", "Predicted 3,000 rows. Wrote standard output.")
