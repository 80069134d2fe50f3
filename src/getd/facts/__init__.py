"""Names to integers: vocabulary, facts, splits, known answers, the knowledge base."""
