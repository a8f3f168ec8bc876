// Requests as they were captured from the SDK and the CLI, byte for byte on the wire,
// and their answers held against E2B's documents (../fixtures/spec).
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { controlPort, isolated, key, trafficPort } from '../lib/bed.mjs'
import { ok, same, until } from '../lib/tap.mjs'
import { box, checkControl, checkEntry, checkEvents } from '../lib/openapi.mjs'
import { envelope, frames, talk } from '../lib/raw.mjs'
import { connect } from 'node:net'

const fixture = readFileSync(new URL('../../fixtures/requests.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((l) => JSON.parse(l))

// {name} becomes its value; a string that is nothing but "{pid}" becomes a number.
function fill(node, values) {
  if (typeof node === 'string') {
    const whole = node.match(/^\{(pid)\}$/)
    return whole ? values[whole[1]] : node.replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all)
  }
  if (Array.isArray(node)) return node.map((x) => fill(x, values))
  if (node && typeof node === 'object') return Object.fromEntries(Object.entries(node).map(([k, v]) => [k, fill(v, values)]))
  return node
}

function bytesOf(r, values) {
  const port = r.plane === 'api' ? controlPort : trafficPort
  let body = null
  if (r.json !== undefined) body = Buffer.from(JSON.stringify(fill(r.json, values)))
  else if (r.frames) body = Buffer.concat(r.frames.map((m) => envelope(fill(m, values))))
  else if (r.text !== undefined) body = Buffer.from(r.text)
  else if (r.gzip !== undefined) body = gzipSync(r.gzip)
  const headers = Object.entries(fill(r.headers, values)).map(([k, v]) => `${k}: ${v}`)
  const head = [`${r.method} ${fill(r.path, values)} HTTP/1.1`, `host: 127.0.0.1:${port}`, 'connection: keep-alive', ...headers, 'accept: */*', 'accept-language: *', 'sec-fetch-mode: cors', 'accept-encoding: gzip, deflate']
  if (body) head.push(r.chunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`)
  const sent = body && r.chunked ? Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]) : (body ?? Buffer.alloc(0))
  return { port, all: Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), sent]) }
}

// What is wrong with the shape of an answer.
function wrongOf(r, path, answer) {
  const type = answer.headers['content-type'] ?? ''
  const text = answer.body.toString()
  if (r.plane === 'api') {
    if ((answer.status === 202 || answer.status === 200) && !text && answer.headers['content-length'] !== '0') return ['an empty answer without "Content-Length: 0"']
    return checkControl(r.method, path, { status: answer.status, json: text ? JSON.parse(text) : undefined })
  }
  if (r.frames && answer.status === 200) {
    if (type !== 'application/connect+json') return [`type ${type}`]
    return /WatchDir/.test(path) ? [] : checkEvents(frames(answer.body))
  }
  const json = /^application\/json/.test(type) ? JSON.parse(text) : undefined
  if (answer.status >= 400) {
    // the proxy, the gate and /files say the status as a number, Connect says a word
    const plain = [401, 404, 502].includes(answer.status) || /^\/files(\?|$)/.test(path)
    const good = typeof json?.message === 'string' && ((plain && json.code === answer.status) || typeof json.code === 'string')
    return good ? [] : [`error ${text}`]
  }
  if (/^\/files(\?|$)/.test(path)) return r.method === 'POST' ? box.check('POST', '/files', { status: 200, json }) : []
  if (json?.entry) return checkEntry(json.entry)
  if (json?.entries) return json.entries.flatMap(checkEntry)
  return []
}

export default async function (t) {
  const values = { key }
  const groups = [...new Set(fixture.map((r) => r.group))]
  for (const group of groups) {
    const list = fixture.filter((r) => r.group === group)
    if (group === 'templates' && !isolated) {
      t.skip(`${list.length} requests: ${group}`, 'not isolated')
      continue
    }
    await t.step(`${list.length} requests: ${group}`, async () => {
      const wrong = []
      for (const r of list) {
        const { port, all } = bytesOf(r, values)
        const path = fill(r.path, values)
        if (r.hold) {
          await hold(t, r, port, all, values)
          continue
        }
        const answer = await until(async () => {
          const { answers } = await talk(port, [all])
          ok(answers[0], `${r.name}: no answer`)
          const building = /\/status/.test(path) && /"status":"(waiting|building)"/.test(answers[0].body)
          return !building && answers[0]
        }, () => `${r.name}: an end`)
        if (answer.status !== r.want) wrong.push(`${r.name}: ${r.method} ${path}: ${answer.status} ${answer.body}, not ${r.want}`)
        else wrong.push(...wrongOf(r, path, answer).map((w) => `${r.name}: ${r.method} ${path}: ${w}`))
        for (const [name, field] of Object.entries(r.save ?? {}))
          values[name] = answer.headers[field] ?? (answer.body.length ? JSON.parse(answer.body)[field] : undefined)
      }
      same(wrong, [])
    })
  }
}

// A stream that stays open while the next requests are sent; its pid is kept.
async function hold(t, r, port, all, values) {
  const socket = connect({ port, host: '127.0.0.1' })
  t.atEnd(async () => socket.destroy())
  let text = ''
  socket.on('data', (d) => (text += d.toString('latin1')))
  socket.on('error', () => {})
  socket.write(all)
  const found = await until(() => text.match(r.hold === 'pid' ? /"pid":(\d+)/ : /"start":\{\}/), () => `${r.name}: a start in ${text}`)
  if (r.hold === 'pid') values.pid = Number(found[1])
}
