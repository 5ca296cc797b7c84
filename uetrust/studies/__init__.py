"""Studies of banks of generations: methods against metrics, stability, accuracy, and the sentences that
report them."""
