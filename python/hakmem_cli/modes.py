"""The names of src/config/policy.h, in its order."""

MODES = ("minimal", "fast", "balanced", "learning", "research")
LEARNS = ("off", "observe", "on")
LEARNING_MODES = ("learning", "research")
STATES = ("learns", "frozen", "canary", "rests")  # src/learn/learner.h
MEASURED = frozenset({"minimal", "fast", "learning"})  # against balanced; research writes a trace
