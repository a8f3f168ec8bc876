// Folders that are watched: as a stream by the SDK, by polling as other clients do.
import { homeOf, rpc, sandbox } from '../lib/bed.mjs'
import { fails, ok, same, until } from '../lib/tap.mjs'
import { NotFoundError, SandboxError } from 'e2b'

export default async function (t) {
  let s
  let home
  if (!(await t.step('a sandbox', async () => {
    s = await sandbox(t)
    home = await homeOf(s)
  }))) return
  const { files } = s
  const shell = (command) => s.commands.run(command)
  // Events of `path` while `act` runs, until those of `want` ("type name") have come.
  const watch = async (path, opts, act, want) => {
    const seen = []
    const h = await files.watchDir(path, (e) => seen.push(e), opts)
    await act()
    const names = () => seen.map((e) => `${e.type} ${e.name}`)
    await until(() => want.every((w) => names().includes(w)), () => `${want} in ${names()}`)
    await h.stop()
    return seen
  }
  await t.step('create, write, chmod, rename, remove', async () => {
    await files.makeDir('w')
    await watch('w', {}, async () => {
      await files.write('w/a', 'x')
      await shell('chmod 600 w/a; echo more >> w/a; mv w/a w/b; rm w/b')
    }, ['create a', 'write a', 'chmod a', 'rename a', 'create b', 'remove b'])
  })
  await t.step('not below, unless that is asked', async () => {
    await files.makeDir('x/sub')
    const act = async () => {
      await files.write('x/sub/deep', '1')
      await files.write('x/top', '1')
    }
    const flat = await watch('x', {}, act, ['write top'])
    same(flat.filter((e) => e.name.includes('deep')), [])
    await watch('x', { recursive: true }, act, ['write sub/deep', 'write top'])
  })
  await t.step('folders made while it watches are watched too', () =>
    watch('x', { recursive: true }, async () => {
      await shell('mkdir -p x/n1/n2')
      await files.write('x/n1/n2/f', '1')
    }, ['create n1', 'create n1/n2/f']))
  await t.step('with what is known of the file', async () => {
    const seen = await watch('w', { includeEntry: true }, () => files.write('w/e', 'four'), ['write e'])
    const entry = seen.find((e) => e.type === 'write' && e.name === 'e' && e.entry?.size === 4)?.entry
    same([entry?.name, entry?.path, entry?.type], ['e', `${home}/w/e`, 'file'])
  })
  await t.step('what cannot be watched', async () => {
    await fails(files.watchDir('/nope', () => {}), (e) => e instanceof NotFoundError, 'none such')
    await files.write('plain', 'x')
    await fails(files.watchDir('plain', () => {}), (e) => e instanceof SandboxError, 'a file')
  })
  await t.step('a time-out ends it, and that is told', async () => {
    let end
    await files.watchDir('w', () => {}, { timeoutMs: 2500, onExit: (e) => (end = { e }) })
    await until(() => end, () => 'onExit')
  })
  await t.step('a stopped one is told nothing more', async () => {
    const seen = []
    const h = await files.watchDir('w', (e) => seen.push(e))
    await h.stop()
    await watch('w', {}, () => files.write('w/z', 'x'), ['write z'])
    same(seen, [])
  })
  await t.step('by polling: create, ask, remove', async () => {
    const { watcherId } = await rpc(s, 'filesystem.Filesystem/CreateWatcher', { path: `${home}/w`, recursive: true })
    ok(watcherId, 'no id')
    await files.write('w/p', 'x')
    const all = []
    await until(async () => {
      const { events = [] } = await rpc(s, 'filesystem.Filesystem/GetWatcherEvents', { watcherId })
      all.push(...events)
      return all.some((e) => e.type === 'EVENT_TYPE_WRITE' && e.name === 'p')
    }, () => JSON.stringify(all))
    ok(all.some((e) => e.type === 'EVENT_TYPE_CREATE' && e.name === 'p'), JSON.stringify(all))
    same(await rpc(s, 'filesystem.Filesystem/GetWatcherEvents', { watcherId }).then((r) => r.events ?? []), [])
    same(await rpc(s, 'filesystem.Filesystem/RemoveWatcher', { watcherId }), {})
    for (const method of ['GetWatcherEvents', 'RemoveWatcher'])
      await fails(rpc(s, `filesystem.Filesystem/${method}`, { watcherId }), (e) => e.code === 'not_found', method)
  })
}
