"""The same recipe on verl: thin shells over the functions that the local engine uses."""
