"""Command ``python -m funcgrad.interop``: the cross-check."""

import sys

from funcgrad.interop.crosschecks.command import main

if __name__ == "__main__":
    sys.exit(main())
