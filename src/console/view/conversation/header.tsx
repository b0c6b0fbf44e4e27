import { useSignal } from '@preact/signals';
import type { Mode } from '../../../conversation/index.ts';
import { requests } from '../../api/requests.ts';
import { isWhollyStopped, useThread } from '../../state/conversation.ts';
import { titleOf } from '../../state/conversations.ts';
import { linkTo, route } from '../../state/route.ts';
import { attempt, isOperator, phases, sender, workflows } from '../../state/session.ts';
import { BackLink, Icon, Select, Tabs } from '../parts/parts.tsx';
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
      <Tabs
        label="View"
        tabs={[
          [linkTo.conversation(id), 'Thread', at.view === 'thread'],
          [linkTo.timeline(id), 'Timeline', at.view === 'timeline'],
        ]}
      />
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
  return (
    <Choice
      name="Phase"
      value={thread.floor.phase}
      options={phases.value.map(({ phase, description }) => [phase, phase, description] as const)}
      onChoose={(phase) => requests.phase(id, { phase, ...sender() })}
    />
  );
}

function ModeChoice() {
  const here = useThread();
  if (!here) return null;
  const { mode, run } = here.thread.floor;
  const choices = ['chat', 'agent', ...workflows.value.map((workflow) => `run ${workflow.id}`)];
  return (
    <Choice
      name="Mode"
      value={mode === 'run' ? `run ${run?.workflowId ?? ''}`.trim() : mode}
      options={choices.map((choice) => [choice, choice] as const)}
      onChoose={(chosen) => {
        const [mode = 'agent', workflow] = chosen.split(' ');
        return requests.mode(here.id, { mode: mode as Mode, ...(workflow && { workflow }), ...sender() });
      }}
    />
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string, title?: string])[];
  readonly onChoose: (value: string) => Promise<unknown>;
}

/** The log says when it is changed. */
function Choice({ name, value, options, onChoose }: ChoiceProps) {
  const label = <span class="muted">{name}</span>;
  if (!isOperator.value)
    return (
      <span class="setting" title={`Your token may not change the ${name.toLowerCase()}`}>
        {label} {value}
      </span>
    );
  const isKnown = options.some(([option]) => option === value);
  return (
    <label class="setting">
      {label}
      <Select
        value={value}
        options={isKnown ? options : [[value, value], ...options]}
        isControlled
        onChoose={(chosen) => void attempt(() => onChoose(chosen))}
      />
    </label>
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
