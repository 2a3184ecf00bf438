"""The logger. A program that configures no logging sees nothing of it."""

import logging

log = logging.getLogger("stanchion")
log.addHandler(logging.NullHandler())
