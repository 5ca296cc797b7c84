"""Methods and the older scores that they were made to improve on, compared on the same texts."""
