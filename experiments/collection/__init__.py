"""Generated and real data sets, and whether training with defaults alone beats counting on each."""
