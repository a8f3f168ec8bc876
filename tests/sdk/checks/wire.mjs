// The wire below the SDK: chunked bodies, pipelining, slow and split requests, and
// Connect's envelopes, good and bad.
import { api, controlPort, envd, key, rpc, sandbox, trafficPort } from '../lib/bed.mjs'
import { fails, ok, pause, same, until } from '../lib/tap.mjs'
import { envelope, frames, request, talk } from '../lib/raw.mjs'

const chunk = (data) => `${data.length.toString(16)}\r\n${data}\r\n`

export default async function (t) {
  let s
  if (!(await t.step('a sandbox', async () => (s = await sandbox(t))))) return
  const apiHead = (line, ...more) => request(line, [`Host: 127.0.0.1:${controlPort}`, `X-API-Key: ${key}`, ...more])
  const boxHeaders = (...more) => [
    `Host: 127.0.0.1:${trafficPort}`,
    `E2b-Sandbox-Id: ${s.sandboxId}`,
    'E2b-Sandbox-Port: 49983',
    `X-Access-Token: ${s.envdAccessToken}`,
    ...more,
  ]
  const boxHead = (line, ...more) => request(line, boxHeaders(...more))

  // --- bodies ---------------------------------------------------------------------
  const body = JSON.stringify({ timeout: 300 })
  const timeout = `POST /sandboxes/${s.sandboxId}/timeout HTTP/1.1`
  const asChunks = ['Content-Type: application/json', 'Transfer-Encoding: chunked']
  await t.step('control: chunks of any size', async () => {
    for (const sent of [
      chunk(body) + '0\r\n\r\n',
      [...body].map(chunk).join('') + '0\r\n\r\n',
      `00000${chunk(body)}000\r\n\r\n`,
      chunk(body.padEnd(0x1a)).replace('1a', '1A') + '0\r\n\r\n',
    ]) {
      const { answers } = await talk(controlPort, apiHead(timeout, ...asChunks) + sent)
      same(answers[0]?.status, 204, sent)
    }
  })
  await t.step('control: extensions and trailers are read over', async () => {
    const trailed = `${body.length.toString(16)};a=b;c="d"\r\n${body}\r\n0;x\r\nX-A: b\r\nX-API-Key: ${key}\r\nContent-Length: 1\r\n\r\n`
    const { answers } = await talk(controlPort, apiHead(timeout, ...asChunks) + trailed + apiHead('GET /sandboxes/none HTTP/1.1'), { want: 2 })
    same(answers.map((a) => a.status), [204, 404])
    const keyless = request(timeout, [`Host: 127.0.0.1:${controlPort}`, ...asChunks]) + trailed
    same((await talk(controlPort, keyless)).answers[0]?.status, 401, 'a key in the trailer')
  })
  await t.step('control: a request in small pieces', async () => {
    const whole = apiHead(timeout, ...asChunks) + [...body].map(chunk).join('') + '0\r\n\r\n'
    const { answers } = await talk(controlPort, whole.match(/[^]{1,9}/g), { slow: 1 })
    same(answers[0]?.status, 204)
  })
  await t.step('control: a body after "100 Continue"', async () => {
    const { answers } = await talk(controlPort, [apiHead(timeout, 'Content-Type: application/json', `Content-Length: ${body.length}`, 'Expect: 100-continue'), body], { slow: 20 })
    same(answers[0]?.status, 204)
  })
  await t.step('control: a body that is too large: 413 or closed, at once', async () => {
    const { answers } = await talk(controlPort, apiHead(timeout, 'Content-Type: application/json', 'Content-Length: 5000000000'))
    same(answers[0]?.status, 413)
  })
  await t.step('control: 50 requests in one go, answered in order', async () => {
    const ask = (i) => apiHead(`GET /${i % 2 ? `sandboxes/${s.sandboxId}` : 'no-such-thing'} HTTP/1.1`)
    const { answers } = await talk(controlPort, Array.from({ length: 50 }, (_, i) => ask(i)).join(''), { want: 50 })
    same(answers.map((a) => a.status), Array.from({ length: 50 }, (_, i) => (i % 2 ? 200 : 404)))
  })
  await t.step('control: HTTP/1.0 and "Connection: close" close', async () => {
    const old = await talk(controlPort, apiHead('GET /v2/sandboxes HTTP/1.0'), { want: 2 })
    same([old.answers[0]?.status, old.closed], [200, true])
    const close = await talk(controlPort, apiHead('GET /v2/sandboxes HTTP/1.1', 'Connection: close'), { want: 2 })
    same([close.answers[0]?.status, close.closed, close.answers[0].headers.connection], [200, true, 'close'])
  })
  await t.step('control: paths and methods that are not there: an error with its code', async () => {
    for (const [method, path] of [['GET', '/'], ['GET', '/v2/sandboxes/x/y/z'], ['PATCH', '/v2/sandboxes'], ['PUT', `/sandboxes/${s.sandboxId}`], ['GET', '/%2e%2e/etc/passwd'], ['DELETE', '/sandboxes'], ['GET', '/sandboxes/%00']]) {
      const a = await api(method, path)
      ok([400, 404, 405].includes(a.status) && a.json?.code === a.status && a.json.message, `${method} ${path}: ${a.status} ${a.text}`)
    }
  })
  await t.step('control: JSON that is none', async () => {
    for (const bad of ['', '{', '[]', '"x"', 'null', '{"timeout":}', '{"timeout":1}x', '{"timeout":1e999}', `${'['.repeat(5000)}`, '{"timeout":"60"}', '\xff'])
      same((await talk(controlPort, apiHead(timeout, 'Content-Type: application/json', `Content-Length: ${bad.length}`) + bad)).answers[0]?.status, 400, bad.slice(0, 20))
  })
  await t.step('control: JSON of another type: 415 or 400', async () => {
    const { answers } = await talk(controlPort, apiHead(timeout, 'Content-Type: text/plain', `Content-Length: ${body.length}`) + body)
    ok([400, 415].includes(answers[0]?.status), JSON.stringify(answers))
  })
  await t.step('traffic: an upload in odd chunks', async () => {
    const data = 'x'.repeat(100000)
    const pieces = []
    for (let at = 0, n = 1; at < data.length; at += n, n = (n * 7) % 4099 || 1) pieces.push(chunk(data.slice(at, at + n)))
    const { answers } = await talk(trafficPort, [boxHead('POST /files?path=odd HTTP/1.1', 'Content-Type: application/octet-stream', 'Transfer-Encoding: chunked'), ...pieces, '0\r\n\r\n'])
    same([answers[0]?.status, await s.files.read('odd')], [200, data])
  })
  await t.step('traffic: one that leaves in the middle of an upload leaves nothing', async () => {
    const { answers } = await talk(trafficPort, boxHead('POST /files?path=half HTTP/1.1', 'Content-Type: application/octet-stream', 'Content-Length: 100000') + 'x'.repeat(5000), { half: true, ms: 3000 })
    ok(!answers.length || answers[0].status >= 400, 'it was taken')
    same(await s.files.exists('half'), false)
  })
  await t.step('traffic: routing headers that lead nowhere', async () => {
    const ask = async (...headers) => (await talk(trafficPort, request('GET /envs HTTP/1.1', [`Host: 127.0.0.1:${trafficPort}`, ...headers]))).answers[0]
    const id = `E2b-Sandbox-Id: ${s.sandboxId}`
    same((await ask()).status >= 400, true)
    for (const port of ['0', '65536', '-1', 'x', '', '80 80']) ok((await ask(id, `E2b-Sandbox-Port: ${port}`)).status >= 400, `port ${port}`)
    const gone = await ask(`E2b-Sandbox-Id: i${'0'.repeat(20)}`, 'E2b-Sandbox-Port: 49983')
    const shape = JSON.parse(gone.body)
    same([gone.status, shape.code, shape.sandboxId, typeof shape.message], [502, 502, `i${'0'.repeat(20)}`, 'string'])
    for (const bad of ['../../x', 'I'.repeat(20), 'x y', `${s.sandboxId}/..`]) ok((await ask(`E2b-Sandbox-Id: ${bad}`, 'E2b-Sandbox-Port: 49983')).status >= 400, bad)
  })
  await t.step("traffic: the orchestrator's paths are nobody's", async () => {
    for (const path of ['/init', '/freeze', '/unfreeze', '/collapse', '/fsfreeze', '/upgrade'])
      ok((await envd(s, path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' })).status >= 400, path)
  })

  // --- envelopes ------------------------------------------------------------------
  const stream = ['Content-Type: application/connect+json', 'Connect-Protocol-Version: 1']
  const start = (script) => ({ process: { cmd: '/bin/sh', args: ['-c', script] }, stdin: false })
  const post = (method, sent, headers = stream, more = {}) =>
    talk(trafficPort, [boxHead(`POST /${method} HTTP/1.1`, ...headers, `Content-Length: ${sent.length}`), sent], more)
  const run = async (sent, headers) => {
    const { answers } = await post('process.Process/Start', sent, headers)
    ok(answers[0], 'no answer')
    return { status: answers[0].status, type: answers[0].headers['content-type'], list: answers[0].status === 200 ? frames(answers[0].body) : [], body: answers[0].body.toString() }
  }
  await t.step('a stream: start, data, end, end of stream', async () => {
    const r = await run(envelope(start('printf "\\303\\251"')))
    same([r.status, r.type], [200, 'application/connect+json'])
    same(r.list.map(([flags]) => flags), [0, 0, 0, 2])
    const [first, data, end, last] = r.list.map(([, m]) => m)
    ok(first.event.start.pid > 0, JSON.stringify(first))
    same([data.event.data.stdout, end.event.end.exited, end.event.end.exitCode ?? 0, end.event.end.status, last], ['w6k=', true, 0, 'exit status 0', {}])
  })
  await t.step('exit status and signal, as the protocol says them', async () => {
    const end = async (script) => (await run(envelope(start(script)))).list.at(-2)[1].event.end
    same(await end('exit 3'), { exitCode: 3, exited: true, status: 'exit status 3', error: 'exit status 3' })
    same((await run(envelope({ process: { cmd: '/no/such' } }))).list.at(-2)[1].event.end.exitCode, 127)
    const { exited, ...killed } = await end('kill -9 $$')
    same([exited ?? false, killed], [false, { exitCode: -1, status: 'signal: killed', error: 'signal: killed' }])
  })
  const mark = start('touch ~/ran')
  const good = envelope(mark)
  const bad = [
    ['nothing', Buffer.alloc(0)],
    ['half a head', good.subarray(0, 3)],
    ['a head alone', good.subarray(0, 5)],
    ['less than it says', good.subarray(0, -2)],
    ['a length too large', envelope(mark, { length: good.length + 7 })],
    ['a length too small', envelope(mark, { length: 10 })],
    ['a length of 4 GB', envelope(mark, { length: 0xffffffff })],
    ['a length of 0', envelope(mark, { length: 0 })],
    ['two envelopes', Buffer.concat([good, good])],
    ['an envelope and a byte', Buffer.concat([good, Buffer.from([0])])],
    ['compressed', envelope(mark, { flags: 1 })],
    ['end of stream', envelope(mark, { flags: 2 })],
    ['all flags', envelope(mark, { flags: 0xff })],
    ['an unknown flag', envelope(mark, { flags: 4 })],
    ['no JSON', envelope('{"process"')],
    ['JSON and more', envelope(`${JSON.stringify(mark)}x`)],
    ['a list', envelope([mark])],
    ['a number', envelope('5')],
    ['null', envelope('null')],
    ['deep JSON', envelope('['.repeat(20000) + ']'.repeat(20000))],
    ['no process', envelope({})],
    ['a process without a command', envelope({ process: {} })],
    ['arguments of another type', envelope({ process: { cmd: '/bin/touch', args: 'ran' } })],
    ['a command of another type', envelope({ process: { cmd: ['/bin/touch'], args: ['ran'] } })],
    ['environment of another type', envelope({ process: { ...mark.process, envs: [1] } })],
    ['environment of no strings', envelope({ process: { ...mark.process, envs: { A: 1 } } })],
  ]
  const refused = (r) => (r.status === 200 ? r.list.length === 1 && r.list[0][0] === 2 && typeof r.list[0][1].error?.code === 'string' : r.status >= 400 && r.status < 500)
  await t.step(`${bad.length} bad messages: an error each, and nothing starts`, async () => {
    const wrong = []
    for (const [name, sent] of bad) {
      const r = await run(sent)
      if (!refused(r)) wrong.push(`${name}: ${r.status} ${r.body}`)
    }
    same(wrong, [])
    same(await s.files.exists('ran'), false)
  })
  await t.step('content types that are not spoken: 415', async () => {
    for (const type of ['application/connect+proto', 'application/proto', 'application/grpc', 'application/grpc-web+json', 'text/plain', 'application/x-www-form-urlencoded', ''])
      same((await run(good, [...(type ? [`Content-Type: ${type}`] : []), 'Connect-Protocol-Version: 1'])).status, 415, type)
    for (const type of ['application/json', 'application/connect+proto', 'text/plain'])
      ok((await run(good, [`Content-Type: ${type}`])).status !== 200, `stream as ${type}`)
    for (const type of ['application/proto', 'text/plain', 'application/connect+json'])
      same((await post('process.Process/List', Buffer.from('{}'), [`Content-Type: ${type}`])).answers[0].status, 415, `unary as ${type}`)
    same((await run(envelope(start('true')), ['Content-Type: application/connect+json; charset=utf-8'])).list.length, 3, 'a parameter of the type')
    same(await s.files.exists('ran'), false)
  })
  await t.step('Connect-Timeout-Ms: over, over at once, too long a number', async () => {
    const last = async (ms, script) => (await run(envelope(start(script)), [...stream, `Connect-Timeout-Ms: ${ms}`])).list.at(-1)
    const codes = []
    for (const [ms, script] of [['200', 'sleep 60'], ['0', 'sleep 60'], ['12345678901', 'true'], ['-1', 'true'], ['x', 'true']]) codes.push((await last(ms, script))?.[1]?.error?.code)
    same(codes, ['deadline_exceeded', 'deadline_exceeded', 'invalid_argument', 'invalid_argument', 'invalid_argument'])
  })
  await t.step('unknown fields are nothing, a missing version is nothing', async () => {
    same((await run(envelope({ ...start('true'), later: { a: [1] } }), [stream[0]])).list.length, 3)
  })
  await t.step('unknown methods and services: 404; GET: 405', async () => {
    for (const m of ['process.Process/Nope', 'process.process/Start', 'nope.Nope/Nope', 'process.Process/Start/', 'process.Process/'])
      same((await post(m, good)).answers[0].status, 404, m)
    ok([404, 405].includes((await envd(s, '/process.Process/List')).status), 'GET')
  })
  await t.step('a unary error: its status, its word', async () => {
    for (const [method, message, code, status] of [
      ['process.Process/SendSignal', { process: { pid: 99999 }, signal: 'SIGNAL_SIGKILL' }, 'not_found', 404],
      ['process.Process/SendInput', { process: { pid: 99999 }, input: { stdin: 'eA==' } }, 'not_found', 404],
      ['process.Process/Update', { process: { pid: 99999 }, pty: { size: { cols: 1, rows: 1 } } }, 'not_found', 404],
      ['filesystem.Filesystem/ListDir', { path: '/nope', depth: 1 }, 'not_found', 404],
      ['filesystem.Filesystem/ListDir', { path: '/etc/passwd', depth: 1 }, 'invalid_argument', 400],
      ['filesystem.Filesystem/Move', { source: 'nope', destination: 'nope2' }, 'not_found', 404],
    ]) {
      const e = await fails(rpc(s, method, message), () => true, method)
      same([e.code, e.status], [code, status], method)
    }
  })
  await t.step('keepalives of an idle stream', async () => {
    const sent = envelope(start('sleep 2.5'))
    const { answers } = await talk(trafficPort, [boxHead('POST /process.Process/Start HTTP/1.1', ...stream, 'Keepalive-Ping-Interval: 1', `Content-Length: ${sent.length}`), sent])
    const events = frames(answers[0].body).map(([, m]) => Object.keys(m.event ?? { over: 1 })[0])
    same([events[0], events.at(-2), events.at(-1)], ['start', 'end', 'over'])
    ok(events.filter((e) => e === 'keepalive').length >= 2, events.join())
  })
  await t.step('tags: named, listed, found again', async () => {
    const sent = envelope({ ...start('sleep 600'), tag: 'mine' })
    const first = talk(trafficPort, [boxHead('POST /process.Process/Start HTTP/1.1', ...stream, `Content-Length: ${sent.length}`), sent])
    const p = await until(async () => (await rpc(s, 'process.Process/List', {})).processes?.find((p) => p.tag === 'mine'), () => 'the tag in the list')
    await rpc(s, 'process.Process/SendSignal', { process: { tag: 'mine' }, signal: 'SIGNAL_SIGTERM' })
    const end = frames((await first).answers[0].body).at(-2)[1].event.end
    same([p.config.cmd, end.exitCode, end.status], ['/bin/sh', -1, 'signal: terminated'])
  })
  await t.step('what a stream sends when its client has gone kills nobody', async () => {
    const sent = envelope(start('echo $$ > pid; while :; do echo x; done'))
    await talk(trafficPort, [boxHead('POST /process.Process/Start HTTP/1.1', ...stream, `Content-Length: ${sent.length}`), sent], { ms: 100 })
    await pause(100)
    const pid = Number(await s.files.read('pid'))
    const p = (await s.commands.list()).find((p) => p.pid === pid)
    ok(p, 'it is gone')
    same(await s.commands.kill(pid), true)
  })
}
