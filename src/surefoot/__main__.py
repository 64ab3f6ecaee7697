"""The law of this file: `python -m surefoot` is the command `surefoot`, and nothing else."""

from __future__ import annotations

import sys

from surefoot.cli import main

if __name__ == "__main__":
    sys.exit(main())
