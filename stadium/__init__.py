"""Simulated source sites: a Crex-like cricket site and a Sofascore-like football site, with faults and ground truth."""
