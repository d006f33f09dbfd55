"""`python -m eventhub_client`: the command line, as `eventhub`. Plain module."""

from eventhub_client.commands.main import main

if __name__ == "__main__":
    main()
