"""Faults with real processes: servers, workers and a PostgreSQL of their own, which are killed, frozen, cut off and started again.

    pytest -n 2 --dist loadgroup tests/faults                                    what every change goes through
    PENSTOCK_FAULT_SEEDS=1000 pytest -n 2 --dist loadgroup tests/faults/test_trials.py           a soak: so many seeded trials
    PENSTOCK_FAULT_SEED=5000 PENSTOCK_FAULT_SEEDS=1000 pytest tests/faults/test_trials.py       another soak, from that seed on
    PENSTOCK_FAULT_SEED=730 PENSTOCK_FAULT_SEEDS=6 pytest tests/faults/test_trials.py           the trials that were together, again

A trial is one seed: a batch of runs, a schedule of faults drawn from the seed, and then the oracle (`oracle.py`) over everything
that was left behind. Six trials share a fleet at a time; each bears the faults of all. What a seed decides is who is hurt, how and
when; what the machine does meanwhile is chance, so a seed that has failed once is worth more than one try. A trial that fails
tells its schedule, what is left in the tables, and what every process said and waits for.

Besides the trials, races that have a name are tests of their own: a process comes to harm at one point of its own program
(`points.py`), always the same one.
"""
