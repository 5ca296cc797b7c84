"""Units of texts: which statement, fact, sentence or word is wrong, and which claims may stay."""
