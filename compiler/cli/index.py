"""`candlec zoo index`: list the ONNX files of a folder in its INDEX.json, with random inputs."""

from __future__ import annotations

from pathlib import Path

import click

from compiler.cli import arguments
from compiler.cli.failure import Failed
from compiler.cli.input_options import seed_option, size_option
from compiler.cli.output import console, errors, json_option, print_json, working
from compiler.cli.renamed import Verb


@click.command(cls=Verb, short_help="List the ONNX files of a folder in INDEX.json.")
@click.option("--zoo", "folder", type=arguments.INPUT, required=True, metavar="FOLDER", help="Folder of ONNX files.")
@size_option
@seed_option
@json_option
@click.pass_context
def command(context: click.Context, folder: Path, sizes: dict[str, int], seed: int, as_json: bool) -> None:
    """Add the ONNX files of a folder and its subfolders to its INDEX.json, which `candlec zoo run` needs.

    Each model gets the name of its file. A case is a set of inputs for a model. The case of the model NAME is the file
    NAME.npz next to it: put your own inputs there. If there is no such file, and no other model in the same folder, the
    cases are the folders test_data_set_* next to the model. If there are no cases, the command writes NAME.npz with
    random inputs. --size sets the size of a symbolic dimension of these inputs. Any other symbolic dimension has the
    size 1 if it is the first dimension of its input, and 16 otherwise. Models in INDEX.json stay as they are.

    The exit code is 1 if a model cannot be added, for example because it cannot be read.

    \b
    candlec zoo index --zoo models
    candlec zoo index --zoo models --size batch=4 --size tokens=32
    candlec zoo run --zoo models
    """
    from compiler.zoo.listing import list_models

    if not folder.is_dir():
        raise Failed(f"{folder} is no folder")
    try:
        with working(f"reading the models of {folder}"):
            made = list_models(folder, sizes, seed)
    except ValueError as error:
        raise Failed(str(error)) from error
    if as_json:
        print_json({"ok": not made.failed, "known": made.known, "added": made.added, "failed": made.failed})
    else:
        for name, problem in made.failed.items():
            errors.print(f"error: {name}: {problem}", soft_wrap=True)
        count = len(made.added)
        said = f"{folder / 'INDEX.json'}: {count} new model{'s' * (count != 1)}, {made.known + count} in all"
        console.print(said, soft_wrap=True)
    context.exit(1 if made.failed else 0)
