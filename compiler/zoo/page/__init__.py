"""The page of results: one HTML file with a grid of models, and a view of each model.

`data` collects the data of the page from files of results, and `history` the numbers of each file. `write` puts the
data into the template, which consists of `page.html` and the style sheets and scripts in this folder. The scripts make
the grid and the views when the page is opened. They insert names only as text, never as HTML, because models are not
trusted.
"""
