// What is reached by an address alone: signed files that name no sandbox, ports
// that need a token.
import { envd, homeOf, sandbox } from '../lib/bed.mjs'
import { same, until } from '../lib/tap.mjs'
import { Sandbox } from 'e2b'

const server = `exec perl -MIO::Socket::INET -e '
  my $l = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 0, Listen => 5) or die;
  $| = 1; print $l->sockport, "\\n";
  while (my $c = $l->accept) {
    my $host = "";
    while (<$c>) { $host = $1 if /^host: (\\S+)/i; last if /^\\r\\n$/ }
    print $c "HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\nhost $host"; close $c }'`

async function serve(s) {
  const h = await s.commands.run(server, { background: true, timeoutMs: 0 })
  return until(() => Number(h.stdout), () => `a port: ${h.stderr}`)
}

export default async function (t) {
  let a
  let b
  let home
  if (!(await t.step('two sandboxes', async () => {
    a = await sandbox(t)
    b = await sandbox(t)
    home = await homeOf(a)
  }))) return

  await t.step('signed addresses as the SDK makes them, without any header', async () => {
    for (const s of [a, b]) {
      const at = `${await homeOf(s)}/signed`
      const form = new FormData()
      form.append('file', new Blob([`of ${s.sandboxId}`]), 'signed')
      const up = await fetch(await s.uploadUrl(at, { useSignatureExpiration: 60 }), { method: 'POST', body: form })
      same([up.status, await s.files.read(at)], [200, `of ${s.sandboxId}`])
    }
    for (const s of [a, b]) {
      const down = await fetch(await s.downloadUrl(`${await homeOf(s)}/signed`))
      same([down.status, await down.text()], [200, `of ${s.sandboxId}`])
    }
    const url = await a.downloadUrl(`${home}/signed`)
    same((await fetch(url.replace('signature=v1_', 'signature=v1_A'))).status, 400)
    same((await fetch(url, { headers: { 'E2b-Sandbox-Id': b.sandboxId } })).status, 401)
  })
  await t.step('a port without a token, and one that needs it', async () => {
    same([200, null], [(await envd(a, '/', {}, await serve(a))).status, a.trafficAccessToken ?? null])
    const s = await sandbox(t, { network: { allowPublicTraffic: false } })
    const port = await serve(s)
    const ask = async (token) =>
      (await envd(s, '/', { headers: token === undefined ? {} : { 'e2b-traffic-access-token': token } }, port)).status
    same(typeof s.trafficAccessToken, 'string')
    same([await ask(), await ask('x'), await ask(s.trafficAccessToken)], [403, 403, 200])
    const again = await Sandbox.connect(s.sandboxId)
    same(again.trafficAccessToken, s.trafficAccessToken)
  })
  await t.step('the Host that a program sees', async () => {
    const s = await sandbox(t, { network: { maskRequestHost: 'app.local:${PORT}' } })
    const port = await serve(s)
    same(await (await envd(s, '/', {}, port)).text(), `host app.local:${port}`)
  })
}
