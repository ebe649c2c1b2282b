"""Small models of many families, which the zoo checks: networks of public libraries with seeded weights."""
