"""Command ``python -m fuzz``: see the Makefile."""

import argparse
import sys

from fuzz.running import fuzz


def main() -> int:
    """Run programs and print the summary; return 1 if something failed."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Random programs on funcgrad, JAX and a referee.")
    parser.add_argument("-n", "--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other programs")
    parser.add_argument("--start", type=int, default=0, help="the first program's number, to go on")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes")
    options = parser.parse_args()
    summary = fuzz(options.count, options.seed, options.start, options.jobs)
    print("\n" + summary.text())
    return 1 if summary.files else 0


if __name__ == "__main__":
    sys.exit(main())
