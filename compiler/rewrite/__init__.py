"""What passes are made of: patterns, rules, reports and shared views of a graph."""
