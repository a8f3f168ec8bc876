// What must be refused on both ports although key and token are right: requests that
// a web page could make a browser send, and heads and bodies that two readers could
// understand differently. Each case, were it taken, would leave a sandbox or a file.
import { api, controlPort, key, sandbox, trafficPort } from '../lib/bed.mjs'
import { ok, same } from '../lib/tap.mjs'
import { talk } from '../lib/raw.mjs'

// A good request, in parts that a case may bend. `n` names what it would leave.
const control = (n) => ({
  port: controlPort,
  line: 'POST /v2/sandboxes HTTP/1.1',
  host: `127.0.0.1:${controlPort}`,
  secret: ['X-API-Key', key],
  type: 'application/json',
  extra: [],
  body: JSON.stringify({ templateID: 'base', timeout: 60, metadata: { refused: String(n) } }),
})
const traffic = (s) => (n) => ({
  port: trafficPort,
  line: `POST /files?path=refused-${n} HTTP/1.1`,
  host: `127.0.0.1:${trafficPort}`,
  secret: ['X-Access-Token', s.envdAccessToken],
  type: 'application/octet-stream',
  extra: [`E2b-Sandbox-Id: ${s.sandboxId}`, 'E2b-Sandbox-Port: 49983'],
  body: 'taken',
})

function text(r) {
  const head = [
    r.line,
    ...(r.host === undefined ? [] : [`Host: ${r.host}`]),
    ...(r.secret ? [`${r.secret[0]}: ${r.secret[1]}`] : []),
    ...(r.type ? [`Content-Type: ${r.type}`] : []),
    ...r.extra,
    ...(r.framing ?? [`Content-Length: ${Buffer.byteLength(r.body)}`]),
    'Connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${r.sent ?? r.body}`
}

// --- what web pages can do --------------------------------------------------------
const hosts = (port) => [
  'evil.example', `evil.example:${port}`, `127.0.0.1.evil.example:${port}`, `localhost.evil.example:${port}`,
  '127.0.0.1', 'localhost', '127.0.0.1:80', 'localhost:1', `0.0.0.0:${port}`, `[::1]:${port}`, `[::ffff:127.0.0.1]:${port}`,
  `127.1:${port}`, `2130706433:${port}`, `0x7f.0.0.1:${port}`, `a@127.0.0.1:${port}`, `127.0.0.1:${port}:${port}`,
  `127.0.0.1:0${port}`, `127.0.0.1:${port + 65536}`, `127.0.0.1:${port}, evil.example`, `127.0.0.1:${port}/`, '', undefined,
]
const origins = (port) => [
  'http://evil.example', 'https://evil.example', 'null', `http://127.0.0.1:${port}`, `http://localhost:${port}`, '', 'file://',
  'chrome-extension://abcdefghijklmnop',
]
const webCases = (port) => [
  ...hosts(port).map((host) => [`Host ${host}`, (r) => ({ ...r, host })]),
  ['two Hosts', (r) => ({ ...r, extra: [...r.extra, `Host: ${r.host}`] })],
  ...origins(port).map((o) => [`Origin ${o}`, (r) => ({ ...r, extra: [...r.extra, `Origin: ${o}`] })]),
  ['origin in small letters', (r) => ({ ...r, extra: [...r.extra, 'origin: http://evil.example'] })],
  ...['OPTIONS', 'TRACE', 'CONNECT'].map((m) => [
    m,
    (r) => ({ ...r, line: r.line.replace('POST', m), extra: [...r.extra, 'Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: x-api-key'] }),
  ]),
  ['websocket', (r) => ({ ...r, line: r.line.replace('POST', 'GET'), extra: [...r.extra, 'Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='] })],
  ['upgrade to h2c', (r) => ({ ...r, extra: [...r.extra, 'Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABkAAQAAP__'] })],
  ['no secret', (r) => ({ ...r, secret: null })],
  ['an empty secret', (r) => ({ ...r, secret: [r.secret[0], ''] })],
  ['a secret too long', (r) => ({ ...r, secret: [r.secret[0], `${r.secret[1]}0`] })],
  ['a secret too short', (r) => ({ ...r, secret: [r.secret[0], r.secret[1].slice(0, -1)] })],
  ['the secret in the query', (r) => ({ ...r, secret: null, line: r.line.replace(' HTTP', `${r.line.includes('?') ? '&' : '?'}${r.secret[0]}=${r.secret[1]} HTTP`) })],
  ['the secret in a cookie', (r) => ({ ...r, secret: null, extra: [...r.extra, `Cookie: ${r.secret[0]}=${r.secret[1]}`] })],
  ['the secret as a bearer', (r) => ({ ...r, secret: ['Authorization', `Bearer ${r.secret[1]}`] })],
]
// A form can send these types without asking first.
const formCases = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain; x=application/json', '', 'text/json'].map(
  (type) => [`type ${type}`, (r) => ({ ...r, type })],
)

// --- what two readers could understand differently ----------------------------------
const line = (from, to) => (r) => ({ ...r, line: r.line.replace(from, to) })
const extra = (...lines) => (r) => ({ ...r, extra: [...r.extra, ...lines] })
const framing = (...lines) => (r) => ({ ...r, framing: lines })
const length = (value) => [`Content-Length '${value}'`, framing(`Content-Length: ${value}`)]
const coding = (value) => [`Transfer-Encoding '${value}'`, (r) => ({ ...r, framing: [`Transfer-Encoding: ${value}`], sent: chunk(r.body) + '0\r\n\r\n' })]
const chunk = (data) => `${Buffer.byteLength(data).toString(16)}\r\n${data}\r\n`
const chunked = (name, sent, half) => [`chunks: ${name}`, (r) => ({ ...r, framing: ['Transfer-Encoding: chunked'], sent: sent(r.body), half })]
const size = (b) => Buffer.byteLength(b).toString(16)
const whole = (name, bend) => [name, (r) => ({ ...r, bend })]
const headCases = [
  ['length beside chunks', (r) => ({ ...r, framing: [`Content-Length: ${r.body.length}`, 'Transfer-Encoding: chunked'], sent: chunk(r.body) + '0\r\n\r\n' })],
  ['chunks beside length', (r) => ({ ...r, framing: ['Transfer-Encoding: chunked', `Content-Length: ${r.body.length}`] })],
  ['length 0 beside chunks', (r) => ({ ...r, framing: ['Content-Length: 0', 'Transfer-Encoding: chunked'], sent: chunk(r.body) + '0\r\n\r\n' })],
  ['two lengths, the same', (r) => ({ ...r, framing: [`Content-Length: ${r.body.length}`, `Content-Length: ${r.body.length}`] })],
  ['two lengths', (r) => ({ ...r, framing: ['Content-Length: 0', `Content-Length: ${r.body.length}`] })],
  ...['+5', '-1', '0x10', '5, 5', '5 5', '', '99999999999999999999', '1e1', '5;', '٥', '1.0'].map(length),
  ...['identity', 'gzip, chunked', 'chunked, identity', 'xchunked', 'chunked;q=1', '\x0bchunked', 'chunked, chunked', '"chunked"', ''].map(coding),
  ['two Transfer-Encodings', (r) => ({ ...r, framing: ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], sent: chunk(r.body) + '0\r\n\r\n' })],
  ['chunks in HTTP/1.0', (r) => ({ ...line('1.1', '1.0')(r), framing: ['Transfer-Encoding: chunked'], sent: chunk(r.body) + '0\r\n\r\n' })],
  whole('line feeds alone', (t) => t.replaceAll('\r\n', '\n')),
  whole('one line feed alone', (t) => t.replace('\r\n', '\n')),
  whole('a line feed alone within', (t) => t.replace('\r\nConnection', '\nConnection')),
  whole('a carriage return alone', (t) => t.replace('\r\nHost', '\rHost')),
  whole('two carriage returns', (t) => t.replace('\r\nHost', '\r\r\nHost')),
  whole('a blank before the head', (t) => ` ${t}`),
  ['a zero byte', extra('X-A: a\0b')],
  ['a control byte', extra('X-A: a\x01b')],
  ['a folded line', extra('X-A: a', ' b')],
  whole('a folded first line', (t) => t.replace('\r\nHost', '\r\n Host')),
  ['a blank before the colon', (r) => ({ ...r, framing: [`Content-Length : ${r.body.length}`] })],
  ['a tab before the colon', extra('X-A\t: a')],
  ['a line without a colon', extra('X-A')],
  ['a line without a name', extra(': a')],
  ['a name of odd bytes', extra('X-\xe9: a')],
  ['a blank in a name', extra('X A: a')],
  ['two blanks in the first line', line(' HTTP', '  HTTP')],
  ['a tab in the first line', line(' HTTP', '\tHTTP')],
  ['no version', line(' HTTP/1.1', '')],
  ['HTTP/2.0', line('1.1', '2.0')],
  ['HTTP/1.2', line('1.1', '1.2')],
  ['HTTP/1.10', line('1.1', '1.10')],
  ['http/1.1', line('HTTP', 'http')],
  ['a blank after the version', line('1.1', '1.1 ')],
  ['a method of odd bytes', line('POST', 'P(ST')],
  ['a method in small letters', line('POST', 'post')],
  ['a method of 300 letters', line('POST', 'P'.repeat(300))],
  ['absolute target, another host', line(' /', ' http://evil.example/')],
  ['absolute target, this host', (r) => line(' /', ` http://${r.host}/`)(r)],
  ['target of an authority', (r) => ({ ...r, line: `CONNECT ${r.host} HTTP/1.1` })],
  ['target *', (r) => ({ ...r, line: 'OPTIONS * HTTP/1.1' })],
  ['target without a slash', line(' /', ' ')],
  ['a fragment in the target', line(' HTTP', '#f HTTP')],
  ['a blank in the target', line(' HTTP', ' x HTTP')],
  ['an odd byte in the target', line(' HTTP', '\xe9 HTTP')],
  ['a zero byte in the target', line(' HTTP', '\0 HTTP')],
  ['a target of 20 KB', (r) => line(' HTTP', `${r.line.includes('?') ? '&' : '?'}x=${'x'.repeat(20000)} HTTP`)(r)],
  ['a head of 70 KB', extra(`X-A: ${'x'.repeat(70000)}`)],
  ['200 headers', extra(...Array.from({ length: 200 }, (_, i) => `X-${i}: a`))],
  ['an unknown expectation', extra('Expect: 200-maybe')],
  ['the secret twice', (r) => extra(`${r.secret[0]}: ${r.secret[1]}`)(r)],
  ['two content types', (r) => extra(`Content-Type: ${r.type}`)(r)],
  ['HTTP/0.9', (r) => ({ ...r, bend: () => 'GET /\r\n\r\n' })],
]
const chunkCases = [
  ...['-1', '+5', '0x5', 'g', '', ' 5', 'fffffffffffffffff', '7fffffffffffffff'].map((s) => chunked(`size '${s}'`, (b) => `${s}\r\n${b}\r\n0\r\n\r\n`)),
  chunked('a blank after the size', (b) => `${size(b)} \r\n${b}\r\n0\r\n\r\n`),
  chunked('a line feed alone after the size', (b) => `${size(b)}\n${b}\r\n0\r\n\r\n`),
  chunked('more than it says', (b) => `${size(b)}\r\n${b}x\r\n0\r\n\r\n`),
  chunked('no line end after the data', (b) => `${size(b)}\r\n${b}0\r\n\r\n`),
  chunked('a line feed alone after the data', (b) => `${size(b)}\r\n${b}\n0\r\n\r\n`),
  chunked('a trailer that is none', (b) => `${chunk(b)}0\r\nHost evil.example\r\n\r\n`),
  chunked('a trailer without end', (b) => `${chunk(b)}0\r\nX-A: b\r\n`, true),
  chunked('four gigabytes', (b) => `ffffffff\r\n${b}`, true),
  chunked('no last one', (b) => chunk(b), true),
  chunked('no end of the last one', (b) => `${chunk(b)}0\r\n`, true),
  ['a body that ends too early', (r) => ({ ...r, framing: [`Content-Length: ${r.body.length + 5}`], half: true })],
]

// Cases that were taken: answered well, or followed by a second answer.
async function taken(good, cases, smuggled) {
  const bad = []
  await Promise.all(
    cases.map(async ([name, change], n) => {
      const r = change(good(n))
      const first = r.bend ? r.bend(text(r)) : text(r)
      const next = smuggled && !r.half ? text(good(`smuggled-${n}`)) : ''
      const got = await talk(r.port, first + next, {
        want: smuggled ? 2 : 1,
        half: r.half,
      })
      const status = got.answers[0]?.status ?? 0
      if (got.late) bad.push(`${name}: no end`)
      if (status !== 0 && status < 400) bad.push(`${name}: ${status}`)
      if (status >= 500 && status !== 501 && status !== 505) bad.push(`${name}: ${status}`)
      if (smuggled && got.answers.length > 1) bad.push(`${name}: what followed was answered`)
    }),
  )
  return bad
}

export default async function (t) {
  let s
  if (!(await t.step('a sandbox', async () => (s = await sandbox(t))))) return
  const planes = [
    ['control', control, controlPort, formCases],
    ['traffic', traffic(s), trafficPort, []],
  ]
  const none = async () => {
    same((await api('GET', '/v2/sandboxes')).json.filter((x) => x.metadata?.refused), [], 'sandboxes of refused requests')
    same((await s.files.list('.')).map((f) => f.name).filter((f) => f.startsWith('refused')), [], 'files of refused requests')
  }
  for (const [plane, good, port, more] of planes) {
    await t.step(`${plane}: the good request is taken`, async () => {
      const got = await talk(port, text(good('good')))
      ok([200, 201].includes(got.answers[0]?.status), JSON.stringify(got.answers))
      if (plane === 'control') await api('DELETE', `/sandboxes/${JSON.parse(got.answers[0].body).sandboxID}`)
      else await s.files.remove('refused-good')
    })
    const web = [...webCases(port), ...more]
    await t.step(`${plane}: ${web.length} requests a web page could cause, none taken`, async () => {
      same(await taken(good, web, false), [])
      await none()
    })
    const odd = [...headCases, ...chunkCases]
    await t.step(`${plane}: ${odd.length} odd heads and bodies, none taken`, async () => {
      same(await taken(good, odd, true), [])
      await none()
    })
  }
}
