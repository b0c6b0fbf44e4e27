/** Good bytes to begin from, and bad ones that found something once or might. Small on purpose. */

const deep = (open: string, close: string) => open.repeat(20_000) + close.repeat(20_000);

export const POSTS = [
  'plain words',
  '{"content":"x"}',
  '{"id":"m-1","content":"@dev go","to":["dev"],"delivery":"queue","author":{"name":"Zoë"},"sessionId":"s","replyTo":"m-0","meta":{"a":[1,{"b":null}]},"includeInContext":true,"isCollapsed":false}',
  '{"content":"\\ud83d\\ude00 \\u202e","meta":{"__proto__":{"polluted":1},"constructor":1}}',
  `{"content":"x","meta":{"a":${deep('[', ']')}}}`,
  `{"content":"x","meta":${deep('{"a":', '}').replace('{"a":}', '{}')}}`,
];

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const call = (index: number, id: string, name: string, text: string) =>
  chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: text } }] });

export const STREAMS = [
  `${chunk({ role: 'assistant', content: 'Gr' })}: keep-alive\n\n${chunk({ content: 'üße 👋' })}${chunk({}, 'stop')}data: [DONE]\n\n`,
  // Two calls whose pieces come in turns.
  `${call(0, 'a', 'read', '{"p":')}${call(1, 'b', 'write', '{"q"')}${call(0, '', '', '1}')}${call(1, '', '', ':[2]}')}${chunk({}, 'tool_calls')}data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\ndata: [DONE]\n\n`,
  `${chunk({ reasoning_content: 'hm' })}event: error\ndata: {"error":{"message":"busy","code":529}}\n\n`,
  '{"choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"text","text":"whole"}]},"finish_reason":"stop"}]}',
  '<html><body>502 Bad Gateway</body></html>',
  `data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":${deep('{"a":', '}').replace('{"a":}', '{}')}}}]}}]}\n\n`,
  `data: {"error":${deep('[', ']')}}\n\n`,
  deep('[', ']'),
];

export const CONFIGURATIONS = [
  'defaultAgent: dev\nlimits: { turnSeconds: 5 }\nphases:\n  ship: { description: go, next: [chat] }\n',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the configuration
  'models:\n  default: { provider: openai, baseURL: "http://127.0.0.1:1/v1", apiKey: "${KEY}", model: m, price: { inputPerMillion: 1, cachedInputPerMillion: 1, outputPerMillion: 1 } }\n',
  'tools:\n  mcpServers:\n    web: { url: "http://127.0.0.1:1/mcp" }\n  policy:\n    - { agent: dev, tool: shell, match: { command: "^npm$" }, allow: true }\npublishers: { default: { postsPerMinute: 5 } }\n',
  'a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c]\n',
  'limits: &l\n  again: *l\n  once: *l\n',
  '? [1, 2]\n: x\n',
  `limits: ${deep('[', ']')}`,
  deep('{a: ', '}'),
];

export const AGENTS = [
  '---\nname: Dev\ndescription: builds\nphases: [chat, execute]\nmodes: [agent]\nmodel: default\ntools: [recall, fs_read]\nruntime: local\ncontext: { contextMaxMessages: 3 }\n---\nYou build.\n',
  'No front matter at all.\n',
  '---\n---\n',
  '---\nname: Dev\n',
  `---\ntools: ${deep('[', ']')}\n---\nx\n`,
];

export const SCRIPTS = [
  'rules:\n  - when: { agent: pm, last: "/plan (.+)/i", n: 0, mode: agent }\n    reply: { text: "You want {{1}}.", tool_calls: [{ name: handoff, arguments: { to: dev, summary: "{{last}}" } }], delayMs: 1 }\n  - when: { tool: handoff }\n    reply: { error: { status: 429, message: busy } }\n',
  'rules: &r\n  - reply: { tool_calls: [{ name: a, arguments: { x: *r, y: *r } }] }\n',
  'rules:\n  - reply: { text: "{{agent}} {{conversation}} {{n}}" }\n',
  `rules: ${deep('[', ']')}`,
  `rules:\n  - reply: { tool_calls: [{ name: a, arguments: ${deep('{a: ', '}')} }] }\n`,
];

/** Bodies of requests to the gateway. */
export const BODIES = [
  '{"content":"hello","publisher":"alice","id":"m-1","to":["dev"],"delivery":"steer"}',
  '{"phase":"plan","reason":"ready"}',
  '{"approvalId":"a-1","answer":"result","result":"done"}',
  '{"title":"\\ud83d\\ude00","meta":{"__proto__":{"polluted":1}}}',
  `{"content":${deep('[', ']')}}`,
];

export const CHATS = [
  '{"model":"pm","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true},"user":"u"}',
  '{"model":"pm","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],"n":1,"tools":[],"response_format":{"type":"text"},"modalities":["text"]}',
  '{"model":"pm","messages":[{"role":"user","content":"one"},{"role":"assistant","content":null},{"role":"tool","content":{"a":[1]}},{"role":"user","content":"two"}],"temperature":2}',
  '{"model":"pm","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}}]}]}',
  '{"model":"pm","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERi0=","filename":"a.pdf"}},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}]},{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"image_url","image_url":"https://a.example/b.png"}]}]}',
  '{"model":"pm","messages":[{"role":"user","content":null}]}',
  `{"model":"pm","messages":[{"role":"system","content":${deep('[', ']')}},{"role":"user","content":"x"}]}`,
];

/** The part of a request line after the host. */
export const PATHS = [
  '/api/conversations/demo/entries?from=5&limit=2',
  '/api/conversations/demo/view?agent=pm&at=3',
  '/api/conversations/demo/messages',
  '/api/conversations?after=a&limit=2',
  '/api/approvals/a-1',
  '/api/conversations/%E4%BD%A0/events?from=1',
  '/v1/models',
  '/healthz',
];

export const HOSTS = ['127.0.0.1:8080', '[::1]:8080', 'localhost', 'console.example.org:443', 'http://a.b:1'];
