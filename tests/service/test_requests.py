"""What is refused, with which words; and that no body whatever makes the service fail."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from asgi_client import Call, ask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_predictions import ARROW, arrow_stream

from accord._files import OptionError
from accord.service import Limits, Service, read_key
from accord.service.service import Batcher

Records = list[dict[str, Any]]
KEY = "correct-horse-battery"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"area": "large"}, "column 'area' must hold a number or null, got 'large' in row 2"),
        ({"area": True}, "column 'area' must hold a number or null, got true in row 2"),
        ({"town": 3}, "column 'town' must hold text or null, got '3' in row 2"),
        ({"sold": ["x"]}, "column 'sold' must hold a date as text or null, got a list in row 2"),
        ({"rooms": 3}, "column 'rooms' is not known to the model in row 2"),
        ({"sold": "31/12/2020"}, "column 'sold' must hold dates, got '31/12/2020' in row 2"),
    ],
)
def test_wrong_cells_name_the_column_and_the_row(
    service: Service, rows: Records, change: dict[str, Any], message: str
) -> None:
    (reply,) = ask(service, Call(rows=[rows[0], rows[1] | change]))
    assert reply.status == 422
    assert message in reply.error


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "it must be JSON"),
        (b'{"area": 1}', "it must be a list of records such as [{…}, {…}], got a record"),
        (b"[1]", "a row must be a record with column names, got '1' in row 1"),
        (b"[]", "the body has no rows"),
        (b"[{}]", "column 'area' is missing in row 1 (write null for a gap)"),
    ],
)
def test_bodies_that_are_no_rows(service: Service, body: bytes, message: str) -> None:
    (reply,) = ask(service, Call(body=body))
    assert reply.status == 422
    assert message in reply.error


def test_columns_by_name(service: Service, rows: Records, houses: pd.DataFrame) -> None:
    other = [{**row, "rooms": 3} for row in rows]
    moved = houses.head(5).iloc[:, ::-1].to_csv(index=False).encode()
    by_name = (("by_name", "true"),)
    replies = ask(
        service,
        Call(rows=other, options=by_name),
        Call(body=moved, media="text/csv", options=by_name),
        Call(body=moved, media="text/csv"),
    )
    assert [reply.status for reply in replies] == [200, 200, 422]
    assert "another order than in training" in replies[2].error
    assert "by_name (--by-name)" in replies[2].error


def test_options_are_checked(service: Service, rows: Records) -> None:
    for option in (("coverage", 1.5), ("coverage", "much"), ("strict", "perhaps")):
        (reply,) = ask(service, Call(rows=rows, options=(option,)))
        assert reply.status == 422
        assert option[0] in reply.error


def test_what_is_not_there_and_what_is_not_read(service: Service, rows: Records) -> None:
    missing, form, packed = ask(
        service,
        Call("/nothing"),
        Call(rows=rows, media="application/x-www-form-urlencoded"),
        Call(rows=rows, headers=(("content-encoding", "gzip"),)),
    )
    assert missing.status == 404
    assert form.status == 415
    assert "text/csv" in form.error
    assert packed.status == 415


def test_limits_of_size(model_file: Path, rows: Records) -> None:
    small = Service(model_file, limits=Limits(body_bytes=2_000, rows=3))
    small.open()
    many, long, lying = ask(
        small,
        Call(rows=rows[:4]),
        Call(body=b"[" + b" " * 3_000 + b"]"),
        Call(body=b"[" + b" " * 3_000 + b"]", headers=(("content-length", "5000"),)),
    )
    small.close()
    assert [many.status, long.status, lying.status] == [413, 413, 413]
    assert "at most 3 rows, got 4" in many.error
    assert "at most 2,000 bytes" in long.error


def test_limit_of_time(service: Service, rows: Records, monkeypatch: Any) -> None:
    monkeypatch.setattr(service, "limits", replace(service.limits, seconds=0.05))
    monkeypatch.setattr("accord.service.service.explain", lambda *_, **__: time.sleep(0.3))
    (reply,) = ask(service, Call("/explain", rows=rows))
    assert reply.status == 504
    assert "at most 0.05 s" in reply.error


def test_a_batcher_refuses_more_than_may_wait_and_finishes_what_it_has() -> None:
    def slowly(questions: Any) -> list[Any]:
        time.sleep(0.1)
        return [sum(question) for question in questions]

    async def run() -> tuple[list[Any], list[Any]]:
        batcher = Batcher(slowly, Limits(waiting_rows=3))
        asked = [asyncio.create_task(batcher.ask([n, n])) for n in range(3)]
        await asyncio.sleep(0.02)
        late = asyncio.create_task(batcher.ask([1]))
        await asyncio.sleep(0.01)
        await asyncio.to_thread(batcher.close)
        done = await asyncio.gather(*asked, late, return_exceptions=True)
        after = await asyncio.gather(batcher.ask([1]), return_exceptions=True)
        return list(done), list(after)

    done, after = asyncio.run(run())
    # the first is taken at once or waits with one other; a third does not fit beside them
    assert [answer for answer in done if not isinstance(answer, Exception)][:1] == [0]
    assert "more waiting rows" in str(next(a for a in done if isinstance(a, Exception)))
    assert "is stopping" in str(after[0])


def test_the_key(service: Service, rows: Records) -> None:
    right = (("authorization", f"bearer {KEY}"),)
    calls = [
        Call(rows=rows),
        Call(rows=rows, headers=(("x-api-key", KEY + "x"),)),
        Call(rows=rows, headers=(("x-api-key", KEY),)),
        Call(rows=rows, headers=right),
        Call("/model"),
        Call("/openapi.json"),
        Call("/metrics", headers=right),
        Call("/health"),
        Call("/ready"),
        Call("/"),
    ]
    replies = ask(service, *calls, key=KEY)
    wanted = [401, 401, 200, 200, 401, 401, 200, 200, 200, 200]
    assert [reply.status for reply in replies] == wanted
    assert replies[0].headers["www-authenticate"] == "Bearer"


def test_where_the_key_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACCORD_API_KEY", raising=False)
    assert read_key() is None
    monkeypatch.setenv("ACCORD_API_KEY", KEY)
    (tmp_path / "key").write_text("another-long-word-of-secrets\n")
    assert read_key() == KEY
    assert read_key(tmp_path / "key") == "another-long-word-of-secrets"
    (tmp_path / "key").write_text("short")
    with pytest.raises(OptionError, match="at least 16 ASCII characters"):
        read_key(tmp_path / "key")
    with pytest.raises(OptionError, match="cannot be read"):
        read_key(tmp_path / "nothing")


def test_arrow_streams_from_strangers(service: Service, houses: pd.DataFrame) -> None:
    table = pa.Table.from_pandas(houses.head(5), preserve_index=False)
    stream = arrow_stream(table)
    packed = arrow_stream(table, options=pa.ipc.IpcWriteOptions(compression="zstd"))
    coded = table.set_column(3, "town", table.column("town").dictionary_encode())
    endless = pa.table({"area": pa.nulls(10**7)})
    bodies = [packed, stream[:-200], stream[40:], arrow_stream(coded), arrow_stream(endless)]
    replies = ask(service, *(Call(body=body, media=ARROW) for body in bodies))
    assert [reply.status for reply in replies] == [415, 422, 422, 200, 413]
    assert "must not be compressed" in replies[0].error


CELLS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_body_makes_the_service_fail(service: Service, rows: Records, data: Any) -> None:
    row = {name: data.draw(st.just(value) | CELLS) for name, value in rows[0].items()}
    text = data.draw(st.binary(max_size=60))
    header = ",".join(rows[0]).encode()
    calls = [
        Call(rows=[row]),
        Call(body=text or b"[", media="application/json"),
        Call(body=header + b"\n" + text, media="text/csv"),
        Call(body=text or b"x", media=ARROW),
    ]
    for reply in ask(service, *calls):
        assert reply.status in (200, 413, 415, 422), reply.body
