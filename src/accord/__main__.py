"""``python -m accord``, the command where its folder is not on the search path."""

from accord.cli import main

if __name__ == "__main__":
    main()
