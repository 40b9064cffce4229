"""The command group: what is common to all subcommands, and what becomes of errors."""

import atexit
import errno
import gc
import json
import os
import signal
import sys
import warnings
from types import FrameType
from typing import Any, NoReturn, final

import click

from accord import __version__
from accord._progress import say
from accord.cli.compare import compare
from accord.cli.datasets import datasets, demo
from accord.cli.deferred import UNUSED, defer
from accord.cli.evaluate import evaluate
from accord.cli.export import export
from accord.cli.fit import fit
from accord.cli.monitor import monitor
from accord.cli.options import DEBUG, JSON, RESUMABLE
from accord.cli.predict import predict
from accord.cli.reproduce import reproduce
from accord.cli.serve import serve
from accord.cli.terminal import Misused, harmless
from accord.cli.validate import validate


@final
class Failed(click.ClickException):
    """Something went wrong, said in one sentence."""

    exit_code = 1


@final
class Stopped(BaseException):
    """Ctrl-C, or a request to end: unlike KeyboardInterrupt, training does not catch it."""


Failure = type[Failed] | type[Misused]


@final
class Application(click.Group):
    """A group whose subcommands' errors come out as one plain sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they are needed, not in that of the alphabet."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                if not ctx.meta.get(DEBUG):
                    warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except click.exceptions.Exit:
            raise
        except click.ClickException as error:
            if ctx.meta.get(JSON):
                _print_error(error.format_message(), error.exit_code)
            raise
        except BrokenPipeError:
            raise  # whoever read the output has gone: click ends the process quietly
        except (KeyboardInterrupt, Stopped):
            message = "stopped. What was not finished was not written."
            if ctx.meta.get(RESUMABLE):
                message += " Run the same command again to go on from there."
            raise _reported(ctx, message, Failed) from None
        except Exception as error:
            if ctx.meta.get(DEBUG):
                raise
            raise _reported(ctx, *_explained(error)) from error


def _reported(ctx: click.Context, message: str, kind: Failure) -> click.ClickException:
    if ctx.meta.get(JSON):
        _print_error(message, kind.exit_code)
    return kind(harmless(message))


def _print_error(message: str, code: int) -> None:
    click.echo(json.dumps({"error": message, "exit_code": code}))


def _explained(error: Exception) -> tuple[str, Failure]:
    """The sentence for an error, and its kind."""
    from accord._files import OptionError

    if isinstance(error, OptionError):
        return _sentence(error), Misused
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            "the disk is full, and nothing was written. Free some space, or write to another disk.",
            Failed,
        )
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}", Failed
    if isinstance(error, MemoryError):
        return "there is not enough memory for this. Use fewer rows or columns.", Failed
    if isinstance(error, ImportError) and error.name is None:  # a package that must be installed
        return _sentence(error), Misused
    if isinstance(error, ValueError | TypeError | ConnectionError):
        return _sentence(error), Failed
    kind = type(error).__name__
    return f"{kind}: {_sentence(error)} Run again with --debug to see where.", Failed


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Python's warnings as notes; those for programmers are not shown."""
    if issubclass(category, UserWarning | RuntimeWarning):
        say(f"Note: {' '.join(str(message).split())}")


@click.group(
    cls=Application,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success, 1 failure, 2 wrong usage, 3 coverage no longer holds (monitor). "
    "Run 'accord COMMAND --help' for options and examples.",
)
@click.version_option(__version__, message="accord %(version)s")
def application() -> None:
    """Predictions from a table, with uncertainty that can be trusted.

    \b
    A first session:
      accord demo                                      # built-in data, a report in a minute
      accord fit train.csv --target price              # writes model.accord and report.html
      accord predict model.accord new.csv -o out.csv   # mean, interval and flags for each row
    """


_FILES = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/accord.fish",
}


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(list(_FILES)))
def completion(shell: str) -> None:
    """Print the script that completes commands, options, files and column names in SHELL.

    \b
    Set up, once:
      accord completion bash >> ~/.bashrc
      accord completion zsh  >> ~/.zshrc
      accord completion fish > ~/.config/fish/completions/accord.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - the three are click's own
        raise click.UsageError(f"no completion for {shell}.")
    complete = kind(application, {}, "accord", "_ACCORD_COMPLETE")
    # click asks bash for its version to warn about old ones; the script itself is the same.
    click.echo(complete.source_template % complete.source_vars())


for _command in (
    fit,
    predict,
    evaluate,
    monitor,
    export,
    serve,
    validate,
    compare,
    demo,
    datasets,
    reproduce,
    completion,
):
    application.add_command(_command)


def main() -> NoReturn:
    """The console script."""
    # Threads that wait for each other should sleep: read when torch is imported, by a subcommand.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Modules make hundreds of thousands of objects that all stay: to look through them for garbage
    # as often as usual is a tenth of a command's start, and once more at its end a fifth.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    defer(*UNUSED)
    # However a run is ended, temporary files are removed and existing ones stay.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), _stop)
    try:
        application(prog_name="accord")
    except Stopped:
        sys.exit(1)
    sys.exit(0)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped
