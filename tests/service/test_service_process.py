"""The service as a process: signals, a stop that finishes what it has, a page in a browser."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ACCORD = [sys.executable, "-c", "from accord.cli import main; main()"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def get(address: str, body: bytes | None = None) -> Any:
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


@contextmanager
def running(model_file: Path, folder: Path, *options: str) -> Iterator[tuple[str, Any, Path]]:
    """An address, the process behind it, and its model's file."""
    path = folder / "model.accord"
    path.write_bytes(model_file.read_bytes())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if k != "ACCORD_API_KEY"}
    process = subprocess.Popen(
        [*ACCORD, "serve", str(path), "--port", str(port), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    address = f"http://127.0.0.1:{port}"
    until = time.monotonic() + 300
    while True:
        try:
            get(f"{address}/ready")
            break
        except (urllib.error.URLError, ConnectionError):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until, "the service did not start"
            time.sleep(0.1)
    try:
        yield address, process, path
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def served(model_file: Path, tmp_path_factory: Any) -> Iterator[tuple[str, Any, Path]]:
    with running(model_file, tmp_path_factory.mktemp("served")) as service:
        yield service


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
def test_a_row_can_be_tried_by_hand(served: tuple[str, Any, Path]) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    heard: list[str] = []
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        page = browser.new_page()
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("dialog", lambda dialog: heard.append(dialog.message))
        page.goto(served[0])
        page.fill("input[name=area]", "120")
        page.fill("input[name=age]", "")
        page.click("button[type=submit]")
        page.wait_for_selector("#answer:not([hidden])")
        assert page.locator("#drawing rect").count() == 1
        assert "missing value in 'age'" in page.inner_text("#figures")
        assert "Predicted" in page.inner_text("#receipt")
        page.goto(f"{served[0]}/docs")
        page.wait_for_selector("text=POST /predict")
        assert "<script>alert(1)</script>" in page.inner_text("#paths table >> nth=0")
        browser.close()
    assert [line for line in heard if "favicon" not in line] == []


def test_signals(served: tuple[str, Any, Path], rows: list[dict[str, Any]]) -> None:
    address, process, path = served
    first = get(f"{address}/model")["loaded"]
    time.sleep(1.1)  # the time of loading is told in seconds
    path.touch()
    process.send_signal(signal.SIGHUP)
    for _ in range(300):
        if get(f"{address}/model")["loaded"] != first:
            break
        time.sleep(0.1)
    assert get(f"{address}/model")["loaded"] != first
    answers: list[Any] = []
    body = json.dumps(rows).encode()
    asked = threading.Thread(
        target=lambda: answers.append(get(f"{address}/explain?permutations=16", body))
    )
    asked.start()
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    asked.join()
    assert len(answers[0]["receipts"]) == 5
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "was loaded again" in output
    assert "Traceback" not in output


def figures(address: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{address}/metrics", timeout=300) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def eventually(address: str, name: str, value: float) -> None:
    for _ in range(600):
        if figures(address)[name] == value:
            return
        time.sleep(0.1)
    assert figures(address)[name] == value


def workers_of(process: Any) -> list[int]:
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in listed.split()]


def has_ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="lists processes by /proc")
def test_several_workers_are_one_service(
    model_file: Path, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    body = json.dumps(rows).encode()
    with running(model_file, tmp_path, "--workers", "2") as (address, process, path):
        eventually(address, "accord_ready", 1.0)
        means = {json.dumps(get(f"{address}/predict", body)["predictions"]) for _ in range(20)}
        assert len(means) == 1
        # whichever worker answers, it counts what all have done
        assert {figures(address)["accord_rows_predicted_total"] for _ in range(10)} == {100.0}
        first = figures(address)["accord_model_loaded_timestamp_seconds"]
        path.touch()
        process.send_signal(signal.SIGHUP)
        for _ in range(600):
            if figures(address)["accord_model_loaded_timestamp_seconds"] > first:
                break  # the oldest model in use is a new one
            time.sleep(0.1)
        assert figures(address)["accord_model_loaded_timestamp_seconds"] > first
        lost = workers_of(process)[0]
        os.kill(lost, signal.SIGKILL)
        while lost in workers_of(process) or len(workers_of(process)) < 2:
            time.sleep(0.1)
        eventually(address, "accord_ready", 1.0)
        assert figures(address)["accord_rows_predicted_total"] == 100.0
        workers = workers_of(process)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        assert "ended with -9, and is replaced" in output
        assert "Traceback" not in output
        assert all(map(has_ended, workers))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="lists processes by /proc")
def test_workers_end_with_the_process_that_started_them(model_file: Path, tmp_path: Path) -> None:
    with running(model_file, tmp_path, "--workers", "2") as (_, process, _):
        workers = workers_of(process)
        process.kill()
        until = time.monotonic() + 60
        while not all(map(has_ended, workers)):
            assert time.monotonic() < until, "workers were left behind"
            time.sleep(0.1)
