import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import {
  type ClientContext,
  type ContentBlock,
  client,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type RequestPermissionRequest,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { launcher, strangersEnvironment } from './cli.ts';
import { startInProcess } from './in-process.ts';
import { hasLongTests } from './runs.ts';

/** An editor: the client side of the protocol's package, with `parley acp` as its agent. */

export interface Editor {
  readonly agent: ClientContext;
  readonly stdin: Writable;
  /** The updates of one session so far. */
  updates(sessionId: string): readonly SessionUpdate[];
  /** Requests for permission so far. */
  readonly permissions: readonly Asked[];
  /** The option that the person chooses; null: the request stays open. */
  decide: (asked: RequestPermissionRequest) => string | null | Promise<string>;
  /** Each line of its stdout so far. */
  lines(): readonly string[];
  stderr(): string;
  readonly exited: Promise<number | null>;
  prompt(sessionId: string, ...text: readonly string[]): Promise<string>;
  begin(): Promise<string>;
  close(): Promise<void>;
}

interface Asked {
  readonly request: RequestPermissionRequest;
  /** The agent has cancelled it. */
  readonly signal: AbortSignal;
}

/** `hasProcess`: the agent has a process of its own, as it always has in long tests. */
export async function startEditor(
  args: readonly string[],
  cwd = '/',
  { hasProcess = hasLongTests } = {},
): Promise<Editor> {
  const agentOf = hasProcess ? startProcess : startInProcess;
  const child = agentOf(['acp', ...args], cwd);
  const { exited } = child;
  let [stdout, stderr] = ['', ''];
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const received: { sessionId: string; update: SessionUpdate }[] = [];
  const permissions: Asked[] = [];
  const editor = {
    decide: (_: RequestPermissionRequest): string | null | Promise<string> => null,
  };
  const bytes = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      stdout += Buffer.from(chunk).toString();
      controller.enqueue(chunk);
    },
  });
  const app = client({ name: 'editor' })
    .onNotification(methods.client.session.update, ({ params }) => void received.push(params))
    .onRequest(methods.client.session.requestPermission, async ({ params, signal }) => {
      permissions.push({ request: params, signal });
      const optionId = await editor.decide(params);
      if (optionId !== null) return { outcome: { outcome: 'selected', optionId } };
      if (!signal.aborted) await once(signal, 'abort');
      return { outcome: { outcome: 'cancelled' } };
    });
  const input = (Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>).pipeThrough(bytes);
  const connection = app.connect(ndJsonStream(Writable.toWeb(child.stdin), input));
  const { agent } = connection;
  await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  return Object.assign(editor, {
    ...{ agent, stdin: child.stdin, permissions, exited },
    updates: (id: string) => received.filter(({ sessionId }) => sessionId === id).map(({ update }) => update),
    lines: () => stdout.split('\n').filter((line) => line !== ''),
    stderr: () => stderr,
    async begin() {
      return (await agent.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId;
    },
    async prompt(sessionId: string, ...texts: readonly string[]) {
      const prompt = texts.map((text): ContentBlock => ({ type: 'text', text }));
      return (await agent.request(methods.agent.session.prompt, { sessionId, prompt: [...prompt] }))
        .stopReason;
    },
    async close() {
      connection.close();
      if (hasProcess) child.stdin.destroy();
      else child.stdin.end();
      await exited;
    },
  });
}

function startProcess(args: readonly string[], cwd: string) {
  const child = spawn(process.execPath, [launcher, ...args], {
    ...{ cwd, env: strangersEnvironment() },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  return Object.assign(child, { exited });
}

/** All text of the agents. */
export function saidIn(updates: readonly SessionUpdate[]): string {
  return updates
    .flatMap((update) =>
      update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text'
        ? [update.content.text]
        : [],
    )
    .join('');
}
