"""`loopwarden check`: would `loopwarden run` work, and what is to be mended? It looks and changes nothing."""
