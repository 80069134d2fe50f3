"""Files to labels to integers: readers, vocabulary, facts, known answers, splits, data sets, reports."""
