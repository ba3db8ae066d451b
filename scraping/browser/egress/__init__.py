"""Network access of a worker: which addresses a source may use, and the proxies on the way to them."""
