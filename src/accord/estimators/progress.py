"""A progress bar for training, with loss and time left; silent unless asked for."""

from collections.abc import Iterator
from contextlib import contextmanager

from accord.training import Listener, Progress


@contextmanager
def listening(verbose: int, title: str) -> Iterator[Listener | None]:
    """A listener that draws a bar on standard error, or None if ``verbose`` is 0."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("epoch {task.completed}/{task.total}  loss {task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        line = bar.add_task(title, total=None, loss="…")

        def listen(progress: Progress) -> None:
            bar.update(
                line,
                description=f"{title} ({progress.n_members} networks)",
                completed=progress.epoch,
                total=progress.n_epochs,
                loss=f"{progress.loss:.3f}",
            )

        yield listen
