"""Consumer sessions with every order while web processes are killed."""
