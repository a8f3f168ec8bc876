// Runs the files of checks/, or those named as arguments (like "files"), against the
// provider of the address file ADDRESS. TAP on stdout.
import { readdirSync } from 'node:fs'
import { runGroups } from './lib/tap.mjs'

const all = readdirSync(new URL('checks', import.meta.url))
  .filter((f) => f.endsWith('.mjs'))
  .map((f) => f.slice(0, -4))
const wanted = process.argv.slice(2)
const groups = []
for (const name of wanted.length ? wanted : all.sort())
  groups.push([name, (await import(`./checks/${name}.mjs`)).default])
process.exit((await runGroups(groups)) ? 0 : 1)
