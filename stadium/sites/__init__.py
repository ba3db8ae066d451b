"""The simulated web sites, one module or package each."""
