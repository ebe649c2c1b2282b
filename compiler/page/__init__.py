"""The HTML page of results: a grid of models, and a view of each model.

`results` collects the data of the page from files of results, and `history` the numbers of each file. `write` puts the
data into a template with its style sheets and scripts. The scripts make the grid and the views when the page is opened.
They insert names only as text, never as HTML, because models are not trusted.
"""
