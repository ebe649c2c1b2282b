"""The parts that passes share: patterns, rules, reports and views of a graph."""
