import {
  type AgentContext,
  methods,
  type PermissionOption,
  type RequestPermissionRequest,
} from '@agentclientprotocol/sdk';
import type { ParleyClient } from '../../client/index.ts';
import { type OpenCall, wireCallId } from '../../conversation/index.ts';
import { visibleCall } from '../../kernel/index.ts';
import { textBlock } from './content.ts';
import { toolCallOf } from './updates.ts';

/**
 * The pending approvals of a conversation, as requests for permission. The log decides which are pending.
 *
 * EDITOR-PERMISSIONS-1 Each approval is requested once. The request names the whole call, as it runs.
 * EDITOR-PERMISSIONS-2 A request whose approval was answered elsewhere, or that ended without an answer, is cancelled.
 * EDITOR-PERMISSIONS-3 An approval that this client or this person cannot answer remains pending, and is named.
 */

const ALLOW: readonly PermissionOption[] = [
  { optionId: 'approve', name: 'Allow', kind: 'allow_once' },
  { optionId: 'deny', name: 'Reject', kind: 'reject_once' },
];
/** It may have run already. */
const RESOLVE: readonly PermissionOption[] = [
  { optionId: 'rerun', name: 'Run it again', kind: 'allow_once' },
  { optionId: 'failed', name: 'It did not run', kind: 'reject_once' },
];

interface Requested {
  readonly answeredElsewhere: AbortController;
  /** False: the client will not decide it (EDITOR-PERMISSIONS-3). */
  isDecidable: boolean;
}

export interface PermissionsOptions {
  readonly editor: AgentContext;
  readonly client: ParleyClient;
  readonly sessionId: string;
  readonly cwd: string;
  readonly actor: { readonly publisher: string; readonly author?: { readonly name: string } };
  /** An approval will not be decided here; with the reason. */
  readonly onUndecided: (call: OpenCall, error: unknown) => void;
}

export class Permissions {
  readonly #options: PermissionsOptions;
  readonly #requested = new Map<string, Requested>();

  constructor(options: PermissionsOptions) {
    this.#options = options;
  }

  /** Whether an answer may still come from here. */
  get arePending(): boolean {
    return [...this.#requested.values()].some(({ isDecidable }) => isDecidable);
  }

  /** Call with all open calls of the log. */
  update(open: readonly OpenCall[]): void {
    const pending = new Map(open.flatMap((call) => (call.approval ? [[call.approval.id, call]] : [])));
    for (const [id, { answeredElsewhere }] of this.#requested) {
      if (pending.has(id)) continue;
      this.#requested.delete(id);
      answeredElsewhere.abort();
    }
    for (const [id, call] of pending) {
      if (this.#requested.has(id)) continue;
      const requested = { answeredElsewhere: new AbortController(), isDecidable: true };
      this.#requested.set(id, requested);
      void this.#ask(id, call, requested);
    }
  }

  /** Cancels all requests. */
  close(): void {
    this.update([]);
  }

  async #ask(approvalId: string, call: OpenCall, requested: Requested): Promise<void> {
    const { client, actor, onUndecided } = this.#options;
    const { signal } = requested.answeredElsewhere;
    try {
      const answer = await this.#answerTo(call, signal);
      if (answer !== null) return void (await client.request('answer', { approvalId, answer, ...actor }));
      requested.isDecidable = false;
      onUndecided(call, null);
    } catch (error) {
      if (signal.aborted) return;
      requested.isDecidable = false;
      onUndecided(call, error);
    }
  }

  /** Null: the client does not decide. */
  async #answerTo(call: OpenCall, cancellationSignal: AbortSignal) {
    const { editor, sessionId, cwd } = this.#options;
    const { place, tool, question, arguments: given, approval } = call;
    const { content = [], ...shown } = toolCallOf(place, tool, given, cwd);
    const options = approval?.mayHaveRun ? RESOLVE : ALLOW;
    const request: RequestPermissionRequest = {
      sessionId,
      options: [...options],
      toolCall: {
        ...shown,
        title: visibleCall(tool, given),
        status: 'pending',
        content: [...content, { type: 'content', content: textBlock(question) }],
      },
    };
    const settings = { cancellationSignal, stopWaitingOnCancel: true };
    const { outcome } = await editor.request(methods.client.session.requestPermission, request, settings);
    const chosen = outcome.outcome === 'selected' ? outcome.optionId : null;
    return options.some(({ optionId }) => optionId === chosen)
      ? (chosen as 'approve' | 'deny' | 'rerun' | 'failed')
      : null;
  }
}

/** The command that answers it elsewhere. */
export function answerCommand({ approval, place }: OpenCall): string {
  if (approval === null) return `answer ${wireCallId(place)}`;
  return approval.mayHaveRun
    ? `\`parley resolve ${approval.id} --rerun | --failed | --result JSON\``
    : `\`parley approve ${approval.id}\` or \`parley deny ${approval.id}\``;
}
