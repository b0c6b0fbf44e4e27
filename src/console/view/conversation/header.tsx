import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { Mode } from '../../../conversation/index.ts';
import { requests } from '../../api/requests.ts';
import { isWhollyStopped, useThread } from '../../state/conversation.ts';
import { titleOf } from '../../state/conversations.ts';
import { linkTo, route } from '../../state/route.ts';
import { attempt, isOperator, phases, sender, workflows } from '../../state/session.ts';
import { BackLink, Icon } from '../parts/parts.tsx';
import { useIsBegun } from '../parts/unknown.tsx';
import { ConversationMenu } from './conversation-menu.tsx';

export function Header() {
  const here = useThread();
  const isBegun = useIsBegun();
  const at = route.value;
  if (!here || at.page !== 'conversation') return null;
  const { id, thread } = here;
  return (
    <header class="head">
      <BackLink />
      <h2 title={id}>
        <bdi>{titleOf(id) ?? thread.title ?? id}</bdi>
      </h2>
      <nav class="tabs" aria-label="View">
        <a href={linkTo.conversation(id)} aria-current={at.view === 'thread' ? 'page' : undefined}>
          Thread
        </a>
        <a href={linkTo.timeline(id)} aria-current={at.view === 'timeline' ? 'page' : undefined}>
          Timeline
        </a>
      </nav>
      {isBegun && (
        <div class="controls">
          <PhaseChoice />
          <ModeChoice />
          <StopButton />
          <ConversationMenu id={id} />
        </div>
      )}
    </header>
  );
}

function PhaseChoice() {
  const here = useThread();
  if (!here) return null;
  const { id, thread } = here;
  if (!isOperator.value) return <Setting name="Phase" value={thread.floor.phase} />;
  const known = phases.value.some(({ phase }) => phase === thread.floor.phase);
  return (
    <Choice
      name="Phase"
      value={thread.floor.phase}
      onChange={(event) => {
        const phase = event.currentTarget.value;
        event.currentTarget.value = thread.floor.phase; // until the log says so
        void attempt(() => requests.phase(id, { phase, ...sender() }));
      }}
    >
      {!known && <option value={thread.floor.phase}>{thread.floor.phase}</option>}
      {phases.value.map(({ phase, description }) => (
        <option key={phase} value={phase} title={description}>
          {phase}
        </option>
      ))}
    </Choice>
  );
}

function ModeChoice() {
  const here = useThread();
  if (!here) return null;
  const { id, thread } = here;
  const now =
    thread.floor.mode === 'run' ? `run ${thread.floor.run?.workflowId ?? ''}`.trim() : thread.floor.mode;
  if (!isOperator.value) return <Setting name="Mode" value={now} />;
  const choices = ['chat', 'agent', ...workflows.value.map((workflow) => `run ${workflow.id}`)];
  return (
    <Choice
      name="Mode"
      value={now}
      onChange={(event) => {
        const [mode = 'agent', workflow] = event.currentTarget.value.split(' ');
        event.currentTarget.value = now;
        void attempt(() =>
          requests.mode(id, { mode: mode as Mode, ...(workflow && { workflow }), ...sender() }),
        );
      }}
    >
      {!choices.includes(now) && <option value={now}>{now}</option>}
      {choices.map((choice) => (
        <option key={choice} value={choice}>
          {choice}
        </option>
      ))}
    </Choice>
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly value: string;
  readonly onChange: (event: { readonly currentTarget: HTMLSelectElement }) => void;
  readonly children: ComponentChildren;
}

function Choice({ name, value, onChange, children }: ChoiceProps) {
  return (
    <label class="setting">
      <span class="muted">{name}</span>
      <select value={value} onChange={onChange}>
        {children}
      </select>
    </label>
  );
}

/** For a token that may not change it. */
function Setting({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <span class="setting" title={`Your token may not change the ${name.toLowerCase()}`}>
      <span class="muted">{name}</span> {value}
    </span>
  );
}

function StopButton() {
  const isBusy = useSignal(false);
  const here = useThread();
  if (!here || !isOperator.value) return null;
  const { id, thread } = here;
  const isStopped = isWhollyStopped(thread);
  const act = async () => {
    isBusy.value = true;
    await attempt(() => (isStopped ? requests.resume(id, sender()) : requests.stop(id, sender())));
    isBusy.value = false;
  };
  return (
    <button
      type="button"
      class={isStopped ? 'resume' : 'stop'}
      disabled={isBusy.value}
      onClick={() => void act()}
    >
      <Icon name={isStopped ? 'play' : 'stop'} />
      {isStopped ? 'Resume' : 'Stop'}
    </button>
  );
}
