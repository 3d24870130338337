"""The worker side: takes a lease, runs its pipeline or loop, and reports. It never starts a step."""
