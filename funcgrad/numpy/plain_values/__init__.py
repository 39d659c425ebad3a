"""Requests for the plain number of a traced value: answers, refusals, and the advice in their errors."""
