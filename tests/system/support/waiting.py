"""Waiting for something to become true, never for time to pass."""
import time


def wait_for(condition, bound=60, what=None):
    """Call condition until it gives something true; return that. Fail after bound seconds."""
    end = time.monotonic() + bound
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {bound} s: {what or condition.__name__} (last: {value!r})")
        time.sleep(0.02)


def holds_for(seconds, condition, what=None):
    """Check that condition stays true: for proving that something does NOT happen."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert condition(), f"did not hold for {seconds} s: {what or condition.__name__}"
        time.sleep(0.02)
