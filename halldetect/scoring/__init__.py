"""Scoring: from a probability matrix to claim verdicts and a response score, in numpy alone."""
