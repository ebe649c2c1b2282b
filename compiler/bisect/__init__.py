"""The search for the optional pass that makes a plan larger or slower than a good plan, or gives it other steps.

The good side of a search is the plan without optional passes, an older plan, or the facts that a zoo has recorded. A
search for wrong results or for crashes is in `compiler.accuracy`.
"""
