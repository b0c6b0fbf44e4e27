import { type Command, Option } from 'commander';
import type { ParleyClient } from '../../../client/index.ts';
import { ParleyError } from '../../../client/index.ts';
import type { Act, Context } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { conversationId } from '../../options/options.ts';
import { type ActorOptions, actorOf, addActorOptions } from '../../options/publisher.ts';
import { approvalLines } from '../../render/approvals.ts';

/** Lists pending approvals and answers them. */

type Answer = {
  answer: 'approve' | 'deny' | 'rerun' | 'result' | 'failed';
  reason?: string;
  result?: unknown;
};

interface AnswererOptions extends ActorOptions {
  readonly operator?: boolean;
}

function addAnswererOptions(command: Command): Command {
  const operator = new Option('--operator', 'answer as the operator, without a publisher');
  return addActorOptions(command).addOption(operator.conflicts('publisher'));
}

export function addApprovals(program: Command, act: Act): void {
  program
    .command('approvals')
    .description('list the pending approvals')
    .argument('[conversation]', 'only this one', conversationId)
    .action((conversation: string | undefined, _options: object, command: Command) =>
      act(command, (context) => withDaemon(context, (client) => list(context, client, conversation))),
    );
  addApprove(program, act);
  const deny = program
    .command('deny')
    .description('refuse a call')
    .argument('<id>', 'of the approval')
    .option('--reason <text>', 'the reason, for the model');
  addAnswererOptions(deny).action((id: string, { reason, ...who }: DenyOptions, command: Command) =>
    act(command, (context) => give(context, id, who, { answer: 'deny', reason })),
  );
  addResolve(program, act);
}

async function list(
  context: Context,
  client: ParleyClient,
  conversation: string | undefined,
): Promise<number> {
  const { approvals, more } = await client.request('approvals', { conversation });
  for (const approval of approvals) {
    if (context.json) context.value(approval);
    else for (const line of approvalLines(approval, context.command)) context.line(line);
  }
  if (more) context.note(`${more} more are pending: name a conversation, or answer some of these`);
  if (!context.json && approvals.length === 0) context.line('no pending approvals');
  return 0;
}

function addApprove(program: Command, act: Act): void {
  const approve = program
    .command('approve')
    .description('let a call run')
    .argument('<id>', 'of the approval');
  addAnswererOptions(approve).action((id: string, who: AnswererOptions, command: Command) =>
    act(command, (context) => give(context, id, who, { answer: 'approve' })),
  );
}

interface DenyOptions extends AnswererOptions {
  readonly reason?: string;
}

interface ResolveOptions extends AnswererOptions {
  readonly result?: string;
  readonly rerun?: boolean;
  readonly failed?: boolean;
}

function addResolve(program: Command, act: Act): void {
  const resolve = program
    .command('resolve')
    .description('report the outcome of a call that may have run')
    .argument('<id>', 'of the approval')
    .option('--result <json>', 'it ran, with this result')
    .option('--rerun', 'run it again')
    .option('--failed', 'it did not run');
  addAnswererOptions(resolve).action((id: string, options: ResolveOptions, command: Command) =>
    act(command, (context) => give(context, id, options, resolution(options))),
  );
}

function resolution({ result, rerun, failed }: ResolveOptions): Answer {
  const chosen = [result !== undefined, rerun === true, failed === true].filter(Boolean).length;
  if (chosen !== 1) {
    throw new ParleyError('USAGE', 'resolve takes exactly one of --result, --rerun and --failed', {
      hint: '`parley resolve ID --rerun`',
    });
  }
  if (rerun) return { answer: 'rerun' };
  if (failed) return { answer: 'failed' };
  return { answer: 'result', result: asJson(result ?? '') };
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ParleyError('USAGE', `--result is not JSON: ${text}`, {
      hint: 'quote it: --result \'"done"\'',
    });
  }
}

function give(context: Context, approvalId: string, who: AnswererOptions, answer: Answer): Promise<number> {
  return withDaemon(context, async (client) => {
    const { publisher, ...author } = actorOf(context, who);
    const request = { approvalId, ...author, ...(who.operator ? {} : { publisher }), ...answer };
    const accepted = await client.request('answer', request).catch((error: unknown) => {
      throw withCommand(error, approvalId, answer);
    });
    if (context.json) context.value(accepted);
    else context.line(`${approvalId}: ${answer.answer}`);
    return 0;
  });
}

/** Adds the commands of this CLI to the hint of a refusal. */
function withCommand(error: unknown, id: string, { answer }: Answer): unknown {
  if (!(error instanceof ParleyError)) return error;
  if (error.code === 'FORBIDDEN')
    return new ParleyError(error.code, error.message, {
      hint: `${error.hint}\nwith the credentials of an operator: --operator`,
      cause: error,
    });
  if (error.code !== 'ANSWER_DOES_NOT_FIT') return error;
  const isFresh = answer !== 'approve' && answer !== 'deny';
  const commands = isFresh
    ? `\`parley approve ${id}\` or \`parley deny ${id}\``
    : `\`parley resolve ${id} --rerun | --failed | --result JSON\``;
  return new ParleyError(error.code, error.message, { hint: `${error.hint}\n${commands}`, cause: error });
}
