"""All recipes, and those whose networks PyTorch cannot export."""

from __future__ import annotations

import sys
from pathlib import Path

from models.families import audio, by_hand, diffusion, image_text, text, timm, torchvision, traced, vision
from models.families.recipe import Recipe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["BASELINE", "LEDGER", "recipes", "unexportable"]

HERE = Path(__file__).parent
LEDGER, BASELINE = HERE / "unexportable.toml", HERE / "zoo.toml"


def recipes() -> dict[str, Recipe]:
    """The recipes of all families, by name."""
    families = (text, vision, image_text, audio, by_hand, diffusion, timm, torchvision)
    listed = [recipe for family in families for recipe in family.recipes()]
    return {recipe.name: recipe for recipe in (*listed, *traced.recipes(listed))}


def unexportable() -> dict[str, str]:
    """The names of the networks that PyTorch cannot export, with the reasons."""
    return {name: str(reason) for name, reason in tomllib.loads(LEDGER.read_text(encoding="utf-8")).items()}
