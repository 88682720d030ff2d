"""What `hakmem doctor` looks at."""
