"""`python -m penstock`"""

import sys

if __name__ == "__main__":
    try:
        from penstock.cli.main import main
    except KeyboardInterrupt:
        sys.exit(3)
    sys.exit(main())
