// Sandboxes from create to kill: options, lists, time, pause, errors.
import { api, controlPort, envd, homeOf, isolated, key, sandbox } from '../lib/bed.mjs'
import { fails, ok, pause, same, until } from '../lib/tap.mjs'
import { AuthenticationError, InvalidArgumentError, NotFoundError, Sandbox, SandboxError, TimeoutError } from 'e2b'

const nobody = 'i' + '0'.repeat(20)

async function collect(opts) {
  const ids = []
  let pages = 0
  const it = Sandbox.list(opts)
  for (; it.hasNext; pages++) ids.push(...(await it.nextItems()).map((i) => i.sandboxId))
  return { ids, pages }
}

export default async function (t) {
  let s
  if (!(await t.step('create', async () => {
    s = await sandbox(t, { metadata: { t: 'cc', odd: 'a&b=c d' }, envs: { BOX: 'wide' }, timeoutMs: 120000 })
    ok(/^i[a-z0-9]{20}$/.test(s.sandboxId), `id ${s.sandboxId}`)
  }))) return

  await t.step('getInfo', async () => {
    const i = await s.getInfo()
    same([i.sandboxId, i.state, i.metadata], [s.sandboxId, 'running', { t: 'cc', odd: 'a&b=c d' }])
    const left = i.endAt - Date.now()
    ok(left > 60000 && left <= 120500, `ends in ${left} ms`)
    ok(Math.abs(i.startedAt - Date.now()) < 60000 && i.cpuCount > 0 && i.memoryMB > 0 && i.envdVersion >= '0.5', 'figures')
    same(i.lifecycle, { onTimeout: 'kill', autoResume: false })
    same((await Sandbox.getInfo(s.sandboxId)).sandboxId, s.sandboxId)
  })
  await t.step('isRunning', async () => same(await s.isRunning(), true))
  await t.step('a second client: connect by id', async () => {
    const other = await Sandbox.connect(s.sandboxId)
    same((await other.commands.run('echo $BOX')).stdout, 'wide\n')
  })
  await t.step('getHost names port and sandbox', () => {
    ok(s.getHost(3000).includes('3000') && s.getHost(3000).includes(s.sandboxId), s.getHost(3000))
  })
  await t.step('setTimeout: longer and shorter', async () => {
    for (const ms of [600000, 60000]) {
      await s.setTimeout(ms)
      const left = (await s.getInfo()).endAt - Date.now()
      ok(left > ms - 30000 && left < ms + 1000, `ends in ${left} ms`)
    }
  })
  await t.step('connect only prolongs', async () => {
    await Sandbox.connect(s.sandboxId, { timeoutMs: 10000 })
    ok((await s.getInfo()).endAt - Date.now() > 30000, 'it was shortened')
    await Sandbox.connect(s.sandboxId, { timeoutMs: 300000 })
    ok((await s.getInfo()).endAt - Date.now() > 200000, 'it was not prolonged')
  })
  await t.step('options it was made with', async () => {
    const x = await sandbox(t, { timeoutMs: 61500, lifecycle: { onTimeout: 'pause', autoResume: true }, secure: true })
    const i = await x.getInfo()
    same(i.lifecycle, { onTimeout: 'pause', autoResume: true })
    ok(i.endAt - Date.now() <= 62500, 'rounded up to 62 s')
    await x.kill()
  })
  await t.step('options that contradict each other', async () => {
    same((await api('POST', '/v2/sandboxes', { templateID: 'base', timeout: 0 })).status, 400)
    same((await api('POST', '/v2/sandboxes', { templateID: 'base', timeout: 'soon' })).status, 400)
    same((await api('POST', '/v2/sandboxes', {})).status, 400)
    const bad = [{ templateID: 5 }, { autoPauseMemory: false }, { autoPause: 'no' }, { network: [] }, { autoPause: true, autoPauseMemory: false, autoResume: { enabled: true } }, { envVars: ['x'] }, { envVars: { A: 1 } }, { metadata: ['x'] }, { metadata: { a: {} } }, { timeout: -1 }, { timeout: 1e18 }]
    for (const b of bad) same((await api('POST', '/v2/sandboxes', { templateID: 'base', ...b })).status, 400, JSON.stringify(b))
  })
  await t.step('a template that is not there', () =>
    fails(Sandbox.create('no-such-template'), (e) => e instanceof SandboxError || e instanceof NotFoundError, 'template'))
  if (isolated)
    await t.step('no internet: the loopback device alone', async () => {
      const x = await sandbox(t, { allowInternetAccess: false })
      same((await x.commands.run("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '")).stdout, 'lo\n')
      same((await x.getInfo()).allowInternetAccess, false)
      await x.kill()
    })
  else t.skip('no internet: the loopback device alone', 'not isolated')
  await t.step('two sandboxes see nothing of each other', async () => {
    const x = await sandbox(t)
    await s.files.write('/tmp/mine', 'x')
    if (isolated) {
      same(await x.files.exists('/tmp/mine'), false)
      const h = await s.commands.run('sleep 987', { background: true, timeoutMs: 0 })
      const others = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 98[7]'"
      same((await s.commands.run(others)).stdout, '1\n')
      await fails(x.commands.run(others), (e) => e.stdout === '0\n', 'processes of the other')
      await h.kill()
    }
    await fails(envd({ sandboxId: x.sandboxId, envdAccessToken: s.envdAccessToken }, '/envs').then((a) => {
      if (a.status !== 200) throw new Error(`status ${a.status}`)
    }), (e) => /401/.test(e.message), "the other's token")
    await x.kill()
  })
  await t.step('metrics', async () => {
    const m = await until(async () => {
      const list = await s.getMetrics()
      return list.length && list
    }, () => 'a sample', 30000)
    const { cpuCount, cpuUsedPct, memUsed, memTotal, diskUsed, diskTotal, timestamp } = m[m.length - 1]
    ok(cpuCount > 0 && cpuUsedPct >= 0 && memUsed >= 0 && memTotal > memUsed && diskTotal > diskUsed && diskUsed >= 0, JSON.stringify(m))
    ok(Math.abs(timestamp - Date.now()) < 60000, `taken at ${timestamp}`)
  })

  // --- lists: three more, of which one is paused
  const made = []
  await t.step('list: by metadata and state, newest first or last, in pages', async () => {
    for (let i = 0; i < 3; i++) made.push(await sandbox(t, { metadata: { list: 'yes', n: String(i) } }))
    await made[1].pause()
    const ids = made.map((x) => x.sandboxId)
    const query = { metadata: { list: 'yes' } }
    same((await collect({ query, order: 'asc' })).ids, ids, 'asc')
    same((await collect({ query, order: 'desc' })).ids, [...ids].reverse(), 'desc')
    same((await collect({ query: { ...query, state: ['running'] }, order: 'asc' })).ids, [ids[0], ids[2]], 'running')
    same((await collect({ query: { ...query, state: ['paused'] } })).ids, [ids[1]], 'paused')
    same((await collect({ query: { metadata: { list: 'yes', n: '2' } } })).ids, [ids[2]], 'both pairs')
    same((await collect({ query: { metadata: { odd: 'a&b=c d' } } })).ids, [s.sandboxId], 'odd value')
    same(await collect({ query, order: 'asc', limit: 1 }), { ids, pages: 3 }, 'pages of one')
    same((await collect({ query: { ...query, startedAfter: new Date(Date.now() + 60000) } })).ids, [], 'of the future')
    same((await collect({ query: { ...query, template: 'base' }, order: 'asc' })).ids, ids, 'of a template')
    same((await collect({ query: { ...query, template: 'other' } })).ids, [], 'of another template')
  })
  await t.step('list: bad limits and cursors are refused', async () => {
    for (const q of ['limit=0', 'limit=101', 'limit=x', 'nextToken=%21%21', 'state=asleep'])
      same((await api('GET', `/v2/sandboxes?${q}`)).status, 400, q)
  })
  await t.step('list: the answer counts those that run', async () => {
    const a = await api('GET', '/v2/sandboxes?state=running&limit=1&metadata=list%3Dyes')
    same([a.headers.get('x-total-running'), a.json.length], ['2', 1])
    ok(a.headers.get('x-next-token'), 'no cursor')
  })
  await t.step('list: the old one has running ones alone', async () => {
    const a = await api('GET', '/sandboxes?metadata=list%3Dyes')
    same(a.json.map((i) => i.sandboxID).sort(), [made[0].sandboxId, made[2].sandboxId].sort())
  })

  // --- pause and resume
  let home
  await t.step('pause, connect: processes go on', async () => {
    home = await homeOf(s)
    const h = await s.commands.run('while :; do echo x >> ~/ticks; sleep 0.02; done', { background: true, timeoutMs: 0 })
    const size = async () => (await s.files.exists('ticks')) && (await s.files.getInfo('ticks')).size
    await until(size, () => 'first tick')
    await h.disconnect()
    same([await s.pause(), await s.pause()], [true, false])
    same((await s.getInfo()).state, 'paused')
    same(await s.isRunning(), false)
    const { endAt } = await s.getInfo()
    ok(endAt - Date.now() < 1000, 'a paused one has an end to come')
    await Sandbox.connect(s.sandboxId)
    same((await s.getInfo()).state, 'running')
    const before = await size()
    await until(async () => (await size()) > before, () => 'another tick')
    same(await s.commands.kill(h.pid), true)
  })
  await t.step('a paused one answers nothing, and is not woken', async () => {
    await s.pause()
    await fails(s.commands.run('true'), (e) => e instanceof TimeoutError || /running/.test(e.message), 'command')
    same((await envd(s, '/health')).status, 502)
    same((await s.getInfo()).state, 'paused')
    await s.connect()
    same((await s.commands.run('echo up')).stdout, 'up\n')
  })
  await t.step('traffic wakes one that says so', async () => {
    const x = await sandbox(t, { lifecycle: { onTimeout: 'pause', autoResume: true } })
    await x.pause()
    same((await x.commands.run('echo awake')).stdout, 'awake\n')
    same((await x.getInfo()).state, 'running')
    await x.kill()
  })
  await t.step('at its end: paused where that was chosen', async () => {
    const x = await sandbox(t, { timeoutMs: 1000, lifecycle: { onTimeout: 'pause' } })
    await until(async () => (await x.getInfo()).state === 'paused', () => 'paused')
    await x.kill()
  })
  await t.step('at its end: killed', async () => {
    const x = await Sandbox.create('base', { timeoutMs: 1000 })
    await until(async () => !(await x.isRunning()), () => 'gone')
    await fails(x.getInfo(), (e) => e instanceof NotFoundError, 'getInfo')
  })
  await t.step('resume of one that runs: 409; of none: 404', async () => {
    same((await api('POST', `/sandboxes/${s.sandboxId}/resume`, { timeout: 60 })).status, 409)
    same((await api('POST', `/sandboxes/${nobody}/resume`, { timeout: 60 })).status, 404)
    await s.pause()
    same((await api('POST', `/sandboxes/${s.sandboxId}/resume`, { timeout: 60 })).status, 201)
  })
  await t.step('refreshes prolong, never shorten', async () => {
    const end = async () => (await s.getInfo()).endAt.getTime()
    await s.setTimeout(100000)
    const before = await end()
    same((await api('POST', `/sandboxes/${s.sandboxId}/refreshes`, { duration: 20 })).status, 204)
    same(await end(), before)
    same((await api('POST', `/sandboxes/${s.sandboxId}/refreshes`, { duration: 200 })).status, 204)
    ok((await end()) > before, 'not prolonged')
  })

  // --- errors
  await t.step('wrong key: AuthenticationError', async () => {
    const wrong = { apiKey: 'e2b_' + '0'.repeat(40) }
    await fails(Sandbox.create('base', wrong), (e) => e instanceof AuthenticationError, 'create')
    await fails(Sandbox.list(wrong).nextItems(), (e) => e instanceof AuthenticationError, 'list')
    await fails(Sandbox.kill(s.sandboxId, wrong), (e) => e instanceof AuthenticationError, 'kill')
    same((await fetch(`http://127.0.0.1:${controlPort}/v2/sandboxes`)).status, 401)
  })
  await t.step('an id that is not there: NotFoundError or false', async () => {
    await fails(Sandbox.connect(nobody), (e) => e instanceof NotFoundError, 'connect')
    await fails(Sandbox.getInfo(nobody), (e) => e instanceof NotFoundError, 'getInfo')
    await fails(Sandbox.setTimeout(nobody, 5000), (e) => e instanceof NotFoundError, 'setTimeout')
    await fails(Sandbox.pause(nobody), (e) => e instanceof NotFoundError, 'pause')
    same(await Sandbox.kill(nobody), false)
    const a = await api('DELETE', '/sandboxes/../../etc')
    same([a.status, a.json.code], [404, 404])
  })
  await t.step('the token counts: without it, with another', async () => {
    for (const token of ['', 'ea_wrong', key])
      same((await envd({ sandboxId: s.sandboxId }, '/envs', { headers: { 'X-Access-Token': token } })).status, 401, token)
    same((await envd({ sandboxId: s.sandboxId }, '/health')).status, 204)
  })

  // --- the end
  await t.step('kill', async () => {
    same([await s.kill(), await s.kill()], [true, false])
    same(await s.isRunning(), false)
    await fails(s.commands.run('true'), () => true, 'command in a killed sandbox')
  })
  await t.step('kill a paused one', async () => {
    same(await made[1].kill(), true)
    same((await collect({ query: { metadata: { list: 'yes' }, state: ['paused'] } })).ids, [])
  })
  await t.step('a stream ends with its sandbox', async () => {
    const h = await made[0].commands.run('sleep 600', { background: true, timeoutMs: 0 })
    await made[0].kill()
    await fails(h.wait(), (e) => e instanceof SandboxError, 'wait')
  })
  await t.step('kill all of a list, in parallel', async () => {
    await Promise.all([1, 2, 3, 4].map((i) => sandbox(t, { metadata: { list: 'yes', n: `more ${i}` } })))
    const { ids } = await collect({ query: { metadata: { list: 'yes' } } })
    same(ids.length, 5)
    same(await Promise.all(ids.map((id) => Sandbox.kill(id))), ids.map(() => true))
    same((await collect({ query: { metadata: { list: 'yes' } } })).ids, [])
  })
}
