"""The worker's behaviour while the database is unreachable: it polls on and spools what it reads.

Guards against a database outage becoming an outage of the data. No task is claimed or finished meanwhile; the spool is
replayed into the database afterwards, in order and once. This file imports nothing: the spool must load without Django.
"""
