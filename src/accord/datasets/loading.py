"""From a name to a dataset: from the user's folder, the cache, its public address, or a seed."""

import csv
import hashlib
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from accord._checks import RandomState, check_count, generator_from
from accord._files import write_whole
from accord._types import Floats
from accord.datasets.registry import Dataset, DatasetInfo, File, Truth, info


def make_cubic(
    n: int = 20,
    *,
    noise: float = 3.0,
    low: float = -4.0,
    high: float = 4.0,
    random_state: RandomState = None,
) -> Dataset:
    """The cubic of the paper's first figure: t = x³ + ξ, ξ ~ N(0, 3²), x uniform in [−4, 4].

    Args:
        n: Number of rows.
        noise: Standard deviation of ξ.
        low, high: Where x is drawn; the figure looks from −6 to 6.
        random_state: Seed.

    **Shape**: X (n, 1), y (n,).

    Example:
        >>> toy = make_cubic(random_state=0)
        >>> toy.truth.mean(np.array([[2.0]])), toy.truth.std(np.array([[2.0]]))
        (array([8.]), array([3.]))
    """
    _check(n, noise)
    truth = Truth(
        mean=lambda X: X[:, 0] ** 3,
        std=lambda X: np.full(len(X), noise, dtype=np.float64),
    )
    about = f"t = x³ + N(0, {noise:g}²), x uniform in [{low:g}, {high:g}]."
    return _draw("cubic", truth, n, low, high, about, random_state)


def make_heteroscedastic(n: int = 1000, *, random_state: RandomState = None) -> Dataset:
    """Noise that depends on the input, after Nix and Weigend (1994).

    With x uniform in [0, π/2],

        μ(x) = sin(2.5 x) · sin(1.5 x),   σ²(x) = 0.01 + 0.25 (1 − sin(2.5 x))².

    Args:
        n: Number of rows.
        random_state: Seed.

    **Shape**: X (n, 1), y (n,).

    Example:
        >>> toy = make_heteroscedastic(100, random_state=0)
        >>> toy.truth.std(np.array([[0.0], [np.pi / 5]])).round(3)
        array([0.51, 0.1 ])
    """
    _check(n, 0.0)
    truth = Truth(
        mean=_waves,
        std=lambda X: np.sqrt(0.01 + 0.25 * (1 - np.sin(2.5 * X[:, 0])) ** 2),
    )
    about = "t = sin(2.5x) sin(1.5x) + N(0, 0.01 + 0.25 (1 − sin 2.5x)²), x uniform in [0, π/2]."
    return _draw("heteroscedastic", truth, n, 0.0, np.pi / 2, about, random_state)


def make_homoscedastic(
    n: int = 1000, *, noise: float = 0.1, random_state: RandomState = None
) -> Dataset:
    """The same mean as :func:`make_heteroscedastic` under noise of one size.

    Args:
        n: Number of rows.
        noise: Standard deviation of the noise.
        random_state: Seed.

    **Shape**: X (n, 1), y (n,).

    Example:
        >>> make_homoscedastic(100, noise=0.2, random_state=0).truth.std(np.zeros((2, 1)))
        array([0.2, 0.2])
    """
    _check(n, noise)
    truth = Truth(mean=_waves, std=lambda X: np.full(len(X), noise, dtype=np.float64))
    about = f"t = sin(2.5x) sin(1.5x) + N(0, {noise:g}²), x uniform in [0, π/2]."
    return _draw("homoscedastic", truth, n, 0.0, np.pi / 2, about, random_state)


def _waves(X: Floats) -> Floats:
    x = X[:, 0]
    return np.sin(2.5 * x) * np.sin(1.5 * x)


def _check(n: int, noise: float) -> None:
    check_count("n", n)
    if not noise >= 0:
        raise ValueError(f"noise must be non-negative, got {noise}. Use 0 for exact targets.")


def _draw(
    name: str,
    truth: Truth,
    n: int,
    low: float,
    high: float,
    about: str,
    random_state: RandomState,
) -> Dataset:
    generator = generator_from(random_state)
    X = generator.uniform(low, high, size=(n, 1))
    return Dataset(
        name=name,
        X=X,
        y=generator.normal(truth.mean(X), truth.std(X)),
        feature_names=("x",),
        target_name="t",
        feature_units=("",),
        target_unit="",
        description=about,
        licence="generated",
        truth=truth,
    )


# No file of the registry is near this size; a wrong address may lead to one that is.
_LARGEST_BYTES = 200 << 20
_TIMEOUT_SECONDS = 30
_TOYS: dict[str, Callable[..., Dataset]] = {
    "cubic": make_cubic,
    "heteroscedastic": make_heteroscedastic,
    "homoscedastic": make_homoscedastic,
}


class _Table(NamedTuple):
    X: Floats
    y: Floats


def load(name: str) -> Dataset:
    """A dataset by name, from the user's folder, the cache or the network.

    The folder that the environment variable ``ACCORD_DATA`` names is looked at first, then the
    user's cache; what is in neither is fetched from its public address. Toys are drawn with seed 0.

    Args:
        name: A name of :func:`~accord.datasets.names`, or one under which the literature knows it.

    **Shape**: X (N, d), y (N,); see :class:`~accord.datasets.Dataset`.

    Example:
        >>> data = load("diabetes")
        >>> data.X.shape, data.feature_names[:3], data.feature_units[:3]
        ((442, 10), ('age', 'sex', 'bmi'), ('years', '', 'kg/m²'))
    """
    entry = info(name)
    if entry.kind == "toy":
        return _TOYS[entry.name](random_state=0)
    if entry.kind == "diabetes":
        return _dataset(entry, _diabetes())
    paths = [local_path(file) for file in entry.files]
    if entry.kind == "stocks":
        train, test = map(_openings, paths)
        looking_back = np.concatenate([train[-entry.d :], test])  # on the last training days
        holdout = _dataset(entry, _windows(looking_back, entry.d))
        return _dataset(entry, _windows(train, entry.d), holdout=holdout)
    return _dataset(entry, _columns(paths[0], entry.d))


def _dataset(entry: DatasetInfo, rows: _Table, *, holdout: Dataset | None = None) -> Dataset:
    return Dataset(
        name=entry.name,
        X=rows.X,
        y=rows.y,
        feature_names=tuple(name for name, _ in entry.features),
        target_name=entry.target[0],
        feature_units=tuple(unit for _, unit in entry.features),
        target_unit=entry.target[1],
        description=entry.description,
        licence=entry.licence,
        holdout=holdout,
    )


def _columns(path: Path, d: int) -> _Table:
    """Features in columns 0…d−1 and the target in column d; further columns are unused."""
    table = np.loadtxt(path, dtype=np.float64, ndmin=2)
    return _Table(np.ascontiguousarray(table[:, :d]), table[:, d].copy())


def _diabetes() -> _Table:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, scaled=False)
    return _Table(np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64))


def _openings(path: Path) -> Floats:
    """The column ``Open``; some numbers carry thousands separators and quotes."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return np.array([float(row["Open"].replace(",", "")) for row in csv.DictReader(file)])


def _windows(prices: Floats, width: int) -> _Table:
    """Each day's price from those of the days before."""
    windows = np.lib.stride_tricks.sliding_window_view(prices, width)[:-1]
    return _Table(windows.copy(), prices[width:].copy())


# --- files -------------------------------------------------------------------------------------


def local_path(file: File) -> Path:
    """Where the file lies, fetched first if need be, and checked against its SHA-256.

    The folder that ``ACCORD_DATA`` names comes first; a damaged file there is an error, since it
    was put there on purpose. A damaged file in the cache is fetched anew.
    """
    folder = os.environ.get("ACCORD_DATA")
    if folder and (path := Path(folder) / file.path).is_file():
        if (found := _sha256(path.read_bytes())) != file.sha256:
            raise ValueError(
                f"{path} must have the SHA-256 {file.sha256}, got {found}. The file is damaged or "
                f"has been changed: delete it, or replace it by {file.url}."
            )
        return path
    path = cache_folder() / file.path
    if not path.is_file() or _sha256(path.read_bytes()) != file.sha256:
        write_whole(path, _downloaded(file, folder, path))
    return path


def cache_folder() -> Path:
    """Where downloaded files are kept, by the custom of the system."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "accord"


def _downloaded(file: File, folder: str | None, path: Path) -> bytes:
    try:
        with urllib.request.urlopen(file.url, timeout=_TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read(_LARGEST_BYTES)
    except (OSError, urllib.error.URLError) as error:
        raise FileNotFoundError(_unavailable(file, folder, path, error)) from None
    if _sha256(content) != file.sha256:
        raise ValueError(
            f"{file.url} must have the SHA-256 {file.sha256}, got another file. Something between "
            "here and there has changed it (a proxy's log-in page?): open the address in a "
            f"browser, and put the right file at {path}."
        )
    return content


def _unavailable(file: File, folder: str | None, path: Path, error: OSError) -> str:
    looked = f"not in the folder ACCORD_DATA={folder}, " if folder else ""
    damaged = "damaged in" if path.is_file() else "not in"
    status = getattr(error, "code", None)
    why = f"the server answered {status}" if status else f"{type(error).__name__}: no connection"
    return (
        f"{file.path} must be on disk or within reach: it is {looked}{damaged} the cache "
        f"{cache_folder()}, and could not be downloaded ({why}). Connect to the network, or save "
        f"{file.url} as {path}, or set ACCORD_DATA to a folder that holds {file.path}."
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
