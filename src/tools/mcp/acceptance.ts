import { createHash } from 'node:crypto';
import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import type { Unaccepted } from '../../agents/tool-port.ts';
import { messageOf } from '../../kernel/index.ts';
import type { McpLog } from './settings.ts';

/**
 * Records which tools a person has accepted: a server may change a tool's description and schema later.
 *
 * ACCEPTANCE-1 The tools of a server's first list are accepted. A tool that is new or changed later is reported, and is not
 *    accepted until a person approves a call of it.
 * ACCEPTANCE-2 Accepted is one digest of a tool: name, title, description, hints and schema.
 */

/** The accepted digests by server and tool. Kept over restarts. */
export interface AcceptedTools {
  /** Undefined: the server was never listed. */
  of(server: string): Readonly<Record<string, string>> | undefined;
  /** Durable when it resolves. */
  save(server: string, digests: Readonly<Record<string, string>>): Promise<void>;
}

export class Acceptance {
  readonly #kept: AcceptedTools;
  readonly #log: McpLog;
  readonly #reported = new Set<string>();

  constructor(kept: AcceptedTools, log: McpLog) {
    this.#kept = kept;
    this.#log = log;
  }

  /** ACCEPTANCE-1. Of a tool that is listed twice, the first counts. */
  listed(server: string, tools: readonly Tool[]): void {
    if (tools.length === 0) return;
    if (this.#kept.of(server) === undefined) {
      const digests = tools.map((tool): [string, string] => [tool.name, digestOf(tool)]);
      void this.#save(server, Object.fromEntries(digests.reverse()));
      return;
    }
    const unknown = tools.flatMap((tool) => {
      const found = this.unaccepted(server, tool);
      const key = JSON.stringify([server, tool.name, found?.digest]);
      if (found === null || this.#reported.has(key)) return [];
      this.#reported.add(key);
      return [{ tool: tool.name, is: found.is }];
    });
    if (unknown.length > 0)
      this.#log.warn(
        { server, tools: unknown },
        'tools of an MCP server are new or changed since they were accepted: their calls wait for approval',
      );
  }

  /** Null: accepted in its current form. */
  unaccepted(server: string, tool: Tool): Unaccepted | null {
    const accepted = this.#kept.of(server);
    const digest = digestOf(tool);
    const known = accepted && Object.hasOwn(accepted, tool.name) ? accepted[tool.name] : undefined;
    if (accepted === undefined || known === digest) return null;
    return { digest, is: known === undefined ? 'new' : 'changed' };
  }

  async accept(server: string, tool: string, digest: string): Promise<void> {
    await this.#save(server, { ...this.#kept.of(server), [tool]: digest });
  }

  /** A list that cannot be saved is known until the daemon stops, and is accepted again at the next start. */
  async #save(server: string, digests: Readonly<Record<string, string>>): Promise<void> {
    await this.#kept.save(server, digests).catch((error: unknown) => {
      this.#log.warn({ server, error: messageOf(error) }, 'accepted tools of an MCP server are not kept');
    });
  }
}

function digestOf({ name, title, description, annotations, inputSchema }: Tool): string {
  const text = JSON.stringify({ name, title, description, annotations, inputSchema }, inOrder);
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** Key order is irrelevant. */
function inOrder(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
