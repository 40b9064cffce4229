"""What is answered: the same as the command writes, whatever the form of the rows."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from asgi_client import Call, Reply, ask

import accord
from accord.service import Service
from accord.service.model import load_served
from accord.tables import conform_rows
from accord.workflows import predict_table

# Between an exported graph and Python, of the target's spread.
ROUNDING = 1e-5
ARROW = "application/vnd.apache.arrow.stream"
Records = list[dict[str, Any]]


def arrow_stream(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def frame_of(reply: Reply) -> pd.DataFrame:
    assert reply.status == 200, reply.body
    if reply.headers["content-type"].startswith("text/csv"):
        return pacsv.read_csv(io.BytesIO(reply.body)).to_pandas()
    if reply.headers["content-type"] == ARROW:
        return pa.ipc.open_stream(reply.body).read_all().to_pandas()
    return pd.DataFrame(reply.json["predictions"])


@pytest.fixture(scope="module")
def written(model_file: Path, houses: pd.DataFrame, tmp_path_factory: Any) -> pd.DataFrame:
    """What the command writes for the first five houses."""
    folder = tmp_path_factory.mktemp("command")
    houses.head(5).to_csv(folder / "new.csv", index=False)
    predict_table(model_file, folder / "new.csv", output=folder / "out.parquet")
    return pd.read_parquet(folder / "out.parquet")


def test_all_forms_of_rows_get_what_the_command_writes(
    service: Service, rows: Records, houses: pd.DataFrame, written: pd.DataFrame
) -> None:
    table = pa.Table.from_pandas(houses.head(5), preserve_index=False)
    calls = [
        Call(rows=rows),
        Call(body=houses.head(5).to_csv(index=False).encode(), media="text/csv; charset=utf-8"),
        Call(body=arrow_stream(table), media=ARROW),
        Call(rows=rows, headers=(("accept", f"{ARROW}, */*;q=0.1"),)),
        Call(rows=rows, headers=(("accept", "text/csv"),)),
    ]
    replies = ask(service, *calls)
    kinds = ["application/json", "text/csv; charset=utf-8", ARROW, ARROW, "text/csv; charset=utf-8"]
    assert [reply.headers["content-type"] for reply in replies] == kinds
    for reply in replies:
        # a column of zeros alone is read from text as whole numbers
        spread = ROUNDING * houses["price"].std()
        found = frame_of(reply)
        pd.testing.assert_frame_equal(found, written, rtol=0, atol=spread, check_dtype=False)


def test_requests_at_the_same_time_share_batches_and_not_their_answers(
    service: Service, rows: Records, written: pd.DataFrame
) -> None:
    before = batches(service)
    calls = [Call(rows=[rows[n % 5]]) for n in range(40)]
    replies = ask(service, *calls)
    assert batches(service) - before < 10
    means = [reply.json["predictions"][0]["mean"] for reply in replies]
    np.testing.assert_allclose(means, np.tile(written["mean"], 8), rtol=ROUNDING)


def batches(service: Service) -> float:
    lines = dict(line.rsplit(" ", 1) for line in service.metrics.text().splitlines())
    return float(lines["accord_batch_rows_count"])


def test_one_bad_request_does_not_spoil_those_beside_it(service: Service, rows: Records) -> None:
    wrong = {**rows[0], "sold": "someday"}
    replies = ask(service, *(Call(rows=[row]) for row in [*rows, wrong, *rows]))
    assert [reply.status for reply in replies] == [200] * 5 + [422] + [200] * 5
    assert "'sold' must hold dates, got 'someday' in row 1" in replies[5].error


def test_a_word_among_numbers_is_a_gap_with_a_warning(
    service: Service, houses: pd.DataFrame
) -> None:
    new = houses.drop(columns="price").head(257).astype({"area": object})
    new = pd.concat([new, new], ignore_index=True).head(257)  # the last row is a piece of its own
    new.loc[256, "area"] = "rotary"
    body = new.to_csv(index=False).encode()
    reply, strict = ask(
        service,
        Call(body=body, media="text/csv"),
        Call(body=body, media="text/csv", options=(("strict", True),)),
    )
    assert reply.status == 200
    assert bool(frame_of(reply)["unusual"][256])
    assert (
        "1 value in 'area' is no number ('rotary' in row 257): taken as missing, and its row as "
        "unusual."
    ) in json.loads(reply.headers["accord-warnings"])
    assert strict.status == 422
    assert "'area' must hold numbers, got 'rotary' in row 257" in strict.error


def test_long_requests_go_in_pieces_and_keep_their_order(
    service: Service, houses: pd.DataFrame
) -> None:
    text = pd.concat([houses] * 4).to_csv(index=False).encode()  # 600 rows, 256 at a time
    (reply,) = ask(service, Call(body=text, media="text/csv"))
    frame = frame_of(reply)
    assert len(frame) == 600
    np.testing.assert_allclose(frame["mean"][450:], frame["mean"][:150], rtol=1e-9)
    counts = json.loads(reply.headers["accord-warnings"])
    missing = 4 * int(houses["age"].isna().sum())
    assert counts == [f"{missing} missing values in 'age': predicted from the other columns."]


def test_coverages(service: Service, rows: Records) -> None:
    options = (("coverage", 0.5), ("coverage", 0.9))
    several, one = ask(
        service, Call(rows=rows, options=options), Call(rows=rows, options=options[1:])
    )
    frame, alone = frame_of(several), frame_of(one)
    assert several.json["coverage"] == [0.5, 0.9]
    np.testing.assert_allclose(frame["lower_90"], alone["lower"], rtol=1e-9)
    assert (frame["upper_90"] > frame["upper_50"]).all()


def test_gaps_and_unknown_categories_behave_as_in_the_command(
    service: Service, rows: Records
) -> None:
    odd = {**rows[0], "age": None, "town": "Mars", "area": 1e9}
    flagged, refused = ask(
        service, Call(rows=[odd, rows[1]]), Call(rows=[odd], options=(("strict", "true"),))
    )
    assert [row["unusual"] for row in flagged.json["predictions"]] == [True, False]
    assert flagged.json["warnings"] == [
        "1 missing value in 'age': predicted from the other columns.",
        "1 value far beyond all in training in 'area': the rows count as unusual.",
        "1 category not seen in training in 'town': predicted from the other columns.",
    ]
    assert refused.status == 422
    assert "column 'area' must lie near" in refused.error
    assert "column 'town' must hold categories that the model knows" in refused.error


def test_the_graph_says_what_python_says(service: Service, houses: pd.DataFrame) -> None:
    """Typical rows and odd ones: gaps, unknown categories, absurd and infinite numbers."""
    new = houses.head(40).drop(columns="price").copy()
    new.loc[:3, "area"] = [np.inf, -np.inf, 1e9, np.nan]
    new.loc[4:6, "town"] = ["Oslo", None, "Rome"]
    served = service.model
    judged = conform_rows(pa.Table.from_pandas(new), served.records.schema, source="new")
    rows = (served.model.transform(judged.X), judged.unlike, (served.model.coverage,))
    assert served.graph is not None
    by_graph, by_python = served.columns(*rows), replace(served, graph=None).columns(*rows)
    assert list(by_graph) == list(by_python)
    for name, values in by_python.items():
        apart = np.abs(by_graph[name].astype(float) - values.astype(float))
        scale = 1.0 if name == "unusual" else houses["price"].std()
        assert apart.max() < ROUNDING * scale, name


def test_without_onnxruntime_python_predicts(model_file: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert load_served(model_file).graph is None


def test_receipts(service: Service, rows: Records, model_file: Path, houses: pd.DataFrame) -> None:
    (reply,) = ask(service, Call("/explain", rows=rows, options=(("coverage", 0.8),)))
    found = reply.json
    receipts = accord.load(model_file).explain_uncertainty(houses.head(5), coverage=0.8)
    assert found["coverage"] == 0.8
    for row, receipt in enumerate(found["receipts"]):
        assert receipt["text"] == receipts.text(row)
        assert sum(receipt["shares"].values()) == pytest.approx(1)
        by_column = sum(receipt["distance_by_column"].values())
        assert by_column == pytest.approx(receipt["shares"]["distance"])


def test_receipts_by_column_of_all_parts(service: Service, rows: Records) -> None:
    options = (("permutations", 4),)
    one, many = ask(
        service,
        Call("/explain", rows=rows[:1], options=options),
        Call("/explain", rows=rows * 6, options=options),
    )
    assert set(one.json["receipts"][0]["noise_by_column"]) == {*rows[0]} - {"house"}
    assert many.status == 413
    assert "at most 25 rows, got 30" in many.error
