"""States: values that runs of a plan hand on."""
