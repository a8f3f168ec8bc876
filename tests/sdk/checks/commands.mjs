// Commands: status, streams, stdin, users, environment, time-outs, connect again.
import { bytes, demoAgent, isolated, rpc, sandbox } from '../lib/bed.mjs'
import { fails, ok, pause, same, until } from '../lib/tap.mjs'
import { CommandExitError, InvalidArgumentError, NotFoundError, SandboxError, TimeoutError } from 'e2b'

export default async function (t) {
  let s
  if (!(await t.step('a sandbox', async () => (s = await sandbox(t, { envs: { BOX: 'wide', ODD: 'a b"c$d' } }))))) return
  const { commands } = s

  await t.step('stdout, stderr, live', async () => {
    const seen = []
    const errors = []
    const r = await commands.run('printf out; printf err >&2', {
      onStdout: (d) => seen.push(d),
      onStderr: (d) => errors.push(d),
    })
    same([r.exitCode, r.stdout, r.stderr, seen.join(''), errors.join('')], [0, 'out', 'err', 'out', 'err'])
  })
  await t.step('exit status 3 with what it said', async () => {
    const e = await fails(commands.run('echo x; echo y >&2; exit 3'), (e) => e instanceof CommandExitError, 'exit 3')
    same([e.exitCode, e.stdout, e.stderr], [3, 'x\n', 'y\n'])
  })
  await t.step('a command that is not there: 127', () =>
    fails(commands.run('no-such-program'), (e) => e.exitCode === 127 && /not found/.test(e.stderr), 'unknown'))
  await t.step('a command that dies of a signal', () =>
    fails(commands.run('kill -9 $$'), (e) => e instanceof CommandExitError && e.exitCode === -1, 'signal'))
  await t.step('environment: of the sandbox, of the command', async () => {
    const r = await commands.run('echo "$BOX $FOO $ODD é世界"', { envs: { FOO: 'bar' } })
    same(r.stdout, 'wide bar a b"c$d é世界\n')
    same((await commands.run('echo $BOX', { envs: { BOX: 'mine' } })).stdout, 'mine\n')
  })
  await t.step('folder: of choice, none such', async () => {
    same((await commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
    await fails(commands.run('true', { cwd: '/no/such' }), (e) => e instanceof InvalidArgumentError && /cwd/.test(e.message), 'cwd')
  })
  await t.step('it starts in its home, as a user with a name', async () => {
    const r = await commands.run('[ "$(pwd)" = "$HOME" ] && [ -n "$USER" ] && [ "$LOGNAME" = "$USER" ] && echo good')
    same(r.stdout, 'good\n')
  })
  await t.step('a time-out ends the command too', async () => {
    await fails(commands.run('sleep 54.321', { timeoutMs: 700 }), (e) => e instanceof TimeoutError, 'time-out')
    await until(
      async () => !(await commands.list()).some((p) => p.args.join(' ').includes('54.321')),
      () => 'the command is still listed',
    )
  })
  await t.step('background: pid first, then wait', async () => {
    const h = await commands.run('sleep 0.1; echo done; exit 4', { background: true })
    ok(h.pid > 0 && h.exitCode === undefined, 'no pid, or a status too early')
    await fails(h.wait(), (e) => e.exitCode === 4 && e.stdout === 'done\n', 'wait')
    same(h.exitCode, 4)
  })
  await t.step('stdin: lines, then its end', async () => {
    const h = await commands.run('cat', { background: true, stdin: true, timeoutMs: 0 })
    await h.sendStdin('one\n')
    await commands.sendStdin(h.pid, bytes('tw\u00f6\n'))
    await h.closeStdin()
    same((await h.wait()).stdout, 'one\ntw\u00f6\n')
  })
  await t.step('stdin: a megabyte', async () => {
    const h = await commands.run('wc -c', { background: true, stdin: true, timeoutMs: 0 })
    for (let i = 0; i < 16; i++) await h.sendStdin('x'.repeat(65536))
    await commands.closeStdin(h.pid)
    same((await h.wait()).stdout.trim(), '1048576')
  })
  await t.step('without stdin nothing waits for it', async () => {
    same((await commands.run('cat; echo end')).stdout, 'end\n')
  })
  await t.step('stdin of one that is gone', () =>
    fails(commands.sendStdin(99999, 'x'), (e) => e instanceof NotFoundError, 'gone'))
  await t.step('list and kill', async () => {
    const h = await commands.run('sleep 600', { background: true, timeoutMs: 0, envs: { MARK: 'm' }, cwd: '/tmp' })
    const p = (await commands.list()).find((p) => p.pid === h.pid)
    ok(p, 'not listed')
    same([p.cmd, p.args, p.envs.MARK, p.cwd], ['/bin/bash', ['-l', '-c', 'sleep 600'], 'm', '/tmp'])
    same(await commands.kill(h.pid), true)
    await fails(h.wait(), (e) => e instanceof CommandExitError && e.exitCode === -1, 'killed')
    same(await commands.kill(h.pid), false)
    same(await commands.kill(99999), false)
  })
  await t.step('kill by the handle', async () => {
    const h = await commands.run('sleep 600', { background: true, timeoutMs: 0 })
    same(await h.kill(), true)
    await fails(h.wait(), (e) => e instanceof CommandExitError, 'killed')
  })
  await t.step('disconnect, connect again by pid', async () => {
    const h = await commands.run('read x; echo "got $x"; exit 5', { background: true, stdin: true, timeoutMs: 0 })
    await h.disconnect()
    const again = await commands.connect(h.pid, { timeoutMs: 0 })
    same(again.pid, h.pid)
    await commands.sendStdin(h.pid, 'me\n')
    await fails(again.wait(), (e) => e.exitCode === 5 && e.stdout === 'got me\n', 'again')
    const late = await commands.connect(h.pid, { timeoutMs: 0 })
    await fails(late.wait(), (e) => e.exitCode === 5, 'after its end')
    await fails(commands.connect(99999), (e) => e instanceof NotFoundError, 'none such')
  })
  await t.step('two readers of one command', async () => {
    const h = await commands.run('read x; echo "for all: $x"', { background: true, stdin: true, timeoutMs: 0 })
    const second = await commands.connect(h.pid, { timeoutMs: 0 })
    await h.sendStdin('y\n')
    same([(await h.wait()).stdout, (await second.wait()).stdout], ['for all: y\n', 'for all: y\n'])
  })
  await t.step('a disconnect does not end it', async () => {
    const h = await commands.run('sleep 600', { background: true, timeoutMs: 0 })
    await h.disconnect()
    await pause(100)
    ok((await commands.list()).some((p) => p.pid === h.pid), 'it is gone')
    same(await commands.kill(h.pid), true)
  })
  await t.step('20 MB of output', async () => {
    let size = 0
    await commands.run('head -c 20000000 /dev/zero | tr "\\0" x', { onStdout: (d) => (size += d.length), timeoutMs: 0 })
    same(size, 20000000)
  })
  await t.step('characters cut between two events', async () => {
    const r = await commands.run(`for i in 1 2 3; do printf '\\303'; sleep 0.05; printf '\\251'; done`)
    same(r.stdout, 'ééé')
  })
  await t.step('100 commands at once', async () => {
    const all = await Promise.all(Array.from({ length: 100 }, (_, i) => commands.run(`echo ${i}`)))
    same(all.map((r) => r.stdout.trim()), Array.from({ length: 100 }, (_, i) => String(i)))
  })
  await t.step('a user that is named, and one that is not there', async () => {
    same((await commands.run('echo $USER', { user: 'user' })).stdout, 'user\n')
    same((await commands.run('echo $USER', { user: 'root' })).stdout, 'root\n')
    await fails(commands.run('true', { user: 'nobody-here' }), (e) => e instanceof SandboxError || e.name === 'AuthenticationError', 'unknown user')
  })
  await t.step('a signal the protocol does not know', () =>
    fails(rpc(s, 'process.Process/SendSignal', { process: { pid: 1 }, signal: 'SIGNAL_UNSPECIFIED' }), (e) => ['unimplemented', 'not_found', 'invalid_argument'].includes(e.code), 'signal'))
  await t.step('demo agent', async () => {
    const seen = []
    let text = ''
    const h = await commands.run(`exec ${demoAgent}`, {
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
}
