"""NamedFacts in, ranked labels out, known answers marked, probabilities."""
