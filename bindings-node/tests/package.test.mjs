/** The package as npm installs it. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as stanchion from 'stanchion'
import * as testing from 'stanchion/testing'

const MODULES = join(dirname(fileURLToPath(import.meta.url)), '..', 'node_modules')
const require = createRequire(import.meta.url)
const place = mkdtempSync(join(tmpdir(), 'stanchion-package-'))
after(() => rmSync(place, { recursive: true, force: true }))

/** Runs a script in a project with a copy of the package, after it was changed. */
function changed(name, change, code, flags = []) {
  const project = join(place, name)
  cpSync(join(MODULES, 'stanchion'), join(project, 'node_modules', 'stanchion'), { recursive: true })
  cpSync(join(MODULES, '@stanchion'), join(project, 'node_modules', '@stanchion'), { recursive: true })
  change(join(project, 'node_modules'))
  return new Promise((resolve, reject) => {
    const done = (error, stdout) => error ? reject(error) : resolve(stdout)
    execFile(process.execPath, [...flags, '-e', code], { cwd: project }, done)
  })
}

test('import and require give the same objects, all of them', () => {
  for (const [name, imported] of [['stanchion', stanchion], ['stanchion/testing', testing]]) {
    const required = require(name)
    assert.deepEqual(Object.keys(imported).sort(), Object.keys(required).sort())
    for (const key of Object.keys(required)) assert.equal(imported[key], required[key])
  }
})

test('there is a default, which has them all', async () => {
  assert.equal(stanchion.default.connect, stanchion.connect)
  assert.equal(require('stanchion').default.connect, stanchion.connect)
  assert.deepEqual(Object.keys(stanchion.default).sort(), Object.keys(stanchion).sort())
})

test('the types are found without exports, too, as the resolution node10 of TypeScript looks for them', () => {
  const { exports, types, typesVersions } = require('stanchion/package.json')
  const found = { '.': types }
  for (const [name, [file]] of Object.entries(typesVersions['*'])) found[`./${name}`] = file
  const { './package.json': _, ...entries } = exports
  for (const [name, { require: { types } }] of Object.entries(entries)) {
    assert.equal(found[name], types)
    assert.ok(existsSync(join(MODULES, 'stanchion', types)))
  }
})

test('nothing is run when it is installed, and only what is needed is in it', () => {
  for (const name of ['stanchion', ...readdirSync(join(MODULES, '@stanchion')).map(one => `@stanchion/${one}`)]) {
    const manifest = JSON.parse(readFileSync(join(MODULES, name, 'package.json')))
    assert.deepEqual(
      Object.keys(manifest.scripts ?? {}).filter(script => /install|prepare/.test(script)), [])
    assert.equal(manifest.dependencies, undefined)
    assert.ok(existsSync(join(MODULES, name, 'LICENSE-MIT')) && existsSync(join(MODULES, name, 'README.md')))
    const expected = /^(dist|esm|native\.d\.ts|stanchion\.node|package\.json|[A-Z-]+(\.md)?)$/
    assert.deepEqual(readdirSync(join(MODULES, name)).filter(file => !expected.test(file)), [])
  }
})

test('all platform packages have the version of the package', () => {
  const { version, optionalDependencies } = require('stanchion/package.json')
  assert.equal(Object.keys(optionalDependencies).length, 6)
  for (const wanted of Object.values(optionalDependencies)) assert.equal(wanted, version)
})

test('loading it does no work: the addon is loaded when it is used', async () => {
  const out = await changed('lazy', modules => rmSync(join(modules, '@stanchion'), { recursive: true }), `
    const { connect } = require('stanchion')
    console.log(typeof connect)
    connect('memory:').catch(error => console.log(error.code, error.message))`)
  const [first, second] = out.split('\n')
  assert.equal(first, 'function')
  // What this machine has is what it asks for, with the version, and what to do about a lock file of another platform.
  const [name] = readdirSync(join(MODULES, '@stanchion'))
  const { version } = require('stanchion/package.json')
  assert.ok(second.startsWith(`ERR_STANCHION_UNSUPPORTED stanchion needs the package @stanchion/${name}, an optional`), second)
  assert.match(second, /npm\/cli\/issues\/4828.*npm install again after removing node_modules and package-lock\.json/)
  assert.ok(second.includes(`, or npm install @stanchion/${name}@${version}. `), second)
  assert.match(second, /--omit=optional/)
})

test('a half of another version is refused', async () => {
  const out = await changed('version', modules => {
    const file = join(modules, 'stanchion', 'package.json')
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file)), version: '9.9.9' }))
  }, "require('stanchion').connect('memory:').catch(error => console.log(error.code, error.message))")
  assert.match(out, /^ERR_STANCHION_UNSUPPORTED stanchion 9\.9\.9 has found .*both need the same version/)
})

test('a platform without a build', async () => {
  const out = await changed('platform', () => {}, `
    Object.defineProperty(process, 'arch', { value: 'ppc' })
    require('stanchion').connect('memory:').catch(error => console.log(error.code, error.message))`)
  assert.match(out, /^ERR_STANCHION_UNSUPPORTED stanchion has no build for \w+ ppc; it has some for/)
})

const TELLS = "require('stanchion').connect('memory:').catch(error => console.log(error.code, error.message))"

test('a Node that loads no addons', async () => {
  const flags = [['--no-addons']]
  if (process.allowedNodeEnvironmentFlags.has('--permission')) flags.push(['--permission', '--allow-fs-read=*'])
  for (const [n, given] of flags.entries()) {
    const out = await changed(`addons${n}`, () => {}, TELLS, given)
    assert.match(out, /^ERR_STANCHION_UNSUPPORTED stanchion needs its addon @stanchion\/.*--allow-addons/)
  }
})

test('an addon that cannot be loaded', async () => {
  const out = await changed('damaged', modules => {
    for (const name of readdirSync(join(modules, '@stanchion'))) {
      writeFileSync(join(modules, '@stanchion', name, 'stanchion.node'), 'no library')
    }
  }, TELLS)
  assert.match(out, /^ERR_STANCHION_UNSUPPORTED stanchion cannot load its addon: @stanchion\/[^ ]+: .+/)
})

test('with flags that restrict programs', async () => {
  const restricting = ['--frozen-intrinsics', '--disallow-code-generation-from-strings', '--disable-proto=throw']
  for (const flag of restricting) {
    const out = await changed(flag, () => {}, `
      const { connect } = require('stanchion')
      connect('memory:').then(async client => {
        await client.lock('').acquire().catch(error => console.log(error.name))
        await client.queue('q').enqueue({ payload: { a: 1 } })
        const worker = client.queue('q').worker(task => task.json.a, { untilEmpty: true })
        console.log((await worker.finished).completed)
      })`, ['--no-warnings', flag])
    assert.equal(out, 'InvalidArgumentError\n1\n')
  }
})
