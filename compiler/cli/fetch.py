"""`candlec zoo fetch`: download the models of a folder for which its INDEX.json gives an address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli.failure import Failed
from compiler.cli.folder import cache_option, only_option, zoo_option
from compiler.cli.output import console, errors, json_option, print_json, table
from compiler.cli.progress import Downloads
from compiler.cli.renamed import Verb

if TYPE_CHECKING:
    from compiler.zoo.fetching import Fetched

_STATES = {"known": "in the cache", "new": "downloaded", "failed": "✗"}


@click.command(cls=Verb, short_help="Download the models for which INDEX.json gives an address.")
@zoo_option
@only_option("Fetch only these models: {}. May be repeated.")
@cache_option
@click.option("--offline", is_flag=True, help="Use no network: fail for each model that the cache lacks.")
@json_option
@click.pass_context
def command(
    context: click.Context, folder: Path, only: tuple[str, ...], cache: Path | None, offline: bool, as_json: bool
) -> None:
    """Download the models of a folder whose entries in INDEX.json have a `url`, except those in the cache.

    Such an entry also has `sha256`, the digest of the file at this address, and `license`, its license in words. The
    address begins with https, http or file. If it ends with .tar.gz, .tgz or .tar, the command unpacks the archive, and
    `file` is the path of the model in it. Otherwise, the file at this address is the model, and the entry has no
    `file`. The cases of an archive are the folders `test_data_set_*` next to the model, unless `cases` lists others.

    The command checks the digest of each file before it moves the file to the cache. If the connection ends, the next
    call continues the download. If two processes fetch the same model, one waits for the other. Models without a `url`
    are in the folder, and need no download.

    The exit code is 1 if a model could not be fetched. The other models are still in the cache.

    \b
    candlec zoo fetch --zoo models
    candlec zoo fetch --zoo models --only resnet50 --cache /data/models
    candlec zoo fetch --zoo models --offline
    """
    from compiler.zoo.fetching import fetch

    try:
        with Downloads() as progress:
            found = fetch(folder, only=only, cache=cache, offline=offline, arrival=progress)
    except ValueError as error:
        raise Failed(str(error)) from error
    failed = [each for each in found if each.state == "failed"]
    if as_json:
        print_json({"ok": not failed, "models": [_data(each) for each in found]})
    else:
        _show(folder, found)
    context.exit(1 if failed else 0)


def _data(each: Fetched) -> dict[str, str]:
    facts = {"name": each.name, "state": each.state, "path": str(each.path)}
    return facts | {"license": each.license, "problem": each.problem}


def _show(folder: Path, found: list[Fetched]) -> None:
    """Print a table of the downloads, the problems, and the number of models."""
    remote = [each for each in found if each.state != "local"]
    if remote:
        rows = [(each.name, _STATES[each.state], each.license) for each in remote]
        table(("model", "state", "license"), rows)
    for each in remote:
        if each.problem:
            errors.print(f"error: {each.name}: {each.problem}", soft_wrap=True)
    ready = sum(each.state != "failed" for each in remote)
    said = f"{ready} of {len(remote)} downloads of {folder} are in the cache"
    console.print(said if remote else f"no model of {folder} has a `url`: there is nothing to fetch", soft_wrap=True)
