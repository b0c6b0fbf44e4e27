import { type Bus, type OldPosts, type Owner, SKIPPED, type SkipUntil } from '../../bus/index.ts';
import { type Log, messageOf, ParleyError, refusal } from '../../kernel/index.ts';
import type { BackupFacts, ConversationStore } from '../../persistence/index.ts';
import { beginFromBackup } from '../conversations/restored-logs.ts';
export interface OldPostsParts {
  readonly bus: Pick<Bus, 'ingressStart' | 'unsettledUntil' | 'publishRefusedRuns'>;
  readonly store: ConversationStore;
  readonly owner: Owner;
  readonly log: Log;
  /** Every post is answered that is not in the logs. */
  readonly isReplay: boolean;
  /** Posts up to there are not answered. */
  readonly skipUntil?: SkipUntil | undefined;
}

/**
 * Binds the store to the ingress stream before it reads posts. Throws `OLD_POSTS` if nothing is known about the posts of the
 * stream, or if the logs are a backup that lacks settled posts, and the caller decided nothing.
 */
export async function decideOnOldPosts(parts: OldPostsParts): Promise<void> {
  const { bus, store, owner, log, isReplay, skipUntil } = parts;
  const backup = await store.backupMark.get();
  if (!isReplay && skipUntil) await skip(parts, skipUntil);
  else if (!isReplay) {
    const after = await store.ingressPosition();
    const { after: begin, old } = await bus.ingressStart({ after, owner, isBackup: backup !== null });
    if (old) throw oldPosts(old, owner, backup);
    if (after?.stream !== begin.stream)
      await store.saveIngressPosition(begin).catch((error: unknown) => {
        log.warn({ error: messageOf(error) }, 'the position in the ingress stream was not saved');
      });
  }
  if (backup) await beginFromBackup(store, backup, log);
}

/** The letters are stored before the position: a crash between them writes them once more. */
async function skip({ bus, store, owner, log }: OldPostsParts, until: SkipUntil): Promise<void> {
  const after = await store.ingressPosition();
  const skipped = await bus.unsettledUntil({ after, owner }, until);
  if (skipped === null) {
    log.warn({}, '--skip-until has no effect: another daemon with these logs reads the posts');
    return;
  }
  const { position, posts } = skipped;
  for (const [publisher, runs] of posts) {
    const message = `${runs.count} posts of ${publisher} were skipped by --skip-until`;
    const hint = 'while the stream has them, `parley up --replay` answers them';
    await bus.publishRefusedRuns(publisher, runs, refusal(SKIPPED, message, hint));
  }
  await store.saveIngressPosition(position);
  const count = [...posts.values()].reduce((sum, { count }) => sum + count, 0);
  log.warn(
    { posts: count, upTo: position.sequence },
    'posts were skipped by --skip-until; start without it next time',
  );
}

function oldPosts({ name, count, time, by, last }: OldPosts, owner: Owner, backup: BackupFacts | null) {
  if (time !== null) {
    const [first, newest] = [new Date(time.from).toISOString(), new Date(time.to).toISOString()];
    return new ParleyError(
      'OLD_POSTS',
      `stream ${name} has old posts (${count}, stored from ${first} to ${newest}): neither the server nor ${owner.name} knows which are answered`,
      {
        hint: `answer them with \`parley up --replay\`, or skip them with \`parley up --skip-until ${last}\` (a sequence, an ISO time, or now)`,
      },
    );
  }
  const settled = by === null ? 'that may have an answer' : `that ${by} settled`;
  return new ParleyError(
    'OLD_POSTS',
    `stream ${name} has posts (${count}) ${settled} after this backup was made (${backup?.madeAt}): the logs lack them`,
    {
      hint: `answer them again with \`parley up --replay\`, or leave them out with \`parley up --skip-until ${last}\``,
    },
  );
}
