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
from pathlib import Path
from typing import Any

import pytest

ACCORD = [sys.executable, "-c", "from accord.cli import main; main()"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def get(address: str, body: bytes | None = None) -> Any:
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def served(model_file: Path, tmp_path_factory: Any) -> Iterator[tuple[str, Any, Path]]:
    """An address, the process behind it, and its model's file."""
    path: Path = tmp_path_factory.mktemp("served") / "model.accord"
    path.write_bytes(model_file.read_bytes())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if k != "ACCORD_API_KEY"}
    process = subprocess.Popen(
        [*ACCORD, "serve", str(path), "--port", str(port)],
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
    yield address, process, path
    process.kill()
    process.wait()
    process.stdout.close()


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
