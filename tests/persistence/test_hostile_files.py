"""Crafted and damaged model files: one plain sentence, nothing run, no memory to speak of."""

import hashlib
import io
import json
import pickle
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accord
from accord import BVMRegressor
from accord.persistence import ModelFileError, read_metadata, save

Entries = dict[str, bytes]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    model = BVMRegressor(epochs=1, n_members=2, tolerance=0.5, random_state=0).fit(x, x[:, 0])
    path = tmp_path_factory.mktemp("model") / "model.accord"
    save(model, path, metadata={"rows": 60})
    return path


def entries_of(path: Path) -> Entries:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def sealed(entries: Entries) -> Entries:
    """With digests that are right again, as an attacker would write them."""
    manifest = json.loads(entries["manifest.json"])
    manifest["sha256"] = {
        name: hashlib.sha256(content).hexdigest()
        for name, content in entries.items()
        if name != "manifest.json"
    }
    return {**entries, "manifest.json": json.dumps(manifest).encode()}


def written(folder: Path, entries: Entries, *, compression: int = zipfile.ZIP_STORED) -> Path:
    target = folder / "hostile.accord"
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return target


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> Entries:
    """The entries with a manifest that ``change`` has worked on."""
    entries = entries_of(path)
    manifest = json.loads(entries["manifest.json"])
    change(manifest)
    return {**entries, "manifest.json": json.dumps(manifest).encode()}


def refused(file: Path, message: str) -> None:
    """Loading fails with one plain line, and without much memory."""
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=message) as caught:
            accord.load(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(caught.value).isprintable()
    assert peak < 20e6 + 3 * file.stat().st_size


# --- the archive -------------------------------------------------------------------------------


def test_a_zip_bomb_takes_no_memory(tmp_path: Path, path: Path) -> None:
    entries = entries_of(path)
    entries["arrays/0.npy"] = bytes(200_000_000)
    bomb = written(tmp_path, sealed(entries), compression=zipfile.ZIP_DEFLATED)
    assert bomb.stat().st_size < 1e6
    refused(bomb, "compressed")


def test_sizes_that_are_not_true(tmp_path: Path, path: Path) -> None:
    file = written(tmp_path, entries_of(path))
    content = file.read_bytes()
    directory = content.index(b"PK\x01\x02")
    for field in (20, 24):  # compressed and uncompressed size
        struct.pack_into("<I", buffer := bytearray(content), directory + field, 2**31)
        file.write_bytes(buffer)
        refused(file, "compressed|larger than the file")
    struct.pack_into("<II", buffer := bytearray(content), directory + 20, 2**31, 2**31)
    file.write_bytes(buffer)
    refused(file, "larger than the file")


@pytest.mark.parametrize("name", ["../evil.npy", "/etc/passwd", "arrays/0.npy/../1", "notes.txt"])
def test_entries_that_are_not_ours(tmp_path: Path, path: Path, name: str) -> None:
    refused(written(tmp_path, {**entries_of(path), name: b""}), "that is not ours")
    assert {file.name for file in tmp_path.iterdir()} == {"hostile.accord"}


def test_two_entries_of_one_name(tmp_path: Path, path: Path) -> None:
    file = written(tmp_path, entries_of(path))
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("arrays/0.npy", b"")
    refused(file, "two entries of one name")


def test_a_symbolic_link(tmp_path: Path, path: Path) -> None:
    entries = entries_of(path)
    file = tmp_path / "link.accord"
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)
            if name == "arrays/0.npy":
                info.external_attr = 0o120777 << 16
            archive.writestr(info, content)
    refused(file, "symbolic link")


def test_an_encrypted_file(tmp_path: Path, path: Path) -> None:
    file = written(tmp_path, entries_of(path))
    content = bytearray(file.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    file.write_bytes(content)
    refused(file, "encrypted")


@pytest.mark.parametrize("keep", [0, 100, 0.5, 0.99])
def test_truncated_files(tmp_path: Path, path: Path, keep: float) -> None:
    content = path.read_bytes()
    file = tmp_path / "short.accord"
    file.write_bytes(content[: int(keep * len(content)) if keep < 1 else int(keep)])
    refused(file, "cannot be loaded as a model")


def test_one_changed_byte_is_noticed(tmp_path: Path, path: Path) -> None:
    entries = entries_of(path)
    content = bytearray(entries["arrays/0.npy"])
    content[-1] ^= 1
    entries["arrays/0.npy"] = bytes(content)
    refused(written(tmp_path, entries), "altered or damaged")


def test_other_files(tmp_path: Path) -> None:
    for content in (b"hello", pickle.dumps({"not": "a model"})):
        (tmp_path / "other.accord").write_bytes(content)
        refused(tmp_path / "other.accord", "cannot be loaded as a model")
    refused(written(tmp_path, {"arrays/0.npy": b""}), "not a model saved by accord")


# --- the manifest ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "Expecting"),
        (b"\xff\xfe{}", "codec can't decode"),
        (b"[]", "not a model"),
        (b'{"kind": "accord model"}', "format must be a number"),
        (b"[" * 200_000, "RecursionError|Expecting"),
        (b"[" + b"[]," * 1_100_000 + b"[]]", "at most 32 MB"),
        (b'{"kind": "accord model", "format": NaN}', "'NaN'"),
    ],
    ids=["cut", "not UTF-8", "list", "empty", "deep", "many", "NaN"],
)
def test_manifests_that_are_none(tmp_path: Path, path: Path, text: bytes, message: str) -> None:
    refused(written(tmp_path, {**entries_of(path), "manifest.json": text}), message)


@pytest.mark.parametrize("number", [-5, 0, True, "1", None, 1.5])
def test_formats_that_never_were(tmp_path: Path, path: Path, number: Any) -> None:
    file = written(tmp_path, changed(path, lambda m: m.update(format=number)))
    refused(file, "format must be a number from 1")


@pytest.mark.parametrize("key", ["sha256", "model", "metadata", "accord"])
def test_what_must_be_there(tmp_path: Path, path: Path, key: str) -> None:
    file = written(tmp_path, changed(path, lambda m: m.pop(key)))
    refused(file, f"'{key}' is missing")
    with pytest.raises(ModelFileError):
        read_metadata(file)


@pytest.mark.parametrize(
    "value",
    [
        {"is": "object", "type": "os.system", "state": {}, "number": 0},
        {"is": "object", "type": "accord.tables:Path", "state": {}, "number": 0},
        {"is": "object", "type": "pathlib.Path", "state": {}, "number": 0},
        {"is": "object", "type": "sklearn.SVR", "state": {}, "number": 0},
        {"is": "object", "type": "\x1b[31mred", "state": {}, "number": 0},
        {"is": "object", "type": ["BVMRegressor"], "state": {}, "number": 0},
        {"is": "object", "type": "BVMRegressor", "state": [1], "number": 0},
        {"is": "object", "type": "BVMRegressor", "state": {}},
        {"is": "function", "name": "os.system"},
        {"is": "same", "as": 99},
        {"is": "array", "file": -1},
        {"is": "array", "file": 10**30},
        {"is": "objects", "shape": [10**12], "items": [1]},
        {"is": "dtype", "name": "O"},
        {"is": "scalar", "dtype": "<f8", "value": [1, 2]},
        {"is": "generator", "state": {"bit_generator": "__loader__"}},
        {"is": {"a": 1}},
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_values_that_nobody_wrote(tmp_path: Path, path: Path, value: Any) -> None:
    file = written(tmp_path, changed(path, lambda m: m["model"].update(state={"x": value})))
    refused(file, "cannot be loaded as a model")


def test_deep_nesting(tmp_path: Path, path: Path) -> None:
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    file = written(tmp_path, changed(path, lambda m: m["model"]["state"].update(x=deep)))
    refused(file, "nests deeper")


# --- the arrays --------------------------------------------------------------------------------


def npy(shape: str, descr: str = "'<f8'", content: bytes = b"") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"
    padded = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode() + content


def pickled() -> bytes:
    class Bomb:
        def __reduce__(self) -> Any:
            return print, ("run",)

    out = io.BytesIO()
    np.save(out, np.array([Bomb()], dtype=object), allow_pickle=True)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy("(100000000000,)"), "not as large as it claims"),
        (npy("(10**9, 10**9)"), "cannot be loaded"),
        (npy("(-1,)"), "not as large"),
        (npy("(3,)", content=bytes(16)), "not as large"),
        (npy("(1000000000000,)", "'<U0'"), "something else than numbers"),
        (npy("(1,)", "'|O'", bytes(8)), "something else than numbers"),
        (npy("(1,)", "[('a', '<f8')]", bytes(8)), "something else than numbers"),
        (npy("__import__('os')"), "cannot be loaded"),
        (b"\x93NUMPY\x09\x00", "unknown format"),
        (b"", "cannot be loaded"),
    ],
    ids=["huge", "sum", "negative", "short", "empty text", "object", "record", "code", "9", "none"],
)
def test_arrays_that_lie(tmp_path: Path, path: Path, content: bytes, message: str) -> None:
    file = written(tmp_path, sealed({**entries_of(path), "arrays/0.npy": content}))
    refused(file, message)


def test_pickles_in_arrays_are_not_run(
    tmp_path: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(written(tmp_path, sealed({**entries_of(path), "arrays/0.npy": pickled()})), "numbers")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_that_are_no_numbers(tmp_path: Path, path: Path, weight: float) -> None:
    refused(written(tmp_path, sealed(with_arrays(path, lambda a: a * 0 + weight))), "cannot be")


def test_weights_of_another_shape(tmp_path: Path, path: Path) -> None:
    shorter = sealed(with_arrays(path, lambda a: a[..., :-1] if a.ndim == 3 else a))
    refused(written(tmp_path, shorter), "cannot be loaded")


def with_arrays(path: Path, change: Callable[[Any], Any]) -> Entries:
    entries = entries_of(path)
    for name in entries:
        if name.endswith(".npy"):
            array = np.load(io.BytesIO(entries[name]))
            out = io.BytesIO()
            np.save(out, change(array) if array.dtype.kind == "f" else array)
            entries[name] = out.getvalue()
    return entries


# --- anything at all ---------------------------------------------------------------------------


def loaded_or_reason(file: Path) -> Any:
    try:
        return accord.load(file)
    except ModelFileError as error:
        return error


@settings(max_examples=500, deadline=None, database=None)
@given(data=st.data())
def test_no_mutation_does_anything_else_than_load_or_be_refused(
    data: st.DataObject, path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(path.read_bytes())
    # The structure is where mistakes could hide: the directory and the manifest are at the end.
    interesting = st.integers(len(content) - 6000, len(content) - 1) | st.integers(
        0, len(content) - 1
    )
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(interesting)
        length = data.draw(st.sampled_from([0, 1, 1, 1, 2, 8]))
        content[place : place + length] = data.draw(st.binary(max_size=8))
    file = tmp_path_factory.getbasetemp() / "mutated.accord"
    file.write_bytes(content)
    loaded = loaded_or_reason(file)
    assert type(loaded) is BVMRegressor or str(loaded).isprintable()


@settings(max_examples=300, deadline=None, database=None)
@given(data=st.data())
def test_no_other_manifest_does_anything_else_than_load_or_be_refused(
    data: st.DataObject, path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Well-formed archives with wrong values at random places: the attack by hand."""
    values = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=4)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.sampled_from([[], {}, {"is": "array", "file": 0}, {"is": "same", "as": 0}])
    )

    def disturb(manifest: dict[str, Any]) -> None:
        place: Any = manifest["model"]
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = data.draw(st.sampled_from(keys))
            if (
                not isinstance(place[key], dict | list)
                or not place[key]
                or data.draw(st.booleans())
            ):
                place[key] = data.draw(values)
                return
            place = place[key]

    folder = tmp_path_factory.getbasetemp()
    file = written(folder, changed(path, disturb))
    loaded = loaded_or_reason(file)
    assert not isinstance(loaded, ModelFileError) or str(loaded).isprintable()
