"""`python -m eventhub.client`: the command line, as `eventhub`."""

from eventhub.client.commands.main import main

if __name__ == "__main__":
    main()
