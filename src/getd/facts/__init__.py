"""Files to labels to integers: readers, vocabulary, facts in blocks per arity, known answers, splits, data sets, reports."""
