"""Looking inside: graphs, tapes, profiles, and their pictures."""
