"""A memory of the training facts that adds to scores, with weights fitted on validation."""
