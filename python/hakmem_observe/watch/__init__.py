"""The screens of `hakmem top`."""
