from iddm.cli.commands import main

raise SystemExit(main())
