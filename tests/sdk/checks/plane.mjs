// What of the control plane the SDK has no call for, or few: metrics over time, logs,
// events, use of the team, network options, and what a local provider lacks.
import { api, sandbox, trafficPort } from '../lib/bed.mjs'
import { fails, ok, same, until } from '../lib/tap.mjs'
import { Sandbox } from 'e2b'

export default async function (t) {
  let s
  let other
  if (!(await t.step('two sandboxes', async () => {
    s = await sandbox(t, { metadata: { plane: 'one' } })
    other = await sandbox(t, { metadata: { plane: 'two' } })
  }))) return
  const id = s.sandboxId
  const get = async (path) => {
    const a = await api('GET', path)
    same(a.status, 200, `${path}: ${a.text}`)
    return a.json
  }

  await t.step('metrics: of a time, in order', async () => {
    const m = await until(async () => {
      const list = await s.getMetrics()
      return list.length >= 2 && list
    }, () => 'two samples', 30000)
    const times = m.map((x) => x.timestamp.getTime())
    same(times, [...times].sort((a, b) => a - b))
    same(await s.getMetrics({ start: new Date(0), end: new Date(times[0] - 60000) }), [])
    ok((await s.getMetrics({ start: new Date(times[1] - 1000) })).length >= 1, 'none since the second')
  })
  await t.step('metrics: of many, the unknown left out', async () => {
    const { sandboxes } = await get(`/sandboxes/metrics?sandbox_ids=${id},${other.sandboxId},i${'0'.repeat(20)}`)
    same(Object.keys(sandboxes).sort(), [id, other.sandboxId].sort())
    ok(sandboxes[id].memTotal > 0 && sandboxes[id].timestampUnix > 0, JSON.stringify(sandboxes[id]))
    const many = Array.from({ length: 101 }, (_, i) => `i${String(i).padStart(20, '0')}`).join()
    same((await api('GET', `/sandboxes/metrics?sandbox_ids=${many}`)).status, 400)
  })
  await t.step('metrics: of none: 404; of a time that is none: 400', async () => {
    same((await api('GET', `/sandboxes/i${'0'.repeat(20)}/metrics`)).status, 404)
    same((await api('GET', `/sandboxes/${id}/metrics?start=yesterday`)).status, 400)
  })
  await t.step('metrics: load and memory of a command show', async () => {
    const h = await other.commands.run(`exec perl -e '$x = "x" x 50e6; while (1) { for (1 .. 3e6) {} select undef, undef, undef, 0.3 }'`, { background: true, timeoutMs: 0 })
    await until(async () => {
      const last = (await other.getMetrics()).at(-1)
      return last?.memUsed > 40e6 && last.cpuUsedPct > 1
    }, () => 'a sample with its load', 40000)
    await h.kill()
  })
  await t.step('logs: old shape with lines of JSON, new shape with entries', async () => {
    const old = await get(`/sandboxes/${id}/logs`)
    ok(old.logs.length > 0 && old.logEntries.length > 0, JSON.stringify(old))
    for (const l of old.logs) ok(JSON.parse(l.line).message !== undefined && !Number.isNaN(Date.parse(l.timestamp)), l.line)
    const { logs } = await get(`/v2/sandboxes/${id}/logs`)
    ok(logs.length > 0, 'no entries')
    for (const l of logs) ok(['debug', 'info', 'warn', 'error'].includes(l.level) && typeof l.message === 'string' && typeof l.fields === 'object', JSON.stringify(l))
  })
  await t.step('logs: newest first or last, some of them, by word', async () => {
    await s.pause()
    await s.connect()
    const list = async (q) => (await get(`/v2/sandboxes/${id}/logs${q}`)).logs
    const down = await list('?limit=1000')
    const up = await list('?direction=forward&cursor=0')
    ok(up.length >= 2, JSON.stringify(up))
    same([...down].reverse().map((l) => l.message), up.map((l) => l.message))
    same((await list('?limit=1')).length, 1)
    same(await list('?search=no-such-word-at-all'), [])
    same(await list('?level=error'), [])
    for (const q of ['?limit=1001', '?direction=sideways', '?level=loud', '?cursor=x']) same((await api('GET', `/v2/sandboxes/${id}/logs${q}`)).status, 400, q)
    same((await api('GET', `/v2/sandboxes/i${'0'.repeat(20)}/logs`)).status, 404)
  })
  await t.step('events: of one sandbox, its life in order', async () => {
    const x = await Sandbox.create('base', { timeoutMs: 60000 })
    await x.setTimeout(90000)
    await x.pause()
    await x.connect()
    await x.kill()
    const list = await get(`/events/sandboxes/${x.sandboxId}?orderAsc=true`)
    same(list.map((e) => e.type.replace('sandbox.lifecycle.', '')).filter((e, i, all) => e !== all[i - 1]), ['created', 'updated', 'paused', 'resumed', 'killed'])
    for (const e of list) ok(e.id && e.sandboxId === x.sandboxId && e.sandboxTemplateId && !Number.isNaN(Date.parse(e.timestamp)), JSON.stringify(e))
    const newest = await get(`/events/sandboxes/${x.sandboxId}?limit=1`)
    same(newest.map((e) => e.type), ['sandbox.lifecycle.killed'])
    const some = await get(`/events/sandboxes/${x.sandboxId}?types=sandbox.lifecycle.paused&types=sandbox.lifecycle.created&orderAsc=true`)
    same(some.map((e) => e.type), ['sandbox.lifecycle.created', 'sandbox.lifecycle.paused'])
    ok((await get('/events/sandboxes?limit=100')).some((e) => e.sandboxId === x.sandboxId), 'not among all')
    same((await api('GET', '/events/sandboxes?limit=0')).status, 400)
  })
  await t.step('the team: use over time, and its peak', async () => {
    const { sandboxTeamId } = (await get(`/events/sandboxes/${id}`))[0]
    const list = await get(`/teams/${sandboxTeamId}/metrics`)
    ok(list.length && list.every((m) => m.concurrentSandboxes >= 0 && m.sandboxStartRate >= 0 && m.timestampUnix > 0), JSON.stringify(list))
    const peak = await get(`/teams/${sandboxTeamId}/metrics/max?metric=concurrent_sandboxes`)
    ok(peak.value >= 2, JSON.stringify(peak))
    same((await api('GET', `/teams/${sandboxTeamId}/metrics/max?metric=other`)).status, 400)
    same((await api('GET', '/teams/00000000-0000-0000-0000-000000000000/metrics')).status, 403)
  })
  await t.step('what a local provider has not: 501 and a sentence', async () => {
    for (const [method, path, body] of [['POST', `/sandboxes/${id}/fork`, {}], ['POST', `/sandboxes/${id}/snapshots`, {}], ['GET', '/snapshots'], ['GET', '/volumes'], ['POST', '/volumes', {}], ['GET', '/secrets']]) {
      const a = await api(method, path, body)
      ok(a.status === 501 && a.json.code === 501 && a.json.message.length > 20, `${method} ${path}: ${a.text}`)
    }
    await fails(s.createSnapshot(), (e) => /snapshot/.test(e.message), 'snapshot by the SDK')
  })
  await t.step('a user port, by the routing headers', async () => {
    const h = await s.commands.run(`exec perl -MIO::Socket::INET -e '
      my $l = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 0, Listen => 5) or die;
      $| = 1; print $l->sockport, "\\n";
      while (my $c = $l->accept) {
        my ($q, $n) = ("", 0);
        while (<$c>) { $q .= $_; $n = $1 if /^content-length: (\\d+)/i; last if /^\\r\\n$/ }
        read $c, my $b, $n;
        my $a = (split / /, $q)[1] . "|$b|" . ($q =~ /x-access-token/i ? "token" : "none");
        print $c "HTTP/1.1 200 OK\\r\\nContent-Length: ", length $a, "\\r\\nX-Mine: yes\\r\\nConnection: close\\r\\n\\r\\n$a"; close $c }'`, { background: true, timeoutMs: 0 })
    const port = await until(() => Number(h.stdout), () => `a port: ${h.stderr}`)
    const ask = (more = {}) =>
      fetch(`http://127.0.0.1:${trafficPort}/a/b?c=d`, { ...more, headers: { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': String(port), ...more.headers } })
    const a = await ask()
    same([a.status, a.headers.get('x-mine'), await a.text()], [200, 'yes', '/a/b?c=d||none'])
    same(await (await ask({ method: 'POST', body: 'hello' })).text(), '/a/b?c=d|hello|none')
    same((await ask({ headers: { Origin: 'http://evil.example' } })).status, 403)
    await h.kill()
    const closed = await until(async () => {
      const a = await ask()
      return a.status !== 200 && a
    }, () => 'nobody listens')
    const shape = await closed.json()
    same([closed.status, shape.code, shape.port, shape.sandboxId], [502, 502, port, id])
  })
}
