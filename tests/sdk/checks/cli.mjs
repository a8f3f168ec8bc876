// The official CLI, a process each, against a provider that others use too: so
// nothing here kills what it did not make.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isolated, sandbox } from '../lib/bed.mjs'
import { ok, same, until } from '../lib/tap.mjs'
import { Sandbox, Template } from 'e2b'

const program = fileURLToPath(new URL('../node_modules/@e2b/cli/dist/index.js', import.meta.url))

export function e2b(args, { input = '', env = {} } = {}) {
  return new Promise((resolve, reject) => {
    const p = spawn(process.execPath, [program, ...args], { env: { ...process.env, NO_COLOR: '1', ...env } })
    let out = ''
    let err = ''
    p.stdout.on('data', (d) => (out += d))
    p.stderr.on('data', (d) => (err += d))
    p.on('error', reject)
    p.on('close', (status) => resolve({ status, out, err }))
    p.stdin.on('error', () => {}) // it may end before it has read
    p.stdin.end(input)
  })
}
const done = (r, what) => ok(r.status === 0, `${what}: status ${r.status}: ${r.out} ${r.err}`)

export default async function (t) {
  let id
  if (!(await t.step('sandbox create --detach prints the id', async () => {
    const r = await e2b(['sandbox', 'create', 'base', '--detach'])
    done(r, 'create')
    id = r.out.match(/\bi[a-z0-9]{20}\b/)?.[0]
    ok(id, r.out)
    t.atEnd(() => Sandbox.kill(id))
  }))) return

  await t.step('sandbox list', async () => {
    const r = await e2b(['sandbox', 'list', '-f', 'json'])
    done(r, 'list')
    const row = JSON.parse(r.out).find((x) => x.sandboxId === id)
    same(row?.state, 'running')
  })
  await t.step('sandbox list by metadata', async () => {
    const x = await sandbox(t, { metadata: { cli: 'one' } })
    const r = await e2b(['sandbox', 'list', '-f', 'json', '-m', 'cli=one', '-s', 'running,paused', '-o', 'asc', '-l', '5'])
    same(JSON.parse(r.out).map((i) => i.sandboxId), [x.sandboxId])
    await x.kill()
  })
  await t.step('sandbox exec: output and exit status', async () => {
    const r = await e2b(['sandbox', 'exec', id, 'echo out; echo err >&2; exit 7'])
    same([r.status, r.out, r.err.split('\n')[0]], [7, 'out\n', 'err'])
  })
  await t.step('sandbox exec: stdin through a pipe', async () => {
    const input = 'line\n'.repeat(30000)
    const r = await e2b(['sandbox', 'exec', id, 'md5sum; wc -c < /dev/null'], { input })
    const { createHash } = await import('node:crypto')
    same([r.status, r.out], [0, `${createHash('md5').update(input).digest('hex')}  -\n0\n`])
  })
  await t.step('sandbox exec: user, folder, environment', async () => {
    const r = await e2b(['sandbox', 'exec', '-u', 'root', '-c', '/tmp', '-e', 'MARK=m x', id, 'echo "$USER $(pwd) $MARK"'])
    same([r.status, r.out], [0, 'root /tmp m x\n'])
  })
  await t.step('sandbox exec -b leaves it running', async () => {
    done(await e2b(['sandbox', 'exec', '-b', id, 'sleep 765']), 'exec -b')
    const s = await Sandbox.connect(id)
    ok((await s.commands.list()).some((p) => p.args.join(' ').includes('sleep 765')), 'it does not run')
  })
  await t.step('sandbox info', async () => {
    const r = await e2b(['sandbox', 'info', id, '-f', 'json'])
    done(r, 'info')
    same([JSON.parse(r.out).sandboxId, JSON.parse(r.out).state], [id, 'running'])
    same((await e2b(['sandbox', 'info', 'i' + '0'.repeat(20)])).status, 1)
  })
  await t.step('sandbox metrics', async () => {
    const r = await until(async () => {
      const r = await e2b(['sandbox', 'metrics', id, '--format', 'json'])
      return (r.status !== 0 || r.out.includes('{')) && r
    }, () => 'a sample')
    done(r, 'metrics')
    ok(/cpu/i.test(r.out) && /mem/i.test(r.out), r.out)
  })
  await t.step('sandbox logs', async () => {
    done(await e2b(['sandbox', 'logs', id, '--level', 'DEBUG']), 'logs')
  })
  await t.step('sandbox pause, resume', async () => {
    done(await e2b(['sandbox', 'pause', id]), 'pause')
    same((await Sandbox.getInfo(id)).state, 'paused')
    const r = await e2b(['sandbox', 'list', '-f', 'json', '-s', 'paused'])
    ok(JSON.parse(r.out).some((x) => x.sandboxId === id), 'not among the paused')
    done(await e2b(['sandbox', 'resume', id]), 'resume')
    same((await Sandbox.getInfo(id)).state, 'running')
  })
  await t.step('sandbox kill: one, and one that is gone', async () => {
    done(await e2b(['sandbox', 'kill', id, 'i' + '0'.repeat(20)]), 'kill')
    same(await Sandbox.kill(id), false)
  })
  await t.step('sandbox kill --all', async () => {
    const metadata = { cli: 'all' }
    const two = [await sandbox(t, { metadata }), await sandbox(t, { metadata })]
    await two[1].pause()
    done(await e2b(['sandbox', 'kill', '--all', '--state', 'running,paused', '-m', 'cli=all']), 'kill --all')
    same(await Promise.all(two.map((s) => s.kill())), [false, false])
  })
  if (isolated)
    await t.step('template create, list, delete', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'cli-template-'))
      t.atEnd(async () => rmSync(folder, { recursive: true }))
      writeFileSync(join(folder, 'e2b.Dockerfile'), 'FROM e2bdev/base\nENV MINE=yes\nCOPY hello.txt /srv/\nWORKDIR /srv\nRUN cp hello.txt there.txt\nUSER user\n')
      writeFileSync(join(folder, 'hello.txt'), 'hello\n')
      const made = await e2b(['template', 'create', 'suite-cli', '-p', folder])
      done(made, 'template create')
      ok(/builder/.test(made.out + made.err), made.out + made.err)
      const s = await Sandbox.create('suite-cli', { timeoutMs: 60000 })
      t.atEnd(() => s.kill())
      same((await s.commands.run('cat there.txt; echo $MINE; pwd; id -un')).stdout, 'hello\nyes\n/srv\nuser\n')
      await s.kill()
      const list = await e2b(['template', 'list', '-f', 'json'])
      done(list, 'template list')
      const rows = JSON.parse(list.out)
      ok(rows.some((x) => x.aliases?.includes('base')), list.out)
      done(await e2b(['template', 'delete', rows.find((x) => x.aliases?.includes('suite-cli')).templateID, '-y']), 'template delete')
      same(await Template.exists('suite-cli'), false)
    })
  else t.skip('template create, list, delete', 'not isolated')
  await t.step('no key, wrong key: told, status 1', async () => {
    const r = await e2b(['sandbox', 'list'], { env: { E2B_API_KEY: 'e2b_' + '0'.repeat(40) } })
    ok(r.status === 1 && /key|auth|401/i.test(r.out + r.err), r.out + r.err)
  })
}
