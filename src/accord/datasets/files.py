"""A registered file on disk: from the user's folder, the cache, or its public address."""

import hashlib
import os
from pathlib import Path

from accord.datasets.entries import File

__all__ = ["local_path"]


def local_path(file: File) -> Path:
    """Where the file lies, fetched first if need be, and checked against its SHA-256.

    The folder that ``ACCORD_DATA`` names comes first; a damaged file there is an error, since it
    was put there on purpose. A damaged file in the cache is fetched anew.
    """
    folder = os.environ.get("ACCORD_DATA")
    if folder and (path := Path(folder) / file.path).is_file():
        _check_sum(path, file)
        return path
    return _fetched(file, folder)


def _check_sum(path: Path, file: File) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != file.sha256:
        raise ValueError(
            f"{path} must have the SHA-256 {file.sha256}, got {found}. The file is damaged or has "
            f"been changed: delete it, or replace it by {file.url}."
        )


def _fetched(file: File, folder: str | None) -> Path:
    # Lazy: pooch brings requests, which nobody needs whose files are in place.
    import pooch

    cache = Path(pooch.os_cache("accord"))
    try:
        path = pooch.retrieve(
            file.url,
            known_hash=f"sha256:{file.sha256}",
            fname=file.path,
            path=cache,
        )
    except ValueError:
        raise ValueError(
            f"{file.url} must have the SHA-256 {file.sha256}, got another file. Something between "
            "here and there has changed it (a proxy's log-in page?): open the address in a "
            f"browser, and put the right file at {cache / file.path}."
        ) from None
    except OSError as error:  # requests' errors are OSErrors too
        raise FileNotFoundError(_unavailable(file, folder, cache, error)) from None
    return Path(path)


def _unavailable(file: File, folder: str | None, cache: Path, error: OSError) -> str:
    looked = f"not in the folder ACCORD_DATA={folder}, " if folder else ""
    damaged = "damaged in" if (cache / file.path).is_file() else "not in"
    return (
        f"{file.path} must be on disk or within reach: it is {looked}{damaged} the cache {cache}, "
        f"and could not be downloaded ({_reason(error)}). Connect to the network, or save "
        f"{file.url} as {cache / file.path}, or set ACCORD_DATA to a folder that holds {file.path}."
    )


def _reason(error: OSError) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"the server answered {status}" if status else f"{type(error).__name__}: no connection"
