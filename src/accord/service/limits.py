"""What a request may cost, who may ask, and how a request is refused."""

import hmac
import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

from accord._checks import check_count, check_positive
from accord._files import OptionError
from accord._wording import printable

# The environment variable that holds the key.
KEY_VARIABLE = "ACCORD_API_KEY"
_SHORTEST = 16


@dataclass(frozen=True)
class Limits:
    """What a request may cost.

    Args:
        body_bytes: Size of a request's body.
        rows: Rows of a request for predictions.
        explained_rows: Rows of a request for explanations, which take far longer.
        waiting_rows: Rows that wait for their turn; beyond, requests are refused for a while.
        seconds: Time until the answer.
        gather_seconds: How long an idle service waits for further requests to predict together.
        batch_rows: Rows predicted at a time; longer requests take turns with others.
    """

    body_bytes: int = 16 * 2**20
    rows: int = 20_000
    explained_rows: int = 100
    waiting_rows: int = 100_000
    seconds: float = 60.0
    gather_seconds: float = 0.002
    batch_rows: int = 256

    def __post_init__(self) -> None:
        for name in ("body_bytes", "rows", "explained_rows", "waiting_rows", "batch_rows"):
            check_count(name, getattr(self, name))
        for name in ("seconds", "gather_seconds"):
            check_positive(name, getattr(self, name))


@final
class Refused(Exception):
    """A request that is not served: the status of the answer, and a sentence."""

    def __init__(self, status: int, message: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


def too_many_rows(limit: int, got: int) -> Refused:
    return Refused(413, f"a request may have at most {limit:,} rows, got {got:,}. Send fewer.")


def busy() -> Refused:
    message = "the service has more waiting rows than it allows. Try again in a moment."
    return Refused(503, message, headers={"Retry-After": "1"})


def stopping() -> Refused:
    return Refused(503, "the service is stopping. Try again in a moment.")


# --- keys ----------------------------------------------------------------------------------------


def read_key(file: Path | None = None) -> str | None:
    """The key of a file, else of the environment, else none; outer spaces aside.

    A key can be guessed if it is short: at least 16 characters are needed.
    """
    if file is not None:
        source = printable(file, limit=300)
        try:
            key = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(
                f"the API key must be in a text file, got {source}, which cannot be read "
                f"({type(error).__name__}). Check the path."
            ) from None
    else:
        source, key = KEY_VARIABLE, os.environ.get(KEY_VARIABLE, "").strip()
        if not key:
            return None
    if len(key) < _SHORTEST or not key.isascii() or not key.isprintable() or " " in key:
        raise OptionError(
            f"an API key must be one word of at least {_SHORTEST} ASCII characters, got another "
            f"text from {source}. Make one with: python -c 'import secrets; "
            "print(secrets.token_urlsafe())'"
        )
    return key


def has_key(headers: dict[bytes, bytes], key: str) -> bool:
    """Whether a request names the key: ``Authorization: Bearer …`` or ``X-API-Key: …``.

    The comparison takes the same time wherever two keys differ.
    """
    given = headers.get(b"x-api-key", b"")
    scheme, _, credentials = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        given = credentials.strip()
    return hmac.compare_digest(given, key.encode())
