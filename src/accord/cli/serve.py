"""``accord serve``: a saved model as a service over HTTP."""

import ipaddress
import logging
import os
from pathlib import Path
from types import ModuleType

import click

from accord.cli import options, terminal


@click.command(short_help="Serve predictions over HTTP.")
@click.argument("model", type=options.FILE)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen at.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    default=8000,
    show_default=True,
    help="The port.",
)
@click.option(
    "--api-key-file",
    type=options.FILE,
    help="A file with the key that requests must carry.  [default: the variable ACCORD_API_KEY]",
)
@click.option(
    "--max-body",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MB",
    default=16.0,
    show_default=True,
    help="Largest body of a request.",
)
@options.count("--max-rows", default=20_000, about="The most rows of a request.")
@click.option(
    "--time-limit",
    type=options.duration,
    metavar="TIME",
    default="60s",
    show_default=True,
    help="Longest time to an answer.",
)
@options.count(
    "--workers", default=1, about="Processes that answer; at most as many as there are processors."
)
@options.threads
@options.common
def serve(
    model: Path,
    host: str,
    port: int,
    api_key_file: Path | None,
    max_body: float,
    max_rows: int,
    time_limit: float,
    workers: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Serve MODEL over HTTP until the process is asked to stop (SIGTERM, Ctrl-C).

    POST /predict takes JSON records, CSV or an Arrow stream, and gives what 'accord predict'
    writes; POST /explain says why intervals are as wide as they are. /health, /ready, /metrics and
    /model describe the service, /docs says how to call it, and / is a form to try one row. SIGHUP
    loads the file again if it has changed.

    \b
    Examples:
      accord serve model.accord
      accord serve model.accord --workers 2
      accord serve model.accord --host 0.0.0.0 --port 80 --api-key-file key.txt
      curl -H 'Content-Type: text/csv' --data-binary @new.csv localhost:8000/predict
    """
    terminal.check_files([model], [], force=False)
    if workers > 1 and not hasattr(os, "fork"):
        raise terminal.Misused(
            "several workers need a system that can fork processes, got "
            f"--workers {workers} on one that cannot. Leave the option out."
        )
    # One thread computes while another one talks; more of them would take turns, not help.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    service = _imported()
    key = service.read_key(api_key_file)
    limits = service.Limits(
        body_bytes=max(1, round(max_body * 2**20)), rows=max_rows, seconds=time_limit
    )
    running = service.Service(model, limits=limits, workers=workers)
    _log(quiet=quiet)
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if as_json:
        terminal.print_json({"address": address, "model": str(model), "key": key is not None})
    elif not quiet:
        target = running.model.records.schema.target
        terminal.say(f"Serving predictions of {target} at {address} (how: {address}/docs).")
    if key is None and not _is_local(host):
        terminal.notes([_UNPROTECTED], quiet=quiet)
    service.serve(running, host=host, port=port, key=key)


_UNPROTECTED = (
    "anybody who reaches this address can ask the model. Set ACCORD_API_KEY or --api-key-file to "
    "require a key."
)


def _imported() -> ModuleType:
    try:
        from accord import service
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("accord"):
            raise
        raise terminal.Misused(
            f"the service needs packages that are not installed, such as {error.name}. "
            "Run: pip install 'accord[serve]'"
        ) from None
    return service


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _log(*, quiet: bool) -> None:
    """What happens while serving, on standard error: one line each, never a row's values."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, level in (("accord.service", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.ERROR if quiet else level)
        logger.propagate = False
