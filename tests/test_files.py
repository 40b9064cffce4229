"""Files appear whole or not at all, no input is lost, and nothing is left of runs that died."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from accord import _files
from accord._files import (
    OptionError,
    atomic_output,
    atomic_outputs,
    check_output,
    check_outputs,
    write_whole,
)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_file_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with atomic_output(path) as part:
        part.write_text("half")
        assert not path.exists()
    assert path.read_text() == "half"
    assert names(tmp_path) == {"out.txt"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_of_a_failure(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail_half_way() -> None:
        with atomic_output(path, force=True) as part:
            part.write_text("new")
            raise error

    with pytest.raises(error):
        fail_half_way()
    assert path.read_text() == "old"
    assert names(tmp_path) == {"out.txt"}


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with (
        pytest.raises(OptionError, match=r"already exists\. Pass force \(--force\)"),
        atomic_output(path),
    ):
        pass
    assert path.read_text() == "old"
    write_whole(path, "new")
    assert path.read_text() == "new"


def test_a_file_made_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"

    def race() -> None:
        with atomic_output(path) as part:
            part.write_text("mine")
            path.write_text("theirs")

    with pytest.raises(OptionError, match="meanwhile"):
        race()
    assert path.read_text() == "theirs"
    assert names(tmp_path) == {"out.txt"}


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"does not exist\. Create it"):
        check_output(tmp_path / "absent" / "out.csv")
    with pytest.raises(OptionError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(OSError, match="cannot write to /proc"):
        check_output("/proc/out.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="cannot write to"):
        check_output(tmp_path / "out.csv")


# --- inputs are never outputs ------------------------------------------------------------------


@pytest.mark.parametrize("link", ["same", "symbolic", "hard", "folder"])
def test_no_output_is_an_input(tmp_path: Path, link: str) -> None:
    data = tmp_path / "data.csv"
    data.write_text("precious")
    output = tmp_path / "out.csv"
    if link == "same":
        output = data
    elif link == "symbolic":
        output.symlink_to(data)
    elif link == "hard":
        os.link(data, output)
    else:
        (tmp_path / "alias").symlink_to(tmp_path, target_is_directory=True)
        output = tmp_path / "alias" / "data.csv"
    with pytest.raises(OptionError, match=r"is the input .* must not be overwritten"):
        check_output(output, inputs=[data], force=True)
    assert data.read_text() == "precious"


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    os.link(path, tmp_path / "same")
    for second in (path, tmp_path / "same"):
        with pytest.raises(OptionError, match="a file of its own"):
            check_outputs([path, second], force=True)


# --- what is there is kept as it is ------------------------------------------------------------


def test_permissions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("old")
    path.chmod(0o600)
    with atomic_output(path, force=True) as part:
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
        part.write_text("new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shared = tmp_path / "shared.csv"
    shared.touch()
    shared.chmod(0o666)
    write_whole(shared, "new")
    assert stat.S_IMODE(shared.stat().st_mode) == 0o666


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_whole(tmp_path / "new", "")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    with pytest.raises(OptionError, match="already exists"):
        check_output(link)
    write_whole(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    dangling = tmp_path / "dangling.csv"
    dangling.symlink_to(tmp_path / "later.csv")
    write_whole(dangling, "there now")
    assert (tmp_path / "later.csv").read_text() == "there now"


def test_circular_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OptionError, match="leads nowhere"):
        check_output(tmp_path / "a", force=True)


def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(OptionError, match=r"not a regular file.* - for standard output"):
            check_output(path, force=True)


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with atomic_output("-") as part:
        part.write_bytes(b"a,b\n\xff")
        assert capfdbinary.readouterr().out == b""
    assert capfdbinary.readouterr().out == b"a,b\n\xff"
    assert not part.exists()


def test_names_are_safe_to_print(tmp_path: Path) -> None:
    with pytest.raises(OptionError) as caught:
        check_output(tmp_path / "\x1b[2Jfolder" / "out.csv")
    assert "\x1b" not in str(caught.value)


# --- several files in one step -----------------------------------------------------------------


def test_several_files_are_new_together_or_old_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, report = tmp_path / "model", tmp_path / "report.html"
    with atomic_outputs([model, report]) as parts:
        for part in parts:
            part.write_text("first")
    assert names(tmp_path) == {"model", "report.html"}
    place = _files._put_in_place
    order = []

    def second_fails(part: _files._Part, *, force: bool) -> None:
        order.append(part.target.name)
        if part.target == report:
            raise OSError("the disk went away")
        place(part, force=force)

    def replace() -> None:
        with atomic_outputs([model, report], force=True) as parts:
            for part in parts:
                part.write_text("second")

    monkeypatch.setattr(_files, "_put_in_place", second_fails)
    with pytest.raises(OSError, match="went away"):
        replace()
    assert order == ["model", "report.html"]
    assert model.read_text() == report.read_text() == "first"
    assert names(tmp_path) == {"model", "report.html"}
    monkeypatch.undo()
    replace()
    assert model.read_text() == report.read_text() == "second"
    assert names(tmp_path) == {"model", "report.html"}


def test_a_file_and_its_folder_are_flushed_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = []
    real = os.fsync

    def recorded(handle: int) -> None:
        flushed.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        real(handle)

    monkeypatch.setattr(os, "fsync", recorded)
    write_whole(tmp_path / "a", "content")
    assert flushed == [False, True]


# --- killed runs -------------------------------------------------------------------------------

KILLED = """
import sys, time
from accord._files import atomic_output
with atomic_output(sys.argv[1]) as part:
    part.write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_parts_of_killed_runs_are_swept_and_those_of_living_ones_are_not(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    other = tmp_path / ".out.notes.part.csv"  # looks alike, is not ours
    other.touch()
    runs = [
        subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline() == b"ready\n"
    assert len(names(tmp_path)) == 3
    runs[0].send_signal(signal.SIGKILL)
    runs[0].wait()
    old = time.time() - 5
    for part in tmp_path.iterdir():
        os.utime(part, (old, old))
    try:
        write_whole(path, "whole")
        assert len(names(tmp_path)) == 3  # the file, the part of the living run, the other file
        assert other.exists()
    finally:
        runs[1].kill()
        for run in runs:
            run.communicate()
