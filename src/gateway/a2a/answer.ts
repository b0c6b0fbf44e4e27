import { A2A_PROTOCOL_VERSION, type AgentCard, type Message } from '@a2a-js/sdk';
import { duplicateInterfacesForLegacy } from '@a2a-js/sdk/compat/v0_3';
import { wireCallId } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { OpenCall } from '../progress/open-calls.ts';
import { contentOf } from './parts.ts';

/**
 * What a message to a task that needs input says.
 *
 * ANSWER-1 To a question: its words are the answer.
 * ANSWER-2 To an approval: an object like the body of `POST /api/approvals/<id>`, or words that begin with the answer. Anything
 *    else is refused, since nobody's word is guessed.
 * ANSWER-3 Of several approvals, an object names the one that it means. A message that names none, or one that is not open, is
 *    refused: it must release no call that it did not mean.
 * ANSWER-4 Once a second approval was requested, each answer but `deny` names its own: the call that its sender was shown may be
 *    answered already, and another one open in its place.
 */

export type Reply =
  | { readonly kind: 'words'; readonly agent: string; readonly replyTo: string; readonly content: string }
  | { readonly kind: 'verdict'; readonly approvalId: string; readonly body: Record<string, unknown> };

const VERDICTS = ['approve', 'deny', 'rerun', 'failed', 'result'];

/** `requested`: how many approvals the sender may have been shown in this task. */
export function replyOf(message: Message, open: readonly OpenCall[], requested: number): Reply {
  const { text, data, words } = contentOf(message);
  const call = callOf(data.approvalId, open);
  const { approval, agent, place } = call;
  if (!approval) return { kind: 'words', agent, replyTo: wireCallId(place), content: words };
  const body = verdictOf(text, data);
  if (data.approvalId === undefined && requested > 1 && body.answer !== 'deny') {
    const problem = `this task asked for ${requested} approvals, and the message names none`; // ANSWER-4
    throw new ParleyError('BAD_REQUEST', problem, { hint: naming([approval]) });
  }
  return { kind: 'verdict', approvalId: approval.id, body };
}

/** ANSWER-3 */
function callOf(approvalId: unknown, open: readonly OpenCall[]): OpenCall {
  const [first] = open;
  if (!first) throw new ParleyError('TASK_TAKES_NO_INPUT', 'nobody asks a person anything here');
  const approvals = open.flatMap(({ approval }) => approval ?? []);
  if (approvalId === undefined && (first.approval === null || approvals.length === 1)) return first;
  const named = open.find(({ approval }) => approval?.id === approvalId);
  if (named?.approval) return named;
  const problem =
    approvalId === undefined
      ? `${approvals.length} calls of tools wait for approval, and the message names none`
      : `no approval ${JSON.stringify(approvalId)} is open in this task`;
  throw new ParleyError('BAD_REQUEST', problem, { hint: naming(approvals) });
}

function naming(approvals: readonly { readonly id: string }[]): string {
  const ids = approvals.map(({ id }) => id).join(', ') || 'none';
  return `send {"approved": true, "approvalId": …} as data; open are ${ids}`;
}

function verdictOf(text: string, data: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { approved, answer, result } = data;
  const reason = data.reason ?? text; // words beside an object say why
  if (typeof approved === 'boolean') return { answer: approved ? 'approve' : 'deny', ...reasoned(reason) };
  if (typeof answer === 'string')
    return { answer, ...reasoned(reason), ...(result !== undefined && { result }) };
  const [, word = '', rest = ''] = /^\s*([a-z]+)[\s:,.]*([\s\S]*)$/i.exec(text) ?? [];
  const said = word.toLowerCase();
  if (!VERDICTS.includes(said)) {
    throw new ParleyError('BAD_REQUEST', 'a call of a tool waits for approval', {
      hint: 'send {"approved": true} or {"approved": false} as data, or the word approve or deny',
    });
  }
  if (said === 'result') return { answer: said, result: rest };
  return { answer: said, ...reasoned(rest) };
}

function reasoned(reason: unknown): { reason?: string } {
  return typeof reason === 'string' && reason !== '' ? { reason } : {};
}

/** What another agent may know of one of ours. */

export interface Described {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
}

export function cardOf(agent: Described, url: string, version: string, needsToken: boolean): AgentCard {
  const { slug, name, description } = agent;
  const said = description || `${name}, an agent of this team`;
  const own = { url, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: A2A_PROTOCOL_VERSION };
  return {
    name,
    description: said,
    supportedInterfaces: duplicateInterfacesForLegacy([own], ['JSONRPC']),
    provider: undefined,
    version,
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: needsToken ? { token: BEARER } : {},
    securityRequirements: needsToken ? [{ schemes: { token: { list: [] } } }] : [],
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain'],
    skills: [
      {
        id: slug,
        name,
        description: said,
        tags: ['conversation'],
        examples: [],
        inputModes: [],
        outputModes: [],
        securityRequirements: [],
      },
    ],
    signatures: [],
  };
}

const BEARER = {
  scheme: {
    $case: 'httpAuthSecurityScheme' as const,
    value: { description: 'a token of this daemon', scheme: 'Bearer', bearerFormat: '' },
  },
};
