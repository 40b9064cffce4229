"""``accord completion``: the script that teaches a shell the command."""

import click

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

    from accord.cli.application import application

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - the three are click's own
        raise click.UsageError(f"no completion for {shell}.")
    complete = kind(application, {}, "accord", "_ACCORD_COMPLETE")
    # click asks bash for its version to warn about old ones; the script itself is the same.
    click.echo(complete.source_template % complete.source_vars())
