"""How long it takes to load an installed package: printed, and not judged. It is what a program with it takes longer than
one without, at best."""

import time

BEST_OF = 15
# In the folder of the case: a program that does nothing, and one that loads the package and opens a store.
PROGRAMS = {
    "wheel": (
        "venv/bin/python -c pass",
        {"import stanchion": "venv/bin/python -c 'import stanchion'"}),
    "npm": (
        "node -e 0",
        {"require('stanchion')": "node -e \"require('stanchion')\"",
         "and the first connect()": "node -e \"require('stanchion').connect('memory:')\""}),
    "php": (
        "php -r ''",
        {"the first Client::connect()":
         "php -r 'require \"vendor/autoload.php\"; Stanchion\\Client::connect(\"memory:\");'"}),
}


def seconds(root, command, inside):
    began = time.monotonic()
    done = root.run(command, inside)
    assert done.returncode == 0, done.stdout
    return time.monotonic() - began


def loading(root, case):
    """Of the package that this case has installed before."""
    inside = f"/cases/{case}"
    nothing, programs = PROGRAMS[case]
    # By turns, so that what else the machine does slows all of them.
    rounds = [[seconds(root, command, inside) for command in (nothing, *programs.values())] for _ in range(BEST_OF)]
    least, *others = (min(column) for column in zip(*rounds))
    said = ", ".join(f"{what} {1000 * (other - least):.0f} ms" for what, other in zip(programs, others))
    return f"{said} (best of {BEST_OF}, less an empty program's {1000 * least:.0f} ms)"
