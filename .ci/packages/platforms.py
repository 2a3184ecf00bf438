"""Which platforms packages are built for, and what each kind of package calls them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Platform:
    name: str
    # As cargo has it.
    triple: str
    # The oldest glibc that it runs on.
    glibc: str
    # Of wheels.
    manylinux: str
    npm: str
    # The folder of the library in the PHP package: the system and what `uname -m` says.
    php: str
    debian: str


# What is built here. Others are built where their own toolchain is.
HERE = [
    Platform(
        name="linux-x86_64",
        triple="x86_64-unknown-linux-gnu",
        glibc="2.17",
        manylinux="manylinux2014",
        npm="linux-x64-gnu",
        php="linux-x86_64",
        debian="amd64",
    ),
]
