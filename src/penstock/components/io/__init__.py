"""Components at the edges of a job: rows come in from files, databases and services, and go out to them."""
