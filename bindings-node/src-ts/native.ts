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
    `stanchion needs the package ${fitting(packages)}, an optional dependency of it that was not installed. ` +
    'If package-lock.json was made on another platform, npm may have left it out (https://github.com/npm/cli/issues/4828): ' +
    'run npm install again after removing node_modules and package-lock.json, ' +
    `or npm install ${fitting(packages, `@${version()}`)}. ` +
    'If optional dependencies were left out (--omit=optional), or node_modules was copied from another platform: ' +
    `install stanchion again, with them, on this machine. (${reasons.join('; ')})`)
}

/** The package that fits, as far as that can be told; not relied on, except for what to advise. */
function fitting(packages: readonly string[], suffix = ''): string {
  const report = process.platform === 'linux' ? process.report?.getReport() : undefined
  const header = (report as { header?: { glibcVersionRuntime?: string } } | undefined)?.header
  const libc = header === undefined ? '' : header.glibcVersionRuntime === undefined ? '-musl' : '-gnu'
  return packages.filter(name => name.endsWith(libc)).map(name => name + suffix).join(' or ')
}

function version(): string {
  return (require('../package.json') as { version: string }).version
}

/** Both halves change together. */
function checked(name: string, found: NativeModule): NativeModule {
  const wanted = version()
  if (found.version() !== wanted) {
    throw new UnsupportedError(
      `stanchion ${wanted} has found ${name} ${found.version()}: both need the same version; install stanchion again`)
  }
  return found
}
