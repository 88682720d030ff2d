def count_all(peers, progress): return []
