"""`python -m loaderbench`, and the `loaderbench` command."""

from loaderbench.commands.app import main

if __name__ == "__main__":
    main()
