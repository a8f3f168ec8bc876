// The provider under test, as a user's environment names it: the address file
// becomes the three variables that SDK and CLI read. Import this before 'e2b'.
import { readFileSync } from 'node:fs'

const address = JSON.parse(readFileSync(process.env.ADDRESS, 'utf8'))
export const key = address.apiKey
export const controlPort = address.controlPort
export const trafficPort = address.trafficPort
export const isolated = !address.unsafe
process.env.E2B_API_KEY = key
process.env.E2B_API_URL = `http://127.0.0.1:${controlPort}`
process.env.E2B_SANDBOX_URL = `http://127.0.0.1:${trafficPort}`
process.env.NO_UPDATE_NOTIFIER = '1'

const { Sandbox } = await import('e2b')

// A sandbox that ends with its group.
export async function sandbox(group, opts = {}) {
  const s = await Sandbox.create('base', { timeoutMs: 300000, ...opts })
  group.atEnd(() => s.kill())
  return s
}
// Without isolation there is no /home/user.
export async function homeOf(s) {
  return isolated ? '/home/user' : (await s.commands.run('printf %s "$HOME"')).stdout
}
// Without isolation a login shell takes the host's PATH.
export const demoAgent = isolated ? 'demo-agent' : `${process.env.LOCAL_BIN} demo-agent`

// The control plane without the SDK.
export async function api(method, path, body, headers = {}) {
  const answer = await fetch(`http://127.0.0.1:${controlPort}${path}`, {
    method,
    headers: {
      'X-API-Key': key,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text, json: text ? JSON.parse(text) : undefined }
}
// One call of a sandbox's envd without the SDK; `port` is a port in the sandbox.
export function envd(s, path, init = {}, port = 49983) {
  return fetch(`http://127.0.0.1:${trafficPort}${path}`, {
    ...init,
    headers: {
      'E2b-Sandbox-Id': s.sandboxId,
      'E2b-Sandbox-Port': String(port),
      ...(s.envdAccessToken && port === 49983 ? { 'X-Access-Token': s.envdAccessToken } : {}),
      ...init.headers,
    },
  })
}
// A unary Connect call: its message, or an error that carries the Connect code.
export async function rpc(s, method, message, headers = {}) {
  const answer = await envd(s, `/${method}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Connect-Protocol-Version': '1', ...headers },
    body: JSON.stringify(message),
  })
  const json = await answer.json()
  if (answer.ok) return json
  throw Object.assign(new Error(`${method}: ${json.message}`), { code: json.code, status: answer.status })
}
export const bytes = (text) => new TextEncoder().encode(text)
