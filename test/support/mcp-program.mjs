import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

/**
 * An MCP server over standard streams that misbehaves on demand. `MARKS` names a file to which it writes, line by
 * line, what happened to it; `STUBBORN` makes it outlive its input and SIGTERM.
 */
const { MARKS, STUBBORN } = process.env;

function mark(line) {
  if (MARKS) appendFileSync(MARKS, `${line}\n`);
}

const text = (words) => ({ content: [{ type: 'text', text: words }] });
const server = new McpServer({ name: 'program', version: '1.0.0' });

server.registerTool('pid', { annotations: { readOnlyHint: true } }, () => text(String(process.pid)));
server.registerTool('surroundings', {}, () =>
  text(JSON.stringify({ directory: process.cwd(), env: process.env })),
);
server.registerTool('exit', {}, () => {
  console.error('out of paper');
  process.exit(3);
});
server.registerTool('hang', {}, ({ signal }) => {
  signal.addEventListener('abort', () => mark('cancelled'));
  mark('hanging');
  return new Promise(() => undefined);
});
server.registerTool('grow', {}, () => {
  server.registerTool('grown', {}, () => text('grown'));
  return text('done');
});
server.registerTool('chatter', {}, () => {
  process.stdout.write('this line is no message\n');
  return text('said');
});
server.registerTool('picture', { annotations: { readOnlyHint: true } }, () => ({
  content: [
    { type: 'image', data: Buffer.alloc(3_000_000).toString('base64'), mimeType: 'image/png' },
    { type: 'resource', resource: { uri: 'file:///big', blob: Buffer.alloc(1_500_000).toString('base64') } },
  ],
}));
/** The picture that the program was started with. */
server.registerTool('shot', { annotations: { readOnlyHint: true } }, () => {
  mark('shot');
  return { content: [{ type: 'image', data: process.argv[2], mimeType: 'image/png' }] };
});
/** Asks the person behind the client. */
server.registerTool('book', {}, async ({ _meta, sendNotification }) => {
  const params = { progressToken: _meta.progressToken, progress: 1, total: 2, message: 'asking' };
  await sendNotification({ method: 'notifications/progress', params });
  const properties = {
    day: { type: 'string', title: 'Day', description: 'In this week' },
    seats: { type: 'integer', minimum: 1, default: 2 },
    row: { type: 'string', enum: ['front', 'back'] },
    window: { type: 'boolean' },
    note: { type: 'string' },
  };
  const form = { message: 'Which day?', requestedSchema: { type: 'object', properties, required: ['day'] } };
  return text(JSON.stringify(await server.server.elicitInput(form, { timeout: 600_000 })));
});
/** Asks for a note, cancels that, and asks the same of another form. */
server.registerTool('sly', {}, async () => {
  const form = (properties) => ({ message: 'Is it so?', requestedSchema: { type: 'object', properties } });
  const options = { timeout: 4_000 };
  await server.server.elicitInput(form({ note: { type: 'string' } }), options).catch(() => undefined);
  const asked = server.server.elicitInput(form({ sure: { type: 'boolean' } }), { timeout: 600_000 });
  return text(JSON.stringify(await asked));
});
/** Asks, and waits for no answer that takes longer. */
server.registerTool('hurry', {}, async () => {
  const form = { message: 'Now?', requestedSchema: { type: 'object', properties: {} } };
  return text(JSON.stringify(await server.server.elicitInput(form, { timeout: 2_000 })));
});
/** Asks for several fields, with titled choices in each form. */
server.registerTool('survey', {}, async () => {
  const properties = {
    name: { type: 'string', title: 'Name', description: 'as in the passport' },
    seat: { type: 'string', enum: ['w', 'a'], enumNames: ['Window', 'Aisle'] },
    meal: {
      type: 'string',
      oneOf: [
        { const: 'v', title: 'Vegetarian' },
        { const: 'no', title: 'no' },
      ],
    },
    extras: {
      type: 'array',
      items: {
        anyOf: [
          { const: 'bag', title: 'A bag\n  fake: line' },
          { const: 'food', title: 'A meal' },
        ],
      },
    },
  };
  const form = { message: 'Who flies?', requestedSchema: { type: 'object', properties, required: ['name'] } };
  return text(JSON.stringify(await server.server.elicitInput(form, { timeout: 600_000 })));
});
/** Leaves a child that holds the standard streams. */
server.registerTool('child', {}, () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'inherit' });
  return text(String(child.pid));
});

if (STUBBORN) {
  process.on('SIGTERM', () => mark('SIGTERM'));
  setInterval(() => undefined, 1000);
}
process.stdin.on('end', () => mark('input ended'));
mark(`started ${process.pid}`);
await server.connect(new StdioServerTransport());
