// Who runs what: the sandbox's user, and root, who is root in name alone.
import { homeOf, isolated, sandbox } from '../lib/bed.mjs'
import { fails, ok, same } from '../lib/tap.mjs'
import { AuthenticationError } from 'e2b'

export default async function (t) {
  if (!isolated) return t.skip('users', 'not isolated')
  let s
  if (!(await t.step('a sandbox', async () => (s = await sandbox(t, { envs: { BOX: 'wide' } }))))) return
  const run = async (command, user) => (await s.commands.run(command, { user })).stdout
  const home = await homeOf(s)

  await t.step('commands of the user', async () => {
    same(await run('id -un; id -u; echo $HOME; pwd'), `user\n1000\n${home}\n${home}\n`)
    same(await run('id -un', 'user'), 'user\n')
  })
  await t.step('commands of root', async () => {
    same(await run('id -un; id -u; echo $HOME $USER $LOGNAME; pwd; echo $BOX', 'root'), 'root\n0\n/root root root\n/root\nwide\n')
  })
  await t.step('root sees and ends commands of the user', async () => {
    const h = await s.commands.run('sleep 432', { background: true, timeoutMs: 0 })
    await run(`kill -9 ${h.pid}`, 'root')
    await fails(h.wait(), (e) => e.exitCode === -1, 'killed')
  })
  await t.step('a terminal of root', async () => {
    let text = ''
    const p = await s.pty.create({ cols: 80, rows: 24, user: 'root', onData: (d) => (text += Buffer.from(d)), timeoutMs: 0 })
    await s.pty.sendInput(p.pid, Buffer.from('id -un; exit\n'))
    await p.wait()
    ok(/root\r\n/.test(text), text)
  })
  await t.step('files of root: in its home, its own', async () => {
    const info = await s.files.write('mine', 'of root', { user: 'root' })
    same([info.path, await s.files.read('mine', { user: 'root' })], ['/root/mine', 'of root'])
    same((await s.files.getInfo('mine', { user: 'root' })).path, '/root/mine')
    same(await run('cat /root/mine', 'root'), 'of root')
    same(await s.files.exists('mine'), false)
  })
  await t.step('root is root in name alone', async () => {
    for (const command of ['mount -t tmpfs none /mnt', 'echo x > /proc/sys/kernel/hostname', 'chroot / true && mknod /tmp/d b 8 0', 'echo 1 > /proc/sysrq-trigger', 'kill -9 1 && sleep 0.2 && ! kill -0 1'])
      await fails(s.commands.run(command, { user: 'root' }), (e) => e.exitCode !== 0, command)
    same(await s.isRunning(), true)
  })
  await t.step('no account: refused', async () => {
    for (const user of ['nobody-here', 'ro ot', '0', '../root'])
      await fails(s.commands.run('true', { user }), (e) => e instanceof AuthenticationError, user)
    await fails(s.files.write('x', 'x', { user: 'nobody-here' }), (e) => e instanceof AuthenticationError, 'files')
  })
}
