"""Looking at programs that use hakmem, from outside. Runs in a private environment: see hakmem_cli/venv.py."""
