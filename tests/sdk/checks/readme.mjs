// The lines of README.md's "Use it with the E2B SDK", as a reader runs them.
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isolated } from '../lib/bed.mjs'
import { ok } from '../lib/tap.mjs'

export default async function (t) {
  if (!isolated) return t.skip('its lines work', 'not isolated')
  const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8')
  const lines = readme.match(/## Use it with the E2B SDK[^]*?```sh\n([^]*?)```/)[1]
  const home = process.env.HOME
  const env = {
    ...process.env,
    PATH: [dirname(process.env.LOCAL_BIN), dirname(process.execPath), process.env.PATH].join(':'),
    XDG_RUNTIME_DIR: join(home, 'run'),
    XDG_STATE_HOME: join(home, 'state'),
  }
  for (const name of ['E2B_API_KEY', 'E2B_API_URL', 'E2B_SANDBOX_URL']) delete env[name]
  for (const name of ['run', 'state']) mkdirSync(join(home, name), { mode: 0o700, recursive: true })
  const sh = (script) =>
    new Promise((resolve) => {
      execFile('sh', ['-c', script], { env, cwd: new URL('..', import.meta.url).pathname }, (error, out, err) => resolve({ error, text: out + err }))
    })
  t.atEnd(() => sh('cc-tui local stop --yes'))
  await t.step('its lines work', async () => {
    const { error, text } = await sh(lines)
    ok(!error && /^Linux /m.test(text), text)
  })
}
