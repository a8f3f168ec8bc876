// What the official SDK started, seen and ended by cc-tui: a sandbox without its metadata.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sandbox } from '../lib/bed.mjs'
import { ok, same } from '../lib/tap.mjs'

export default async function (t) {
  const home = join(process.env.HOME, 'foreign')
  const env = { ...process.env, HOME: home }
  const program = join(dirname(process.env.LOCAL_BIN), 'cc-tui')
  mkdirSync(home, { mode: 0o700, recursive: true })
  const run = (...args) =>
    new Promise((resolve) => {
      execFile(program, args, { env }, (error, out, err) => resolve({ status: error?.code ?? 0, out, err }))
    })
  const list = async (s) => JSON.parse((await run('ps', s.sandboxId, '--json')).out)

  await t.step('a command of the SDK is listed and watched to its end', async () => {
    const s = await sandbox(t)
    const command = 'while :; do echo tick; sleep 0.1; done & read go; kill $!; wait $! 2>&-; echo out-$go; exit 4'
    const c = await s.commands.run(command, { background: true, stdin: true })
    const found = (await list(s)).find((p) => p.pid === c.pid)
    ok(found?.command.includes(command), JSON.stringify(found))
    const w = spawn(program, ['watch', s.sandboxId, String(c.pid), '--json'], { env })
    const ended = once(w, 'close')
    const seen = once(w.stdout, 'data')
    let text = ''
    w.stdout.on('data', (d) => (text += d))
    await seen
    await s.commands.sendStdin(c.pid, '1\n')
    same((await ended)[0], 4)
    const out = text.split('\n').filter(Boolean).map((l) => JSON.parse(l))
    ok(out.every((b) => b.stream === 'stdout'), text)
    ok(out.map((b) => Buffer.from(b.base64, 'base64').toString()).join('').endsWith('out-1\n'), text)
    await c.wait().then(() => ok(false, 'it ended well'), (e) => same(e.exitCode, 4))
  })
  await t.step('ended by cc-tui, the SDK learns of it', async () => {
    const s = await sandbox(t)
    const c = await s.commands.run('sleep 300', { background: true, timeoutMs: 0 })
    const { status, err } = await run('kill', s.sandboxId, '--process', String(c.pid), '--yes')
    same(status, 0)
    ok(/has ended/.test(err), err)
    await c.wait().then(() => ok(false, 'it ended well'), (e) => ok(e.exitCode !== 0, String(e)))
    same((await s.commands.list()).length, 0)
  })
  await t.step('adopted, it counts as ours until it is given back', async () => {
    const s = await sandbox(t)
    same((await run('adopt', s.sandboxId, '--name', 'from-sdk')).status, 0)
    ok((await run('kill', '--all', '--dry-run')).out.includes(s.sandboxId))
    same((await run('adopt', 'from-sdk', '--undo')).status, 0)
    ok(!(await run('kill', '--all', '--dry-run')).out.includes(s.sandboxId))
    ok(await s.isRunning())
  })
}
