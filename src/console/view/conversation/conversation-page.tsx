import type { DeliveryMode } from '../../../conversation/index.ts';
import { oneLine } from '../../model/format.ts';
import { connection, useThread } from '../../state/conversation.ts';
import { deletedIds, titleOf } from '../../state/conversations.ts';
import { draftOf, postOf } from '../../state/files.ts';
import { discard, outbox, send, sendAgain } from '../../state/outbox.ts';
import { jumpTo, route } from '../../state/route.ts';
import { AnswerPanel } from '../answer/panel.tsx';
import { LinkButton } from '../parts/controls.tsx';
import { useHeading } from '../parts/hooks.ts';
import { NoSuchEntry, NotLoaded, UnknownConversation } from '../parts/unknown.tsx';
import { ThreadView } from '../thread/thread-view.tsx';
import { Timeline } from '../timeline/timeline.tsx';
import { ChosenFiles, Composer } from './composer.tsx';
import { Header, People } from './header.tsx';
import { Runs } from './runs.tsx';

export function ConversationPage() {
  const here = useThread();
  const title = here && (titleOf(here.id) ?? here.thread.title);
  useHeading(title ?? '');
  const at = route.value;
  if (at.page !== 'conversation' || here?.id !== at.id) return <main class="page" aria-busy="true" />;
  const post = (content: string, delivery: DeliveryMode) =>
    send(at.id, { content, delivery }, draftOf(at.id));
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
  const forms = waitingCalls.filter(({ approval }) => approval?.asks).length;
  const needed = [
    amount(waitingCalls.length - unknown - forms, 'approval', 'needed'),
    amount(questions.length + forms, 'answer', 'needed'),
    amount(unknown, 'outcome', 'unknown'),
  ];
  return (
    <p class="waiting-bar">
      <LinkButton onClick={() => jumpTo(first.place.index)}>
        {needed.filter((part) => part !== '').join(', ')}
      </LinkButton>
    </p>
  );
}

const amount = (count: number, what: string, is: string): string =>
  count === 0 ? '' : `${count} ${what}${count === 1 ? '' : 's'} ${is}`;

function ConnectionBar() {
  const state = connection.value;
  const here = useThread();
  const isDeleted = here && here.thread.entries.length > 0 && deletedIds.value.has(here.id);
  if (!isDeleted && state.kind !== 'over') return null;
  return (
    <p class="connection" role="status">
      {isDeleted
        ? 'This conversation was deleted. Your next message begins a new one.'
        : state.kind === 'over' && state.message}
    </p>
  );
}

/** The person's messages that the daemon has not confirmed. */
function KeptPosts({ place }: { readonly place: string }) {
  const kept = outbox.value.filter(
    ({ conversation, state }) => conversation === place && state !== 'sending',
  );
  if (kept.length === 0) return null;
  return (
    <ul class="kept-posts" aria-label="Not sent yet">
      {kept.map(({ post, state, reason }) => (
        <li key={post.id} class={state}>
          <p dir="auto">{oneLine(post.content, 300)}</p>
          <ChosenFiles of={postOf(post.id)} />
          <p class="muted">
            {state === 'waiting' ? 'Waits to be sent' : 'Not sent'}
            {reason && `: ${reason}`}
            {state === 'refused' && <LinkButton onClick={() => sendAgain(post.id)}>Send again</LinkButton>}
            <LinkButton onClick={() => discard(post.id)}>Discard</LinkButton>
          </p>
        </li>
      ))}
    </ul>
  );
}
