"""Simulated source sites for cricket and football, with fault injection and ground truth."""
