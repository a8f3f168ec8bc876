// A stand-in for the APIs of models, on loopback: Anthropic Messages, OpenAI Responses and
// OpenAI chat completions (as OpenRouter has them too), all streamed.
//
//   node model.mjs PORT-FILE LOG
//
// writes its port to PORT-FILE when it listens and one line of JSON to LOG for each request.
// The newest message of the user says what it does:
//   #tool CMD    calls the client's own tool for commands, then says that it is done
//   #words N     sends N words, one every 100 ms
//   #401 #429    answers so, always
//   #verdicts A,B  the n-th time that it is asked for a verdict: the n-th of them
//   anything     "answer N of <the message>", N = messages of the user in the conversation
// A key that ends in "bad" gets 401. Usage: 1000 tokens in, 100 of them cached, 10 out.
import fs from 'node:fs';
import http from 'node:http';

const [portFile, logFile] = process.argv.slice(2);
const IN = 1000, CACHED = 100, OUT = 10;
let seq = 0;
const id = (kind) => `${kind}_${String(++seq).padStart(6, '0')}`;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const textOf = (c) => typeof c === 'string' ? c
  : Array.isArray(c) ? c.map((b) => b.text || '').join('\n') : '';

// --- requests: each API's conversation as {role: user|assistant|result, text} ------------

const readers = {
  messages: (b) => ({
    tools: b.tools || [],
    turns: (b.messages || []).map((m) => {
      const kinds = Array.isArray(m.content) ? m.content.map((c) => c.type) : [];
      return { role: kinds.includes('tool_result') ? 'result' : m.role, text: textOf(m.content) };
    }),
  }),
  chat: (b) => ({
    tools: (b.tools || []).map((t) => t.function || t),
    turns: (b.messages || []).map((m) => ({
      role: m.role === 'tool' ? 'result' : m.role, text: textOf(m.content) })),
  }),
  responses: (b) => {
    const items = typeof b.input === 'string' ? [{ role: 'user', content: b.input }] : b.input || [];
    const flat = (l) => l.flatMap((t) => (Array.isArray(t.tools) ? flat(t.tools) : [t]));
    return {
      tools: flat([...(b.tools || []), ...items.flatMap((i) => (i.tools ? i.tools : []))]),
      turns: items.map((i) => ({
        role: /_call_output$/.test(i.type || '') ? 'result' : i.role || 'assistant',
        text: textOf(i.content) })),
    };
  },
};

// The clients put words of their own around and beside those of a person: a message of a
// person is one that has our mark "ask:" in it, what follows is the message.
function conversation({ turns }) {
  const asked = turns.filter((t) => t.role === 'user' && /\bask:/.test(t.text));
  const last = asked[asked.length - 1];
  const rest = last ? turns.slice(turns.indexOf(last) + 1) : [];
  return {
    n: asked.length,
    text: last ? last.text.replace(/[\s\S]*\bask:\s*/, '').split('\n')[0].trim() : '',
    results: rest.filter((t) => t.role === 'result').length,
    verdicts: turns.filter((t) => t.role === 'user' && /^VERDICT: FAIL$/m.test(t.text)).length,
  };
}

// --- what to do --------------------------------------------------------------------------

const SHELLS = ['Bash', 'bash', 'exec_command', 'shell_command', 'shell', 'local_shell',
  'run_shell_command'];

function call(tools, command) {
  const code = tools.find((t) => t.name === 'exec' && t.type === 'custom');
  const tool = SHELLS.map((n) => tools.find((t) => t.name === n)).find(Boolean);
  if (!tool && code) {
    const script = `text(JSON.stringify(await tools.exec_command(${JSON.stringify({ cmd: command })})));`;
    return { id: id('call'), name: 'exec', custom: script };
  }
  if (!tool) return null;
  const schema = tool.input_schema || tool.parameters || {};
  const has = schema.properties || {};
  const args = {};
  if (has.cmd) args.cmd = command;
  else args.command = has.command?.type === 'array' ? ['sh', '-c', command] : command;
  if (has.description) args.description = 'a command';
  return { id: id('call'), name: tool.name, args };
}

function plan(body, kind) {
  const said = readers[kind](body), c = conversation(said);
  const m = c.text.match(/^#(\w+)\s*(.*)/);
  if (!c.n) return { text: 'A title', side: true };
  if (m && /^(401|429)$/.test(m[1])) return { status: Number(m[1]), c };
  if (m?.[1] === 'verdicts')
    return { text: `I looked.\n\nVERDICT: ${m[2].split(',')[c.verdicts - 1]}`, c };
  if (m?.[1] === 'words')
    return { text: Array.from({ length: Number(m[2]) }, (_, i) => `w${i} `).join(''), slow: true, c };
  if (m?.[1] === 'tool' && !c.results) return { text: 'I run it.', call: call(said.tools, m[2]), c };
  if (m?.[1] === 'tool') return { text: `It ran, ${c.results} result.`, c };
  return { text: `answer ${c.n} of <${c.text}>`, c };
}

function refuse(res, status) {
  const message = { 401: 'invalid api key', 404: 'no such path', 429: 'too many requests' }[status];
  const type = { 401: 'authentication_error', 404: 'not_found_error', 429: 'rate_limit_error' }[status];
  res.writeHead(status, { 'content-type': 'application/json', 'retry-after': '1' });
  res.end(JSON.stringify({ type: 'error', error: { type, message, code: type } }));
}

// --- answers -------------------------------------------------------------------------------

function sse(res) {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  return (data, event) => res.write(`${event ? `event: ${event}\n` : ''}data: ${
    typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
}

async function pieces(res, p, send) {
  for (const word of p.text.match(/\S+\s*/g) || ['']) {
    if (res.destroyed) return false;
    send(word);
    if (p.slow) await sleep(100);
  }
  return true;
}

const writers = {
  async messages(res, body, p) {
    const send = sse(res), ev = (type, o) => send({ type, ...o }, type);
    ev('message_start', { message: { id: id('msg'), type: 'message', role: 'assistant',
      model: body.model, content: [], stop_reason: null, stop_sequence: null,
      usage: { input_tokens: IN - CACHED, cache_read_input_tokens: CACHED,
        cache_creation_input_tokens: 0, output_tokens: 1 } } });
    ev('content_block_start', { index: 0, content_block: { type: 'text', text: '' } });
    if (!await pieces(res, p, (text) =>
      ev('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }))) return;
    ev('content_block_stop', { index: 0 });
    if (p.call) {
      ev('content_block_start', { index: 1, content_block:
        { type: 'tool_use', id: p.call.id, name: p.call.name, input: {} } });
      ev('content_block_delta', { index: 1, delta:
        { type: 'input_json_delta', partial_json: JSON.stringify(p.call.args) } });
      ev('content_block_stop', { index: 1 });
    }
    ev('message_delta', { delta: { stop_reason: p.call ? 'tool_use' : 'end_turn', stop_sequence: null },
      usage: { output_tokens: OUT } });
    ev('message_stop', {});
    res.end();
  },

  async chat(res, body, p) {
    const send = sse(res), base = { id: id('chat'), object: 'chat.completion.chunk',
      created: 1700000000, model: body.model };
    const delta = (d, finish_reason = null) =>
      send({ ...base, choices: [{ index: 0, delta: d, finish_reason }] });
    delta({ role: 'assistant', content: '' });
    if (!await pieces(res, p, (content) => delta({ content }))) return;
    if (p.call)
      delta({ tool_calls: [{ index: 0, id: p.call.id, type: 'function',
        function: { name: p.call.name, arguments: JSON.stringify(p.call.args) } }] });
    delta({}, p.call ? 'tool_calls' : 'stop');
    send({ ...base, choices: [], usage: { prompt_tokens: IN, completion_tokens: OUT,
      total_tokens: IN + OUT, prompt_tokens_details: { cached_tokens: CACHED } } });
    send('[DONE]');
    res.end();
  },

  async responses(res, body, p) {
    const send = sse(res), output = [];
    let n = 0;
    const ev = (type, o) => send({ type, sequence_number: n++, ...o }, type);
    const response = { id: id('resp'), object: 'response', created_at: 1700000000,
      status: 'in_progress', model: body.model, output: [], usage: null, error: null };
    const item = { id: id('msg'), type: 'message', role: 'assistant', status: 'in_progress', content: [] };
    ev('response.created', { response });
    ev('response.output_item.added', { output_index: 0, item });
    ev('response.content_part.added', { item_id: item.id, output_index: 0, content_index: 0,
      part: { type: 'output_text', text: '', annotations: [] } });
    if (!await pieces(res, p, (delta) => ev('response.output_text.delta',
      { item_id: item.id, output_index: 0, content_index: 0, delta }))) return;
    output.push({ ...item, status: 'completed',
      content: [{ type: 'output_text', text: p.text, annotations: [] }] });
    ev('response.output_item.done', { output_index: 0, item: output[0] });
    if (p.call) {
      output.push(p.call.custom
        ? { id: id('ctc'), type: 'custom_tool_call', status: 'completed', call_id: p.call.id,
          name: p.call.name, input: p.call.custom }
        : { id: id('fc'), type: 'function_call', status: 'completed', call_id: p.call.id,
          name: p.call.name, arguments: JSON.stringify(p.call.args) });
      ev('response.output_item.added', { output_index: 1, item: output[1] });
      ev('response.output_item.done', { output_index: 1, item: output[1] });
    }
    ev('response.completed', { response: { ...response, status: 'completed', output,
      usage: { input_tokens: IN, input_tokens_details: { cached_tokens: CACHED },
        output_tokens: OUT, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: IN + OUT } } });
    res.end();
  },
};

// Without `stream` the answer is one object: titles and the like.
function whole(res, body, kind, p) {
  const usage = { input_tokens: IN, output_tokens: OUT, prompt_tokens: IN, completion_tokens: OUT };
  res.writeHead(200, { 'content-type': 'application/json' });
  res.end(JSON.stringify(kind === 'chat'
    ? { id: id('chat'), object: 'chat.completion', model: body.model, usage,
      choices: [{ index: 0, message: { role: 'assistant', content: p.text }, finish_reason: 'stop' }] }
    : { id: id('msg'), type: 'message', role: 'assistant', model: body.model, usage,
      stop_reason: 'end_turn', content: [{ type: 'text', text: p.text }] }));
}

async function serve(req, res, raw) {
  const path = req.url.split('?')[0];
  const kind = /\/messages$/.test(path) ? 'messages' : /\/chat\/completions$/.test(path) ? 'chat'
    : /\/responses$/.test(path) ? 'responses' : null;
  const key = req.headers['x-api-key'] || (req.headers.authorization || '').replace(/^Bearer /, '');
  let body = {};
  try { body = raw ? JSON.parse(raw) : {}; } catch { /* answered with 404 below */ }
  const p = kind && req.method === 'POST' ? plan(body, kind) : null;
  fs.appendFileSync(logFile, `${JSON.stringify({ method: req.method, path, model: body.model,
    key: key.split('-').pop(), asked: p?.c?.text, n: p?.c?.n, results: p?.c?.results })}\n`);
  if (req.method === 'GET' && /\/models$/.test(path)) {
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ object: 'list', data: [] }));
  } else if (!p) refuse(res, 404);
  else if (/bad$/.test(key) || !key) refuse(res, 401);
  else if (p.status) refuse(res, p.status);
  else if (!body.stream) whole(res, body, kind, p);
  else await writers[kind](res, body, p);
}

const server = http.createServer((req, res) => {
  const parts = [];
  req.on('data', (d) => parts.push(d));
  req.on('end', () => serve(req, res, Buffer.concat(parts).toString()).catch((e) => {
    fs.appendFileSync(logFile, `${JSON.stringify({ failed: String(e.stack) })}\n`);
    res.destroy();
  }));
});
server.listen(0, '127.0.0.1', () => {
  fs.writeFileSync(`${portFile}.new`, String(server.address().port));
  fs.renameSync(`${portFile}.new`, portFile);
});
