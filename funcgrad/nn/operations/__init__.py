"""The operations that only functions of networks need, one statement each."""
