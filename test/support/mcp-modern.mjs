import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { acceptedContent, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

/** An MCP server of revision 2026-07-28, and of the older ones; as a program over its standard streams. */

const text = (words) => ({ content: [{ type: 'text', text: words }] });

/** `onHanging`, `onCancelled`: a call of `hang` began, and was cancelled. */
export function modernServer({ onHanging = () => undefined, onCancelled = () => undefined } = {}) {
  const server = new McpServer({ name: 'modern', version: '1.0.0' });
  server.registerTool('revision', {}, () => text(server.server.getNegotiatedProtocolVersion() ?? 'none'));
  server.registerTool('steps', {}, async ({ mcpReq }) => {
    const { progressToken } = mcpReq._meta;
    const params = { progressToken, progress: 1, total: 2, message: 'halfway' };
    await mcpReq.notify({ method: 'notifications/progress', params });
    await delay(20); // the SDK drops progress that arrives with the result
    return text(`key ${mcpReq._meta['parley/idempotency-key']}`);
  });
  server.registerTool('book', {}, ({ mcpReq }) => {
    const given = acceptedContent(mcpReq.inputResponses, 'day');
    if (given) return text(`booked ${given.day}`);
    if (mcpReq.inputResponses) return text('not booked');
    const requestedSchema = { type: 'object', properties: { day: { type: 'string' } }, required: ['day'] };
    return inputRequired({
      inputRequests: { day: inputRequired.elicit({ message: 'Which day?', requestedSchema }) },
    });
  });
  server.registerTool('hang', {}, ({ mcpReq }) => {
    mcpReq.signal.addEventListener('abort', () => onCancelled());
    onHanging();
    return new Promise(() => undefined);
  });
  server.registerTool('fail', {}, () => ({ ...text('out of paper'), isError: true }));
  server.registerTool('grow', {}, () => {
    server.registerTool('grown', {}, () => text('grown'));
    return text('done');
  });
  return server;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) serveStdio(() => modernServer());
