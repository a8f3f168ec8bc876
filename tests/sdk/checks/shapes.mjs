// Every route of the control plane and of envd's REST part answers in the shape that
// E2B's documents give it (../fixtures/spec): fields, types, enums, formats.
import { api, envd, homeOf, isolated, sandbox } from '../lib/bed.mjs'
import { ok, same, until } from '../lib/tap.mjs'
import { box, checkControl } from '../lib/openapi.mjs'

export default async function (t) {
  let s
  if (!(await t.step('a sandbox', async () => (s = await sandbox(t, { metadata: { shapes: 'yes' } }))))) return
  const id = s.sandboxId
  const none = 'i' + '0'.repeat(20)
  // Ask, and hold the answer against its document; `want` is its status.
  const ask = async (wrong, want, method, path, body) => {
    const a = await api(method, path, body)
    if (a.status !== want) wrong.push(`${method} ${path}: ${a.status} ${a.text}, not ${want}`)
    else {
      if (!/^application\/json/.test(a.headers.get('content-type') ?? '') && a.text) wrong.push(`${method} ${path}: type ${a.headers.get('content-type')}`)
      wrong.push(...checkControl(method, path, a).map((w) => `${method} ${path}: ${w}`))
    }
    return a
  }
  const table = (name, rows) =>
    t.step(`${name}: ${rows.length} answers`, async () => {
      const wrong = []
      for (const row of rows) await ask(wrong, ...row)
      same(wrong, [])
    })

  await table('sandboxes', [
    [200, 'GET', `/sandboxes/${id}`],
    [200, 'GET', '/sandboxes'],
    [200, 'GET', '/v2/sandboxes?limit=100'],
    [200, 'GET', `/sandboxes/${id}/metrics`],
    [200, 'GET', `/sandboxes/metrics?sandbox_ids=${id}`],
    [200, 'GET', `/sandboxes/${id}/logs`],
    [200, 'GET', `/v2/sandboxes/${id}/logs`],
    [204, 'POST', `/sandboxes/${id}/timeout`, { timeout: 200 }],
    [204, 'POST', `/sandboxes/${id}/refreshes`, { duration: 30 }],
    [204, 'POST', `/sandboxes/${id}/refreshes`],
    [200, 'POST', `/sandboxes/${id}/connect`, { timeout: 100 }],
    [200, 'POST', `/v2/sandboxes/${id}/connect`],
    [409, 'POST', `/sandboxes/${id}/resume`, {}],
    [204, 'PUT', `/sandboxes/${id}/network`, { allow_internet_access: true }],
    [204, 'POST', `/sandboxes/${id}/pause`],
    [409, 'POST', `/sandboxes/${id}/pause`, {}],
    [409, 'POST', `/sandboxes/${id}/timeout`, { timeout: 200 }],
    [200, 'GET', `/sandboxes/${id}`],
    [201, 'POST', `/sandboxes/${id}/resume`, { timeout: 100 }],
    [200, 'GET', '/v2/sandboxes?state=paused'],
  ])
  await table('sandboxes that are not there', [
    [404, 'GET', `/sandboxes/${none}`],
    [404, 'DELETE', `/sandboxes/${none}`],
    [404, 'POST', `/sandboxes/${none}/pause`, {}],
    [404, 'POST', `/sandboxes/${none}/resume`, {}],
    [404, 'POST', `/sandboxes/${none}/connect`, { timeout: 1 }],
    [404, 'POST', `/v2/sandboxes/${none}/connect`, {}],
    [404, 'POST', `/sandboxes/${none}/timeout`, { timeout: 1 }],
    [404, 'POST', `/sandboxes/${none}/refreshes`, {}],
    [404, 'PUT', `/sandboxes/${none}/network`, {}],
    [404, 'GET', `/sandboxes/${none}/metrics`],
    [404, 'GET', `/sandboxes/${none}/logs`],
    [404, 'GET', `/v2/sandboxes/${none}/logs`],
  ])
  await table('what is refused', [
    [400, 'POST', '/sandboxes', {}],
    [400, 'POST', '/sandboxes', { templateID: 'base', timeout: -5 }],
    [404, 'POST', '/sandboxes', { templateID: 'no-such-template' }],
    [400, 'POST', `/sandboxes/${id}/timeout`, {}],
    [400, 'POST', `/sandboxes/${id}/refreshes`, { duration: 'x' }],
    [400, 'GET', '/v2/sandboxes?limit=1000'],
    [400, 'GET', '/sandboxes/metrics'],
    [501, 'POST', `/sandboxes/${id}/fork`, {}],
    [501, 'POST', `/sandboxes/${id}/snapshots`, {}],
    [501, 'GET', '/snapshots'],
    [501, 'GET', '/volumes'],
    [501, 'GET', '/secrets'],
    [401, 'GET', '/teams'],
    [401, 'GET', '/api-keys'],
  ])
  await t.step('create, in both generations', async () => {
    const wrong = []
    for (const path of ['/sandboxes', '/v2/sandboxes']) {
      const a = await ask(wrong, 201, 'POST', path, { templateID: 'base', timeout: 60, metadata: { a: 'b' }, envVars: { C: 'd' } })
      ok(a.json.envdAccessToken && a.json.envdVersion && a.json.domain === null && 'trafficAccessToken' in a.json, a.text)
      await ask(wrong, 204, 'DELETE', `/sandboxes/${a.json.sandboxID}`)
    }
    same(wrong, [])
  })
  await t.step('the team', async () => {
    const wrong = []
    const team = (await api('GET', `/events/sandboxes/${id}`)).json[0].sandboxTeamId
    await ask(wrong, 200, 'GET', `/teams/${team}/metrics`)
    await ask(wrong, 200, 'GET', `/teams/${team}/metrics/max?metric=concurrent_sandboxes`)
    await ask(wrong, 200, 'GET', `/teams/${team}/metrics/max?metric=sandbox_start_rate`)
    await ask(wrong, 400, 'GET', `/teams/${team}/metrics/max?metric=x`)
    same(wrong, [])
  })
  if (isolated)
    await t.step('templates and builds', async () => {
      const wrong = []
      const { templateID, buildID } = (await ask(wrong, 202, 'POST', '/v3/templates', { name: 'suite-shapes:one' })).json
      await ask(wrong, 201, 'GET', `/templates/${templateID}/files/${'a'.repeat(64)}`)
      await ask(wrong, 400, 'GET', `/templates/${templateID}/files/x`)
      await ask(wrong, 202, 'POST', `/v2/templates/${templateID}/builds/${buildID}`, { fromTemplate: 'base', steps: [{ type: 'RUN', args: ['echo hello'], force: true }] })
      const status = `/templates/${templateID}/builds/${buildID}/status`
      await until(async () => (await ask(wrong, 200, 'GET', `${status}?logsOffset=0`)).json.status === 'ready', () => 'ready')
      await ask(wrong, 200, 'GET', `${status}?logsOffset=1&limit=2&level=info`)
      await ask(wrong, 200, 'GET', `/templates/${templateID}/builds/${buildID}/logs`)
      await ask(wrong, 200, 'GET', `/templates/${templateID}/builds/${buildID}/logs?direction=backward&limit=3`)
      for (const path of ['/templates', '/v2/templates', `/templates/${templateID}`, '/templates/aliases/suite-shapes', `/templates/${templateID}/tags`]) await ask(wrong, 200, 'GET', path)
      await ask(wrong, 201, 'POST', '/templates/tags', { target: 'suite-shapes:one', tags: ['two'] })
      await ask(wrong, 204, 'DELETE', '/templates/tags', { name: 'suite-shapes', tags: ['two'] })
      await ask(wrong, 200, 'PATCH', `/v2/templates/${templateID}`, { public: true })
      await ask(wrong, 404, 'GET', '/templates/aliases/no-such-alias')
      await ask(wrong, 404, 'GET', '/templates/no-such-template-00')
      const fails = (await ask(wrong, 202, 'POST', '/v3/templates', { name: 'suite-shapes-2' })).json
      await ask(wrong, 202, 'POST', `/v2/templates/${fails.templateID}/builds/${fails.buildID}`, { fromTemplate: 'base', steps: [{ type: 'RUN', args: ['echo no; exit 9'], force: false }] })
      const error = await until(async () => {
        const a = await ask(wrong, 200, 'GET', `/templates/${fails.templateID}/builds/${fails.buildID}/status?logsOffset=0`)
        return a.json.status === 'error' && a.json
      }, () => 'error')
      ok(error.reason?.message, JSON.stringify(error))
      await ask(wrong, 204, 'DELETE', `/templates/${templateID}`)
      await ask(wrong, 404, 'DELETE', `/templates/${templateID}`)
      same(wrong, [])
    })
  else t.skip('templates and builds', 'not isolated')
  await t.step("envd's REST part", async () => {
    const wrong = []
    const home = await homeOf(s)
    const at = `path=${encodeURIComponent(`${home}/one`)}`
    const octets = { 'Content-Type': 'application/octet-stream' }
    const box1 = async (want, method, path, init) => {
      const a = await envd(s, path, { method, ...init })
      const text = await a.text()
      const json = /^application\/json/.test(a.headers.get('content-type') ?? '') ? JSON.parse(text) : undefined
      if (a.status !== want) wrong.push(`${method} ${path}: ${a.status} ${text}, not ${want}`)
      else if (path.startsWith('/files?') && method === 'GET' && want < 300) return text
      else wrong.push(...box.check(method, path, { status: a.status, json }).map((w) => `${method} ${path}: ${w}`))
      return json
    }
    await box1(204, 'GET', '/health')
    const m = await box1(200, 'GET', '/metrics')
    for (const name of ['ts', 'cpu_count', 'cpu_used_pct', 'mem_total', 'mem_used', 'disk_used', 'disk_total']) if (!(m?.[name] >= 0)) wrong.push(`metrics.${name}`)
    await box1(200, 'GET', '/envs')
    await box1(200, 'POST', `/files?${at}`, { headers: octets, body: 'one' })
    same(await box1(200, 'GET', `/files?${at}`), 'one')
    await box1(404, 'GET', '/files?path=%2Fnope')
    await box1(400, 'GET', `/files?path=${encodeURIComponent(home)}`)
    await box1(401, 'GET', `/files?${at}&username=nobody-here`)
    await box1(200, 'POST', `/files?path=${encodeURIComponent(`${home}/two`)}`, { headers: octets, body: 'two' })
    await box1(200, 'POST', '/files/compose', { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ source_paths: [`${home}/one`, `${home}/two`], destination: `${home}/both` }) })
    same([await s.files.read('both'), await s.files.exists('one')], ['onetwo', false])
    await box1(404, 'POST', '/files/compose', { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ source_paths: [`${home}/none`], destination: `${home}/b` }) })
    same(wrong, [])
  })
}
