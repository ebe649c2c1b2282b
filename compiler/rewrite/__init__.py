"""Code that passes share: patterns, rules, reports and parts of a graph."""
