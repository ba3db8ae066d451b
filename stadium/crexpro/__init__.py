"""The members' site: its pages are open to all, its live endpoints want a token, which its token service gives."""
