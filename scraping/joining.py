"""Two matches become one, because a person said so or because nothing spoke against it."""
