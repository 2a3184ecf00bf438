"""Which platforms packages are built for, and what each kind of package calls them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Platform:
    # The system, what `uname -m` says, and the libc: also the folder of the library in the PHP package.
    name: str
    # As cargo has it.
    triple: str
    # Of wheels.
    tag: str
    npm: str
    # The oldest glibc that it runs on; none with musl.
    glibc: str | None = None
    # The architecture of Debian's packages, where there are some.
    debian: str | None = None


# What is built here. macOS is built where its own toolchain is: .github/workflows/release.yml.
HERE = [
    Platform("linux-x86_64-gnu", "x86_64-unknown-linux-gnu", "manylinux2014", "linux-x64-gnu", "2.17", "amd64"),
    Platform("linux-aarch64-gnu", "aarch64-unknown-linux-gnu", "manylinux2014", "linux-arm64-gnu", "2.17", "arm64"),
    Platform("linux-x86_64-musl", "x86_64-unknown-linux-musl", "musllinux_1_2", "linux-x64-musl"),
    Platform("linux-aarch64-musl", "aarch64-unknown-linux-musl", "musllinux_1_2", "linux-arm64-musl"),
]
