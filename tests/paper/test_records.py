"""Records: whole or absent, and never the answer to another question."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accord.paper.stacks import (
    Cell,
    Record,
    RecordStore,
)
from accord.paper.study import Source

SOURCE = Source("table1", "BVM", "printed", "smoothed")
CELL = Cell(SOURCE, "boston", 3, {"epochs": 40, "hidden": [50], "rate": 3e-4})
RECORD = Record(SOURCE, "boston", 3, {"nll": 2.5, "rmse": 3.1}, networks=5)


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    return RecordStore(tmp_path / "records")


def test_what_was_put_is_got(store: RecordStore) -> None:
    assert store.get(CELL) is None
    store.put(CELL, RECORD)
    assert store.get(CELL) == RECORD


def test_numpy_numbers_and_infinities_survive(store: RecordStore) -> None:
    record = replace(
        RECORD, measures={"nll": np.float64(1.5), "far": float("inf")}, curves={"x": np.arange(3.0)}
    )
    store.put(CELL, record)
    got = store.get(CELL)
    assert got is not None
    assert got.measures == {"nll": 1.5, "far": float("inf")}
    assert got.curves == {"x": [0.0, 1.0, 2.0]}


@pytest.mark.parametrize(
    "other",
    [
        replace(CELL, source=replace(SOURCE, study="table3")),
        replace(CELL, dataset="yacht"),
        replace(CELL, source=replace(SOURCE, method="PBP")),
        replace(CELL, source=replace(SOURCE, recipe="other")),
        replace(CELL, source=replace(SOURCE, predictive="as printed")),
        replace(CELL, split=4),
        replace(CELL, settings={**CELL.settings, "epochs": 41}),
        replace(CELL, settings={**CELL.settings, "hidden": [50, 50]}),
        replace(CELL, settings={**CELL.settings, "new": None}),
    ],
)
def test_any_change_asks_for_another_record(other: Cell, store: RecordStore) -> None:
    store.put(CELL, RECORD)
    assert store.get(other) is None


def test_order_of_settings_does_not_matter() -> None:
    turned = replace(CELL, settings=dict(reversed(list(CELL.settings.items()))))
    assert turned.key == CELL.key


NO_RECORD = '{"key": "%s", "record": {"source": null, "dataset": 1, "split": 0, "measures": []}}'
NO_NUMBERS = json.dumps(
    {
        "key": CELL.key,
        "record": {
            "source": {"study": "s", "method": "m", "recipe": "r"},
            "dataset": "boston",
            "split": 3,
            "measures": {"nll": "two"},
        },
    }
)


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        '{"key": "x"}',
        '{"key": 1, "record": {}}',
        '{"key": 1, "record": null}',
        NO_RECORD % CELL.key,
        NO_NUMBERS,
    ],
)
def test_damaged_records_are_set_aside_and_made_again(damage: str, store: RecordStore) -> None:
    store.put(CELL, RECORD)
    assert store.set_aside(CELL) is None, "a good record stays"
    [path] = store.paths()
    path.write_text(damage)
    assert store.get(CELL) is None
    aside = store.set_aside(CELL)
    assert aside is not None
    assert aside.read_text() == damage
    assert list(store.paths()) == []
    store.put(CELL, RECORD)
    assert store.get(CELL) == RECORD


def test_renamed_record_does_not_answer_for_another(store: RecordStore) -> None:
    store.put(CELL, RECORD)
    [path] = store.paths()
    other = replace(CELL, split=4)
    store.put(other, replace(RECORD, split=4))
    [fourth] = [p for p in store.paths() if p != path]
    os.replace(path, fourth)
    assert store.get(other) is None


def test_killed_writer_leaves_whole_records_only(tmp_path: Path) -> None:
    """A process that writes without end is killed; whatever has a record's name is complete."""
    program = f"""
from pathlib import Path
from accord.paper.stacks import Cell, Record, RecordStore
from accord.paper.study import Source
store = RecordStore(Path({str(tmp_path)!r}))
print("ready", flush=True)
for split in range(10**6):
    cell = Cell(Source("s", "m", "r"), "d", split, {{"n": 1}})
    store.put(cell, Record(cell.source, "d", split, {{}}, {{"long": [0.5] * 20000}}))
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    while not any(tmp_path.rglob("*.json")):
        time.sleep(0.01)
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    written = list(RecordStore(tmp_path).paths())
    assert written
    assert all(len(json.loads(p.read_text())["record"]["curves"]["long"]) == 20000 for p in written)
