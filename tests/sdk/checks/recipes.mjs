// Recipes: what cc-tui would send for a Dockerfile, against what the SDK itself would send.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { same } from '../lib/tap.mjs'
import { Template } from 'e2b'

const program = join(dirname(process.env.LOCAL_BIN), 'cc-tui')

// path: [text, mode], null for a folder, a string for a link
const folders = {
  links: { real: null, 'real/a.txt': ['one\n'], file: 'real/a.txt', folder: 'real', 'real/up': '../real' },
  modes: { 'run.sh': ['#!/bin/sh\n', 0o755], private: ['x', 0o600], set: ['y', 0o4755], shared: null, 'shared/empty': ['', 0o664] },
  names: { a: ['1'], é: ['2'], '日本.txt': ['3'], '\u{1F600}': ['4'], '\uE000': ['5'], 'two words': ['6'], 'x[1]': ['7'], '.hidden': null, '.hidden/.b': ['8'] },
  ignore: {
    node_modules: null, 'node_modules/m': null, 'node_modules/m/i.js': ['1'], 'a.log': ['2'], src: null,
    'src/b.log': ['3'], 'src/main.c': ['int x;\n'], 'src/c.tmp': ['5'], dist: null, 'dist/out': ['4'],
    '.dockerignore': ['# left out\nnode_modules\n*.log\n\ndist/**\n  **/*.tmp  \n'],
  },
  empty: { nothing: null, deep: null, 'deep/er': null, one: [''] },
}
const dockerfile = (copies) => `# syntax=docker/dockerfile:1
FROM debian:12 AS base
ARG VERSION=1.2
ARG EMPTY
ENV A=1 NAME="value" \\
    PATH=/opt/bin:$PATH
RUN apt-get update && \\
    # tools
    apt-get install -y   git curl && \\
    rm -rf /var/lib/apt/lists/*
${copies}
EXPOSE 8080
WORKDIR /app
USER node
CMD ["node", "server.js"]
`
const copies = {
  links: 'COPY . /app/\nCOPY real /r\nCOPY file folder /f/',
  modes: 'COPY . /app\nCOPY --chown=user:user run.sh shared ./',
  names: 'COPY . /app\nCOPY * /all/\nCOPY .hidden /h/',
  ignore: 'COPY . /app/\nADD src /src\nCOPY **/*.c /c/',
  empty: 'COPY . .\nCOPY nothing /n\nCOPY ./deep/../one /one',
}

export default async function (t) {
  const root = mkdtempSync(join(tmpdir(), 'sdk-recipes-'))
  t.atEnd(async () => rmSync(root, { recursive: true }))
  const ours = (...args) => JSON.parse(execFileSync(program, ['build', ...args, '--dry-run', '--json'], { stdio: ['ignore', 'pipe', 'ignore'] }))
  const theirs = async (template) => {
    const j = JSON.parse(await Template.toJSON(template, true))
    j.steps = j.steps.map(({ type, args, filesHash }) => ({ type, args, ...(filesHash && { filesHash }) }))
    delete j.force
    return j
  }
  const sorted = (o) => Object.fromEntries(Object.entries(o).sort())

  for (const [name, entries] of Object.entries(folders)) {
    const dir = join(root, name)
    mkdirSync(dir)
    for (const [path, what] of Object.entries(entries)) {
      const at = join(dir, path)
      if (what === null) mkdirSync(at)
      else if (typeof what === 'string') symlinkSync(what, at)
      else {
        writeFileSync(at, what[0])
        if (what[1]) chmodSync(at, what[1])
      }
    }
    writeFileSync(join(dir, 'Dockerfile'), dockerfile(copies[name]))
    await t.step(`the same steps and hashes: ${name}`, async () => {
      const template = Template({ fileContextPath: dir }).fromDockerfile(join(dir, 'Dockerfile'))
      same(sorted(ours(dir)), sorted(await theirs(template)))
    })
  }
  await t.step('the same steps from the short form', async () => {
    const dir = join(root, 'names')
    writeFileSync(join(dir, 'template.conf'), '[template]\nbase = node:22\nenv.A = 1\napt = git curl\nnpm = left-pad@1.3.0\nrun = echo hi\nroot = id\ncopy = a /app/\nuser = user\nworkdir = /app\nstart = node x\nready = sleep 3\n')
    const template = Template({ fileContextPath: dir }).fromImage('node:22').setEnvs({ A: '1' })
      .aptInstall(['git', 'curl']).npmInstall('left-pad@1.3.0', { g: true }).runCmd('echo hi').runCmd('id', { user: 'root' })
      .copy('a', '/app/').setUser('user').setWorkdir('/app').setStartCmd('node x', 'sleep 3')
    same(sorted(ours(join(dir, 'template.conf'))), sorted(await theirs(template)))
  })
  await t.step('what the SDK loses stays', async () => {
    const file = join(root, 'more')
    const steps = (text) => {
      writeFileSync(file, text)
      return ours(file).steps.filter((s) => s.type !== 'USER' && s.type !== 'WORKDIR').map((s) => [s.type, ...s.args])
    }
    same(steps('FROM d\nENV A="x y" B=a\\ b\nRUN echo "a   b" \'\\n\'\nRUN ["a", "b c"]\n'), [
      ['ENV', 'A', 'x y', 'B', 'a b'],
      ['RUN', 'echo "a   b" \'\\n\''],
      ['RUN', "a 'b c'"],
    ])
  })
}
