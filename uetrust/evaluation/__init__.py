"""Evaluation: prediction-rejection ratio (PRR) with its errors and null distribution, other measures,
agreement, calibration, thresholds, significance."""
