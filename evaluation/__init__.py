"""Losses and answers of a model under strategies, by a server's API."""
