"""The hakmem command line. Standard library only: it must run on a fresh machine."""
