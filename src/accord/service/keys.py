"""The API key: where it comes from, and whether a request has it."""

import hmac
import os
from pathlib import Path

from accord.tables import OptionError, printable

# The environment variable that holds the key.
KEY_VARIABLE = "ACCORD_API_KEY"
_SHORTEST = 16


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
