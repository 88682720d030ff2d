"""Looking at a process from outside: statistics, a live view, the doctor, heap profiles, the report."""
