"""Models in one file that is safe to load: skops' archive with a seal of our own.

skops writes a zip of numpy arrays and a description of types, and runs no code from it. We add
``accord.json``: the format's version and the SHA-256 of every entry, so that a damaged or altered
file is refused before anything in it is looked at. Only types of this package and of scikit-learn
are accepted.
"""

import hashlib
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from accord._version import __version__

FORMAT = 1
_SEAL = "accord.json"

# Types whose instances carry state only. Functions and anything from elsewhere stay refused.
_TRUSTED_MODULES = (
    "accord.estimators.",
    "accord.tolerance.",
    "accord.proximity.",
    "accord.calibration.",
    "accord.trust.",
    "accord.tables.",
    "accord.portfolio.",
    "accord.table_regressor.",
    "accord.table_profile.",
)
# scikit-learn's own state that skops does not trust by itself.
_TRUSTED_TYPES = {
    "numpy.dtype",
    "sklearn.compose._column_transformer._RemainderColsList",
    # How tables encode categories and dates (accord.tables.preprocessing); state only, too.
    "sklearn.model_selection._split.KFold",
    "skrub._datetime_encoder.DatetimeEncoder",
    "skrub._datetime_encoder._CircularEncoder",
}


class ModelFileError(ValueError):
    """A model file that cannot be loaded, with the reason."""


def save(model: Any, path: str | Path, *, metadata: dict[str, Any] | None = None) -> None:
    """Write a fitted model, or a pipeline that holds one, to one file.

    The file appears whole or not at all. ``metadata`` is any JSON-able dictionary; read it back
    with :func:`read_metadata`.
    """
    import skops.io

    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        skops.io.dump(model, name, compression=zipfile.ZIP_DEFLATED)
        _check_loadable(name)
        _seal(name, metadata or {})
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load(path: str | Path) -> Any:
    """Load what :func:`save` wrote; refuses any other file, and runs no code in it.

    Predictions are those of the saved model, to the bit.
    """
    import skops.io

    path = Path(path)
    _read_seal(path)
    trusted = _trusted(path)
    try:
        return skops.io.load(path, trusted=trusted)
    except Exception as error:
        raise ModelFileError(
            f"{path} could not be restored ({type(error).__name__}: {error}). "
            f"It was written by accord {read_versions(path)}; this is accord {__version__}."
        ) from error


def read_metadata(path: str | Path) -> dict[str, Any]:
    """The metadata that was saved with a model, without loading the model."""
    metadata: dict[str, Any] = _read_seal(Path(path))["metadata"]
    return metadata


def read_versions(path: str | Path) -> str:
    """The version of accord that wrote a model file."""
    return str(_read_seal(Path(path))["accord"])


def _check_loadable(name: str) -> None:
    """Refuse to write what :func:`load` would refuse to read."""
    import skops.io

    unknown = sorted(set(skops.io.get_untrusted_types(file=name)) - set(_allowed(name)))
    if unknown:
        raise TypeError(
            "a model is saved with types of accord and scikit-learn only, got "
            f"{', '.join(unknown)}. Save that part by itself."
        )


def _seal(name: str, metadata: dict[str, Any]) -> None:
    with zipfile.ZipFile(name, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        digests = {entry: _digest(archive, entry) for entry in sorted(archive.namelist())}
        seal = {
            "format": FORMAT,
            "accord": __version__,
            "sha256": digests,
            "metadata": metadata,
        }
        archive.writestr(_SEAL, json.dumps(seal, indent=1))


def _digest(archive: zipfile.ZipFile, entry: str) -> str:
    return hashlib.sha256(archive.read(entry)).hexdigest()


def _read_seal(path: Path) -> dict[str, Any]:
    """The seal of a file, after checking every entry against it."""
    if not path.is_file():
        raise FileNotFoundError(f"model file must exist, got {path}. Check the path.")
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if _SEAL not in names:
                raise ModelFileError(f"{path} is not a model saved by accord.")
            seal: dict[str, Any] = json.loads(archive.read(_SEAL))
            _check_format(path, seal)
            digests = {name: _digest(archive, name) for name in names if name != _SEAL}
    except (zipfile.BadZipFile, EOFError, OSError, KeyError, json.JSONDecodeError) as error:
        raise ModelFileError(
            f"{path} is not a model saved by accord, or it is damaged ({error}). "
            "Save or copy it again."
        ) from error
    if len(names) != len(set(names)) or digests != seal["sha256"]:
        raise ModelFileError(f"{path} was altered or damaged after saving. Save or copy it again.")
    return seal


def _check_format(path: Path, seal: dict[str, Any]) -> None:
    if not isinstance(seal, dict) or not isinstance(seal.get("format"), int):
        raise ModelFileError(f"{path} is not a model saved by accord.")
    if seal["format"] > FORMAT:
        raise ModelFileError(
            f"{path} has format {seal['format']}, written by accord {seal.get('accord')}; "
            f"this version reads formats up to {FORMAT}. Upgrade accord."
        )


def _trusted(path: Path) -> list[str]:
    import skops.io

    try:
        found = set(skops.io.get_untrusted_types(file=path))
    except Exception as error:
        raise ModelFileError(f"{path} is not a model saved by accord ({error}).") from error
    allowed = _allowed(path)
    if unknown := sorted(found - set(allowed)):
        raise ModelFileError(
            f"{path} holds types that are neither accord's nor scikit-learn's: "
            f"{', '.join(unknown)}. It was refused, and nothing in it was run."
        )
    return allowed


def _allowed(file: str | Path) -> list[str]:
    import skops.io

    found = skops.io.get_untrusted_types(file=file)
    return [name for name in found if name in _TRUSTED_TYPES or _is_own_class(name)]


def _is_own_class(name: str) -> bool:
    """A class of this package: its last part is capitalised, a function's is not."""
    return name.startswith(_TRUSTED_MODULES) and name.rpartition(".")[2].lstrip("_")[:1].isupper()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
