"""The operations that only these functions need, one statement each."""
