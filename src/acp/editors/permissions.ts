import { methods, type PermissionOption, type RequestPermissionRequest } from '@agentclientprotocol/sdk';
import type { RequestOf } from '../../client/index.ts';
import type { OpenCall } from '../../conversation/index.ts';
import { escapeHidden, visibleCall } from '../../kernel/index.ts';
import { textBlock } from './content.ts';
import type { SessionContext } from './context.ts';
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

/** Its name says all that it allows. */
const alwaysOf = (covers: string | undefined): PermissionOption[] =>
  covers === undefined
    ? []
    : [
        {
          optionId: 'always',
          name: `Allow, also later ${escapeHidden(covers)} in this conversation`,
          kind: 'allow_always',
        },
      ];

type Chosen = 'approve' | 'always' | 'deny' | 'rerun' | 'failed';

interface Requested {
  readonly answeredElsewhere: AbortController;
  /** False: the client will not decide it (EDITOR-PERMISSIONS-3). */
  isDecidable: boolean;
}

/** An approval that will not be decided here; null: the client did not say why. */
type OnUndecided = (call: OpenCall, error: unknown) => void;

export class Permissions {
  readonly #session: SessionContext;
  readonly #onUndecided: OnUndecided;
  readonly #requested = new Map<string, Requested>();

  constructor(session: SessionContext, onUndecided: OnUndecided) {
    this.#session = session;
    this.#onUndecided = onUndecided;
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
    const { client } = this.#session;
    const { signal } = requested.answeredElsewhere;
    let cause: unknown = null;
    try {
      const answer = await this.#answerTo(call, signal);
      if (answer !== null)
        return void (await client.request('answer', { approvalId, ...this.#given(answer) }));
    } catch (error) {
      if (signal.aborted) return;
      cause = error;
    }
    requested.isDecidable = false;
    this.#onUndecided(call, cause);
  }

  /** GRANTS-1: as the operator, with the person's name. */
  #given(answer: Chosen): Omit<RequestOf<'answer'>, 'approvalId'> {
    const { actor } = this.#session;
    if (answer !== 'always') return { answer, ...actor };
    return { answer: 'approve', always: true, author: { name: actor.author?.name ?? actor.publisher } };
  }

  /** Null: the client does not decide. */
  async #answerTo(call: OpenCall, cancellationSignal: AbortSignal) {
    const { editor, id: sessionId, cwd } = this.#session;
    const { place, tool, question, arguments: given, approval } = call;
    const { content = [], ...shown } = toolCallOf(place, tool, given, cwd);
    const options = approval?.mayHaveRun ? RESOLVE : [...ALLOW, ...alwaysOf(approval?.covers)];
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
    return options.some(({ optionId }) => optionId === chosen) ? (chosen as Chosen) : null;
  }
}

/** How to answer it elsewhere. `command`: as a person types it. */
export function answerCommands({ approval }: OpenCall, command: (words: string) => string): string {
  const words = approval?.mayHaveRun ? ['resolve'] : ['approve', 'deny'];
  return words.map((word) => `\`${command(`${word} ${approval?.id}`)}\``).join(' or ');
}
