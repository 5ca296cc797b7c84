"""Banks of generations: methods against metrics, stability, accuracy, and the facts that their pages report."""
