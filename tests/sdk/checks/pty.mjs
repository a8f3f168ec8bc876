// Terminals in a sandbox.
import { bytes, rpc, sandbox } from '../lib/bed.mjs'
import { fails, ok, same, until } from '../lib/tap.mjs'
import { CommandExitError, NotFoundError } from 'e2b'

// What a terminal shows, as one growing text.
function screen() {
  const decoder = new TextDecoder()
  const seen = { text: '', onData: (d) => (seen.text += decoder.decode(d, { stream: true })) }
  seen.until = (what) => until(() => seen.text.includes(what), () => `'${what}' in: ${seen.text}`)
  return seen
}

export default async function (t) {
  let s
  if (!(await t.step('a sandbox', async () => (s = await sandbox(t))))) return
  const { pty } = s

  await t.step('size, resize, input, exit', async () => {
    const seen = screen()
    const p = await pty.create({ cols: 80, rows: 24, onData: seen.onData, timeoutMs: 0 })
    await pty.sendInput(p.pid, bytes('stty size\n'))
    await seen.until('24 80')
    await pty.resize(p.pid, { cols: 100, rows: 30 })
    await pty.sendInput(p.pid, bytes('stty size\n'))
    await seen.until('30 100')
    await pty.sendInput(p.pid, bytes('exit\n'))
    same((await p.wait()).exitCode, 0)
  })
  await t.step('TERM, environment and folder', async () => {
    const seen = screen()
    const p = await pty.create({ cols: 200, rows: 24, onData: seen.onData, envs: { MINE: 'yes' }, cwd: '/tmp', timeoutMs: 0 })
    await pty.sendInput(p.pid, bytes('echo "<$TERM:$MINE:$(pwd):$(tty | cut -c1-8)>"\n'))
    await seen.until('<xterm-256color:yes:/tmp:/dev/pts>')
    await pty.kill(p.pid)
  })
  await t.step('Ctrl-C ends the command, not the shell', async () => {
    const seen = screen()
    const p = await pty.create({ cols: 80, rows: 24, onData: seen.onData, timeoutMs: 0 })
    await pty.sendInput(p.pid, bytes('echo be"gun"; sleep 600\n'))
    await seen.until('begun')
    await pty.sendInput(p.pid, bytes('\x03'))
    await pty.sendInput(p.pid, bytes('echo status "$?"\n'))
    await seen.until('status 130')
    await pty.sendInput(p.pid, bytes('exit\n'))
    await p.wait()
  })
  await t.step('connect again by pid', async () => {
    const first = screen()
    const again = screen()
    const p = await pty.create({ cols: 80, rows: 24, onData: first.onData, timeoutMs: 0 })
    await p.disconnect()
    const q = await pty.connect(p.pid, { onData: again.onData, timeoutMs: 0 })
    await pty.sendInput(p.pid, bytes('echo he"re"\n'))
    await again.until('here')
    await pty.sendInput(p.pid, bytes('exit 6\n'))
    await fails(q.wait(), (e) => e instanceof CommandExitError && e.exitCode === 6, 'exit 6')
  })
  await t.step('kill', async () => {
    const p = await pty.create({ cols: 80, rows: 24, onData: () => {} })
    same(await pty.kill(p.pid), true)
    await fails(p.wait(), () => true, 'killed pty')
    same(await pty.kill(p.pid), false)
  })
  await t.step('what has no terminal is not resized', async () => {
    const h = await s.commands.run('sleep 600', { background: true, timeoutMs: 0 })
    await fails(pty.resize(h.pid, { cols: 1, rows: 1 }), () => true, 'resize')
    await fails(pty.sendInput(h.pid, bytes('x')), () => true, 'input')
    await h.kill()
    await fails(pty.resize(99999, { cols: 1, rows: 1 }), (e) => e instanceof NotFoundError, 'none such')
  })
  await t.step('a terminal of no size is 80x24', async () => {
    const seen = screen()
    const p = await pty.create({ cols: 0, rows: 0, onData: seen.onData, timeoutMs: 0 })
    await pty.sendInput(p.pid, bytes('stty size\n'))
    await seen.until('24 80')
    await fails(rpc(s, 'process.Process/CloseStdin', { process: { pid: p.pid } }), (e) => typeof e.code === 'string', 'CloseStdin of a terminal')
    await pty.sendInput(p.pid, bytes('\x04'))
    same((await p.wait()).exitCode, 0)
  })
  await t.step('100,000 lines pass unharmed', async () => {
    let size = 0
    const p = await pty.create({ cols: 80, rows: 24, onData: (d) => (size += d.length), timeoutMs: 0 })
    await pty.sendInput(p.pid, bytes('stty -echo; seq 100000; exit\n'))
    await p.wait()
    ok(size >= 688895, `only ${size} bytes`) // seq's digits and two bytes of line end each
  })
}
