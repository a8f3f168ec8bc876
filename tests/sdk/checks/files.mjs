// Files: whole, streamed, many, folders, links, signed addresses.
import { createHash } from 'node:crypto'
import { envd, homeOf, isolated, rpc, sandbox } from '../lib/bed.mjs'
import { fails, ok, same } from '../lib/tap.mjs'
import { FileNotFoundError, InvalidArgumentError, NotFoundError } from 'e2b'

export default async function (t) {
  let s
  let home
  if (!(await t.step('a sandbox', async () => {
    s = await sandbox(t)
    home = await homeOf(s)
  }))) return
  const { files } = s
  const shell = async (command) => (await s.commands.run(command)).stdout

  await t.step('text: absolute, relative to home', async () => {
    const info = await files.write(`${home}/a.txt`, 'x')
    same([info.path, info.name, info.type], [`${home}/a.txt`, 'a.txt', 'file'])
    same([await files.read(`${home}/a.txt`), await files.read('a.txt')], ['x', 'x'])
    await files.write('a.txt', 'shorter than before? no'.repeat(3))
    await files.write('a.txt', 'x')
    same(await shell('cat ~/a.txt'), 'x')
  })
  await t.step('a file of nothing', async () => {
    await files.write('empty', '')
    same([await files.read('empty'), (await files.getInfo('empty')).size], ['', 0])
  })
  await t.step('odd names', async () => {
    const odd = 'dir & co/ä "q" + %41 \'$x\'.txt'
    same((await files.write(odd, 'odd')).path, `${home}/${odd}`)
    same(await files.read(odd), 'odd')
    same((await files.list('dir & co')).map((e) => e.name), ['ä "q" + %41 \'$x\'.txt'])
  })
  await t.step('many at once', async () => {
    const list = Array.from({ length: 20 }, (_, i) => ({ path: `${home}/many/${i % 3}/${i}`, data: `file ${i}` }))
    same((await files.write(list)).map((i) => i.path).sort(), list.map((f) => f.path).sort())
    same(await files.read(`${home}/many/1/19`), 'file 19')
    same((await files.writeFiles([{ path: 'one-of-one', data: 'y' }])).length, 1)
  })
  const big = new Uint8Array(5 << 20).map((_, i) => (i * 31 + (i >> 8)) & 255)
  await t.step('5 MB: bytes, blob, stream', async () => {
    await files.write('t/big', big.buffer)
    const back = await files.read('t/big', { format: 'bytes' })
    ok(Buffer.from(back).equals(Buffer.from(big)), 'bytes differ')
    same((await files.read('t/big', { format: 'blob' })).size, big.length)
    const sum = createHash('sha256')
    for await (const piece of await files.read('t/big', { format: 'stream' })) sum.update(piece)
    same(sum.digest('hex'), createHash('sha256').update(big).digest('hex'))
  })
  await t.step('uploads: blob, stream, octet-stream, gzip', async () => {
    await files.write('t/blob', new Blob(['blob']))
    await files.write('t/stream', new Blob(['stre', 'am']).stream())
    await files.write('t/octets', 'octets', { useOctetStream: true })
    await files.write('t/zipped', 'zipped '.repeat(1000), { gzip: true, useOctetStream: true })
    same(await Promise.all(['blob', 'stream', 'octets'].map((f) => files.read(`t/${f}`))), ['blob', 'stream', 'octets'])
    same(await files.read('t/zipped', { gzip: true }), 'zipped '.repeat(1000))
  })
  await t.step('parts of a file by Range', async () => {
    await files.write('t/range', '0123456789')
    const part = async (range) => {
      const a = await envd(s, `/files?path=${encodeURIComponent(`${home}/t/range`)}`, { headers: { Range: range } })
      return [a.status, await a.text(), a.headers.get('content-range')]
    }
    same(await part('bytes=2-4'), [206, '234', 'bytes 2-4/10'])
    same(await part('bytes=7-'), [206, '789', 'bytes 7-9/10'])
    same(await part('bytes=-2'), [206, '89', 'bytes 8-9/10'])
    same((await part('bytes=20-'))[0], 416)
  })
  await t.step('what is missing', async () => {
    await fails(files.read('/nope'), (e) => e instanceof FileNotFoundError, 'missing file')
    await fails(files.list('/nope'), (e) => e instanceof NotFoundError, 'missing folder')
    await fails(files.getInfo('/nope'), (e) => e instanceof NotFoundError, 'missing entry')
    await fails(files.rename('nope', 'nope2'), (e) => e instanceof NotFoundError, 'rename')
    same([await files.exists('/nope'), await files.exists('t/octets'), await files.exists('t')], [false, true, true])
  })
  await t.step('what is of another kind', async () => {
    await fails(files.read(home), (e) => e instanceof InvalidArgumentError || /director/i.test(e.message), 'read a folder')
    await fails(files.list('a.txt'), (e) => e instanceof InvalidArgumentError, 'list a file')
    await fails(files.write('a.txt/b', 'x'), () => true, 'write below a file')
    await fails(files.makeDir('a.txt'), (e) => e instanceof InvalidArgumentError || /exist|not a dir/i.test(e.message), 'a folder over a file')
  })
  await t.step('where the user may not write', async () => {
    if (isolated) await fails(files.write('/usr/bin/cc-no', 'x'), (e) => /denied|read-only|permission/i.test(e.message), 'write to /usr')
    same(await files.exists('/usr/bin/cc-no'), false)
  })
  await t.step('folders: make, list by depth, rename, remove', async () => {
    same([await files.makeDir('d/e'), await files.makeDir('d/e')], [true, false])
    await files.write('d/e/f', '12345')
    await files.write('d/e/g/h', '')
    const shape = async (depth) => (await files.list('d', { depth })).map((e) => [e.path.slice(home.length), e.type])
    same(await shape(1), [['/d/e', 'dir']])
    same(await shape(2), [['/d/e', 'dir'], ['/d/e/f', 'file'], ['/d/e/g', 'dir']])
    same((await shape(3)).length, 4)
    const moved = await files.rename('d/e/f', `${home}/d/k`)
    same([moved.path, moved.name, moved.size], [`${home}/d/k`, 'k', 5])
    await files.rename('d/e', 'd2')
    same(await files.exists('d2/g/h'), true)
    await files.remove('d2')
    same(await files.exists('d2'), false)
  })
  await t.step('what is known of a file', async () => {
    await files.write('i', '1234567')
    await shell('chmod 640 i')
    const i = await files.getInfo('i')
    same([i.name, i.path, i.type, i.size, i.mode & 0o777, i.permissions], ['i', `${home}/i`, 'file', 7, 0o640, '-rw-r-----'])
    ok(i.owner && i.group, 'no owner')
    ok(Math.abs(i.modifiedTime - Date.now()) < 60000, `modified ${i.modifiedTime}`)
    const d = await files.getInfo('t')
    same([d.type, d.permissions[0]], ['dir', 'd'])
  })
  await t.step('links', async () => {
    await shell('ln -s i link; ln -s /nope/there dangling; ln -s ~ round')
    same((await files.getInfo('link')).symlinkTarget, `${home}/i`)
    same(await files.read('link'), '1234567')
    same(await files.exists('dangling'), true)
    ok((await files.list('round', { depth: 2 })).length > 5, 'nothing behind a link to a folder')
    await files.remove('round')
    same(await files.exists('i'), true)
  })
  await t.step('metadata: written, known, gone with the next write', async () => {
    const metadata = { source: 'suite', 'a-b': 'c d' }
    same((await files.write('meta', 'x', { metadata })).metadata, metadata)
    same([(await files.getInfo('meta')).metadata, await files.read('meta')], [metadata, 'x'])
    same((await files.list('.')).find((e) => e.name === 'meta').metadata, metadata)
    same((await files.rename('meta', 'meta2')).metadata, metadata)
    await files.write('meta2', 'y')
    same((await files.getInfo('meta2')).metadata, undefined)
    await fails(files.write('meta', 'x', { metadata: { big: 'x'.repeat(5000) } }), () => true, 'too much')
  })
  await t.step('files of the agent and of its commands are one', async () => {
    await shell('echo from the shell > s')
    same(await files.read('s'), 'from the shell\n')
    const owner = (await files.getInfo('s')).owner
    await files.write('sdk', 'x')
    same((await files.getInfo('sdk')).owner, owner)
    await shell('echo more >> sdk')
  })
  await t.step('signed address: down', async () => {
    const url = await s.downloadUrl(`${home}/a.txt`, { useSignatureExpiration: 60 })
    const answer = await envd({ sandboxId: s.sandboxId }, new URL(url).pathname + new URL(url).search)
    same([answer.status, await answer.text()], [200, 'x'])
  })
  await t.step('signed address: up', async () => {
    const url = await s.uploadUrl(`${home}/up`, { useSignatureExpiration: 60 })
    const form = new FormData()
    form.append('file', new Blob(['uploaded']), 'up')
    const answer = await envd({ sandboxId: s.sandboxId }, new URL(url).pathname + new URL(url).search, { method: 'POST', body: form })
    same([answer.status, await files.read('up')], [200, 'uploaded'])
  })
  await t.step('signed address: forged, over, of the other way', async () => {
    const ask = async (url, method = 'GET') =>
      (await envd({ sandboxId: s.sandboxId }, new URL(url).pathname + new URL(url).search, { method, body: method === 'GET' ? undefined : 'x' })).status
    const good = await s.downloadUrl(`${home}/a.txt`)
    same(await ask(good), 200)
    same(await ask(good.replace('a.txt', 'i')), 401)
    same(await ask(good.replace('signature=v1_', 'signature=v1_A')), 401)
    same(await ask(good, 'POST'), 401)
    same(await ask((await s.downloadUrl(`${home}/a.txt`, { useSignatureExpiration: -5 })).toString()), 401)
  })
  await t.step('a unary call in its own words', async () => {
    const { entry } = await rpc(s, 'filesystem.Filesystem/Stat', { path: `${home}/i` })
    same([entry.size, entry.type, typeof entry.mode], ['7', 'FILE_TYPE_FILE', 'number'])
    await fails(rpc(s, 'filesystem.Filesystem/Stat', { path: '/nope' }), (e) => e.code === 'not_found' && e.status === 404, 'Stat')
    await fails(rpc(s, 'filesystem.Filesystem/MakeDir', { path: home }), (e) => e.code === 'already_exists' && e.status === 409, 'MakeDir')
  })
}
