"""The lab: allocators side by side on synthetic workloads and real programs. See docs/lab.md."""
