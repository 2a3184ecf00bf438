// The types as CommonJS sees them; compiled, never run.
import stanchion = require('stanchion')
import testing = require('stanchion/testing')

export async function run(): Promise<bigint> {
  const client: stanchion.Client = await testing.memoryClient({ clock: new testing.Clock() })
  const same: typeof stanchion = stanchion.default
  void same
  return client.lock('a').hold(lease => lease.fence)
}
