"""What ``benchmarks/proof.py`` is made of: the grid, the runs, what is read from them, and what is reported."""
