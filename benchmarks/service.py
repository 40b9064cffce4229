"""Load on ``accord serve``: single-row requests per second, their times, CPU time and memory.

    python benchmarks/service.py [--model model.accord] [--seconds 10] [--connections 48] [--rate R]
                                 [--workers N]

Each connection sends its next row as soon as it has the answer to the last one; with ``--rate`` all
of them together send so many rows per second. Without a model, one is fitted to made-up rows (eight
numbers, a category and a date). The load is made by another process than the service, on the same
machine, and its CPU time is printed beside the service's. Times by the clock depend on what else
the machine does; CPU time per request does so far less. With ``--seconds 600`` it is a soak: memory
is printed every minute.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd

import accord

try:
    import uvloop as loops
except ImportError:
    loops = asyncio

_TICK = os.sysconf("SC_CLK_TCK")
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_COMMAND = "from accord.cli import main; main()"


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model or _fitted(Path(folder) / "model.accord", arguments.rows)
        port = _free_port()
        options = ["--port", str(port), "--workers", str(arguments.workers)]
        command = [sys.executable, "-c", _COMMAND, "serve", str(model), *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            try:
                rows = _wait(port)
                loops.run(_load(port, rows, 2, arguments))  # warm
                _measure(server.pid, port, rows, arguments)
            finally:
                server.send_signal(signal.SIGTERM)
        print(f"stopped with exit code {server.returncode}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--rows", type=int, default=4_000, help="training rows of a made-up model")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=48)
    parser.add_argument("--workers", type=int, default=1, help="processes of the service")
    parser.add_argument("--rate", type=float, help="requests per second; as many as can be")
    return parser.parse_args()


def _fitted(path: Path, n: int) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{place}": rng.normal(size=n) for place in range(8)})
    frame["town"] = rng.choice(["Ulm", "Bonn", "Kiel"], n)
    frame["sold"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 600, n), unit="D")
    noise = rng.normal(size=n) * (1 + abs(frame["x2"]))
    frame["price"] = 100 + 10 * frame["x0"] + 5 * np.sin(2 * frame["x1"]) + noise
    accord.TableRegressor(effort="quick", random_state=0).fit(frame, "price").save(path)
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int) -> list[bytes]:
    """Example rows of the model, once it is ready: each a body."""
    for _ in range(3_000):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/model") as answer:
                examples = json.load(answer)["examples"]
            return [json.dumps([row]).encode() for row in examples]
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the service did not start")


def _measure(pid: int, port: int, rows: list[bytes], arguments: argparse.Namespace) -> None:
    left = arguments.seconds
    times: list[float] = []
    errors, start = 0, time.perf_counter()
    service, client, batches = _cpu(pid), time.process_time(), _batches(port)
    while left > 0:
        found, failed = loops.run(_load(port, rows, min(left, 60), arguments))
        times, errors, left = times + found, errors + failed, left - 60
        print(f"after {time.perf_counter() - start:.0f} s: {_memory(pid):.0f} MB, {errors} errors")
    seconds, n = time.perf_counter() - start, len(times)
    service, client = _cpu(pid) - service, time.process_time() - client
    batch_rows, batch_count = (a - b for a, b in zip(_batches(port), batches, strict=True))
    p50, p99, worst = 1e3 * np.quantile(times, [0.5, 0.99, 1.0])
    print(
        f"{n / seconds:,.0f} requests/s over {arguments.connections} connections, {errors} errors"
    )
    print(f"times: median {p50:.1f} ms, 99 % {p99:.1f} ms, longest {worst:.0f} ms")
    print(f"CPU per request: service {1e3 * service / n:.2f} ms, load {1e3 * client / n:.2f} ms")
    print(f"cores in use: service {service / seconds:.2f}, load {client / seconds:.2f}")
    print(f"rows per batch: {batch_rows / batch_count:.1f}")


async def _load(
    port: int, rows: list[bytes], seconds: float, arguments: argparse.Namespace
) -> tuple[list[float], int]:
    loop = asyncio.get_running_loop()
    pause = arguments.connections / arguments.rate if arguments.rate else 0.0
    until = loop.time() + seconds
    made = []
    for place in range(arguments.connections):
        first = loop.time() + pause * place / arguments.connections  # not all at the same time
        made.append(Connection(rows[place % len(rows)], first, pause, until, loop.create_future()))
        await loop.create_connection(lambda own=made[-1]: own, "127.0.0.1", port)
    await asyncio.gather(*(one.ended for one in made))
    return [t for one in made for t in one.times], sum(one.errors for one in made)


class Connection(asyncio.Protocol):
    """One client: sends its row, waits for the answer, and again, at least ``pause`` apart."""

    def __init__(
        self, body: bytes, first: float, pause: float, until: float, ended: asyncio.Future[None]
    ) -> None:
        head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self._request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        self._next, self._pause, self._until, self.ended = first, pause, until, ended
        self._loop = ended.get_loop()
        self._buffer = b""
        self._sent = 0.0
        self.times: list[float] = []
        self.errors = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._loop.call_at(self._next, self._send)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, blank, body = self._buffer.partition(b"\r\n\r\n")
        if not blank or len(body) < int(_LENGTH.search(head)[1]):
            return
        self._buffer = b""
        self.errors += not head.startswith(b"HTTP/1.1 200")
        self.times.append(self._loop.time() - self._sent)
        self._next += self._pause
        if self._next > self._loop.time():
            self._loop.call_at(self._next, self._send)
        else:
            self._send()

    def _send(self) -> None:
        # a request that is late because the last answer was has waited since its time
        now = self._loop.time()
        self._sent = self._next if self._pause else now
        if now > self._until:
            self._transport.close()
        else:
            self._transport.write(self._request)

    def connection_lost(self, error: Exception | None) -> None:
        self.errors += error is not None
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
