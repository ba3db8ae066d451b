"""Django's PostgreSQL backend behind a pool of connections; the ENGINE of a scaled system."""
