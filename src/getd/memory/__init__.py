"""A memory of the training facts that adds to a model's scores, with weights fitted on validation."""
