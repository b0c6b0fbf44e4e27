import { useEffect } from 'preact/hooks';
import type { DeliveryMode } from '../../../conversation/index.ts';
import { heading } from '../../state/alerts.ts';
import { connection, useThread } from '../../state/conversation.ts';
import { deletedIds, titleOf } from '../../state/conversations.ts';
import { jumpTo } from '../../state/jump.ts';
import { send } from '../../state/outbox.ts';
import { route } from '../../state/route.ts';
import { AnswerPanel } from '../answer/panel.tsx';
import { NoSuchEntry, NotLoaded, UnknownConversation } from '../parts/unknown.tsx';
import { KeptPosts } from '../thread/outbox-view.tsx';
import { ThreadView } from '../thread/thread-view.tsx';
import { Timeline } from '../timeline/timeline.tsx';
import { Composer } from './composer.tsx';
import { Header } from './header.tsx';
import { People } from './people.tsx';
import { Runs } from './runs.tsx';

export function ConversationPage() {
  const here = useThread();
  const title = here && (titleOf(here.id) ?? here.thread.title);
  useEffect(() => {
    heading.value = title ?? '';
    return () => {
      heading.value = '';
    };
  }, [title]);
  const at = route.value;
  if (at.page !== 'conversation' || here?.id !== at.id) return <main class="page" aria-busy="true" />;
  const post = (content: string, delivery: DeliveryMode) => send(at.id, { content, delivery });
  return (
    <>
      <main class="page">
        <Header key={at.id} />
        <People />
        <ConnectionBar />
        <Runs />
        <WaitingBar />
        <UnknownConversation />
        <NotLoaded />
        <NoSuchEntry />
        {at.view === 'timeline' ? <Timeline /> : <ThreadView key={`thread-${at.id}`} />}
        <KeptPosts place={at.id} />
        <Composer key={`composer-${at.id}`} onPost={post} place={at.id} />
      </main>
      {at.panel && <AnswerPanel key={at.id} id={at.id} panel={at.panel} />}
    </>
  );
}

/** Jumps to pending approvals and questions, which may be far above. */
function WaitingBar() {
  const thread = useThread()?.thread;
  const { questions = [], waitingCalls = [] } = thread ?? {};
  const [first] = [...questions.map(({ call }) => call), ...waitingCalls];
  if (!first) return null;
  const unknown = waitingCalls.filter(({ approval }) => approval?.mayHaveRun).length;
  const needed = [
    amount(waitingCalls.length - unknown, 'approval', 'needed'),
    amount(questions.length, 'answer', 'needed'),
    amount(unknown, 'outcome', 'unknown'),
  ];
  return (
    <p class="waiting-bar">
      <button type="button" class="link" onClick={() => jumpTo(first.place.index)}>
        {needed.filter((part) => part !== '').join(', ')}
      </button>
    </p>
  );
}

const amount = (count: number, what: string, is: string): string =>
  count === 0 ? '' : `${count} ${what}${count === 1 ? '' : 's'} ${is}`;

function ConnectionBar() {
  const state = connection.value;
  const here = useThread();
  if (here && here.thread.entries.length > 0 && deletedIds.value.has(here.id))
    return (
      <p class="connection" role="status">
        This conversation was deleted. Your next message begins a new one.
      </p>
    );
  if (state.kind !== 'over') return null;
  return (
    <p class="connection" role="status">
      {state.message}
    </p>
  );
}
