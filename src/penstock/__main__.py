"""`python -m penstock`"""

import sys

if __name__ == "__main__":
    try:
        from penstock.cli.main import main

        code = main()
    except KeyboardInterrupt:
        code = 3
    # An interrupt that passed through `exec` of a text, by which dataclasses make their methods, is on record in Python as
    # unhandled even when it was handled, and with `-m` Python would die of SIGINT at its end. Running a text takes it off.
    exec("")
    sys.exit(code)
