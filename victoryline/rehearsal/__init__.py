"""Recorded matches played once more, through the whole system, into a scratch database; and was everything right?"""
