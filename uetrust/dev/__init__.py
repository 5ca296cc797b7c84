"""For those who build uetrust: training of the tiny models and benchmarks. It is not in the wheel."""
