"""What a knowledge base holds: counts, leakage, literals."""
