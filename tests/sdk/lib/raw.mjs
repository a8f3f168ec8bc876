// Bytes to a port and what comes back, for what no HTTP client would send.
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

const HEAD_END = Buffer.from('\r\n\r\n')

// The first answer in `buf`: { status, headers, body, rest }, or null when it is not whole.
// `over`: the peer has closed, which ends a body without a length.
function take(buf, over) {
  const at = buf.indexOf(HEAD_END)
  if (at < 0) return null
  const [first, ...lines] = buf.subarray(0, at).toString('latin1').split('\r\n')
  const status = Number(first.split(' ')[1])
  const headers = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  const rest = buf.subarray(at + 4)
  if (status === 204 || status === 304 || status < 200) return { status, headers, body: Buffer.alloc(0), rest }
  if (/chunked/.test(headers['transfer-encoding'] ?? '')) return takeChunks({ status, headers }, rest)
  if (headers['content-length'] !== undefined) {
    const len = Number(headers['content-length'])
    return rest.length < len ? null : { status, headers, body: rest.subarray(0, len), rest: rest.subarray(len) }
  }
  return over ? { status, headers, body: rest, rest: Buffer.alloc(0) } : null
}
function takeChunks(answer, buf) {
  const pieces = []
  for (let at = 0; ; ) {
    const line = buf.indexOf('\r\n', at)
    if (line < 0) return null
    const size = parseInt(buf.subarray(at, line).toString('latin1'), 16)
    const end = line + 2 + size + 2
    if (buf.length < end) return null
    pieces.push(buf.subarray(line + 2, line + 2 + size))
    if (size === 0) return { ...answer, body: Buffer.concat(pieces), rest: buf.subarray(end) }
    at = end
  }
}

// Send `pieces` (strings are Latin-1) and collect answers until `want` of them are there, the
// peer closes, or `ms` are over. `half`: say that nothing more will come. `slow`: ms between
// two pieces. The result: { answers, closed, late }.
export async function talk(port, pieces, { want = 1, ms = 10000, half = false, slow = 0 } = {}) {
  const socket = connect({ port, host: '127.0.0.1' })
  const answers = []
  let buf = Buffer.alloc(0)
  let closed = false
  let wake
  const done = new Promise((resolve) => (wake = resolve))
  const look = () => {
    for (let a; (a = take(buf, closed)); buf = a.rest) if (a.status >= 200) answers.push(a)
    if (closed || answers.length >= want) wake()
  }
  socket.on('data', (d) => {
    buf = Buffer.concat([buf, d])
    look()
  })
  const gone = () => {
    closed = true
    look()
  }
  socket.on('end', gone)
  socket.on('close', gone)
  socket.on('error', gone) // a reset after an answer is an answer
  for (const piece of [].concat(pieces)) {
    if (closed) break
    socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)
    if (slow) await pause(slow)
  }
  if (half) socket.end()
  const timer = setTimeout(wake, ms)
  await done
  clearTimeout(timer)
  socket.destroy()
  return { answers, closed, late: !closed && answers.length < want, left: buf.length }
}

// A request as text; header lines in order, no manners added.
export const request = (line, headers, body = '') => `${[line, ...headers].join('\r\n')}\r\n\r\n${body}`

// --- Connect envelopes ----------------------------------------------------------
export function envelope(message, { flags = 0, length } = {}) {
  const payload = Buffer.isBuffer(message) ? message : Buffer.from(typeof message === 'string' ? message : JSON.stringify(message))
  const head = Buffer.alloc(5)
  head[0] = flags
  head.writeUInt32BE(length ?? payload.length, 1)
  return Buffer.concat([head, payload])
}
// [[flags, message], ...]; throws when a frame is cut.
export function frames(body) {
  const list = []
  for (let at = 0; at < body.length; ) {
    const len = body.readUInt32BE(at + 1)
    if (at + 5 + len > body.length) throw new Error(`a frame is cut: ${body.subarray(at)}`)
    list.push([body[at], JSON.parse(body.subarray(at + 5, at + 5 + len).toString())])
    at += 5 + len
  }
  return list
}
