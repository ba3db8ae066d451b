"""A site like Crex: server-rendered pages, and JSON endpoints behind session cookies."""
