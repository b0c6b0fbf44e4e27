import { createInterface } from 'node:readline';

/** An MCP server of an old revision. Before `initialize` it exits, or with the argument `mute` says nothing. */

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const RESULTS = {
  initialize: {
    protocolVersion: '2025-03-26',
    capabilities: { tools: {} },
    serverInfo: { name: 'old', version: '1' },
  },
  'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: 'echo' }] },
};

let isBegun = false;
for await (const line of createInterface(process.stdin)) {
  const { id, method } = JSON.parse(line);
  isBegun ||= method === 'initialize';
  if (!isBegun && process.argv[2] !== 'mute') process.exit(1);
  if (isBegun && id !== undefined) say({ id, result: RESULTS[method] ?? {} });
}
