// A server of the Model Context Protocol on stdin and stdout: one JSON-RPC message in each line.
import { createInterface } from 'node:readline';

/** `tools`: by name, { description, arguments: a JSON Schema for each, run: (arguments) => text }. */
export async function serve(name, tools) {
  const answers = {
    initialize: ({ protocolVersion }) => ({
      protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name, version: '1.0.0' },
    }),
    ping: () => ({}),
    'tools/list': () => ({ tools: Object.entries(tools).map(describe) }),
    'tools/call': (call) => run(tools[call.name], call.arguments),
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params = {} } = JSON.parse(line);
    if (id === undefined) continue; // a notification
    const answer = answers[method];
    const message = answer
      ? { result: await answer(params) }
      : { error: { code: -32601, message: `unknown method ${method}` } };
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...message })}\n`);
  }
}

function describe([name, tool]) {
  const properties = tool.arguments;
  const inputSchema = { type: 'object', properties, required: Object.keys(properties) };
  return { name, description: tool.description, inputSchema };
}

/** A failure is a result, too: the agent reads it. */
async function run(tool, given) {
  try {
    return { content: [{ type: 'text', text: await tool.run(given) }] };
  } catch (error) {
    return { content: [{ type: 'text', text: error.message }], isError: true };
  }
}
