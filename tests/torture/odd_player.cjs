/** The player of Node, which also cancels calls at some moment. */

'use strict'

// It reads requests from now on; the first comes when this module is there.
const { OPERATIONS } = require('../players/node/player.cjs')

/** A call, cancelled after some time; whether it was given something, if it was faster. */
OPERATIONS['odd.cancel'] = async (actor, request) => {
  const controller = new AbortController()
  const { signal } = controller
  const timer = setTimeout(() => controller.abort(), request.after_ms)
  try {
    if ('queue' in request) {
      const claims = await actor.queue(request).claim({ leaseMs: 1000, waitMs: 1000, signal })
      return { cancelled: false, found: claims.length > 0 }
    }
    const lease = await actor.lock(request).acquire({ ttlMs: 800, waitMs: 2000, signal })
    await lease.release()
    return { cancelled: false, found: true }
  } catch (error) {
    if (error.name !== 'AbortError') throw error
    return { cancelled: true }
  } finally {
    clearTimeout(timer)
  }
}
