"""Natural language inference: P(entailment), P(neutral), P(contradiction) for true text pairs."""
