"""What is printed about a run: live while it goes, its summary, and runs that another process or a server works on."""
