"""What the service says of itself, and how its model is exchanged."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from asgi_client import Call, ask
from pydantic import TypeAdapter

import accord
from accord.service import Limits, Service
from accord.service.service import Gauge, Metrics


@pytest.fixture(scope="module")
def other_model(houses: pd.DataFrame, tmp_path_factory: Any) -> Path:
    """A model of the same rows that knows the area alone."""
    path: Path = tmp_path_factory.mktemp("other") / "model.accord"
    engine = accord.DeepEnsembleRegressor(n_members=2, epochs=5, random_state=0)
    model = accord.TableRegressor(engine=engine, random_state=0)
    model.fit(houses[["area", "price"]], "price").save(path)
    return path


def test_the_description_has_the_columns_and_real_examples(
    service: Service, houses: pd.DataFrame
) -> None:
    found = ask(service, Call("/openapi.json"))[0].json
    operation = found["paths"]["/predict"]["post"]
    row = found["components"]["schemas"]["Row"]
    names = ["area", "age", "town", "sold", "<script>alert(1)</script>", "country"]
    assert row["required"] == names
    assert row["properties"]["town"]["examples"] == [houses["town"].mode()[0]]
    body = operation["requestBody"]["content"]["application/json"]["example"]
    answer = operation["responses"]["200"]["content"]["application/json"]["example"]
    (reply,) = ask(service, Call(rows=body))
    assert reply.json["warnings"] == []
    assert reply.json["predictions"][0]["mean"] == pytest.approx(answer["predictions"][0]["mean"])
    text = operation["requestBody"]["content"]["text/csv"]["example"].encode()
    assert ask(service, Call(body=text, media="text/csv"))[0].status == 200


def test_the_description_says_that_no_body_may_be_empty(service: Service) -> None:
    found = ask(service, Call("/openapi.json"))[0].json
    for media, body in found["paths"]["/predict"]["post"]["requestBody"]["content"].items():
        rows = found["components"]["schemas"]["Rows"]
        assert rows["minItems"] == 1 if "$ref" in body["schema"] else body["schema"]["minLength"]
        assert ask(service, Call(body=b"", media=media))[0].status == 422


def test_the_description_refers_to_what_it_defines(service: Service) -> None:
    found = ask(service, Call("/openapi.json"))[0]
    named = set(re.findall(r'"#/components/schemas/(\w+)"', found.body.decode()))
    assert {"Rows", "Row", "Prediction", "Error"} <= named
    assert named <= set(found.json["components"]["schemas"])


def test_the_card(service: Service, model_file: Path) -> None:
    found = ask(service, Call("/model"))[0].json
    card = accord.load(model_file).card_
    assert found["target"] == "price"
    assert found["card"]["held_out"] == pytest.approx(card.held_out)
    assert [column["name"] for column in found["columns"]][:2] == ["area", "age"]


def test_pages_ask_for_nothing_from_elsewhere(service: Service) -> None:
    for reply in ask(service, Call("/"), Call("/docs")):
        assert reply.status == 200
        page = reply.body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in page
        assert "https:" not in page
        assert "default-src 'none'" in reply.headers["content-security-policy"]


def test_metrics_count_what_happened(model_file: Path, rows: list[dict[str, Any]]) -> None:
    fresh = Service(model_file)
    fresh.open()
    ask(fresh, Call(rows=rows), Call(rows=[{}]), Call("/some/path"))
    text = ask(fresh, Call("/metrics"))[0].body.decode()
    fresh.close()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert values['accord_requests_total{path="/predict",status="200"}'] == "1"
    assert values['accord_requests_total{path="/predict",status="422"}'] == "1"
    assert values['accord_requests_total{path="other",status="404"}'] == "1"
    assert values["accord_rows_predicted_total"] == "5"
    assert values['accord_request_seconds_bucket{path="/predict",le="+Inf"}'] == "2"
    assert values["accord_ready"] == "1.0"
    assert TypeAdapter(dict[str, float]).validate_python(values)


def test_metrics_of_several_workers_are_told_together() -> None:
    metrics = Metrics(workers=2)
    state: dict[Gauge, float] = {
        "waiting_rows": 3,
        "ready": True,
        "model_loaded": 2e9,
        "model_reloads": 1,
        "model_reload_failed": False,
    }
    metrics.request("/predict", 200, 0.02)
    metrics.now(state)
    metrics.take_place(1)
    metrics.request("/predict", 200, 0.3)
    metrics.batch(7)
    metrics.rows(predicted=7)
    metrics.now({**state, "waiting_rows": 4, "model_loaded": 1e9, "model_reload_failed": True})

    def told() -> dict[str, float]:
        lines = (line.rsplit(" ", 1) for line in metrics.text().splitlines() if line[0] != "#")
        return {name: float(value) for name, value in lines}

    assert told()['accord_requests_total{path="/predict",status="200"}'] == 2
    assert told()['accord_request_seconds_bucket{path="/predict",le="0.02"}'] == 1
    assert told()['accord_request_seconds_sum{path="/predict"}'] == pytest.approx(0.32)
    assert told()["accord_batch_rows_sum"] == told()["accord_rows_predicted_total"] == 7
    assert told()["accord_waiting_rows"] == 7
    assert told()["accord_model_loaded_timestamp_seconds"] == 1e9
    assert told()["accord_model_reload_failed"] == told()["accord_ready"] == 1
    metrics.ended(0)
    assert told()["accord_ready"] == 0
    assert told()["accord_waiting_rows"] == 4


def test_workers_share_the_rows_that_may_wait(model_file: Path) -> None:
    service = Service(model_file, limits=Limits(waiting_rows=1_000), workers=4)
    assert service.limits.waiting_rows == 250


def test_a_closed_service_is_alive_but_not_ready(
    model_file: Path, rows: list[dict[str, Any]]
) -> None:
    closed = Service(model_file)
    alive, ready, refused = ask(closed, Call("/health"), Call("/ready"), Call(rows=rows))
    assert [alive.status, ready.status, refused.status] == [200, 503, 503]


def test_a_changed_file_is_loaded_and_a_broken_one_is_not(
    model_file: Path, other_model: Path, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "model.accord"
    path.write_bytes(model_file.read_bytes())
    service = Service(path)
    service.open()
    assert "has not changed" in service.file.reload()
    before = service.model
    path.write_bytes(model_file.read_bytes()[:-100])
    assert "the old model stays" in service.file.reload()
    assert service.model is before
    assert ask(service, Call(rows=rows))[0].status == 200
    figures = service.figures()
    assert "accord_model_reload_failed 1.0" in figures
    path.write_bytes(other_model.read_bytes())
    assert "was loaded again" in service.file.reload()
    assert "accord_model_reload_failed 0.0" in service.figures()
    old, new = ask(service, Call(rows=rows), Call(rows=[{"area": 100.0}]))
    schema = ask(service, Call("/openapi.json"))[0].json["components"]["schemas"]["Row"]
    service.close()
    assert [old.status, new.status] == [422, 200]
    assert json.dumps(schema).count("area") >= 1
    assert list(schema["required"]) == ["area"]
