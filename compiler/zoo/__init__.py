"""Folders of models, and what is known of their results."""
