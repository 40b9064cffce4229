"""Load on ``accord serve``: single-row requests per second, their times, CPU time and memory.

    python benchmarks/service.py [--model model.accord] [--seconds 10] [--connections 48] [--rate R]
                                 [--workers N]
    python benchmarks/service.py --soak 600 --rate 100

Each connection sends its next row as soon as it has the answer to the last one; with ``--rate`` all
of them together send so many requests per second. Without a model, one is fitted to made-up rows
(eight numbers, a category and a date). The load is made by another process than the service, on the
same machine, and its CPU time is printed beside the service's. Times by the clock depend on what
else the machine does; CPU time per request does so far less. Memory is printed every minute.

A soak asks in all ways: rows as JSON, CSV and Arrow, other coverages, explanations, and requests
that must be refused. Half-way the model is loaded again, and at the end the service is stopped
while it is at work. An answer with another status than the expected one is an error, and so is one
that does not come.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

import accord

try:
    import uvloop as loops
except ImportError:
    loops = asyncio

_TICK = os.sysconf("SC_CLK_TCK")
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_COMMAND = "from accord.cli import main; main()"
# Rows of a request of a soak that has several; so many that a service is stopped while at work.
_SEVERAL, _MANY = 20, 4_000
_LAST_CONNECTIONS, _LAST_SECONDS = 4, 0.5


class Asked(NamedTuple):
    """A request, and the status that its answer should have."""

    name: str
    request: bytes
    status: int = 200


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.accord"
        if arguments.model:
            shutil.copy(arguments.model, model)
        else:
            _fit(model, arguments.rows)
        port = _free_port()
        options = ["--port", str(port), "--workers", str(arguments.workers)]
        command = [sys.executable, "-c", _COMMAND, "serve", str(model), *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            try:
                rows = _wait(port)
                asked = _all_ways(rows) if arguments.soak else [_json([row]) for row in rows]
                loops.run(_load(port, asked, 2, arguments))  # warm
                if arguments.soak:
                    _load_again(model, server, arguments.seconds / 2)
                _measure(server.pid, port, asked, arguments)
                if arguments.soak:
                    loops.run(_stop(port, rows, server))
            finally:
                server.send_signal(signal.SIGTERM)
        print(f"stopped with exit code {server.returncode}")


def _load_again(model: Path, server: subprocess.Popen[bytes], after: float) -> None:
    def reload() -> None:
        model.touch()
        server.send_signal(signal.SIGHUP)
        print("the model is loaded again", flush=True)

    timer = threading.Timer(after, reload)
    timer.daemon = True
    timer.start()


async def _stop(port: int, rows: list[dict[str, Any]], server: subprocess.Popen[bytes]) -> None:
    """Stop the service while it is at work: it answers what it was asked."""
    loop = asyncio.get_running_loop()
    many = [_json(list(islice(cycle(rows), _MANY)))]
    until = loop.time() + _LAST_SECONDS
    made = []
    for _ in range(_LAST_CONNECTIONS):
        made.append(Connection(many, 0.0, 0.0, until, loop.create_future()))
        await loop.create_connection(lambda own=made[-1]: own, "127.0.0.1", port)
        made[-1].send()
    loop.call_later(_LAST_SECONDS, server.send_signal, signal.SIGTERM)
    await asyncio.gather(*(one.ended for one in made))
    answered = sum(len(one.found) - one.errors for one in made)
    print(f"answered of {len(made)} requests of {_MANY:,} rows at the stop: {answered}")


# --- requests ------------------------------------------------------------------------------------


def _asked(
    name: str, body: bytes, media: str, path: str = "/predict", *, status: int = 200
) -> Asked:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\n"
    return Asked(name, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body, status)


def _json(
    rows: list[dict[str, Any]], name: str = "JSON, a row", path: str = "/predict", **more: Any
) -> Asked:
    return _asked(name, json.dumps(rows).encode(), "application/json", path, **more)


def _all_ways(rows: list[dict[str, Any]]) -> list[Asked]:
    """The requests of a soak: of forty, eight are to be refused."""
    several = list(islice(cycle(rows), _SEVERAL))
    csv, sink = pd.DataFrame(several).to_csv(index=False).encode(), pa.BufferOutputStream()
    table = pa.Table.from_pylist(several)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow, stream = sink.getvalue().to_pybytes(), "application/vnd.apache.arrow.stream"
    tables = [
        _json(several, f"JSON, {_SEVERAL} rows"),
        _asked(f"CSV, {_SEVERAL} rows", csv, "text/csv"),
        _asked(f"Arrow, {_SEVERAL} rows", arrow, stream),
    ]
    python = _json(rows[:1], "another coverage", "/predict?coverage=0.5&by_name=true")
    refused = [
        _json([{**rows[0], name: ["a list"]} for name in list(rows[0])[:1]], status=422),
        _json([{}], status=422),
        _json(rows, path="/predict?coverage=2", status=422),
        _asked("", b"[{", "application/json", status=422),
        _asked("", csv[: len(csv) // 2].replace(b",", b";"), "text/csv", status=422),
        _asked("", arrow[: len(arrow) // 2], stream, status=422),
        _asked("", b"1", "application/x-unknown", status=415),
        _json(rows, path="/nowhere", status=404),
    ]
    kinds = [*3 * tables, *2 * [python], *[one._replace(name="refused") for one in refused]]
    explained = _json(rows[:1], "explanation", "/explain")
    single = list(islice(cycle(_json([row]) for row in rows), 40 - 1 - len(kinds)))
    order = np.random.default_rng(0).permutation(40)
    every = [*kinds, explained, *single]
    return [every[place] for place in order]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--rows", type=int, default=4_000, help="training rows of a made-up model")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument(
        "--soak", type=float, metavar="SECONDS", help="ask in all ways, reload, stop"
    )
    parser.add_argument("--connections", type=int, default=48)
    parser.add_argument("--workers", type=int, default=1, help="processes of the service")
    parser.add_argument("--rate", type=float, help="requests per second; as many as can be")
    given = parser.parse_args()
    given.seconds = given.soak or given.seconds
    return given


def _fit(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{place}": rng.normal(size=n) for place in range(8)})
    frame["town"] = rng.choice(["Ulm", "Bonn", "Kiel"], n)
    frame["sold"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 600, n), unit="D")
    noise = rng.normal(size=n) * (1 + abs(frame["x2"]))
    frame["price"] = 100 + 10 * frame["x0"] + 5 * np.sin(2 * frame["x1"]) + noise
    accord.TableRegressor(effort="quick", random_state=0).fit(frame, "price").save(path)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int) -> list[dict[str, Any]]:
    """Example rows of the model, once it is ready."""
    for _ in range(3_000):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/model") as answer:
                return list(json.load(answer)["examples"])
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the service did not start")


def _measure(pid: int, port: int, asked: list[Asked], arguments: argparse.Namespace) -> None:
    left = arguments.seconds
    found: list[tuple[str, float]] = []
    errors, start = 0, time.perf_counter()
    service, client, batches = _cpu(pid), time.process_time(), _batches(port)
    while left > 0:
        answers, failed = loops.run(_load(port, asked, min(left, 60), arguments))
        found, errors, left = found + answers, errors + failed, left - 60
        passed = time.perf_counter() - start
        print(f"after {passed:.0f} s: {_memory(pid):.0f} MB, {errors} errors", flush=True)
    seconds, n = time.perf_counter() - start, len(found)
    service, client = _cpu(pid) - service, time.process_time() - client
    batch_rows, batch_count = (a - b for a, b in zip(_batches(port), batches, strict=True))
    print(
        f"{n / seconds:,.0f} requests/s over {arguments.connections} connections, {n:,} in all, "
        f"{errors} errors"
    )
    _print_times("all", [passed for _, passed in found])
    if arguments.soak:
        for kind in sorted({name for name, _ in found}):
            _print_times(kind, [passed for name, passed in found if name == kind])
    print(f"CPU per request: service {1e3 * service / n:.2f} ms, load {1e3 * client / n:.2f} ms")
    print(f"cores in use: service {service / seconds:.2f}, load {client / seconds:.2f}")
    print(f"rows per batch: {batch_rows / batch_count:.1f}")


def _print_times(name: str, times: Sequence[float]) -> None:
    p50, p99, worst = 1e3 * np.quantile(times, [0.5, 0.99, 1.0])
    print(f"times, {name}: median {p50:.1f} ms, 99 % {p99:.1f} ms, longest {worst:.0f} ms")


async def _load(
    port: int, asked: list[Asked], seconds: float, arguments: argparse.Namespace
) -> tuple[list[tuple[str, float]], int]:
    loop = asyncio.get_running_loop()
    pause = arguments.connections / arguments.rate if arguments.rate else 0.0
    until = loop.time() + seconds
    made = []
    for place in range(arguments.connections):
        first = loop.time() + pause * place / arguments.connections  # not all at the same time
        start = place % len(asked)
        turn = asked[start:] + asked[:start]
        made.append(Connection(turn, first, pause, until, loop.create_future()))
        await loop.create_connection(lambda own=made[-1]: own, "127.0.0.1", port)
        loop.call_at(first, made[-1].send)
    await asyncio.gather(*(one.ended for one in made))
    return [answer for one in made for answer in one.found], sum(one.errors for one in made)


class Connection(asyncio.Protocol):
    """One client: sends a request, waits for the answer, and the next, at least ``pause`` apart.

    ``found`` is what was asked, with the seconds to its answer.
    """

    def __init__(
        self,
        asked: list[Asked],
        first: float,
        pause: float,
        until: float,
        ended: asyncio.Future[None],
    ) -> None:
        self._asked = cycle(asked)
        self._next, self._pause, self._until, self.ended = first, pause, until, ended
        self._loop = ended.get_loop()
        self._buffer = b""
        self._sent = 0.0
        self._waiting: Asked | None = None
        self.found: list[tuple[str, float]] = []
        self.errors = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, blank, body = self._buffer.partition(b"\r\n\r\n")
        if not blank or len(body) < int(_LENGTH.search(head)[1]):
            return
        self._buffer = b""
        asked, self._waiting = self._waiting, None
        if not head.startswith(b"HTTP/1.1 %d " % asked.status):
            self.errors += 1
            print(f"{asked.name}, not {asked.status}: {head[:40]!r} {body[:200]!r}", flush=True)
        self.found.append((asked.name, self._loop.time() - self._sent))
        self._next += self._pause
        if self._next > self._loop.time():
            self._loop.call_at(self._next, self.send)
        else:
            self.send()

    def send(self) -> None:
        # a request that is late because the last answer was has waited since its time
        now = self._loop.time()
        self._sent = self._next if self._pause else now
        if now > self._until:
            self._transport.close()
        else:
            self._waiting = next(self._asked)
            self._transport.write(self._waiting.request)

    def connection_lost(self, error: Exception | None) -> None:
        self.errors += error is not None or self._waiting is not None
        self.ended.set_result(None)


def _processes(pid: int) -> list[int]:
    """A process and its workers."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [pid, *map(int, children.split())]


def _cpu(pid: int) -> float:
    """Seconds of processor time that a process and its workers have taken."""
    total = 0
    for process in _processes(pid):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICK


def _memory(pid: int) -> float:
    """Resident megabytes; what several processes share is counted once, by parts."""
    rolls = (Path(f"/proc/{process}/smaps_rollup").read_text() for process in _processes(pid))
    return sum(int(re.search(r"^Pss: +(\d+)", roll, re.MULTILINE)[1]) for roll in rolls) / 1024


def _batches(port: int) -> tuple[float, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines())
    return float(lines["accord_batch_rows_sum"]), float(lines["accord_batch_rows_count"])


if __name__ == "__main__":
    main()
