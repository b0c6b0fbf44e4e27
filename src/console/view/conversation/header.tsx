import { useState } from 'preact/hooks';
import type { Mode } from '../../../conversation/index.ts';
import { requests } from '../../api/requests.ts';
import { recipientsOf, whyItAnswers } from '../../model/addressing.ts';
import { DOWNLOADS, download } from '../../state/commands.ts';
import { isAtWork, isWhollyStopped, nameOf, type Opened, useShown } from '../../state/conversation.ts';
import { forgetRow, titleOf } from '../../state/conversations.ts';
import { openPalette } from '../../state/palette.ts';
import { go, linkTo, route } from '../../state/route.ts';
import { agents, attempt, defaultAgent, isOperator, phases, sender, workflows } from '../../state/session.ts';
import { Button, Confirm, Menu, Select } from '../parts/controls.tsx';
import { BackLink, Icon, Tabs } from '../parts/parts.tsx';
import { useIsBegun } from '../parts/unknown.tsx';

export function Header() {
  const here = useShown();
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
          <Settings here={here} />
          <StopButton here={here} />
          <ConversationMenu id={id} />
        </div>
      )}
    </header>
  );
}

/** The thread changes, not its object: each part reads `useShown`, so that it updates. */
interface OfConversation {
  readonly here: Opened;
}

/** Phase and mode, and who answers next because of them. */
function Settings({ here }: OfConversation) {
  useShown();
  const { floor } = here.thread;
  const { slugs, isAnswer } = recipientsOf('', here.thread, agents.value, defaultAgent.value);
  const [next = ''] = slugs;
  const choices = ['chat', 'agent', ...workflows.value.map((workflow) => `run ${workflow.id}`)];
  return (
    <Menu
      class="quiet"
      title="Phase and mode: who answers"
      face={`${floor.phase} · ${floor.mode}`}
      items={() => (
        <div class="settings">
          <Choice
            name="Phase"
            value={floor.phase}
            options={phases.value.map(({ phase, description }) => [phase, phase, description] as const)}
            onChoose={(phase) => requests.phase(here.id, { phase, ...sender() })}
          />
          <Choice
            name="Mode"
            value={floor.mode === 'run' ? `run ${floor.run?.workflowId ?? ''}`.trim() : floor.mode}
            options={choices.map((choice) => [choice, choice] as const)}
            onChoose={(chosen) => {
              const [mode = 'agent', workflow] = chosen.split(' ');
              return requests.mode(here.id, {
                mode: mode as Mode,
                ...(workflow && { workflow }),
                ...sender(),
              });
            }}
          />
          <p>
            <bdi>{nameOf(next)}</bdi> answers a message that names no agent, because{' '}
            {whyItAnswers(next, isAnswer, floor, agents.value)}.
          </p>
        </div>
      )}
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

function StopButton({ here: { id, thread } }: OfConversation) {
  useShown();
  const [isBusy, setBusy] = useState(false);
  if (!isOperator.value || isAtWork(thread)) return null; // then the message field has it
  const isStopped = isWhollyStopped(thread);
  const act = async () => {
    setBusy(true);
    await attempt(() => (isStopped ? requests.resume(id, sender()) : requests.stop(id, sender())));
    setBusy(false);
  };
  return (
    <Button class={isStopped ? 'resume' : 'stop'} disabled={isBusy} onClick={() => void act()}>
      <Icon name={isStopped ? 'play' : 'stop'} />
      {isStopped ? 'Resume' : 'Stop'}
    </Button>
  );
}

/** Searches or downloads a conversation, or deletes it after a confirmation, because that cannot be undone. */
function ConversationMenu({ id }: { readonly id: string }) {
  const [isAsked, ask] = useState(false);
  const remove = async () => {
    if (!(await attempt(() => requests.delete(id)))) return;
    go(linkTo.list);
    forgetRow(id);
  };
  return (
    <Menu
      class="quiet at-end"
      aria-label="More"
      face={<Icon name="more" />}
      onHide={() => ask(false)}
      items={(then) =>
        isAsked ? (
          <>
            <p>Delete this conversation and its files for all users? This cannot be undone.</p>
            <Confirm action="Delete" onConfirm={then(remove)} onCancel={then()} />
          </>
        ) : (
          <>
            <Button onClick={then(() => openPalette(id))}>Search this conversation</Button>
            {DOWNLOADS.map(({ format, label }) => (
              <Button key={format} onClick={then(() => download(id, format))}>
                {label}
              </Button>
            ))}
            {isOperator.value && (
              <Button class="danger" onClick={() => ask(true)}>
                Delete this conversation…
              </Button>
            )}
          </>
        )
      }
    />
  );
}
