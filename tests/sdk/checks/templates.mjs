// Templates as the SDK builds them: steps, layers, cache, tags, and what fails.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { api, isolated } from '../lib/bed.mjs'
import { fails, ok, same, until } from '../lib/tap.mjs'
import { BuildError, Sandbox, Template, waitForFile } from 'e2b'

const PHASES = /^(CACHED )?\[(base|builder (\d+)\/(\d+)|resize-disk|finalize|optimize)\] /
// A step that makes something: ENV, WORKDIR and USER are mere words.
const isStep = (m) => /^(CACHED )?\[builder \d+\/\d+\] (RUN|COPY)/.test(m)

export default async function (t) {
  if (!isolated) return t.skip('templates', 'not isolated')
  const folder = mkdtempSync(join(tmpdir(), 'sdk-template-'))
  t.atEnd(async () => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'one.txt'), 'one\n')
  mkdirSync(join(folder, 'tree/deep'), { recursive: true })
  writeFileSync(join(folder, 'tree/deep/two.txt'), 'two\n')
  writeFileSync(join(folder, 'tree/run.sh'), '#!/bin/sh\necho ran\n', { mode: 0o755 })
  symlinkSync('deep/two.txt', join(folder, 'tree/link'))

  const build = async (template, name, opts = {}) => {
    const log = []
    const info = await Template.build(template, name, { onBuildLogs: (e) => log.push(e), ...opts })
    return { info, log: log.map((e) => e.message), entries: log }
  }
  const from = async (template) => {
    const s = await Sandbox.create(template, { timeoutMs: 120000 })
    t.atEnd(() => s.kill())
    return s
  }
  const out = async (s, command) => (await s.commands.run(command)).stdout

  const full = () =>
    Template({ fileContextPath: folder })
      .fromBaseImage()
      .setEnvs({ MINE: 'a b"c', OTHER: '2' })
      .runCmd('mkdir -p /opt/app && echo "made by $(id -un) with $MINE" > /opt/app/made', { user: 'root' })
      .copy('one.txt', '/opt/app/')
      .copy('tree', '/opt/app/tree', { user: 'user' })
      .setWorkdir('/opt/app')
      .runCmd(['pwd > ~/where', 'printf "#!/bin/sh\\necho tool\\n" > /usr/local/bin/my-tool', 'chmod 755 /usr/local/bin/my-tool'], { user: 'root' })
      .setUser('user')
      .runCmd('echo said; echo complained >&2; id -un > ~/who')
  let first
  if (!(await t.step('a build of all kinds of steps', async () => {
    first = await build(full(), 'suite-full')
    ok(first.info.templateId && first.info.buildId && first.info.name, JSON.stringify(first.info))
  }))) return

  await t.step('its log: phases in order, what steps said', async () => {
    const heads = first.log.filter((m) => PHASES.test(m) && !/\] \[(stdout|stderr)\]/.test(m)).map((m) => m.match(PHASES)[2])
    const steps = heads.filter((h) => h.startsWith('builder'))
    const n = Number(steps[0].split('/')[1])
    same([...new Set(steps)], Array.from({ length: n }, (_, i) => `builder ${i + 1}/${n}`))
    same([heads[0], heads.at(-1) === 'optimize' || heads.at(-1) === 'finalize'], ['base', true])
    ok(first.log.some((m) => /said/.test(m)) && first.log.some((m) => /complained/.test(m)), first.log.join('\n'))
  })
  await t.step('a sandbox of it: files, tool, environment, folder, user', async () => {
    const s = await from('suite-full')
    same(await out(s, 'cat /opt/app/made /opt/app/one.txt /opt/app/tree/deep/two.txt /opt/app/tree/link; /opt/app/tree/run.sh; my-tool'), 'made by root with a b"c\none\ntwo\ntwo\nran\ntool\n')
    same(await out(s, 'echo "$MINE $OTHER"; pwd; id -un; cat ~/who'), 'a b"c 2\n/opt/app\nuser\nuser\n')
    const i = await s.getInfo()
    same([i.templateId, i.name], [first.info.templateId, 'suite-full'])
    await s.files.write('/opt/app/tree/written', 'x')
    const again = await from(first.info.templateId)
    same(await again.files.exists('/opt/app/tree/written'), false)
  })
  await t.step('built again: every step from the cache', async () => {
    const second = await build(full(), 'suite-full')
    const steps = second.log.filter(isStep)
    ok(steps.length > 0 && steps.every((m) => m.startsWith('CACHED ')), steps.join('\n'))
    same(second.info.templateId, first.info.templateId)
    ok(second.info.buildId !== first.info.buildId, 'the same build')
  })
  await t.step('another file, or force: built anew from there', async () => {
    writeFileSync(join(folder, 'one.txt'), 'changed\n')
    const third = await build(full(), 'suite-full')
    const heads = third.log.filter(isStep)
    ok(heads[0].startsWith('CACHED ') && !heads.at(-1).startsWith('CACHED '), heads.join('\n'))
    same(await out(await from('suite-full'), 'cat /opt/app/one.txt'), 'changed\n')
    const forced = await build(Template().fromBaseImage().runCmd('date +%s%N > ~/when'), 'suite-when')
    const when = await out(await from('suite-when'), 'cat ~/when')
    await build(Template().fromBaseImage().runCmd('date +%s%N > ~/when'), 'suite-when', { skipCache: true })
    ok((await out(await from('suite-when'), 'cat ~/when')) !== when, 'it was cached')
    ok(forced.info.templateId, 'no id')
  })
  await t.step('a failing step: BuildError that names it', async () => {
    const e = await fails(build(Template().fromBaseImage().runCmd('true').runCmd('echo reason >&2; exit 3').runCmd('true'), 'suite-fails'), (e) => e instanceof BuildError, 'build')
    ok(/exit(ed)? .*3|status 3|code 3/.test(e.message), e.message)
    await fails(Sandbox.create('suite-fails'), () => true, 'a sandbox of it')
  })
  await t.step('its status: error, with step, message and last words', async () => {
    const info = await Template.buildInBackground(Template().fromBaseImage().runCmd('echo last words; exit 4'), 'suite-status')
    const st = await until(async () => {
      const st = await Template.getBuildStatus(info)
      return ['ready', 'error'].includes(st.status) && st
    }, () => 'an end')
    same([st.status, st.reason?.step], ['error', '1'])
    ok(st.reason.message, 'no message')
    ok([...st.logEntries, ...(st.reason.logEntries ?? [])].some((e) => /last words/.test(e.message)), JSON.stringify(st))
  })
  await t.step('on top of another template', async () => {
    await build(Template().fromTemplate('suite-full').runCmd('echo more > ~/more; my-tool >> ~/more'), 'suite-top')
    const s = await from('suite-top')
    same(await out(s, 'cat ~/more /opt/app/one.txt; echo $OTHER; pwd'), 'more\ntool\nchanged\n2\n/opt/app\n')
    await fails(build(Template().fromTemplate('no-such-template').runCmd('true'), 'suite-none'), () => true, 'none such')
  })
  await t.step('a foreign image: refused with what to do', async () => {
    const e = await fails(build(Template().fromImage('alpine:3.20').runCmd('true'), 'suite-foreign'), (e) => e instanceof BuildError, 'image')
    ok(/image/i.test(e.message) && /alpine/.test(e.message), e.message)
  })
  await t.step('apt-get: done, or refused with a sentence', async () => {
    const e = await fails(build(Template().fromBaseImage().aptInstall('hello'), 'suite-apt'), (e) => e instanceof BuildError, 'apt').catch((e) => {
      if (!/no error/.test(e.message)) throw e
    })
    ok(!e || e.message.length > 40, e?.message)
  })
  await t.step('start and ready command', async () => {
    await build(Template().fromBaseImage().setStartCmd('echo started > ~/started; exec sleep 1000', waitForFile('/home/user/started')), 'suite-start')
    const s = await from('suite-start')
    same(await s.files.read('started'), 'started\n')
    ok((await s.commands.run('cat /proc/[0-9]*/cmdline | tr "\\0" " "')).stdout.includes('sleep 1000'), 'it does not run')
  })
  await t.step('names: exists, aliases, list', async () => {
    same([await Template.exists('suite-full'), await Template.exists('no-such-template')], [true, false])
    same((await api('GET', '/templates/aliases/suite-full')).json.templateID, first.info.templateId)
    const list = (await api('GET', '/templates')).json
    const row = list.find((x) => x.templateID === first.info.templateId)
    ok(row?.aliases.includes('suite-full') && row.buildStatus === 'ready', JSON.stringify(row))
    ok(list.some((x) => x.aliases.includes('base')), 'no base')
    const one = (await api('GET', `/templates/${first.info.templateId}`)).json
    ok(one.builds.some((b) => b.buildID === first.info.buildId && b.status === 'ready'), JSON.stringify(one))
  })
  await t.step('tags: given at the build, assigned, listed, removed', async () => {
    const { info } = await build(Template().fromBaseImage().runCmd('echo v1 > ~/v'), 'suite-tags:v1')
    await build(Template().fromBaseImage().runCmd('echo v2 > ~/v'), 'suite-tags', { tags: ['v2', 'latest'] })
    same(await out(await from('suite-tags:v1'), 'cat ~/v'), 'v1\n')
    same(await out(await from('suite-tags:latest'), 'cat ~/v'), 'v2\n')
    same((await Template.assignTags('suite-tags:v1', ['stable'])).tags.some((x) => /stable/.test(x)), true)
    same(await out(await from('suite-tags:stable'), 'cat ~/v'), 'v1\n')
    const tags = (await Template.getTags(info.templateId)).map((x) => x.tag)
    for (const tag of ['v1', 'v2', 'latest', 'stable']) ok(tags.includes(tag), `${tag} in ${tags}`)
    await Template.removeTags('suite-tags', ['stable'])
    await fails(Sandbox.create('suite-tags:stable'), () => true, 'a removed tag')
  })
  await t.step('two builds at once', async () => {
    const two = ['suite-a', 'suite-b'].map((n) => build(Template().fromBaseImage().runCmd(`echo ${n} > ~/n`), n))
    await Promise.all(two)
    same(await Promise.all(['suite-a', 'suite-b'].map(async (n) => out(await from(n), 'cat ~/n'))), ['suite-a\n', 'suite-b\n'])
  })
  await t.step('a build id that is not there: 400; a started build: 400', async () => {
    const { templateId, buildId } = first.info
    same((await api('GET', `/templates/${templateId}/builds/00000000-0000-4000-8000-000000000000/status`)).status, 400)
    same((await api('POST', `/v2/templates/${templateId}/builds/${buildId}`, { fromImage: 'e2bdev/base', steps: [] })).status, 400)
    same((await api('GET', `/templates/${templateId}/files/not-a-hash`)).status, 400)
  })
  await t.step('delete: refused while a sandbox lives of it', async () => {
    const { info } = await build(Template().fromBaseImage().runCmd('true'), 'suite-gone')
    const s = await from('suite-gone')
    same((await api('DELETE', `/templates/${info.templateId}`)).status, 400)
    await s.kill()
    same((await api('DELETE', `/templates/${info.templateId}`)).status, 204)
    same((await api('DELETE', `/templates/${info.templateId}`)).status, 404)
    same(await Template.exists('suite-gone'), false)
  })
}
