"""Checks of folders of models, as programs use them."""
