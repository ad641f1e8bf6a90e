"""`python -m iddm` is the command `iddm`."""

from iddm.cli import main

raise SystemExit(main())
