//! The claim machine, reply by reply.
