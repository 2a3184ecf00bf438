"""The command line: `python -m stanchion` is the command `stanchion`."""

import signal
import sys

from stanchion import _stanchion


def main() -> int:
    """Runs the command line in `sys.argv`; returns the exit code."""
    # Python's own settings, which the commands that are started would inherit, or which would end the call
    # with a KeyboardInterrupt. What was ignored before Python started stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    return _stanchion.cli(["stanchion", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
