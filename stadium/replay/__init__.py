"""The ball-by-ball content of a recording, and its comparison with data that the API served."""
