"""Match documents: how they are read, cached and published.

`cached_match` is a match as answers show it. `cache` is the document cache of a process: memory, then Redis, then the
database. `redis_store` holds the documents that processes share, `publisher` writes them after each commit. `queries`
and `watch_records` read the database; `freshness` computes ages, which are never stored.
"""
