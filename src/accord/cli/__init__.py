"""The command: each subcommand is one library call, its options and its words.

Nothing heavy is imported before a subcommand runs, so that ``accord --help`` is quick.
"""

from accord.cli.application import application, main

__all__ = ["application", "main"]
