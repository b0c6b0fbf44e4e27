import { useEffect, useState } from 'preact/hooks';
import { escapeHidden } from '../../../kernel/hidden.ts';
import { duration } from '../../model/format.ts';
import type { Activity } from '../../model/list/inbox.ts';
import { activityOf } from '../../state/conversations.ts';
import { useConversation } from '../../state/kept.ts';

/** The words of an agent that works and shows no text yet: that it works, or why its model is called again. */
export function Working({ agent, since }: { readonly agent: string; readonly since: string }) {
  const now = useSeconds();
  const activity = activityOf(useConversation(), agent);
  if (activity?.for === 'program') return <span class="muted">waits: its program is not connected</span>;
  return (
    <>
      <span class="pulse" aria-hidden="true" />
      <span class="muted">{wordsOf(activity, since, now)}</span>
    </>
  );
}

function wordsOf(activity: Activity | undefined, since: string, now: number): string {
  const { retry } = activity ?? {};
  if (!retry) {
    const worked = now - Date.parse(since);
    return worked < LONG_MS ? 'is working' : `is working, ${duration(worked)}`;
  }
  const wait = Math.ceil((Date.parse(retry.at) - now) / 1_000);
  const when = wait > 0 ? `in ${wait} s` : 'runs';
  const reason = escapeHidden(`${retry.message} (${retry.code})`);
  return `calls its model again: attempt ${retry.attempt} of ${retry.attempts} ${when}. ${reason}`;
}

/** A turn that takes longer shows for how long. */
const LONG_MS = 5_000;

function useSeconds(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
