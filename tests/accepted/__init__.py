"""What the compiler accepts, the runtime runs: variants of small models of every operator."""
