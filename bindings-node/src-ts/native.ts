/** Finds and loads the native half of the package: when it is first used, not when the package is loaded. */

import type * as Native from '../native'
import { UnsupportedError } from './errors.js'

export type { Native }
export type NativeModule = typeof Native

/** The platform packages that could fit, in the order in which they are tried. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  'linux x64': ['@stanchion/linux-x64-gnu', '@stanchion/linux-x64-musl'],
  'linux arm64': ['@stanchion/linux-arm64-gnu', '@stanchion/linux-arm64-musl'],
  'darwin x64': ['@stanchion/darwin-x64'],
  'darwin arm64': ['@stanchion/darwin-arm64'],
  'win32 x64': ['@stanchion/win32-x64-msvc'],
}

let loaded: NativeModule | undefined

/** The native module. */
export function native(): NativeModule {
  return (loaded ??= load())
}

function load(): NativeModule {
  const platform = `${process.platform} ${process.arch}`
  const packages = PACKAGES[platform]
  if (packages === undefined) {
    throw new UnsupportedError(
      `stanchion has no build for ${platform}; it has some for ${Object.keys(PACKAGES).join(', ')}`)
  }
  const reasons: string[] = []
  let isThere = false
  for (const name of packages) {
    try {
      // eslint-disable-next-line @typescript-eslint/no-require-imports
      return checked(name, require(name) as NativeModule)
    } catch (error) {
      if (error instanceof UnsupportedError) throw error
      const { code, message } = error as { code?: string, message: string }
      if (code === 'ERR_DLOPEN_DISABLED') {
        throw new UnsupportedError(
          `stanchion needs its addon ${name}, which this Node may not load: start it with --allow-addons if with --permission, ` +
          'and no --no-addons')
      }
      isThere ||= code !== 'MODULE_NOT_FOUND'
      reasons.push(`${name}: ${message.split('\n', 1)[0]}`)
    }
  }
  if (isThere) throw new UnsupportedError(`stanchion cannot load its addon: ${reasons.join('; ')}`)
  throw new UnsupportedError(
    `stanchion needs the package ${packages.join(' or ')}, which npm installs with it as an optional dependency. ` +
    'Was it left out (--omit=optional), or node_modules copied from another platform? ' +
    `Install stanchion again on this machine. (${reasons.join('; ')})`)
}

/** Both halves change together. */
function checked(name: string, found: NativeModule): NativeModule {
  const { version } = require('../package.json') as { version: string }
  if (found.version() !== version) {
    throw new UnsupportedError(
      `stanchion ${version} has found ${name} ${found.version()}: both need the same version; install stanchion again`)
  }
  return found
}
