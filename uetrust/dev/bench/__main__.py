"""Command line of the benchmarks: `python -m uetrust.dev.bench PART...`."""

from uetrust.dev.bench.parts import bench_command

if __name__ == "__main__":
    bench_command()
