"""What the service keeps."""

BLOCKS = 20000
BYTES = 1000
KEPT = BLOCKS * BYTES
LARGE = 10 << 20
