// Answers against E2B's OpenAPI documents: required fields, types, enums, formats.
// Fields that a document does not name are allowed, as its clients allow them.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

const RANGES = { int32: 2 ** 31, uint32: 2 ** 32, int64: 2 ** 63, uint64: 2 ** 64 }
const FORMATS = {
  'date-time': (s) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(s) && !Number.isNaN(Date.parse(s)),
  uuid: (s) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(s),
}

export class Document {
  constructor(file) {
    this.doc = parse(readFileSync(new URL(`../../fixtures/spec/${file}`, import.meta.url), 'utf8'))
  }
  ref(node) {
    while (node?.$ref) node = node.$ref.slice(2).split('/').reduce((at, part) => at[part], this.doc)
    return node
  }
  // The operation of a method and a path; literal parts win over {parameters}.
  operation(method, path) {
    const parts = path.split('?')[0].split('/')
    const fits = Object.keys(this.doc.paths)
      .map((pattern) => [pattern, pattern.split('/')])
      .filter(([, p]) => p.length === parts.length && p.every((x, i) => x === parts[i] || x.startsWith('{')))
      .sort(([, a], [, b]) => a.filter((x) => x.startsWith('{')).length - b.filter((x) => x.startsWith('{')).length)
    const found = fits.map(([pattern]) => this.doc.paths[pattern][method.toLowerCase()]).find(Boolean)
    if (!found) throw new Error(`${method} ${path} is not documented`)
    return found
  }
  // What is wrong with an answer, as a list of sentences; [] when nothing is.
  check(method, path, { status, json }) {
    const operation = this.operation(method, path)
    const response = this.ref(operation.responses[status] ?? operation.responses.default)
    if (!response) {
      // the document leaves out errors that every route may give
      return status >= 400 ? this.schema({ $ref: '#/components/schemas/Error' }, json, 'error') : [`status ${status} is not documented`]
    }
    const schema = response.content?.['application/json']?.schema
    if (!schema) return json === undefined ? [] : ['a body where none is documented']
    return this.schema(schema, json, `${status}`)
  }
  named(name, value) {
    return this.schema({ $ref: `#/components/schemas/${name}` }, value, name)
  }
  schema(node, value, at) {
    node = this.ref(node)
    if (value === null) return node.nullable ? [] : [`${at} is null`]
    if (value === undefined) return [`${at} is missing`]
    const all = (node.allOf ?? []).flatMap((part) => this.schema(part, value, at))
    if (node.oneOf && !node.oneOf.some((part) => this.schema(part, value, at).length === 0)) all.push(`${at} is none of its kinds`)
    if (node.enum && !node.enum.includes(value)) all.push(`${at} is '${value}', not one of ${node.enum}`)
    const type = node.type ?? (node.properties || node.required ? 'object' : undefined)
    if (type) all.push(...(this[`is_${type}`]?.(node, value, at) ?? [`${at}: unknown type ${type}`]))
    return all
  }
  is_object(node, value, at) {
    if (typeof value !== 'object' || Array.isArray(value)) return [`${at} is no object`]
    const all = (node.required ?? []).filter((name) => !(name in value)).map((name) => `${at}.${name} is missing`)
    for (const [name, item] of Object.entries(value)) {
      const schema = node.properties?.[name] ?? (typeof node.additionalProperties === 'object' ? node.additionalProperties : null)
      if (schema) all.push(...this.schema(schema, item, `${at}.${name}`))
    }
    return all
  }
  is_array(node, value, at) {
    return Array.isArray(value) ? value.flatMap((item, i) => this.schema(node.items, item, `${at}[${i}]`)) : [`${at} is no list`]
  }
  is_string(node, value, at) {
    if (typeof value !== 'string') return [`${at} is no string`]
    if (node.pattern && !new RegExp(node.pattern).test(value)) return [`${at} '${value}' does not match ${node.pattern}`]
    return FORMATS[node.format]?.(value) === false ? [`${at} '${value}' is no ${node.format}`] : []
  }
  is_integer(node, value, at) {
    const all = this.is_number(node, value, at)
    if (!all.length && !Number.isInteger(value)) all.push(`${at} ${value} is no integer`)
    if (value >= (RANGES[node.format] ?? Infinity)) all.push(`${at} ${value} is too large for ${node.format}`)
    if (/^u/.test(node.format ?? '') && value < 0) all.push(`${at} ${value} is negative`)
    return all
  }
  is_number(node, value, at) {
    if (typeof value !== 'number') return [`${at} is no number`]
    if (value < (node.minimum ?? -Infinity) || value > (node.maximum ?? Infinity)) return [`${at} ${value} is out of bounds`]
    return []
  }
  is_boolean(node, value, at) {
    return typeof value === 'boolean' ? [] : [`${at} is no boolean`]
  }
}

// Routes that clients use and the document has under an older name.
const RENAMED = [
  [/^\/v2\/sandboxes$/, 'POST', '/sandboxes'],
  [/^\/v2\/sandboxes\/([^/]+)\/connect$/, 'POST', '/sandboxes/x/connect'],
]
export const control = new Document('openapi.yml')
export const box = new Document('envd.yaml')
export function checkControl(method, path, answer) {
  const known = RENAMED.find(([pattern, m]) => m === method && pattern.test(path.split('?')[0]))
  return control.check(method, known ? known[2] : path, answer)
}

// --- Connect's messages, which no OpenAPI document has --------------------------------
const kinds = {
  start: (v) => Number.isInteger(v.pid) && v.pid > 0,
  data: (v) => Object.keys(v).length === 1 && ['stdout', 'stderr', 'pty'].some((k) => /^[A-Za-z0-9+/]+={0,2}$/.test(v[k] ?? '')),
  end: (v) => typeof v.status === 'string' && Number.isInteger(v.exitCode ?? 0) && typeof (v.exited ?? false) === 'boolean',
  keepalive: (v) => Object.keys(v).length === 0,
}
// A stream of process events: start first, one end, an end of stream.
export function checkEvents(list) {
  const wrong = []
  const names = list.slice(0, -1).map(([flags, m]) => {
    const [name] = Object.keys(m.event ?? {})
    if (flags !== 0 || !kinds[name]?.(m.event[name])) wrong.push(`event ${JSON.stringify(m)}`)
    return name
  })
  const [flags, last] = list.at(-1) ?? []
  if (flags !== 2) wrong.push('no end of stream')
  else if (last.error) {
    if (typeof last.error.code !== 'string' || typeof last.error.message !== 'string') wrong.push(`error ${JSON.stringify(last)}`)
  } else if (names.at(-1) !== 'end' || names.filter((x) => x === 'end').length !== 1) wrong.push(`no end: ${names}`)
  if (names.length && (names[0] !== 'start' || names.filter((x) => x === 'start').length !== 1)) wrong.push(`no start first: ${names}`)
  return wrong
}
const entryTypes = ['FILE_TYPE_FILE', 'FILE_TYPE_DIRECTORY', 'FILE_TYPE_SYMLINK', 'FILE_TYPE_UNSPECIFIED']
export function checkEntry(e) {
  const good =
    e && typeof e.name === 'string' && e.path?.startsWith('/') && entryTypes.includes(e.type ?? entryTypes[3]) && /^\d+$/.test(e.size ?? '0') &&
    Number.isInteger(e.mode ?? 0) && /^[-a-zA-Z]+[-rwxstST]{9}$/.test(e.permissions) && typeof e.owner === 'string' && typeof e.group === 'string' && FORMATS['date-time'](e.modifiedTime)
  return good ? [] : [`entry ${JSON.stringify(e)}`]
}
