"""The logger. Without any configuration Python shows warnings and errors on stderr, and so it is to be: a handler that
fails must not do so unseen."""

import logging

log = logging.getLogger("stanchion")
