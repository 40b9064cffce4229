"""``accord export``: a saved model as an ONNX file."""

from pathlib import Path

import click

from accord._wording import byte_size
from accord.cli import options, terminal


@click.command(short_help="Write a saved model as ONNX, for programs without Python.")
@click.argument("model", type=options.FILE)
@click.option(
    "--output",
    "-o",
    type=options.FILE,
    default=Path("model.onnx"),
    show_default=True,
    help="The file to write.",
)
@click.option(
    "--level",
    "levels",
    type=options.share,
    metavar="SHARE",
    multiple=True,
    help="A level of the quantiles in the output; may be repeated.  [default: the ends of the "
    "model's interval, and 0.5]",
)
@options.force
@options.common
def export(
    model: Path, output: Path, levels: tuple[float, ...], force: bool, quiet: bool, as_json: bool
) -> None:
    """Write MODEL as one ONNX graph that predicts as accord does, to 1e-5 of the target's spread.

    Inputs: numbers, a matrix of the columns of numbers, times and dates; categories, one of codes.
    Their columns and the code books are in the file's metadata. Outputs: y_mean, y_std,
    y_quantiles, unusual_score and unusual. A part of the model that ONNX cannot state is named, and
    nothing is written. Needs the packages of 'accord[export]'.

    \b
    Examples:
      accord export model.accord -o model.onnx
      accord export model.accord --level 0.05 --level 0.5 --level 0.95
    """
    terminal.check_files([model], [output], force=force)

    from accord.workflows import export_model

    result = export_model(model, output=output, levels=levels, force=force)
    if as_json:
        terminal.print_json(result.to_json())
        return
    shown = ", ".join(f"{level:g}" for level in result.levels)
    if not quiet:
        terminal.say(f"Exported with quantiles at {shown}; {byte_size(result.size)}.")
    terminal.wrote([output])
