import type { Command } from 'commander';
import type { DeletionAnswer } from '../../../client/index.ts';
import type { Act } from '../../context.ts';
import { ask } from '../../find-daemon.ts';
import { ofConversation } from '../../options/options.ts';

export function addRm(program: Command, act: Act): void {
  const added = ofConversation(program, 'rm', 'delete a conversation and its files; can be repeated');
  ask(act, added, async (context, client, conversation: string) => {
    const answer = await client.request('delete', { conversation });
    context.result(answer, () => erasedText(conversation, answer).join('\n'));
  });
}

/** What a deletion erased, what is left, and what no daemon can erase. */
function erasedText(conversation: string, answer: DeletionAnswer): string[] {
  if (answer.deleted === false) return [`${conversation} stays: ${answer.kept ?? 'it is in use'}`];
  const { existed, erased, left = [], notReached = [] } = answer;
  const counts = erased ? countsOf(erased) : '';
  const removed = counts === '' ? '' : `: ${counts}`;
  const first =
    existed === false
      ? `no conversation ${JSON.stringify(conversation)}${counts && `; erased what was left of it: ${counts}`}`
      : `${conversation} is deleted${removed}`;
  return [
    first,
    ...left.map((what) => `not erased yet, the daemon tries again: ${what}`),
    ...(existed === false || notReached.length === 0 ? [] : [`not reached: ${notReached.join('; ')}`]),
  ];
}

type Erased = Extract<DeletionAnswer, { deleted: true }>['erased'];

function countsOf({ entries, posts, deadLetters, records, outputs, files }: Erased) {
  const counts = [
    [entries, 'entry', 'entries'],
    [posts, 'post in the stream', 'posts in the stream'],
    [deadLetters, 'dead letter', 'dead letters'],
    [records, 'record of tool calls', 'records of tool calls'],
    [outputs, 'large output', 'large outputs'],
    [files, 'file', 'files'],
  ] as const;
  const shown = counts.filter(([count]) => count > 0);
  return shown.map(([count, one, many]) => `${count} ${count === 1 ? one : many}`).join(', ');
}
