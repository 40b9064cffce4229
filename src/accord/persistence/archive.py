"""The model file itself: a zip whose every claim is checked before it is believed."""

import hashlib
import json
import math
import re
import stat
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar, final, overload

import numpy as np
from numpy.lib import format as npy

from accord import __version__
from accord._files import atomic_output
from accord._wording import byte_size, printable, quoted
from accord.distributions import PredictiveModel
from accord.persistence.encoding import Array, Decoder, Encoder, LayoutError, MissingCodeError

T = TypeVar("T")

# Of what a file holds: raised whenever a saved type gains, loses or renames a part, or answers
# otherwise from the same parts, so that a file of another build is told from a damaged one
# (tests/persistence/test_format.py holds the layout).
FORMAT = 7
_MANIFEST = "manifest.json"
_KIND = "accord model"
_ENTRY = re.compile(r"manifest\.json|arrays/\d{1,6}\.npy")
# JSON takes far more memory than its text; arrays, by contrast, are never larger than the file.
_MANIFEST_BYTES = 32 << 20
_MANIFEST_VALUES = 1_000_000
_ENCRYPTED = 0x1


class ModelFileError(ValueError):
    """A model file that cannot be loaded, with the reason."""


@final
class _OtherBuildError(ModelFileError):
    """A file that is whole, written by an accord whose models are built otherwise."""


def save(model: Any, path: str | Path, *, metadata: dict[str, Any] | None = None) -> None:
    """Write a fitted model, or a pipeline that holds one, to one file.

    The file appears whole or not at all, and replaces one of the same name. ``metadata`` is any
    JSON-able dictionary; read it back with :func:`read_metadata`.

    Example:
        >>> import tempfile
        >>> from sklearn.preprocessing import StandardScaler
        >>> path = Path(tempfile.mkdtemp()) / "scaler.accord"
        >>> save(StandardScaler().fit([[0.0], [2.0]]), path)
        >>> load(path, StandardScaler).transform([[3.0]])
        array([[2.]])
    """
    encoder = Encoder()
    manifest = {
        "kind": _KIND,
        "format": FORMAT,
        "accord": __version__,
        "metadata": encoder.encode(metadata or {}),
        "model": encoder.encode(model),
    }
    with atomic_output(path, force=True) as part, zipfile.ZipFile(part, "w") as archive:
        manifest["sha256"] = {
            _entry(number): _write_array(archive, _entry(number), array)
            for number, array in enumerate(encoder.arrays)
        }
        text = json.dumps(manifest, allow_nan=False, ensure_ascii=False).encode()
        if problem := _manifest_problem(text):
            raise ValueError(f"the model cannot be saved: {problem}.")
        archive.writestr(zipfile.ZipInfo(_MANIFEST), text)


@overload
def load(
    path: str | Path, kind: None = None, *, make_module: Callable[[], Any] | None = None
) -> PredictiveModel: ...
@overload
def load(path: str | Path, kind: type[T], *, make_module: Callable[[], Any] | None = None) -> T: ...
def load(
    path: str | Path,
    kind: type[Any] | None = None,
    *,
    make_module: Callable[[], Any] | None = None,
) -> object:
    """Load what :func:`save` wrote; refuses any other file, and runs no code in it.

    Predictions are those of the saved model, to the bit. Whatever is wrong with a file that
    exists is a :class:`ModelFileError`.

    Args:
        path: The model file.
        kind: The class of what the file must hold, such as :class:`accord.TableRegressor`; an
            editor then knows its methods. None for any model that predicts distributions.
        make_module: What makes the networks of an :class:`accord.ModuleRegressor`. The file holds
            their weights only, and is refused if they do not fit.
    """
    code = {} if make_module is None else {"make_module": make_module}
    with _opened(path) as (archive, manifest):
        _check_digests(archive, manifest)
        with warnings.catch_warnings():
            # About versions of scikit-learn, in words of the file, and names of columns.
            warnings.simplefilter("ignore")
            decoder = Decoder(lambda number: _read_array(archive, number), code)
            try:
                model = decoder.decode(manifest["model"])
                _try_out(model)
            except (AttributeError, LayoutError) as error:
                raise _OtherBuildError(f"{_writer(manifest)}, and lacks {_part(error)}") from error
    if unused := set(code) - decoder.used:
        raise ValueError(
            f"{', '.join(unused)} must only be given for a model that was made with it, got "
            f"{quoted(Path(path).name)}. Load that file without it."
        )
    if not isinstance(model, kind or PredictiveModel):
        own, wanted = type(model).__name__, kind.__name__ if kind else "model of distributions"
        raise ModelFileError(
            f"{quoted(Path(path).name)} must hold a {wanted}, got a {own}. Pass kind={own}."
        )
    return model


def read_metadata(path: str | Path) -> dict[str, Any]:
    """The metadata that was saved with a model, without loading the model."""
    with _opened(path) as (_, manifest):
        metadata = Decoder(_no_array).decode(manifest["metadata"])
        if not isinstance(metadata, dict):
            raise ModelFileError("its metadata is not a dictionary")
    return metadata


def read_version(path: str | Path) -> str:
    """The version of accord that wrote a model file."""
    with _opened(path) as (_, manifest):
        return printable(manifest["accord"])


# --- writing -----------------------------------------------------------------------------------


def _entry(number: int) -> str:
    return f"arrays/{number}.npy"


def _write_array(archive: zipfile.ZipFile, name: str, array: Array) -> str:
    """Write an array without compression; gives the SHA-256 of its entry."""
    with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
        npy.write_array(entry, array, allow_pickle=False)
    with archive.open(name) as written:
        return hashlib.file_digest(written, "sha256").hexdigest()  # type: ignore[arg-type]


# --- reading -----------------------------------------------------------------------------------


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """A model file and its manifest; every error in the block names the file."""
    path = Path(path)
    if not path.is_file():
        shown = quoted(path, limit=300)
        raise FileNotFoundError(f"model file must exist, got {shown}. Check the path.")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_entries(archive, path.stat().st_size)
            yield archive, _read_manifest(archive)
    except MissingCodeError:  # nothing is wrong with the file
        raise
    except Exception as error:
        remedy = "Save or copy it again, and load only files whose origin you know."
        if isinstance(error, _OtherBuildError):
            remedy = "Fit the model again with this accord, or load it with the one that wrote it."
        raise ModelFileError(
            f"{quoted(path.name)} cannot be loaded as a model of accord: {_reason(error)}. {remedy}"
        ) from None


def _reason(error: Exception) -> str:
    if isinstance(error, zipfile.BadZipFile | EOFError):
        return "it is not a model saved by accord, or it is cut short or damaged"
    reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return printable(reason or type(error).__name__, limit=300).rstrip(".")


def _check_entries(archive: zipfile.ZipFile, size: int) -> None:
    """What the directory of the archive claims, before any entry is read."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if _MANIFEST not in names:
        raise ModelFileError("it is not a model saved by accord")
    if len(set(names)) < len(names):
        raise ModelFileError("it holds two entries of one name")
    for entry in entries:
        if not _ENTRY.fullmatch(entry.filename):
            raise ModelFileError(f"it holds an entry {quoted(entry.filename)} that is not ours")
        if entry.flag_bits & _ENCRYPTED:
            raise ModelFileError("it is encrypted")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise ModelFileError("it holds a symbolic link")
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise ModelFileError("it is compressed, which models of accord are not")
    if sum(entry.file_size for entry in entries) > size:
        raise ModelFileError("its entries claim to be larger than the file")


def _read_manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    if archive.getinfo(_MANIFEST).file_size > _MANIFEST_BYTES:
        raise ModelFileError(f"its description is larger than {_MANIFEST_BYTES >> 20} MB")
    text = archive.read(_MANIFEST)
    if problem := _manifest_problem(text):
        raise ModelFileError(problem)
    manifest = json.loads(text.decode(), parse_constant=_refuse_constant)
    if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
        raise ModelFileError("it is not a model saved by accord")
    _check_format(manifest)
    for key, kind in {"accord": str, "sha256": dict, "metadata": dict, "model": dict}.items():
        if not isinstance(manifest.get(key), kind):
            raise ModelFileError(f"its {key!r} is missing or of the wrong type")
    return manifest


def _manifest_problem(text: bytes) -> str | None:
    """Why a description is too large to be parsed in a reasonable amount of memory."""
    values = text.count(b",") + text.count(b"[") + text.count(b"{")
    if len(text) <= _MANIFEST_BYTES and values <= _MANIFEST_VALUES:
        return None
    return (
        f"all of it but the arrays must have at most {byte_size(_MANIFEST_BYTES)} and "
        f"{_MANIFEST_VALUES:,} values, and has {byte_size(len(text))} and {values:,}"
    )


def _check_format(manifest: dict[str, Any]) -> None:
    number = manifest.get("format")
    if type(number) is not int or number < 1:
        raise ModelFileError(f"its format must be a number from 1, got {quoted(number)}")
    if number != FORMAT:
        raise _OtherBuildError(
            f"{_writer(manifest)}, and has format {number}, where this accord {__version__} reads "
            f"format {FORMAT}"
        )


def _writer(manifest: dict[str, Any]) -> str:
    return f"it was written by another build of accord ({printable(manifest.get('accord'))})"


def _part(error: AttributeError | LayoutError) -> str:
    """What a model of this build has and that of the file has not."""
    if isinstance(error, LayoutError):
        return str(error)
    owner = type(error.obj).__name__
    return f"the part {quoted(error.name)} of {owner}"


def _refuse_constant(text: str) -> NoReturn:
    raise ModelFileError(f"it holds a number {quoted(text)}")


def _check_digests(archive: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
    expected = manifest["sha256"]
    names = {name for name in archive.namelist() if name != _MANIFEST}
    if names != set(expected):
        raise ModelFileError("it lacks entries, or has some too many")
    for name in names:
        with archive.open(name) as entry:
            if hashlib.file_digest(entry, "sha256").hexdigest() != expected[name]:  # type: ignore[arg-type]
                raise ModelFileError("it was altered or damaged after saving")


def _read_array(archive: zipfile.ZipFile, number: int) -> Array:
    info = archive.getinfo(_entry(number))
    with archive.open(info) as entry:
        _check_header(entry, info.file_size)  # type: ignore[arg-type]
    with archive.open(info) as entry:
        return npy.read_array(entry, allow_pickle=False)


def _check_header(entry: BinaryIO, size: int) -> None:
    """Refuse an array that is not plain numbers or text, or not as large as its entry."""
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(entry)
    if version not in read:
        raise ModelFileError("it holds an array in an unknown format")
    shape, _, dtype = read[version](entry)
    if dtype.kind not in "biufMmUS" or dtype.names or dtype.subdtype or not dtype.itemsize:
        raise ModelFileError("it holds an array of something else than numbers and text")
    if min(shape, default=0) < 0 or entry.tell() + math.prod(shape) * dtype.itemsize != size:
        raise ModelFileError("it holds an array that is not as large as it claims")


def _no_array(number: int) -> NoReturn:
    raise ModelFileError("its metadata holds an array")


def _try_out(model: Any) -> None:
    """Let a model answer one row, so that parts that do not fit are found now and not later.

    A model whose input is not a matrix says by ``_check_loaded`` what has to hold.
    """
    if hasattr(model, "_check_loaded"):
        model._check_loaded()
        return
    width = getattr(model, "n_features_in_", None)
    if width is None or not hasattr(model, "predict"):
        return
    if type(width) is not int or not 0 < width <= 10_000_000:
        raise ModelFileError(f"its number of features is {quoted(width)}")
    answer = np.asarray(model.predict(np.zeros((1, width))))
    if answer.dtype.kind not in "biuf" or not np.isfinite(answer).all():
        raise ModelFileError("its parts do not fit together: its predictions are not finite")
