"""How fast Penstock is: always beside the bare floor and beside peers, in one run and on one disk.

python -m benchmarks [names…] [--quick] [--repeats N] [--json FILE] [--readme] [--strict]
"""
