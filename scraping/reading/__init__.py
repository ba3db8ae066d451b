"""READ: from a reference to a raw reading, by the cheapest way that works."""
