// What a user of the official SDK does, step by step; each step is one TAP line.
// ADDRESS names the provider's address file.
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

const deadline = Date.now() + 20000
while (!existsSync(process.env.ADDRESS) && Date.now() < deadline) await pause(20)
const address = JSON.parse(readFileSync(process.env.ADDRESS, 'utf8'))
process.env.E2B_API_KEY = address.apiKey
process.env.E2B_API_URL = `http://127.0.0.1:${address.controlPort}`
process.env.E2B_SANDBOX_URL = `http://127.0.0.1:${address.trafficPort}`
const { Sandbox, CommandExitError, NotFoundError } = await import('e2b')

let n = 0
let failed = 0
function say(good, name, error) {
  n++
  if (!good) failed++
  console.log(`${good ? 'ok' : 'not ok'} ${n} - sdk: ${name}`)
  if (error) console.log(String(error.stack ?? error).replace(/^/gm, '# '))
}
async function step(name, run) {
  let timer
  const late = new Promise((_, no) => {
    timer = setTimeout(() => no(new Error('no end within 60 s')), 60000)
  })
  try {
    await Promise.race([run(), late])
    say(true, name)
  } catch (error) {
    say(false, name, error)
  } finally {
    clearTimeout(timer)
  }
}
function same(got, want, what = 'value') {
  if (JSON.stringify(got) !== JSON.stringify(want))
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}
async function fails(promise, check, what) {
  let error
  try {
    await promise
  } catch (e) {
    error = e
  }
  if (!error) throw new Error(`${what}: no error`)
  if (!check(error)) throw new Error(`${what}: wrong error ${error.name}: ${error.message}`)
}
const bytes = (text) => new TextEncoder().encode(text)
// Without isolation there is no /home/user, and a login shell takes the host's PATH.
const agent = address.unsafe ? `${process.env.LOCAL_BIN} demo-agent` : 'demo-agent'
let home = '/home/user'

let s
await step('create', async () => {
  s = await Sandbox.create('base', {
    metadata: { t: 'cc', odd: 'a&b=c d' },
    envs: { BOX: 'wide' },
    timeoutMs: 120000,
  })
})
if (!s) {
  console.log(`1..${n}`)
  process.exit(1)
}
if (address.unsafe) home = (await s.commands.run('printf %s "$HOME"')).stdout
await step('isRunning', async () => same(await s.isRunning(), true))
await step('getInfo', async () => {
  const info = await s.getInfo()
  same(info.sandboxId, s.sandboxId)
  same(info.metadata, { t: 'cc', odd: 'a&b=c d' })
  same(info.state, 'running')
})
await step('run: stdout, stderr, live', async () => {
  const seen = []
  const r = await s.commands.run('printf out; printf err >&2', { onStdout: (d) => seen.push(d) })
  same([r.exitCode, r.stdout, r.stderr, seen.join('')], [0, 'out', 'err', 'out'])
})
await step('run: exit status 3', () =>
  fails(s.commands.run('echo x; exit 3'), (e) => e instanceof CommandExitError && e.exitCode === 3, 'exit 3'))
await step('run: envs, cwd, UTF-8', async () => {
  const r = await s.commands.run('echo "$BOX $FOO $(pwd) é世界"', { envs: { FOO: 'bar' }, cwd: '/tmp' })
  same(r.stdout, 'wide bar /tmp é世界\n')
})
await step('run: no such folder', () =>
  fails(s.commands.run('true', { cwd: '/no/such' }), (e) => /cwd/.test(e.message), 'cwd'))
await step('run: time-out', async () => {
  const t0 = Date.now()
  await fails(s.commands.run('sleep 50', { timeoutMs: 700 }), (e) => /timed? ?out/i.test(e.name + e.message), 'time-out')
  if (Date.now() - t0 > 20000) throw new Error('too late')
})
await step('stdin of a background command', async () => {
  const h = await s.commands.run('cat', { background: true, stdin: true, timeoutMs: 0 })
  await h.sendStdin('hi\n')
  await h.closeStdin()
  same((await h.wait()).stdout, 'hi\n')
})
await step('list and kill', async () => {
  const h = await s.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  if (!(await s.commands.list()).some((p) => p.pid === h.pid)) throw new Error('not listed')
  same(await s.commands.kill(h.pid), true)
  await fails(h.wait(), (e) => e instanceof CommandExitError, 'killed')
  same(await s.commands.kill(99999), false)
})
await step('disconnect and connect again', async () => {
  const h = await s.commands.run('read x; echo "got $x"; exit 5', { background: true, stdin: true, timeoutMs: 0 })
  await h.disconnect()
  const again = await s.commands.connect(h.pid, { timeoutMs: 0 })
  await s.commands.sendStdin(h.pid, 'me\n')
  await fails(again.wait(), (e) => e.exitCode === 5 && e.stdout === 'got me\n', 'again')
  const late = await s.commands.connect(h.pid, { timeoutMs: 0 })
  await fails(late.wait(), (e) => e.exitCode === 5, 'late')
})
await step('20 MB of output', async () => {
  let size = 0
  await s.commands.run('head -c 20000000 /dev/zero | tr "\\0" x', { onStdout: (d) => (size += d.length), timeoutMs: 0 })
  same(size, 20000000)
})
await step('100 commands at once', async () => {
  const all = await Promise.all(Array.from({ length: 100 }, (_, i) => s.commands.run(`echo ${i}`)))
  same(all.map((r) => r.stdout.trim()), Array.from({ length: 100 }, (_, i) => String(i)))
})
await step('a user that is named', async () => {
  same((await s.commands.run('echo $USER', { user: 'root' })).stdout, 'root\n')
  await fails(s.commands.run('true', { user: 'nobody-here' }), () => true, 'unknown user')
})
await step('pty: size, resize, input', async () => {
  let text = ''
  const decoder = new TextDecoder()
  const p = await s.pty.create({
    cols: 80,
    rows: 24,
    onData: (d) => (text += decoder.decode(d, { stream: true })),
    timeoutMs: 0,
  })
  const until = async (what) => {
    const end = Date.now() + 20000
    while (!text.includes(what)) {
      if (Date.now() > end) throw new Error(`no '${what}' in: ${text}`)
      await pause(10)
    }
  }
  await s.pty.sendInput(p.pid, bytes('stty size\n'))
  await until('24 80')
  await s.pty.resize(p.pid, { cols: 100, rows: 30 })
  await s.pty.sendInput(p.pid, bytes('stty size\n'))
  await until('30 100')
  await s.pty.sendInput(p.pid, bytes('exit\n'))
  same((await p.wait()).exitCode, 0)
})
await step('pty: kill', async () => {
  const p = await s.pty.create({ cols: 80, rows: 24, onData: () => {} })
  same(await s.pty.kill(p.pid), true)
  await fails(p.wait(), () => true, 'killed pty')
})
await step('files: write, read, odd names', async () => {
  await s.files.write(`${home}/a.txt`, 'x')
  same(await s.files.read(`${home}/a.txt`), 'x')
  same(await s.files.read('a.txt'), 'x')
  const odd = 'dir & co/ä "q" + %41 \'$x\'.txt'
  const info = await s.files.write(odd, 'odd')
  same(info.path, `${home}/${odd}`)
  same(await s.files.read(odd), 'odd')
})
await step('files: many, big, streamed', async () => {
  const infos = await s.files.write([
    { path: `${home}/t/m/1`, data: 'one' },
    { path: `${home}/t/m/2`, data: 'two' },
  ])
  same(infos.map((i) => i.path), [`${home}/t/m/1`, `${home}/t/m/2`])
  const big = new Uint8Array(5 << 20).map((_, i) => (i * 31) & 255)
  await s.files.write(`${home}/t/big`, big.buffer)
  const back = await s.files.read(`${home}/t/big`, { format: 'bytes' })
  same(back.length, big.length)
  if (!Buffer.from(back).equals(Buffer.from(big))) throw new Error('bytes differ')
  let size = 0
  for await (const piece of await s.files.read(`${home}/t/big`, { format: 'stream' })) size += piece.length
  same(size, big.length)
})
await step('files: octet-stream and gzip uploads', async () => {
  await s.files.write(`${home}/t/o`, 'octets', { useOctetStream: true })
  same(await s.files.read(`${home}/t/o`), 'octets')
  await s.files.write(`${home}/t/g`, 'zipped '.repeat(1000), { gzip: true, useOctetStream: true })
  same((await s.files.read(`${home}/t/g`)).length, 7000)
})
await step('files: what is missing', async () => {
  await fails(s.files.read('/nope'), (e) => e instanceof NotFoundError, 'missing file')
  same(await s.files.exists('/nope'), false)
  same(await s.files.exists(`${home}/t/o`), true)
})
await step('files: folders', async () => {
  same(await s.files.makeDir(`${home}/t/d/e`), true)
  same(await s.files.makeDir(`${home}/t/d/e`), false)
  await s.files.write(`${home}/t/d/e/f`, '12345')
  const list = await s.files.list(`${home}/t/d`, { depth: 3 })
  same(list.map((e) => [e.path, e.type]), [[`${home}/t/d/e`, 'dir'], [`${home}/t/d/e/f`, 'file']])
  const moved = await s.files.rename(`${home}/t/d/e/f`, `${home}/t/d/g`)
  same([moved.path, moved.size], [`${home}/t/d/g`, 5])
  await s.files.remove(`${home}/t/d`)
  same(await s.files.exists(`${home}/t/d`), false)
})
await step('signed address', async () => {
  const url = await s.downloadUrl(`${home}/a.txt`, { useSignatureExpiration: 60 })
  const answer = await fetch(url, {
    headers: { 'E2b-Sandbox-Id': s.sandboxId, 'E2b-Sandbox-Port': '49983' },
  })
  same([answer.status, await answer.text()], [200, 'x'])
})
await step('list of sandboxes', async () => {
  let found = 0
  const it = Sandbox.list({ limit: 1, query: { metadata: { t: 'cc' }, state: ['running', 'paused'] } })
  while (it.hasNext) found += (await it.nextItems()).filter((i) => i.sandboxId === s.sandboxId).length
  same(found, 1)
})
await step('metrics', async () => {
  const m = await s.getMetrics()
  if (!Array.isArray(m)) throw new Error('no list')
})
await step('demo agent', async () => {
  const seen = []
  let text = ''
  const h = await s.commands.run(`exec ${agent}`, {
    background: true,
    stdin: true,
    timeoutMs: 0,
    onStdout: (d) => {
      text += d
      const lines = text.split('\n')
      text = lines.pop()
      seen.push(...lines.map((l) => JSON.parse(l)))
    },
  })
  await h.sendStdin('{"type":"user","message":{"role":"user","content":"run echo in the box"}}\n')
  await h.closeStdin()
  same((await h.wait()).exitCode, 0)
  same(seen.filter((l) => l.type === 'result').map((l) => [l.is_error, l.total_cost_usd]), [[false, 0], [false, 0]])
  const result = seen.find((l) => l.type === 'user' && l.message.content[0]?.type === 'tool_result')
  same(result.message.content[0].content, 'in the box\n')
})
await step('pause, connect: processes go on', async () => {
  const h = await s.commands.run('while :; do echo x >> ~/ticks; sleep 0.02; done', { background: true, timeoutMs: 0 })
  await pause(200)
  await h.disconnect()
  same(await s.pause(), true)
  same(await s.pause(), false)
  same((await s.getInfo()).state, 'paused')
  await Sandbox.connect(s.sandboxId)
  same((await s.getInfo()).state, 'running')
  const before = (await s.files.getInfo(`${home}/ticks`)).size
  await pause(300)
  if ((await s.files.getInfo(`${home}/ticks`)).size <= before) throw new Error('it stands still')
  same(await s.commands.kill(h.pid), true)
})
await step('setTimeout', async () => {
  await s.setTimeout(60000)
  const left = (await s.getInfo()).endAt.getTime() - Date.now()
  if (left < 40000 || left > 61000) throw new Error(`ends in ${left} ms`)
})
await step('expiry', async () => {
  const short = await Sandbox.create('base', { timeoutMs: 1000 })
  const end = Date.now() + 20000
  while ((await short.isRunning()) && Date.now() < end) await pause(100)
  same(await short.isRunning(), false)
})
await step('wrong key', () =>
  fails(Sandbox.create('base', { apiKey: 'e2b_' + '0'.repeat(40) }), (e) => /auth|401|key/i.test(e.name + e.message), 'wrong key'))
await step('kill', async () => {
  same(await s.kill(), true)
  same(await s.kill(), false)
  same(await s.isRunning(), false)
  await fails(s.commands.run('true'), () => true, 'command in a killed sandbox')
})
console.log(`1..${n}`)
process.exit(failed === 0 ? 0 : 1)
