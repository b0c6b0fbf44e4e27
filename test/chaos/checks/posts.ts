import type { Entry, MessageEntry } from '../../../src/client/index.ts';
import { type Observed, type Violation, violation } from '../findings.ts';
import type { PlannedPost } from '../posts-plan.ts';

type Seen = Pick<Observed, 'planned' | 'acknowledged' | 'logs' | 'refused'>;

/** Checks that every acknowledged message is once in its own log, unchanged and in its publisher's order. */
export function checkPosts({ planned, acknowledged, logs, refused }: Seen): Violation[] {
  const placesById = new Map<string, [conversation: string, entry: Entry][]>();
  for (const [conversation, entries] of logs) {
    for (const entry of entries) {
      placesById.set(entry.id, [...(placesById.get(entry.id) ?? []), [conversation, entry]]);
    }
  }
  const lost = acknowledged.flatMap(({ post, index }) => {
    const [first, ...others] = placesById.get(post.id) ?? [];
    const found = violation.bind(null, 'posts', post.conversation);
    if (!first) {
      const letter = refused.get(post.id);
      const why = letter === undefined ? '' : `; its dead letter says ${letter}`;
      return [found(null, `${post.id} was acknowledged and is not in the log${why}`)];
    }
    const [conversation, entry] = first;
    return [
      ...others.map(([other, { index: at }]) =>
        violation('posts', other, at, `${post.id} is in the log twice`),
      ),
      ...(conversation === post.conversation
        ? []
        : [violation('posts', conversation, entry.index, `${post.id} is in another conversation`)]),
      ...(index === null || index === entry.index
        ? []
        : [found(entry.index, `${post.id} was acknowledged as entry ${index}`)]),
      ...(sameAs(post, entry) ? [] : [found(entry.index, `${post.id} differs from what was posted`)]),
    ];
  });
  return [...unique(lost), ...checkOrder(planned, logs)];
}

function sameAs(post: PlannedPost, entry: Entry): boolean {
  return entry.type === 'message' && entry.content === post.content && entry.author.id === post.publisher;
}

function isPost(entry: Entry): entry is MessageEntry {
  return entry.type === 'message' && entry.role === 'user';
}

function checkOrder(planned: readonly PlannedPost[], logs: Observed['logs']): Violation[] {
  const known = new Map(planned.map((post) => [post.id, post]));
  return [...logs].flatMap(([conversation, entries]) => {
    const last = new Map<string, number>();
    return entries.filter(isPost).flatMap((entry) => {
      const post = known.get(entry.id);
      if (!post) return [violation('posts', conversation, entry.index, `${entry.id} was not posted`)];
      const before = last.get(post.publisher) ?? -1;
      last.set(post.publisher, Math.max(before, post.number));
      if (post.number > before) return [];
      return [violation('order', conversation, entry.index, `${post.id} is after number ${before}`)];
    });
  });
}

/** A message that was acknowledged twice is reported once. */
function unique(violations: readonly Violation[]): Violation[] {
  return [...new Map(violations.map((one) => [JSON.stringify(one), one])).values()];
}
