/**
 * An MCP server on standard streams for agents that take none over HTTP: it forwards each line to the loopback endpoint, and the answer back.
 * A program for `node -e`, so that it needs no file of this package. It waits as long as a tool does, which `fetch` would not.
 */
export const BRIDGE = `
const { request } = require('node:http');
const { env, stdin, stdout } = process;
const { PARLEY_TOOLS_URL: url, PARLEY_TOOLS_TOKEN: token } = env;
const headers = {
  authorization: 'Bearer ' + token,
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
};
const say = (text) => stdout.write(text + '\\n');
function forward(line) {
  let id;
  const fail = (why, code = -32603) => {
    if (id !== undefined) say(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: why } }));
  };
  try {
    id = JSON.parse(line).id;
  } catch {
    id = null;
    return fail('this line is no JSON', -32700);
  }
  const sent = request(url, { method: 'POST', headers }, (response) => {
    const isStream = String(response.headers['content-type']).includes('event-stream');
    let text = '';
    require('node:readline')
      .createInterface({ input: response })
      .on('error', () => {}) // it broke off: not complete
      .on('line', (one) => {
        if (isStream && !one.startsWith('data: {')) return;
        text = isStream ? one.slice(6) : text + one;
        if (isStream) say(text);
      });
    response.on('close', () => {
      if (!response.complete) fail('Parley does not answer: the connection broke off');
      else if (response.statusCode >= 300 || (id !== undefined && text === '')) fail('Parley answered HTTP ' + response.statusCode);
      else if (text !== '' && !isStream) say(text);
    });
  });
  sent.on('error', (error) => fail('Parley does not answer: ' + error.message));
  sent.end(line);
}
require('node:readline')
  .createInterface({ input: stdin })
  .on('line', (line) => void (line.trim() === '' || forward(line)))
  .on('close', () => process.exit(0));
`;
