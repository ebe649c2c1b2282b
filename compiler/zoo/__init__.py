"""Folders of models, and the known differences of their results."""
