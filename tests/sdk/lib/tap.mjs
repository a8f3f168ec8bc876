// Checks as TAP lines. A group is a list of steps that follow each other, for they
// share a sandbox; groups run side by side.
import { isDeepStrictEqual } from 'node:util'
import { setTimeout as pause } from 'node:timers/promises'

const STEP_MS = 60000
const who = process.env.CHECK_AS ?? 'sdk'
let n = 0
let failed = 0

function say(good, name, error) {
  n++
  if (!good) failed++
  console.log(`${good ? 'ok' : 'not ok'} ${n} - ${who}: ${name}`)
  if (error) console.log(String(error.stack ?? error).replace(/^/gm, '# '))
}

class Group {
  constructor(name) {
    this.name = name
    this.ends = [] // what the group made and must not leave behind
  }
  // True when it passed: a group goes no further without its sandbox.
  async step(name, run) {
    let timer
    const late = new Promise((_, no) => {
      timer = setTimeout(() => no(new Error(`no end within ${STEP_MS / 1000} s`)), STEP_MS)
    })
    try {
      await Promise.race([run(), late])
      say(true, `${this.name}: ${name}`)
      return true
    } catch (error) {
      say(false, `${this.name}: ${name}`, error)
      return false
    } finally {
      clearTimeout(timer)
    }
  }
  skip(name, why) {
    n++
    console.log(`ok ${n} - ${who}: ${this.name}: ${name} # SKIP ${why}`)
  }
  atEnd(run) {
    this.ends.push(run)
  }
}

// Each of `groups` is [name, async function (group)].
export async function runGroups(groups) {
  await Promise.all(
    groups.map(async ([name, run]) => {
      const group = new Group(name)
      try {
        await run(group)
      } catch (error) {
        say(false, `${name}: it came to its end`, error)
      }
      for (const end of group.ends.reverse()) await end().catch(() => {})
    }),
  )
  console.log(`1..${n}`)
  return failed === 0
}

// --- judges -------------------------------------------------------------------

export function same(got, want, what = 'value') {
  if (!isDeepStrictEqual(got, want))
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}
export function ok(good, what) {
  if (!good) throw new Error(what)
}
// The error itself, for those who look closer.
export async function fails(promise, check, what) {
  let error
  try {
    await promise
  } catch (e) {
    error = e
  }
  if (!error) throw new Error(`${what}: no error`)
  if (!check(error)) throw new Error(`${what}: wrong error ${error.name}: ${error.message}`)
  return error
}
// Wait until `test` gives something true, and return that.
export async function until(test, what, ms = 20000) {
  const end = Date.now() + ms
  for (;;) {
    const got = await test()
    if (got) return got
    if (Date.now() > end) throw new Error(`not within ${ms / 1000} s: ${what()}`)
    await pause(20)
  }
}
export { pause }
