"""What is known last of each match, kept where the API finds it when the database is away.

Guards against an outage of the database being an outage of the API. Workers put every match that they have committed
into the shared cache (`publisher`, `shared`); each web process remembers in bounded memory what it has read itself
(`memory`). `recall` answers from both. Ages are never stored, only times: how old an answer is, is worked out when it
is asked for.
"""
