import { type Command, Option } from 'commander';
import { ParleyError, type RequestOf } from '../../../client/index.ts';
import { parseJson, readArguments } from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';
import { ask, type Connected, withDaemon } from '../../find-daemon.ts';
import { conversationId } from '../../options/options.ts';
import {
  type ActorOptions,
  actorOf,
  addActorOptions,
  withHint,
  withOperator,
} from '../../options/publisher.ts';
import { approvalLines } from '../../render/entry.ts';

/** Lists pending approvals and answers them. */

type Answer = Pick<RequestOf<'answer'>, 'answer' | 'reason' | 'result' | 'arguments' | 'always'>;

interface AnswererOptions extends ActorOptions {
  readonly operator?: boolean;
  readonly reason?: string;
  readonly result?: string;
  readonly arguments?: string;
  readonly rerun?: boolean;
  readonly failed?: boolean;
  readonly always?: true;
}

export function addApprovals(program: Command, act: Act): void {
  const added = program
    .command('approvals')
    .description('list the pending approvals')
    .argument('[conversation]', 'only this one', conversationId);
  ask(act, added, list);
  const answering = (
    name: string,
    about: string,
    answerOf: (options: AnswererOptions) => Answer,
    options: readonly (readonly [flag: string, about: string])[] = [],
  ) => {
    const command = program.command(name).description(about).argument('<id>', 'of the approval');
    for (const [flag, meaning] of options) command.option(flag, meaning);
    const operator = new Option('--operator', 'answer as the operator, without a publisher');
    const added = addActorOptions(command).addOption(operator.conflicts('publisher'));
    act(added, (context, id: string, given: AnswererOptions) => give(context, id, given, answerOf(given)));
  };
  const reason = ['--reason <text>', 'the reason, for the model'] as const;
  answering('approve', 'let a call run', approval, [
    reason,
    ['--arguments <json>', 'it runs with these arguments instead'],
    [
      '--always',
      'also later calls that it covers, in this conversation, until the agent is stopped (operators)',
    ],
  ]);
  answering('deny', 'refuse a call', ({ reason }) => ({ answer: 'deny', ...(reason && { reason }) }), [
    reason,
  ]);
  answering('resolve', 'report the outcome of a call that may have run', resolution, [
    ['--result <json>', 'it ran, with this result'],
    ['--rerun', 'run it again'],
    ['--failed', 'it did not run'],
  ]);
}

async function list(context: Connected, conversation: string | undefined): Promise<void> {
  const { approvals, more, incomplete = [] } = await context.request('approvals', { conversation });
  for (const approval of approvals)
    context.result(approval, (one) => approvalLines(one, context.command).join('\n'));
  if (more) context.note(`${more} more are pending: name a conversation, or answer some of these`);
  if (!context.json && approvals.length === 0) context.line('no pending approvals');
  if (incomplete.length > 0)
    context.note(`the list may be incomplete: no answer from daemon ${incomplete.join(', ')}`);
}

function approval({ arguments: text, always, reason }: AnswererOptions): Answer {
  const approved = { answer: 'approve', ...(always && { always }), ...(reason && { reason }) } as const;
  if (text === undefined) return approved;
  const read = readArguments(text);
  if (read.ok) return { ...approved, arguments: read.value };
  throw new ParleyError('USAGE', `--arguments is no JSON object: ${read.why}`, {
    hint: 'quote it: --arguments \'{"command":"ls"}\'',
  });
}

function resolution({ result, rerun, failed }: AnswererOptions): Answer {
  const chosen = [result !== undefined, rerun === true, failed === true].filter(Boolean).length;
  if (chosen !== 1) {
    throw new ParleyError('USAGE', 'resolve takes exactly one of --result, --rerun and --failed', {
      hint: '`parley resolve ID --rerun`',
    });
  }
  if (result === undefined) return { answer: rerun ? 'rerun' : 'failed' };
  const value = parseJson(result);
  if (value !== undefined) return { answer: 'result', result: value };
  throw new ParleyError('USAGE', `--result is not JSON: ${result}`, {
    hint: 'quote it: --result \'"done"\'',
  });
}

function give(context: Context, approvalId: string, who: AnswererOptions, answer: Answer): Promise<void> {
  return withDaemon(context, async ({ client }) => {
    const { publisher, ...author } = actorOf(context, who);
    const request = { approvalId, ...author, ...(who.operator ? {} : { publisher }), ...answer };
    const accepted = await client.request('answer', request).catch((error: unknown) => {
      throw withOperator(withHint(error, 'ANSWER_DOES_NOT_FIT', fitting(approvalId, answer)));
    });
    context.result(accepted, () => `${approvalId}: ${answer.answer}`);
  });
}

/** The commands of the other kind: for a call that ran, or did not. */
function fitting(id: string, { answer }: Answer): string {
  return answer === 'approve' || answer === 'deny'
    ? `\`parley resolve ${id} --rerun | --failed | --result JSON\``
    : `\`parley approve ${id}\` or \`parley deny ${id}\``;
}
