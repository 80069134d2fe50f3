"""Questions in, ranked answers out: parse, predict, explain, rate, complete, export."""
